"""The connection to a Dask scheduler; and a cluster of our own, which ends with this process, however that ends."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import signal
import socket
import ssl
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from firstflight.errors import MachineError
from firstflight.temporary import temporary_directory

if TYPE_CHECKING:
    from distributed import Client, LocalCluster, Security

    from firstflight.engines.cluster import Place

_CONNECT_WITHIN_S = 20
_CLOSE_WITHIN_S = 5
_CLOSE_OURS_WITHIN_S = 30
# A message of Dask begins with its length; that of a greeting is some hundred bytes.
_GREETING = struct.Struct("<Q")
_LONGEST_GREETING = 1 << 20
_INSTALL = 'pip install "firstflight[cluster]"'
_log = logging.getLogger("firstflight")


@contextlib.contextmanager
def connected(place: Place, jobs: int) -> Iterator[Client]:
    """A client of the cluster at `place`; if it is one of our own, `jobs` processes are started, and ended with it.

    MachineError where Dask is not installed, nothing answers, or nothing can be started.
    """
    try:
        from distributed import Client, Security
        from distributed.utils import silence_logging_cmgr
    except ImportError:
        raise MachineError(f"{place} needs Dask, which is not installed: {_INSTALL}") from None
    with contextlib.ExitStack() as stack:
        # Our errors report the connection; Dask would log it as well.
        stack.enter_context(silence_logging_cmgr(logging.CRITICAL))
        try:
            if place.cluster:
                _check_that_it_speaks(place.cluster, _tls(place, Security()))
            address: str | LocalCluster = place.cluster or stack.enter_context(_own_cluster(jobs))
            client = Client(address, timeout=_CONNECT_WITHIN_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise MachineError(
                f"no Dask scheduler answers at {place}; start one (dask scheduler) or fix the address"
            ) from error
        try:
            yield client
        finally:
            # All results have arrived; a scheduler that does not answer drops this client by itself.
            with contextlib.suppress(OSError):
                client.close(timeout=_CLOSE_WITHIN_S)


def _tls(place: Place, security: Security) -> ssl.SSLContext | None:
    """The TLS context that Dask's configuration asks for, None where TCP is asked for. MachineError without one."""
    if not str(place.cluster).startswith("tls://"):
        return None
    reason = "it names none"
    try:
        context: ssl.SSLContext | None = security.get_connection_args("client")["ssl_context"]
    except (OSError, ValueError) as error:
        context, reason = None, f"they cannot be read ({error})"
    if context is None:
        raise MachineError(
            f"{place} needs the certificates of Dask's configuration, and {reason}; set "
            "distributed.comm.tls.ca-file, .client.cert and .client.key, for example as "
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE, DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and ..._KEY"
        )
    return context


def _check_that_it_speaks(address: str, tls: ssl.SSLContext | None) -> None:
    """Raise OSError unless a Dask server is at the address: it greets every client, and Dask's client would wait
    for that greeting without end.
    """
    parts = urlsplit(address)
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(
            socket.create_connection((parts.hostname, parts.port), timeout=_CONNECT_WITHIN_S)
        )
        if tls is not None:
            connection = stack.enter_context(tls.wrap_socket(connection))
        length = stack.enter_context(connection.makefile("rb")).read(_GREETING.size)
    if len(length) < _GREETING.size or _GREETING.unpack(length)[0] > _LONGEST_GREETING:
        raise OSError("the peer is not a Dask server")


@contextlib.contextmanager
def _own_cluster(jobs: int) -> Iterator[LocalCluster]:
    """Processes of one thread each, with the scheduler in this one. They end with this process, however it ends.

    They speak TLS, with a private certificate: any client that reaches a scheduler can run code as its
    user.
    """
    import dask
    from distributed import LocalCluster, Security

    try:
        security = Security.temporary()
    except ImportError:
        raise MachineError(
            f"dask needs cryptography, for a cluster that other users of this machine cannot use; it is not installed: "
            f"{_INSTALL}"
        ) from None
    with (
        temporary_directory() as scratch,
        dask.config.set({"distributed.worker.use-file-locking": False}),
    ):
        try:
            cluster = LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                processes=True,
                security=security,
                # Any port that is free, and for this machine only.
                dashboard_address="127.0.0.1:0",
                # Chunks are small, and Dask's limits would pause or restart workers on a busy machine.
                memory_limit=0,
                local_directory=scratch,
                silence_logs=logging.CRITICAL,
            )
        except (OSError, RuntimeError, TimeoutError) as error:
            raise MachineError(f"the local Dask cluster does not start: {' '.join(str(error).split())}") from error
        # The dashboard needs Bokeh.
        if importlib.util.find_spec("bokeh"):
            _log.warning("firstflight: Dask's dashboard is at %s", cluster.dashboard_link)
        try:
            yield cluster
            with contextlib.suppress(OSError):
                cluster.close(timeout=_CLOSE_OURS_WITHIN_S)
        finally:
            # After Ctrl-C the user does not want to wait for their work; and a busy machine may take its time.
            _end_at_once(cluster)
            with contextlib.suppress(OSError):
                cluster.close(timeout=_CLOSE_WITHIN_S)


def _end_at_once(cluster: LocalCluster) -> None:
    """Kill the workers that are left."""
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
        process = getattr(nanny.process, "process", None)
        if process is not None and process.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

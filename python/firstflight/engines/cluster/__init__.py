"""Where a sweep is computed: in threads of this process, on a Dask cluster of its own, or on an existing one.

On a cluster replicates travel as numbers, cells as bytes and results as tables, or not at all: with a store, workers
write them there. Dask replaces a worker that dies; results that it had not delivered are computed again, to the same
bytes.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from firstflight.errors import RequestError


@dataclass(frozen=True)
class Place:
    """`cluster` None: here. "": a cluster that is started for the sweep. Else the address of a Dask scheduler, which
    begins with tls:// or tcp://.

    `store`: where workers put their chunks, a URL or directory that all machines share; None: they send them here.
    """

    cluster: str | None = None
    store: str | None = None

    def __str__(self) -> str:
        if self.cluster is None:
            return "local"
        return self.cluster.replace("tcp://", "dask://").replace("tls://", "dask+tls://") or "dask"


HERE = Place()
_COMMUNICATION = {"dask": "tcp", "dask+tls": "tls"}


def place(on: str = "local", store: str | None = None) -> Place:
    """The values of `--on` and `--store`. RequestError for anything but local, dask, dask://HOST:PORT and
    dask+tls://HOST:PORT.
    """
    if on == "local":
        if store is not None:
            raise RequestError(
                f'--store "{store}" is where workers keep their chunks; add --on dask or dask+tls://HOST:PORT'
            )
        return HERE
    if on == "dask":
        return Place("", store)
    try:
        parts = urlsplit(on)
        is_address = parts.hostname and parts.port and parts.path in ("", "/") and not (parts.query or parts.username)
    except ValueError:
        is_address = False
    if not is_address or parts.scheme not in _COMMUNICATION:
        raise RequestError(
            f'--on "{on}" names no place to compute: write local, dask, dask://HOST:PORT or dask+tls://HOST:PORT'
        )
    return Place(f"{_COMMUNICATION[parts.scheme]}://{parts.netloc}", store)

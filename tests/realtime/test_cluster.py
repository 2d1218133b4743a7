"""On a Dask cluster the records are those of a local run, byte for byte, even if workers die meanwhile."""

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import firstflight
from clusters import Cluster, children_of, cluster, until
from firstflight import MachineError, RequestError, Scenario
from firstflight.engines import assembly
from firstflight.engines.cluster import connection
from firstflight.records import Run
from firstflight.scenario import Cell
from firstflight.studies.execute import carry_out, prepare, started
from small import USERS, Answer

REPLICATES = 60


def bytes_of(run: Run) -> dict[str, bytes]:
    cells = run.directory / "cells"
    return {str(path.relative_to(cells)): path.read_bytes() for path in sorted(cells.rglob("*.parquet"))}


def scratch_directories() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("firstflight-*")}


@pytest.fixture(autouse=True)
def own_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests with clusters of their own may run meanwhile."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))


@pytest.fixture(autouse=True)
def quiet_dask() -> Iterator[None]:
    # Dask's own warnings (a closing event loop, say) are ignored; ours are errors as everywhere.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(distributed|tornado)\.")
        yield


@pytest.fixture
def network(small: Scenario) -> Scenario:
    return small


@pytest.fixture
def population() -> Scenario:
    return Scenario.from_toml(USERS)


@pytest.fixture(params=["network", "population"])
def scenario(request: pytest.FixtureRequest) -> Scenario:
    found: Scenario = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def whole(scenario: Scenario, tmp_path: Path) -> dict[str, bytes]:
    return bytes_of(firstflight.run(scenario, replicates=REPLICATES, jobs=1, out=tmp_path / "whole"))


@pytest.fixture
def two_workers(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path, 2) as made:
        yield made


def run_and(
    act: Callable[[], object], scenario: Scenario, out: Path, at: int = 1, replicates: int = REPLICATES, **keywords: Any
) -> Run:
    """Run it, and act once, as soon as `at` chunks have come back."""
    chunks = 0

    def on_replicates(cell: Cell, number: int) -> None:
        nonlocal chunks
        chunks += 1
        if chunks == at:
            act()

    request = prepare(scenario, replicates=replicates, **keywords)
    with started(request, out) as run:
        carry_out(request, run, on_replicates)
    return run


def test_a_cluster_of_our_own_survives_the_death_of_a_worker_and_leaves_nothing(
    scenario: Scenario, whole: dict[str, bytes], tmp_path: Path
) -> None:
    before, killed = scratch_directories(), []

    def kill() -> None:
        killed.append(children_of(os.getpid())[0])
        killed[0].kill()

    run = run_and(kill, scenario, tmp_path / "run", on="dask", jobs=2)
    assert killed
    assert bytes_of(run) == whole
    assert not children_of(os.getpid())
    assert scratch_directories() == before
    assert run.provenance["sessions"][0]["on"] == "dask"


def answers_without_a_certificate(port: int) -> bool:
    """Whether the program that listens at the port talks to a client without one, in plain TCP or in TLS."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for wrap in (lambda plain: plain, context.wrap_socket):
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", port), timeout=2) as plain,
            wrap(plain) as talk,
        ):
            if talk.recv(1):
                return True
    return False


@pytest.mark.parametrize("scenario", ["network"], indirect=True)
def test_a_cluster_of_our_own_talks_to_nobody_without_its_certificate(scenario: Scenario, tmp_path: Path) -> None:
    found: dict[int, bool] = {}

    def look() -> None:
        for process in (psutil.Process(), *children_of(os.getpid())):
            for opened in process.net_connections("tcp"):
                if opened.status == psutil.CONN_LISTEN:
                    found[opened.laddr.port] = answers_without_a_certificate(opened.laddr.port)

    run_and(look, scenario, tmp_path / "run", on="dask", jobs=1)
    assert len(found) >= 3, "scheduler, nanny and worker listen"
    assert not any(found.values())
    with cluster(tmp_path, 0) as plain:
        assert answers_without_a_certificate(int(plain.address.rpartition(":")[2]))


@pytest.mark.parametrize("scenario", ["network"], indirect=True)
def test_an_existing_cluster_is_reached_over_tls(
    scenario: Scenario, whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dask
    from distributed import Security

    with pytest.raises(MachineError, match=r"dask\+tls://127.0.0.1:1 needs the certificates of Dask's configuration"):
        firstflight.run(scenario, on="dask+tls://127.0.0.1:1", out=tmp_path / "run")
    made = Security.temporary()
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.write_text(made.tls_client_cert)
    key.write_text(made.tls_client_key)
    names = {"ca-file": certificate}
    for role in ("client", "scheduler", "worker"):
        names |= {f"{role}.cert": certificate, f"{role}.key": key}
    for name, path in names.items():
        variable = name.upper().replace("-", "_").replace(".", "__")
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__TLS__{variable}", str(path))
    with (
        dask.config.set({f"distributed.comm.tls.{name}": str(path) for name, path in names.items()}),
        cluster(tmp_path, 1, "tls") as tls,
    ):
        run = firstflight.run(scenario, replicates=REPLICATES, on=tls.on, out=tmp_path / "run")
        assert tls.on.startswith("dask+tls://")
        assert run.provenance["sessions"][0]["on"] == tls.on
        assert bytes_of(run) == whole
        with pytest.raises(MachineError, match="no Dask scheduler answers at dask://127"):
            firstflight.run(scenario, on=tls.on.replace("+tls", ""), out=tmp_path / "plain")


@pytest.mark.parametrize("scenario", ["network"], indirect=True)
def test_an_existing_cluster_survives_the_death_of_a_worker(
    scenario: Scenario, whole: dict[str, bytes], tmp_path: Path, two_workers: Cluster
) -> None:
    run = run_and(two_workers.workers[0].kill, scenario, tmp_path / "run", on=two_workers.on)
    assert bytes_of(run) == whole


@pytest.mark.parametrize("scenario", ["population"], indirect=True)
def test_chunks_go_through_a_store(
    scenario: Scenario, whole: dict[str, bytes], tmp_path: Path, two_workers: Cluster
) -> None:
    stored: list[Path] = []
    store = tmp_path / "store"
    run = run_and(
        lambda: stored.extend(store.rglob("complete")),
        scenario,
        tmp_path / "run",
        on=two_workers.on,
        store=f"file://{store}",
    )
    assert stored
    assert bytes_of(run) == whole
    assert not list(store.rglob("*.parquet"))


@pytest.mark.parametrize("scenario", ["network"], indirect=True)
@pytest.mark.parametrize("with_store", [False, True])
def test_a_scheduler_that_dies_is_one_sentence_and_the_same_command_resumes(
    scenario: Scenario, whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_store: bool
) -> None:
    monkeypatch.setattr(assembly, "KEEP_AFTER_S", 0.0)
    store = str(tmp_path / "store") if with_store else None
    with (
        cluster(tmp_path, 1) as first,
        pytest.raises(MachineError, match="has stopped or does not answer; finished parts"),
    ):
        run_and(first.scheduler.kill, scenario, tmp_path / "run", at=3, on=first.on, store=store)
    if not with_store:
        assert not Run.open(tmp_path / "run").cells
    done: list[int] = []
    with cluster(tmp_path, 1) as second:
        request = prepare(scenario, replicates=REPLICATES, on=second.on, store=store)
        with started(request, tmp_path / "run") as run:
            carry_out(request, run, lambda cell, number: done.append(number))
    assert sum(done) == REPLICATES
    # The chunks of the first session are reported immediately.
    assert done[0] >= 3
    assert bytes_of(run) == whole
    assert not (tmp_path / "run" / "chunks").exists()


def test_a_scheduler_that_never_answers_is_one_sentence(
    small: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_CONNECT_WITHIN_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(MachineError, match=f"no Dask scheduler answers at dask://127.0.0.1:{port}; start one"):
            firstflight.run(small, replicates=2, on=f"dask://127.0.0.1:{port}", out=tmp_path / "run")
    with pytest.raises(MachineError, match="no Dask scheduler answers at"):
        firstflight.run(small, replicates=2, on=f"dask://127.0.0.1:{port}", out=tmp_path / "run")
    with socket.create_server(("127.0.0.1", 0)) as other:
        on = f"dask://127.0.0.1:{other.getsockname()[1]}"
        greeting = threading.Thread(target=_greet, args=(other,))
        greeting.start()
        with pytest.raises(MachineError, match="no Dask scheduler answers at"):
            firstflight.run(small, replicates=2, on=on, out=tmp_path / "run")
        greeting.join()
    assert not (tmp_path / "run").exists()


def _greet(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"SSH-2.0-somebody\r\n")


def test_a_worker_with_another_build_is_refused_also_when_it_joins_late(small: Scenario, tmp_path: Path) -> None:
    preload = tmp_path / "another.py"
    preload.write_text(
        "from firstflight.records import machine\nmachine.code_version = lambda engine: 'another build'\n"
    )
    with cluster(tmp_path, 1) as made:
        # The one that joins is the only one from then on.
        def replace() -> None:
            made.workers[0].kill()
            made.add_worker("--preload", str(preload))

        refusal = r"worker at tcp://.* has another build of firstflight \(another build, and not"
        with pytest.raises(MachineError, match=refusal):
            run_and(replace, small, tmp_path / "run", on=made.on)


def test_a_worker_without_firstflight_is_refused(small: Scenario, tmp_path: Path) -> None:
    preload = tmp_path / "without.py"
    preload.write_text("import sys\nsys.modules['firstflight'] = None\n")
    with cluster(tmp_path, 0) as made:
        made.add_worker("--preload", str(preload))
        with pytest.raises(MachineError, match=r"has another build of firstflight \(none, and not"):
            firstflight.run(small, replicates=4, on=made.on, out=tmp_path / "run")


def test_what_the_engine_refuses_is_refused_on_a_cluster_too(
    small: Scenario, tmp_path: Path, two_workers: Cluster
) -> None:
    with pytest.raises(RequestError, match="is of kind web_page"):
        firstflight.run(small, engine="model", on=two_workers.on, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        ({"on": "ray"}, r'--on "ray" names no place to compute: write local, dask, dask://HOST:PORT or dask\+tls'),
        ({"on": "dask://"}, r'--on "dask://" names no place'),
        ({"on": "dask://host"}, r'--on "dask://host" names no place'),
        ({"on": "dask://host:port"}, r'--on "dask://host:port" names no place'),
        ({"on": "dask://host:99999"}, r'--on "dask://host:99999" names no place'),
        ({"on": "dask://host:8786/x"}, r"names no place"),
        ({"on": "dask://[::1"}, r"names no place"),
        ({"on": "dask+tls://host"}, r"names no place"),
        ({"on": "tls://host:8786"}, r"names no place"),
        ({"on": "dask://host:8786", "jobs": 4}, r"the workers of dask://host:8786 determine the number of jobs"),
        ({"store": "s3://bucket/x"}, r"is where workers keep their chunks; add --on dask"),
        (
            {"on": "dask", "engine": "emulate"},
            r'"emulate" runs in real time on this machine\'s own kernel and not on dask',
        ),
    ],
)
def test_a_wrong_place_is_refused_in_a_sentence(
    small: Scenario, tmp_path: Path, keywords: dict[str, Any], expected: str
) -> None:
    with pytest.raises(RequestError, match=expected):
        firstflight.run(small, out=tmp_path / "run", **keywords)
    assert not (tmp_path / "run").exists()


def test_without_dask_one_line_says_how_to_install_it(
    firstflight: Callable[..., Answer], small_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    answer = firstflight("run", small_file, "--on", "dask", "--out", tmp_path / "run")
    assert answer.status == 3
    assert answer.err == ('firstflight: dask needs Dask, which is not installed: pip install "firstflight[cluster]"\n')


def long_run(directory: Path, *options: str) -> subprocess.Popen[str]:
    """The program at work on more than it will be given time for, in a process group as in a terminal."""
    (directory / "users.toml").write_text(USERS)
    return subprocess.Popen(
        [
            *(sys.executable, "-c", "from firstflight.cli import main; main()"),
            *("run", directory / "users.toml", "--replicates", "1000000", "--out", directory / "run", *options),
        ],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"TMPDIR": str(directory)},
    )


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_nothing_of_our_own_cluster_outlives_the_program(tmp_path: Path, sent: signal.Signals) -> None:
    with long_run(tmp_path, "--on", "dask", "--jobs", "2") as process:
        until(lambda: (tmp_path / "run" / "chunks").exists(), "chunks of a long cell are kept")
        family = psutil.Process(process.pid).children(recursive=True)
        if sent == signal.SIGINT:
            # As a terminal does: to all processes.
            os.killpg(process.pid, sent)
        else:
            process.send_signal(sent)
        _, err = process.communicate(timeout=120)
    if sent == signal.SIGINT:
        assert process.returncode == 130
        assert err == (
            f"firstflight: interrupted; 0 finished cells are kept in {tmp_path / 'run'}, and the same command "
            "continues with the rest\n"
        )
    until(lambda: not any(_runs(member) for member in family), "its processes are gone")
    until(lambda: not list(tmp_path.glob("firstflight-*")), "its scratch directory is gone")


def test_ctrl_c_takes_the_work_off_an_existing_cluster(tmp_path: Path, two_workers: Cluster) -> None:
    from distributed import Client

    with long_run(tmp_path, "--on", two_workers.on) as process:
        until(lambda: (tmp_path / "run" / "chunks").exists(), "chunks of a long cell are kept")
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode == 130
    with Client(two_workers.address, set_as_default=False) as client:
        until(lambda: not client.processing() or not any(client.processing().values()), "no task is left")
        until(lambda: not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)), "no key is left")
        assert len(client.nthreads()) == 2


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False

"""Where a sweep computes: in threads of this process, on a Dask cluster of its own, or on one that is there."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from ..errors import RequestError


@dataclass(frozen=True)
class Place:
    """`cluster` None: here. "": a cluster that is started for the sweep. Else the address of a Dask scheduler.

    `store`: where workers put their chunks, a URL or directory that all machines share; None: they send them here.
    """

    cluster: str | None = None
    store: str | None = None

    def __str__(self) -> str:
        if self.cluster is None:
            return "local"
        return f"dask://{self.cluster.removeprefix('tcp://')}" if self.cluster else "dask"


HERE = Place()


def place(on: str = "local", store: str | None = None) -> Place:
    """What `--on` and `--store` say. RequestError for anything but local, dask and dask://HOST:PORT."""
    if on == "local":
        if store is not None:
            raise RequestError(
                f'--store "{store}" is where workers keep their chunks; add --on dask or dask://HOST:PORT'
            )
        return HERE
    if on == "dask":
        return Place("", store)
    try:
        parts = urlsplit(on)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme != "dask" or not host or not port or parts.path not in ("", "/") or parts.query or parts.username:
        raise RequestError(f'--on "{on}" names no place to compute: write local, dask or dask://HOST:PORT')
    return Place(f"tcp://{parts.netloc}", store)

"""M-Lab's NDT7 rows, as exported from BigQuery (`measurement-lab.ndt.ndt7` and the unified views), CSV or Parquet.

The schema: https://www.measurementlab.net/tests/ndt/ndt7/. A speed test is no answer that a user waited for, so there
are paths only.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from firstflight.errors import RequestError
from firstflight.observe.columns import ColumnFile, numbers, within
from firstflight.observe.plain import PATH
from firstflight.observe.problem import Problems
from firstflight.observe.room import Room
from firstflight.observe.tables import HEADER_BYTES, Parts, Subnets, seconds

# The ends of columns' names, without separators and in small letters: `a.MinRTT`, `a_MinRTT` and `MinRTT` are one. The
# first that a file has is taken. Those of `a` are in Mbit/s and ms, those of TCPInfo, which are Linux's, in µs.
_THROUGHPUT = ("ameanthroughputmbps", "meanthroughputmbps")
_MIN_RTT_MS = ("aminrtt", "minrtt")
_LOSS = ("alossrate", "lossrate")
_MIN_RTT_US = ("tcpinfominrtt",)
_RTT_US = ("tcpinfortt",)
_ADDRESS = ("rawclientip", "clientip", "clientipaddress")
_UPLOAD = "rawupload"
_MSS_BYTES = 1448


def recognizes(names: Iterable[str]) -> bool:
    """Whether columns with these names are NDT7's."""
    return any(_plain(name) in _THROUGHPUT for name in names)


def read(path: Path, problems: Problems) -> Parts:
    """The parts of a table of tests. RequestError without throughput or round trip."""
    file = ColumnFile(path)
    plain = {_plain(name): name for name in file.names}
    throughput, rtt = _first(plain, _THROUGHPUT), _first(plain, _MIN_RTT_MS)
    rtt_factor = 1e-3
    if rtt is None:
        rtt, rtt_factor = _ending(plain, _MIN_RTT_US), 1e-6
    if throughput is None or rtt is None:
        missing = "a.MeanThroughputMbps" if throughput is None else "a.MinRTT"
        raise RequestError(f"{path} has no column {missing}; export it, or use --kind table for a table of your own")
    loss, most, address = _first(plain, _LOSS), _ending(plain, _RTT_US), _first(plain, _ADDRESS)
    taken = [name for name in (throughput, rtt, loss, most, address) if name is not None]
    limits = ((throughput, 1e6, PATH["down"]), (rtt, rtt_factor, PATH["rtt"]), (most, 1e-6, PATH["max_rtt"]))
    bounded = [(name, factor, quantity) for name, factor, quantity in limits if name is not None]
    subnet = Subnets()
    frames: list[pl.DataFrame] = []
    room = Room(path)
    for frame in file.rows(taken, problems):
        for name in (throughput, rtt, loss, most):
            if name is not None:
                frame = numbers(frame, name, file.unit, problems)
        for name in (throughput, rtt):
            rule = pl.col(name).is_not_null() & (pl.col(name) > 0)
            frame = within(frame, name, rule, "above 0", file.unit, problems)
        for name, factor, quantity in bounded:
            below = quantity.below / factor
            frame = within(frame, name, pl.col(name) < below, f"below {below:.12g}", file.unit, problems)
        if loss is not None:
            frame = within(frame, loss, pl.col(loss).is_between(0, 1, closed="left"), "a share", file.unit, problems)
        # Bytes on links include headers.
        rate = pl.col(throughput) * (1e6 * (_MSS_BYTES + HEADER_BYTES) / _MSS_BYTES)
        columns = {"rtt_s": pl.col(rtt) * rtt_factor, "rate_bps": rate}
        if loss is not None:
            columns["loss"] = pl.col(loss)
        if most is not None:
            columns["max_rtt_s"] = pl.max_horizontal(pl.lit(seconds(frame[most], 1e6)), columns["rtt_s"])
        if address is not None:
            columns["subnet"] = pl.lit(subnet.numbers(frame[address].cast(pl.String)))
        frames.append(frame.select(**columns))
        room.add(frames[-1])
    tests = pl.concat(frames) if frames else pl.DataFrame(schema={"rtt_s": pl.Float64})
    upward = any(name.startswith(_UPLOAD) for name in plain)
    ignored = tuple(name for name in file.names if name not in taken)
    return _parts(tests, upward, ignored)


def _parts(tests: pl.DataFrame, upward: bool, ignored: tuple[str, ...]) -> Parts:
    if tests.is_empty():
        return Parts(ignored=ignored)
    users = tests.with_columns(client=pl.int_range(pl.len())).rename({"rate_bps": "up_bps" if upward else "down_bps"})
    notes = [f"rates are means over a test, its start included, with the headers of segments of {_MSS_BYTES} bytes"]
    if "loss" in users.columns:
        notes.append("losses are those of a test that fills the queue: part of them it made itself")
    return Parts(connections=users, ignored=ignored, notes=tuple(notes))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def _first(plain: dict[str, str], names: Iterable[str]) -> str | None:
    return next((plain[name] for name in names if name in plain), None)


def _ending(plain: dict[str, str], names: Iterable[str]) -> str | None:
    return next((written for name, written in plain.items() if name.endswith(tuple(names))), None)

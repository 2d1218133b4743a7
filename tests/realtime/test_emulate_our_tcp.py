"""Our own TCP at either end of an emulated path, or at both, against nginx, curl and the kernel; and the same first
flights as in virtual time.
"""

import functools
from typing import Any

import polars as pl
import pytest

import testbeds
from emulations import FAR, cell, download, never_early, rounds, skip_unless_possible
from firstflight import Cell
from firstflight.engines import simulate
from firstflight.engines.emulate import campaign
from firstflight.engines.emulate.lab import Backend, Lab
from firstflight.records.schema import conforms

OURS = {"stack": "firstflight", "profile": "linux", "receive_window_growth": "none"}
ENDS = {"client": ("client_tcp",), "server": ("server_tcp",), "both": ("client_tcp", "server_tcp")}
SCHEMES: dict[str, dict[str, Any]] = {
    "window": {"initial_window": 32},
    "paced": {"startup": "paced", "initial_window": 32},
    "jump_start": {"startup": "jump_start"},
    "rapid_start": {"startup": "rapid_start"},
    "quick_start": {"startup": {"scheme": "quick_start", "rate": 11}},
    "remembered": {"initial_window": "remembered"},
    "adaptive": {"initial_window": "adaptive"},
}
# Of these the last segments and the first acknowledgment are microseconds apart.
SLACK = {"jump_start": 2, "rapid_start": 1}
CHANCES = 6


@pytest.fixture(autouse=True)
def _machine_can() -> None:
    skip_unless_possible()


@pytest.mark.parametrize("backend", ["tun", "packet"])
@pytest.mark.parametrize("ends", ENDS)
def test_our_own_tcp_fetches_and_serves(ends: str, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    if backend == "tun" and not testbeds.has_tun():
        pytest.skip("no TUN devices here; chmod 0666 /dev/net/tun")
    monkeypatch.setattr(campaign, "Lab", functools.partial(Lab, backend=backend))
    changes: dict[str, Any] = {f"web__{end}": OURS for end in ENDS[ends]}
    asked = cell(
        **changes,
        web__count=3,
        web__idle_time="100ms",
        web__request="120B",
        web__response_header="300B",
        tcp__initial_window=10,
        # Without CUBIC, whose slow start ends when acknowledgments are late by milliseconds (HyStart).
        tcp__congestion_control="reno",
        link__delay=FAR,
        capture=True,
    )
    real, virtual = campaign.run_cell(asked, 1, 2), simulate.run_cell(asked, 1, 2)
    transfers, simulated = real["transfers"], virtual["transfers"]
    conforms("transfers", transfers)
    conforms("segments", real["segments"])
    for column in ("bytes", "delivered_bytes", "completed", "first_flight_segments", "segments_sent"):
        assert transfers[column].to_list() == simulated[column].to_list(), column
    assert transfers["timeouts"].to_list() == [0] * 6
    assert transfers["connection"].to_list() == [0, 1, 2] * 2
    sent, expected = (
        rounds(tables["segments"]).select("replicate", "connection", "round", "seq", "length").rows()
        for tables in (real, virtual)
    )
    assert sent == expected
    never_early(transfers, simulated)
    # The next file is asked for so long after the last has come, and as much later as a program takes to start: some
    # 30 ms each time on an idle machine.
    starts = transfers["start_s"] - simulated["start_s"]
    assert 0 <= starts.min() <= starts.max() < 1  # type: ignore[operator]
    environment = dict(real["environment"].iter_rows())
    assert environment["backend"] == backend
    assert '"segments": 10' in environment["self_check"]


def test_our_own_client_fetches_a_page_over_many_connections_at_once() -> None:
    page = {"kind": "web_page", "primary": "5kB", "inline": "8kB", "inline_count": 5, "think_time": "1s", "count": 1}
    scenario = download().to_dict() | {
        "application": [
            page | {"name": "all", "client_tcp": OURS},
            page | {"name": "two", "parallel": 2, "client_tcp": OURS},
        ]
    }
    tables = campaign.run_cell(Cell({"c": 1}, type(download()).from_dict(scenario)), 1, 1)
    assert tables["pages"]["objects"].to_list() == [6, 6]
    assert tables["pages"]["completed"].to_list() == [1, 1]
    assert tables["transfers"]["connection"].n_unique() == 12


def test_a_transfer_of_our_own_client_that_is_not_over_in_time_is_not_complete() -> None:
    slow = cell(web__client_tcp=OURS, web__size="10MB", link__rate="5Mbit", duration="1s")
    transfers = campaign.run_cell(slow, 1, 1)["transfers"]
    assert transfers["completed"].to_list() == [0]
    assert 100_000 < transfers["delivered_bytes"][0] < 1_000_000


def test_every_scheme_puts_the_first_flight_on_the_wire_that_it_has_in_virtual_time() -> None:
    cells = {name: _with_scheme(scheme) for name, scheme in SCHEMES.items()}
    simulated = {name: _first_flights(simulate.run_cell(one, 1, 2)) for name, one in cells.items()}
    # A paced flight ends when the first acknowledgment comes: a machine that stalls for milliseconds cuts it short, and
    # makes none longer. So each transfer has several chances to reach its expected value.
    unlike = {name: set(range(len(flights))) for name, flights in simulated.items()}
    differing = ""
    for _ in range(CHANCES):
        left = [cells[name] for name in unlike]
        tables = campaign.run_together(left, 1, [2] * len(left), lambda cell, replicates: None)
        for name, flights in zip(list(unlike), map(_first_flights, tables), strict=True):
            differing += f"{name}: {flights}, not {simulated[name]}\n"
            unlike[name] -= {
                at for at, flight in enumerate(flights) if abs(flight - simulated[name][at]) <= SLACK.get(name, 0)
            }
        unlike = {name: transfers for name, transfers in unlike.items() if transfers}
        if not unlike:
            return
    raise AssertionError(differing)


def _with_scheme(scheme: dict[str, Any]) -> Cell:
    """Two files of 300 kB by a server that begins so, to a client whose first window is Linux's 64 kB."""
    document = download(web__server_tcp=OURS | scheme, web__size="300kB", web__count=2, link__delay="80ms").to_dict()
    document["tcp"].pop("receive_window_growth")
    document["application"][0] |= {"idle_time": "50ms", "response_header": "300B"}
    return Cell(scheme, type(download()).from_dict(document))


def _first_flights(tables: dict[str, pl.DataFrame]) -> list[int]:
    flights: list[int] = tables["transfers"]["first_flight_segments"].to_list()
    return flights

"""When a connection begins does not matter to it: no rule takes time 0 for something that happened."""

from itertools import product

import pytest

from emulations import download
from firstflight import Cell
from firstflight.engines import simulate

PROFILES = ("linux", "rfc", "ns2-full-1998")
FIELDS: dict[str, dict[str, object]] = {
    "plain": {},
    "jump_start": {"startup": "jump_start"},
    "paced": {"startup": "paced", "initial_window": 32},
    "quick_start": {"startup": {"scheme": "quick_start", "rate": 11}},
    "rapid_start": {"startup": "rapid_start"},
    "suss": {"startup": "suss"},
    "careful_resume": {"startup": "careful_resume"},
    "remembered": {"initial_window": "remembered"},
    "adaptive": {"initial_window": "adaptive"},
    "vegas": {"congestion_control": "vegas"},
    "westwood": {"congestion_control": "westwood"},
    "cubic": {"congestion_control": "cubic"},
}


@pytest.mark.parametrize(("profile", "fields"), list(product(PROFILES, FIELDS)))
def test_a_connection_that_begins_later_does_the_same(profile: str, fields: str) -> None:
    tcp = {"profile": profile} | FIELDS[fields]
    for queue in ("10p", "200p"):
        at_once, later = (
            simulate.run_cell(
                Cell(
                    {"start": start},
                    download(
                        duration="40s",
                        web__tcp=tcp,
                        web__size="300kB",
                        web__count=3,
                        web__start=start,
                        link__queue=queue,
                    ),
                ),
                1,
                1,
            )["transfers"]
            for start in ("0s", "7s")
        )
        for column in (
            "segments_sent",
            "retransmissions",
            "timeouts",
            "first_flight_segments",
            "first_flight_lost_segments",
        ):
            assert at_once[column].to_list() == later[column].to_list(), column
        difference = (at_once["completion_time_s"] - later["completion_time_s"]).abs().max()
        assert difference < 1e-9  # type: ignore[operator]

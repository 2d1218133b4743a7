"""Users behind the shared links of a tree."""

from pathlib import Path

import polars as pl

import emulations
from firstflight import Cell, Scenario
from firstflight.engines.emulate import campaign

HOMES = Scenario.load(Path(__file__).parents[2] / "examples/homes.toml")


def test_what_a_street_carries_is_what_its_homes_get() -> None:
    emulations.skip_unless_possible()
    scenario = HOMES.replace("application.download.count", 2).replace("duration", "4s")
    tables = campaign.run_cell(Cell({"c": 1}, scenario), 1, 1)
    assert tables["transfers"]["completed"].to_list() == [1] * 8
    assert set(tables["transfers"]["client"].to_list()) == {0, 1, 2, 3}
    names = pl.col("link").cast(pl.String)
    sent = dict(tables["links"].group_by(names).agg(pl.col("sent_bytes").sum()).iter_rows())
    assert len(sent) == 2 * 7
    for street in (0, 1):
        homes = [f"home[{2 * street}]", f"home[{2 * street + 1}]"]
        # A home's queue may drop packets that came over the street.
        assert 0.95 * sent[f"street[{street}]"] < sum(sent[home] for home in homes) <= sent[f"street[{street}]"]
        back = sum(sent[f"{home}.reverse"] for home in homes)
        assert sent[f"street[{street}].reverse"] == back
    assert sent["server[0]"] >= sent["street[0]"] + sent["street[1]"] > 8 * 200_000

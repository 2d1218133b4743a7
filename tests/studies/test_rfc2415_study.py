"""The study rfc2415: its scenarios, its measures of made-up records, claims, tables and figures."""

from typing import Any

import polars as pl
import pytest
import xarray as xr

from firstflight.analysis.claim import Claim
from firstflight.scenario import Cell
from firstflight.scenario.cell import chosen
from firstflight.studies.kernel import by_replicate, named, table, variation_of
from firstflight.studies.rfc2415 import STUDY
from firstflight.studies.rfc2415.claims import claims as specs
from firstflight.studies.rfc2415.printed import (
    HTTP,
    WRONG,
    as_printed,
    decrease,
    file_power,
    power,
    printed,
    relative_power,
)
from rfc2415_records import Key, Synthetic, clients, plain_delay

CELL = {"http": "1.0", "webs": 16, "ftps": 0}


def cell(**key: Any) -> Cell:
    """The first cell with these labels."""
    return STUDY.cells_at("simulate", chosen(STUDY.keys("simulate"), key)[:1])[0]


def plan(**key: Any) -> dict[str, Any]:
    found: dict[str, Any] = cell(**key).scenario.to_plan()
    return found


def printed_delay(key: Key, replicate: int) -> float:
    """The RFC's own delays, so that every claim about them must hold."""
    if key["experiment"] != "base":
        return 1.0
    table = 1 if key["http"] == "1.0" else 4
    return float(printed(table, "median_page_delay").sel(webs=key["webs"], ftps=key["ftps"], iw=key["iw"]))


@pytest.fixture(scope="module")
def run() -> Synthetic:
    return Synthetic()


@pytest.fixture(scope="module")
def claims(run: Synthetic) -> dict[str, Claim]:
    return {claim.id: claim for claim in STUDY.claims(run)}  # type: ignore[arg-type]


def judged(run: Synthetic, *, listed: bool = True) -> dict[str, Claim]:
    return {claim.id: claim for claim in STUDY.claims(run, listed=listed)}  # type: ignore[arg-type]


def test_the_grid_holds_the_rfcs_scenarios_and_each_variant() -> None:
    names = [key["experiment"] for key in STUDY.keys("simulate")]
    assert {name: names.count(name) for name in dict.fromkeys(names)} == {
        "base": 96,
        "alike": 2,
        "split": 3,
        "red": 20,
        "reverse": 18,
        "access": 72,
        "long": 6,
        "rate10": 8,
        "rate100": 4,
        "ftp_window_20": 72,
    }


def test_a_base_cell_is_what_the_rfc_describes() -> None:
    found = plan(experiment="base", http="1.1", webs=32, ftps=2, iw=4)
    web, ftp = found["applications"]
    assert found["duration_ns"] == 360_000_000_000
    bottleneck = found["network"]["bottleneck"]["reverse"]
    assert (bottleneck["rate_bps"], bottleneck["delay_ns"]) == (1_500_000, 50_000_000)
    assert bottleneck["queue"]["limit"]["packets"] == 25
    assert (web["clients"], web["version"], web["inline_count"]) == (
        32,
        "1.1",
        {"distribution": "constant", "value": 3},
    )
    assert (ftp["clients"], ftp["size"]) == (2, {"distribution": "constant", "value": 1_000_000})
    for application in (web, ftp):
        tcp = application["server_tcp"]
        assert tcp["initial_window"] == {"policy": "fixed", "segments": 4}
        assert (tcp["mss_bytes"], tcp["max_send_window_segments"]) == (1460, 11)


def test_without_ftps_there_is_no_ftp_application() -> None:
    assert [app["name"] for app in plan(experiment="base", webs=8, ftps=0)["applications"]] == ["web"]


def test_a_split_cell_has_half_the_clients_with_either_window() -> None:
    applications = plan(experiment="split", webs=64)["applications"]
    found = [(a["name"], a["clients"], a["server_tcp"]["initial_window"]["segments"]) for a in applications]
    assert found == [("web", 32, 1), ("web_iw3", 32, 3)]


def test_a_share_of_the_traffic_is_mirrored() -> None:
    applications = plan(experiment="reverse", clients="16/2", mirrored=25)["applications"]
    assert [(a["name"], a["clients"]) for a in applications] == [("web", 16), ("ftp", 2), ("mirrored_web", 4)]


def test_each_host_has_an_access_delay_of_its_own() -> None:
    def delays(draw: int) -> list[float]:
        network = plan(experiment="access", clients="8/3", delays=draw)["network"]
        return [host["forward"]["delay_ns"] / 1e6 for side in ("left", "right") for host in network[side]]

    assert len(set(delays(1))) == 8
    assert all(0.5 <= delay <= 2 for delay in delays(1))
    assert delays(1) == delays(1) != delays(2)


def test_a_reverse_cell_mirrors_the_traffic() -> None:
    applications = plan(experiment="reverse", clients="16/2", mirrored=100)["applications"]
    assert [(a["name"], a["clients"], a["server_hosts"]) for a in applications] == [
        ("web", 16, "right"),
        ("ftp", 2, "right"),
        ("mirrored_web", 16, "left"),
        ("mirrored_ftp", 2, "left"),
    ]


def test_faster_links_carry_as_many_more_clients_over_the_same_buffer_in_time() -> None:
    found = plan(experiment="rate100", clients="16/1")
    bottleneck = found["network"]["bottleneck"]["forward"]
    assert (bottleneck["rate_bps"], bottleneck["delay_ns"]) == (150_000_000, 50_000_000)
    assert bottleneck["queue"]["limit"]["packets"] == 2500
    assert [application["clients"] for application in found["applications"]] == [1600, 100]
    assert found["applications"][0]["server_tcp"]["max_send_window_segments"] == 11


def test_red_long_and_hypothesis_cells_change_one_thing_each() -> None:
    base = plan(experiment="base", webs=16, ftps=1, http="1.0", iw=1)
    red = plan(experiment="red", clients="16/1", iw=1)
    assert red["network"]["bottleneck"]["reverse"]["queue"]["kind"] == "red"
    red["network"]["bottleneck"] = base["network"]["bottleneck"]
    assert red == base
    alone = plan(experiment="base", webs=16, ftps=0, http="1.0", iw=1)
    assert plan(experiment="long", clients="16/0", iw=1) == alone | {"duration_ns": 1_440_000_000_000}
    web, ftp = plan(experiment="ftp_window_20", webs=16, ftps=1, http="1.0", iw=1)["applications"]
    assert web == base["applications"][0]
    assert (ftp["server_tcp"]["max_send_window_segments"], ftp["client_tcp"]["receive_window_bytes"]) == (20, 29200)


def test_page_delay_is_the_median_within_each_replicate_from_the_connection_for_http_1_0(run: Synthetic) -> None:
    delay = by_replicate(STUDY.quantities(run).delay)  # type: ignore[arg-type]
    place = {"webs": 16, "ftps": 1, "iw": 3}
    expected = [plain_delay(cell(experiment="base", http="1.0", **place).key, replicate) for replicate in range(4)]
    assert delay.sel(http="1.0", **place).values == pytest.approx(expected)
    # The clock of HTTP/1.1 starts when the client asks, 0.1 s earlier.
    assert delay.sel(http="1.1", **place).values == pytest.approx([seconds + 0.1 for seconds in expected])


def test_pages_that_did_not_complete_count_for_no_delay() -> None:
    def unfinished(name: str, table: pl.DataFrame) -> pl.DataFrame:
        # The slowest page of three.
        return (
            table.with_columns(completed=pl.when(pl.col("page") == 2).then(0).otherwise(1))
            if name == "pages"
            else table
        )

    run = Synthetic(replicates=2, has=lambda key: key["experiment"] == "base", change=unfinished)
    delay = STUDY.quantities(run).delay.sel(iw=1, draw=0, **CELL)  # type: ignore[arg-type]
    whole = sum(plain_delay(cell(experiment="base", iw=1, **CELL).key, replicate) for replicate in range(2)) / 2
    # The median of the first page, a tenth early, and the middle one.
    assert float(delay) == pytest.approx(0.95 * whole)


def test_decrease_and_power_compare_with_iw_1_replicate_by_replicate(run: Synthetic) -> None:
    q = STUDY.quantities(run)  # type: ignore[arg-type]
    # The made-up delay is proportional to 1.2 - 0.05 IW, whatever the replicate.
    assert decrease(q).sel(iw=3, **CELL).values == pytest.approx([100 * (1 - 1.05 / 1.15)] * 5)
    assert relative_power(q).sel(iw=3, **CELL).values == pytest.approx([1.15 / 1.05] * 5)


def test_network_power_is_goodput_by_median_delay(run: Synthetic) -> None:
    q = STUDY.quantities(run)  # type: ignore[arg-type]
    at = CELL | {"ftps": 1}
    delays = [plain_delay(cell(experiment="base", iw=1, **at).key, replicate) for replicate in range(4)]
    expected = sum(12 * 2000 / 1e6 / delay for delay in delays) / 4
    assert float(power(q).sel(iw=1, draw=0, **at)) == pytest.approx(expected)
    assert float(file_power(q).sel(iw=1, draw=0, **at)) == pytest.approx(1 / 9)


def test_the_bottleneck_is_measured_in_the_direction_of_the_data(run: Synthetic) -> None:
    q = STUDY.quantities(run)  # type: ignore[arg-type]
    assert by_replicate(q.utilization).sel(iw=1, **CELL).values == pytest.approx([55] * 4)
    assert by_replicate(q.drops).sel(iw=1, **CELL).values == pytest.approx([1.8, 1.85, 1.9, 1.95])


def test_tables_put_the_printed_values_beside_ours(run: Synthetic) -> None:
    tables = {table.name: table for table in STUDY.tables(run)}  # type: ignore[arg-type]
    assert set(tables) == {
        *(f"table{n}" for n in range(1, 7)),
        *(f"figure{n}" for n in range(1, 5)),
        *("red", "reverse", "scale", "longer", "access", "ftp_window", "errors"),
    }
    for number, rows in ((1, 84), (2, 96), (3, 36), (4, 84), (5, 36), (6, 42)):
        assert tables[f"table{number}"].frame["published"].is_not_null().sum() == rows
    first = tables["table1"].frame.row(0, named=True)
    assert (first["iw"], first["published"], first["unit"]) == (1, 0.56, "s")
    halves = tables["table6"].frame.filter((pl.col("webs") == 64) & (pl.col("metric") == "delay"))
    assert halves["clients"].to_list() == ["all IW 1", "all IW 3", "half IW 1", "half IW 3"]


def test_there_are_statements_for_every_section_with_unique_ids(run: Synthetic) -> None:
    found = specs(STUDY.quantities(run))  # type: ignore[arg-type]
    assert len({spec.id for spec in found}) == len(found) == 42
    assert {spec.sentence.source for spec in found} == {f"RFC 2415 section {n}" for n in (2, 3, 4)}
    # Network power of Tables 3 and 5, drop rates of Table 2: printed alike, so judged alike.
    tolerance = {spec.sentence.id: spec.sentence.expectation.tolerance for spec in found}
    assert tolerance["rfc2415-s3-25"] == tolerance["rfc2415-s3-29"] == 12
    assert tolerance["rfc2415-s3-13"] == tolerance["rfc2415-s3-14"] == 0.05
    absent = {spec.sentence.id for spec in found if spec.sentence.needs == "absence"}
    assert absent == {"rfc2415-s2-01", "rfc2415-s2-02", "rfc2415-s3-03", "rfc2415-s3-34"}


def test_claims_follow_from_the_data_alone(claims: dict[str, Claim]) -> None:
    assert all(claim.verdict != "cannot be checked" for claim in claims.values())
    # The made-up delays of HTTP/1.0 fall by the same 4.3, 8.7 and 13% everywhere, and variants equal their base.
    expected = {
        "rfc2415-s2-01": ("holds", 0.0),
        "rfc2415-s3-05": ("differs", 0.0),
        "rfc2415-s3-14": ("holds", 0.6),
        "rfc2415-s3-15": ("differs", 0.6),
        "rfc2415-s3-16": ("holds", 100.0),
        "rfc2415-s3-18": ("differs", 3.0),
        "rfc2415-s3-20": ("differs", 15.0),
        "rfc2415-s3-22": ("holds", 100.0),
        "rfc2415-s3-31": ("differs", 0.0),
        "rfc2415-s4-02": ("differs", -100 * (1 - 1.05 / 1.15)),
        "rfc2415-s4-03": ("holds", 0.0),
    }
    found = {id: (claims[id].verdict, pytest.approx(claims[id].found, abs=1e-9)) for id in expected}
    assert found == expected


def test_the_rfcs_own_numbers_pass_the_checks_of_its_tables() -> None:
    def from_the_connection(name: str, table: pl.DataFrame) -> pl.DataFrame:
        late = pl.when(pl.col("http") == "1.1").then(0.1).otherwise(0.0) if name == "pages" else 0.0
        return table.with_columns(completion_time_s=pl.col("completion_time_s") - late) if name == "pages" else table

    claims = judged(Synthetic(printed_delay, change=from_the_connection))
    for number in (8, 9, 10, 26, 27, 28):
        claim = claims[f"rfc2415-s3-{number:02d}"]
        # The delays with the ftps' other window, over which these are judged too, are not the printed ones.
        assert claim.verdict == ("undecided" if number in (9, 27) else "holds"), claim
        assert claim.found == pytest.approx(0, abs=0.3)
    for number in (4, 5, 6, 30):
        assert claims[f"rfc2415-s3-{number:02d}"].verdict == "holds"


def test_only_windows_that_the_rfc_prints_are_misprinted() -> None:
    places = {"webs": [32], "ftps": [0, 2, 3], "iw": [1, 4, 10]}
    drops = named(xr.DataArray(1.0, places, list(places)), "drops", "Drops", "percent")
    rates = {"drops": as_printed(2, "packet_drop_rate")}
    made = table("table2", "T", "C", [drops], "iw", rates, misprints={"drops": WRONG})
    assert made.misprints == {("drops", "32", ftps, iw) for ftps in "02" for iw in "14"}


def test_misprinted_drop_rates_are_never_compared(claims: dict[str, Claim], run: Synthetic) -> None:
    assert "38 cells" in claims["rfc2415-s3-12"].text
    assert int(printed(2, "packet_drop_rate").notnull().sum()) == 38
    table = next(table for table in STUDY.tables(run) if table.name == "table2")  # type: ignore[arg-type]
    marked = [
        (row, entry)
        for row, entries in table.layout().rows
        for entry in entries
        if entry is not None and entry.misprint
    ]
    assert sorted({row for row, _ in marked}) == [("32", "0"), ("32", "1"), ("32", "2")]
    assert {entry.unit for _, entry in marked} == {"percent"}
    assert len(marked) == 12


@pytest.mark.slow
def test_a_part_of_a_run_gives_what_it_has_and_says_what_is_missing() -> None:
    base = {"experiment": "base", "http": "1.0", "webs": 8}
    part = Synthetic(has=lambda key: base.items() <= key.items())
    assert {table.name for table in STUDY.tables(part)} == {"table1", "table2", "table3", "figure1", "figure2"}  # type: ignore[arg-type]
    found = judged(part)
    assert found["rfc2415-s3-08"].reason.startswith(
        "This run has no value for experiment base, http 1.0, webs 16 and 32"
    )
    assert (
        found["rfc2415-s3-16"].reason == "This run has no value for experiment base, http 1.0, webs 32, ftps 3, iw 4."
    )
    assert found["rfc2415-s3-36"].reason == ("This run has no value for experiment alike; experiment split.")
    # Sizes are an input, and the made-up ones are alike in every cell.
    assert {id for id, claim in found.items() if claim.verdict != "cannot be checked"} <= {"rfc2415-s3-07"}
    assert STUDY.answer(part) == []  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_claim_about_one_cell_is_checked_in_a_run_of_that_cell() -> None:
    place = {"experiment": "base", "http": "1.0", "webs": 32, "ftps": 3}
    found = judged(Synthetic(has=lambda key: place.items() <= key.items()), listed=False)
    assert {id for id, claim in found.items() if claim.verdict != "cannot be checked"} == {
        "rfc2415-s3-15",
        "rfc2415-s3-16",
    }


def test_one_replicate_has_no_intervals_and_so_decides_nothing() -> None:
    claims = judged(Synthetic(replicates=1))
    assert claims["rfc2415-s3-04"].verdict == "undecided"
    assert claims["rfc2415-s3-04"].low is None
    # Loads and windows of the ftps give these an interval.
    for id_ in ("rfc2415-s2-01", "rfc2415-s3-01", "rfc2415-s3-09", "rfc2415-s3-27"):
        del claims[id_]
    assert {claim.verdict for claim in claims.values()} == {"undecided", "cannot be checked"}
    assert claims["rfc2415-s3-02"].verdict == "cannot be checked"


def test_the_answer_is_made_of_the_data(run: Synthetic, claims: dict[str, Claim]) -> None:
    gain, cost = STUDY.answer(run)  # type: ignore[arg-type]
    assert "falls by 8.7%" in gain
    assert "+0.4 percentage points on average" in cost
    assert len(claims) == 42


def test_figures_draw_ours_and_the_printed_points(run: Synthetic) -> None:
    figures = {figure.name: figure for figure in STUDY.figures(run)}  # type: ignore[arg-type]
    assert set(figures) == {"page_delay_http10", "page_delay_http11", "drop_rate", "figure2", "figure4"}
    spec = figures["drop_rate"].chart
    values = next(iter(spec.get("datasets", {}).values())) if "datasets" in spec else spec["data"]["values"]
    rfc = [point for point in values if point["source"] == "RFC 2415" and point["webs"] == "32"]
    assert {(point["ftps"], point["iw"]) for point in rfc if point["ftps"] != 3} == {(0, 1), (0, 3)}


def test_the_scatter_between_runs_is_the_coefficient_of_variation(run: Synthetic) -> None:
    delay = by_replicate(STUDY.quantities(run).delay)  # type: ignore[arg-type]
    # 1, 1.001, 1.002 and 1.003 times the same: standard deviation 0.00129099, mean 1.0015.
    assert float(variation_of(delay).sel(iw=1, draw=0, **CELL)) == pytest.approx(0.00129099 / 1.0015, rel=1e-5)


def test_printed_tables_have_labels_of_the_grid() -> None:
    assert HTTP[4] == "1.1"
    table = printed(3, "ftp_network_power")
    assert (table["webs"].values.tolist(), table["ftps"].values.tolist()) == ([8, 16, 32], [1, 2, 3])
    assert float(table.sel(webs=8, ftps=1, iw=1)) == 4.7
    assert clients(cell(experiment="red", clients="16/2").key) == (16, 2)

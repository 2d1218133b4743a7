import polars as pl
import pytest

from firstflight.analysis.claim import near
from firstflight.studies.rfc2415 import STUDY, published
from firstflight.studies.rfc2415.answer import answer
from firstflight.studies.rfc2415.claims import STATEMENTS, all_claims
from firstflight.studies.rfc2415.claims.statement import Data, Statement
from firstflight.studies.rfc2415.figures import all_figures
from firstflight.studies.rfc2415.grid import Point, points
from firstflight.studies.rfc2415.measure import Measures, from_records
from firstflight.studies.rfc2415.study import scenario
from firstflight.studies.rfc2415.tables import all_tables
from rfc2415_records import CONNECTED, plain_delay, synthetic


def printed_delay(point: Point, replicate: int) -> float:
    """The RFC's own delays, so that every claim about them must hold."""
    if point.variant == "base":
        table = 1 if point.http == "1.0" else 4
        return published.value(table, "median_page_delay", point.webs, point.ftps, point.iw)
    return 1.0


@pytest.fixture(scope="module")
def measures() -> Measures:
    return from_records(*synthetic(), CONNECTED)


@pytest.fixture(scope="module")
def claims(measures: Measures) -> dict:
    return {claim.id: claim for claim in all_claims(measures)}


def test_grid_holds_the_rfcs_scenarios_and_each_variant():
    variants = [point.variant for point in points()]
    assert len(set(points())) == len(points())
    assert {name: variants.count(name) for name in dict.fromkeys(variants)} == {
        "base": 96,
        "ftp_window_20": 72,
        "mix": 5,
        "red": 20,
        "reverse": 6,
        "long": 6,
        "rate10": 8,
        "rate100": 4,
    }


def test_every_point_of_the_grid_is_a_scenario_with_the_same_keys():
    cells = STUDY.cells("simulate")
    assert [tuple(cell.key) for cell in cells] == [Point._fields] * len(cells)


def test_base_cell_is_what_the_rfc_describes():
    plan = scenario(Point("base", 32, 2, "1.1", "4")).to_plan()
    web, ftp = plan["applications"]
    assert plan["duration_ns"] == 360_000_000_000
    bottleneck = plan["network"]["bottleneck"]["reverse"]
    assert (bottleneck["rate_bps"], bottleneck["delay_ns"]) == (1_500_000, 50_000_000)
    assert bottleneck["queue"]["limit_packets"] == 25
    assert (web["clients"], web["version"], web["inline_count"]) == (32, "1.1", {"law": "constant", "value": 3})
    assert (ftp["clients"], ftp["size"]) == (2, {"law": "constant", "value": 1_000_000})
    for application in (web, ftp):
        tcp = application["server_tcp"]
        assert tcp["initial_window"] == {"policy": "fixed", "segments": 4}
        assert (tcp["mss_bytes"], tcp["max_send_window_segments"]) == (1460, 11)


def test_without_ftps_there_is_no_ftp_application():
    assert [app["name"] for app in scenario(Point("base", 8, 0, "1.0", "1")).to_plan()["applications"]] == ["web"]


def test_mixed_cell_has_half_the_clients_with_either_window():
    applications = scenario(Point("mix", 64, 0, "1.0", "1+3")).to_plan()["applications"]
    found = [(a["name"], a["clients"], a["server_tcp"]["initial_window"]["segments"]) for a in applications]
    assert found == [("web", 32, 1), ("web_iw3", 32, 3)]


def test_reverse_cell_mirrors_the_traffic():
    applications = scenario(Point("reverse", 16, 2, "1.0", "1")).to_plan()["applications"]
    assert [(a["name"], a["clients"], a["server_hosts"]) for a in applications] == [
        ("web", 16, "right"),
        ("ftp", 2, "right"),
        ("mirrored_web", 16, "left"),
        ("mirrored_ftp", 2, "left"),
    ]


def test_faster_links_carry_as_many_more_clients_over_the_same_buffer_in_time():
    plan = scenario(Point("rate100", 16, 1, "1.0", "3")).to_plan()
    bottleneck = plan["network"]["bottleneck"]["forward"]
    assert (bottleneck["rate_bps"], bottleneck["delay_ns"]) == (150_000_000, 50_000_000)
    assert bottleneck["queue"]["limit_packets"] == 2500
    assert [application["clients"] for application in plan["applications"]] == [1600, 100]
    assert plan["applications"][0]["server_tcp"]["max_send_window_segments"] == 11


def test_red_and_long_cells_change_one_thing_each():
    base = scenario(Point("base", 16, 1, "1.0", "1")).to_plan()
    red = scenario(Point("red", 16, 1, "1.0", "1")).to_plan()
    assert red["network"]["bottleneck"]["reverse"]["queue"]["kind"] == "red"
    red["network"]["bottleneck"] = base["network"]["bottleneck"]
    assert red == base
    assert scenario(Point("long", 16, 1, "1.0", "1")).to_plan() == base | {"duration_ns": 1_440_000_000_000}
    wide = scenario(Point("ftp_window_20", 16, 1, "1.0", "1")).to_plan()
    web, ftp = wide["applications"]
    assert web == base["applications"][0]
    assert (ftp["server_tcp"]["max_send_window_segments"], ftp["client_tcp"]["receive_window_bytes"]) == (20, 29200)


def test_tables_put_the_printed_values_beside_ours(measures: Measures):
    tables = {table.name: table for table in all_tables(measures)}
    assert list(tables) == [
        *(f"table{n}" for n in range(1, 7)),
        *(f"figure{n}" for n in range(1, 5)),
        "red",
        "reverse",
        "scale",
        "longer",
        "ftp_window",
        "errors",
    ]
    header = tables["table1"].csv().splitlines()[0]
    assert header == "webs,ftps,http,iw,metric,ours,low,high,published,unit"
    for number, rows in ((1, 84), (2, 96), (3, 36), (4, 84), (5, 36), (6, 42)):
        frame = tables[f"table{number}"].frame
        assert frame["published"].is_not_null().sum() == rows == published.printed(number).height
    first = tables["table1"].frame.row(0, named=True)
    assert (first["iw"], first["published"], first["unit"]) == (1, 0.56, "s")


def test_there_are_statements_for_every_section_with_unique_ids():
    ids = [statement.id for statement in STATEMENTS]
    assert len(set(ids)) == len(ids) >= 25
    assert {statement.source for statement in STATEMENTS} == {f"RFC 2415 section {n}" for n in (2, 3, 4)}


def test_like_quantities_have_like_tolerances():
    # Network power of Tables 3 and 5, drop rates of Table 2: printed alike, so judged alike.
    tolerance = {statement.id: statement.tolerance for statement in STATEMENTS}
    assert tolerance["rfc2415-s3-25"] == tolerance["rfc2415-s3-29"] == 12
    assert tolerance["rfc2415-s3-13"] == tolerance["rfc2415-s3-14"] == 0.05


def test_a_sentence_that_an_effect_is_absent_needs_an_interval_that_includes_it():
    absent = {statement.id for statement in STATEMENTS if statement.needs == "absence"}
    assert absent == {"rfc2415-s2-01", "rfc2415-s2-02", "rfc2415-s3-03", "rfc2415-s3-34"}


def test_claims_follow_from_the_data_alone(claims: dict):
    assert all(claim.verdict != "cannot be checked" for claim in claims.values())
    # The synthetic delays fall by the same 4.3, 8.7 and 13 % everywhere, and variants equal their base.
    expected = {
        "rfc2415-s2-01": ("holds", 0.0),
        "rfc2415-s3-04": ("holds", 100 * (1 - 1.10 / 1.15)),
        "rfc2415-s3-05": ("differs", 0.0),
        "rfc2415-s3-14": ("holds", 0.6),
        "rfc2415-s3-15": ("differs", 0.6),
        "rfc2415-s3-18": ("differs", 3.0),
        "rfc2415-s3-31": ("differs", 0.0),
        "rfc2415-s4-02": ("differs", -100 * (1 - 1.05 / 1.15)),
        "rfc2415-s4-03": ("holds", 0.0),
    }
    found = {id: (claims[id].verdict, pytest.approx(claims[id].found, abs=1e-9)) for id in expected}
    assert found == expected


def test_the_rfcs_own_numbers_pass_the_checks_of_its_tables():
    claims = {claim.id: claim for claim in all_claims(from_records(*synthetic(printed_delay), CONNECTED))}
    for number in (8, 9, 10, 26, 27, 28):
        claim = claims[f"rfc2415-s3-{number:02d}"]
        assert claim.verdict == "holds", claim
        assert claim.found == pytest.approx(0, abs=0.3)
    for number in (4, 5, 6, 30):
        assert claims[f"rfc2415-s3-{number:02d}"].verdict == "holds"


def test_misprinted_drop_rates_are_never_compared(claims: dict, measures: Measures):
    assert "38 cells" in claims["rfc2415-s3-12"].text
    table = next(table for table in all_tables(measures) if table.name == "table2")
    marked = [
        (row, entry)
        for row, entries in table.layout().rows
        for entry in entries
        if entry is not None and entry.misprint
    ]
    assert sorted({row for row, _ in marked}) == [("32", "0"), ("32", "1"), ("32", "2")]
    assert {entry.unit for _, entry in marked} == {"percent"}
    assert len(marked) == 12


def test_partly_finished_run_gives_what_it_has_and_says_what_is_missing():
    some = [point for point in points() if point.variant == "base" and point.http == "1.0" and point.webs == 8]
    measures = from_records(*synthetic(grid=some), CONNECTED)
    assert {table.name for table in all_tables(measures)} == {"table1", "table2", "table3", "figure1", "figure2"}
    found = {claim.id: claim for claim in all_claims(measures)}
    assert found["rfc2415-s3-08"].verdict == "cannot be checked"
    assert found["rfc2415-s3-08"].reason == (
        "The run lacks 8 of the 12 cells that this needs: 16 and 32 webs with 0 to 3 ftps, HTTP/1.0, IW 1."
    )
    assert found["rfc2415-s3-16"].reason == (
        "The run lacks the cell that this needs: 32 webs with 3 ftps, HTTP/1.0, IW 4."
    )
    assert found["rfc2415-s3-36"].reason == (
        "The run lacks all 2 cells that this needs: 64 webs with 0 ftps, HTTP/1.0, IW 3 and 1+3, variant mix."
    )
    # Sizes are drawn alike in every cell.
    assert found["rfc2415-s3-07"].verdict == "holds"
    assert "does not cover" in answer(measures, list(found.values()))[0]


def test_a_note_about_cells_that_a_run_lacks_is_left_out(claims: dict):
    some = [point for point in points() if point.iw in ("1", "3")]
    found = {claim.id: claim for claim in all_claims(from_records(*synthetic(grid=some), CONNECTED))}
    decided = [name for name, claim in found.items() if claim.verdict != "cannot be checked"]
    assert decided
    assert [name for name in decided if found[name].reason != claims[name].reason]
    assert all(
        (found[name].verdict, found[name].found) == (claims[name].verdict, claims[name].found) for name in decided
    )


def test_a_missing_initial_window_of_one_is_said_where_a_gain_needs_it():
    some = [point for point in points() if point.variant == "base" and point.iw == "3"]
    found = {claim.id: claim for claim in all_claims(from_records(*synthetic(grid=some), CONNECTED))}
    assert found["rfc2415-s4-01"].reason == (
        "The run lacks 24 of the 48 cells that this needs: 8, 16 and 32 webs with 0 to 3 ftps, HTTP/1.0, IW 1; "
        "8, 16 and 32 webs with 0 to 3 ftps, HTTP/1.1, IW 1."
    )


def test_a_cell_in_which_nothing_finished_is_not_called_missing():
    transfers, pages, links = synthetic()
    transfers = transfers.filter(pl.col("application") != "ftp")
    found = {claim.id: claim for claim in all_claims(from_records(transfers, pages, links, CONNECTED))}
    assert found["rfc2415-s3-03"].reason == (
        "The run has no median file delay for 8, 16 and 32 webs with 1 to 3 ftps, HTTP/1.0, IW 1 and 3: nothing "
        "finished there."
    )


def test_a_claim_about_one_cell_is_checked_in_a_run_of_that_cell():
    some = [
        point for point in points() if (point.variant, point.http, point.webs, point.ftps) == ("base", "1.0", 32, 3)
    ]
    found = {claim.id: claim for claim in all_claims(from_records(*synthetic(grid=some), CONNECTED))}
    assert {id for id, claim in found.items() if claim.verdict != "cannot be checked"} == {
        "rfc2415-s3-15",
        "rfc2415-s3-16",
    }


def test_one_replicate_has_no_intervals_and_so_decides_nothing():
    measures = from_records(*synthetic(replicates=1), CONNECTED)
    claims = {claim.id: claim for claim in all_claims(measures)}
    assert claims["rfc2415-s3-04"].verdict == "undecided"
    assert claims["rfc2415-s3-04"].low is None
    assert {claim.verdict for claim in claims.values()} == {"undecided", "cannot be checked"}
    assert claims["rfc2415-s3-02"].verdict == "cannot be checked"


def test_answer_is_three_sentences_from_the_data(measures: Measures, claims: dict):
    gain, cost, verdicts = answer(measures, list(claims.values()))
    assert "arrives 8.7 % sooner" in gain
    assert "+0.4 percentage points on average" in cost
    held = sum(claim.verdict == "holds" for claim in claims.values())
    assert f"Of {len(claims)} statements of the RFC, {held} hold here" in verdicts


def test_figures_draw_ours_and_the_printed_points(measures: Measures):
    figures = {figure.name: figure for figure in all_figures(all_tables(measures))}
    assert {"figure1", "figure2", "figure3", "figure4", "page_delay_http10", "drop_rate"} <= set(figures)
    spec = figures["drop_rate"].chart.to_dict()
    values = next(iter(spec.get("datasets", {}).values())) if "datasets" in spec else spec["data"]["values"]
    rfc = [point for point in values if point["who"] == "RFC 2415" and point["webs"] == "32"]
    assert {(point["ftps"], point["iw"]) for point in rfc if point["ftps"] != "3 ftps"} == {
        ("no ftp", 1),
        ("no ftp", 3),
    }


def test_a_zero_that_a_claim_divides_by_is_named_and_no_other_fault_passes_for_it():
    """Pages that take the same time in every replicate do not vary, and the variation is what s3-05 divides by."""
    same = from_records(*synthetic(delay=lambda point, replicate: plain_delay(point, 0)), CONNECTED)
    reasons = {claim.reason for claim in all_claims(same) if claim.verdict == "cannot be checked"}
    assert "The variation of page delays without ftps is zero in this run, so no ratio to it exists." in reasons

    def faulty(data: Data) -> float:
        return 1.0 / len([])

    statement = Statement("rfc2415-s3-99", "", near(1), 0.0, "", "", faulty)
    with pytest.raises(ZeroDivisionError):
        statement.check(same)

"""Quantities, claims and tables of the study kernel, on quantities that differ in every cell."""

import copy
import math
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
import xarray as xr

import firstflight
from firstflight.analysis.claim import Expectation, Sentence
from firstflight.engines import model
from firstflight.errors import RequestError
from firstflight.records import Identity, RunWriter
from firstflight.scenario import Scenario
from firstflight.studies import NAMES, find
from firstflight.studies.kernel import (
    ClaimSpec,
    DeclaredStudy,
    Observations,
    Observed,
    Quantities,
    Sample,
    Sampled,
    Source,
    above,
    along,
    at_least,
    at_most,
    below,
    by_labels,
    change,
    each,
    extreme,
    headed,
    heat_map,
    lines,
    named,
    near,
    observed,
    panels,
    relative,
    scatter,
    table,
    value,
)
from firstflight.studies.kernel.claim import FIXED, OURS, depending, judge
from firstflight.studies.kernel.quantity import Quantity, Summary, _jackknife, estimate, measured

IWS, RTTS = [3, 10], [20, 100, 300]
EXAMPLES = Path(__file__).parents[2] / "examples"


def quantity(values: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> xr.DataArray:
    """Of values (iw, rtt, replicate)."""
    coordinates = {"iw": IWS, "rtt": RTTS, "draw": np.arange(values.shape[-1] + 1), "interval": "jackknife"}
    attributes = {"long_name": "Time", "units": "ms", "digits": 1}
    return xr.DataArray(_jackknife(values), coordinates, ["iw", "rtt", "draw"], "time", attributes)


TIME = Quantity("time", "Time", "ms", pl.col("time").mean())


DECLARED = """
title = "T"
source = "S"
shows = "s"
question = "Q"
limitations = []
engines = ["model"]
replicates = 1
grid = { scenario = "a.toml", keys = { iw = { title = "IW", set = "tcp.initial_window", values = [3, 10] } } }
"""
SAMPLE = Sample(lambda run, piece: pl.LazyFrame(), ("cluster",))


@pytest.mark.parametrize(
    ("regime", "arguments", "problem"),
    [
        (Quantity, {"records": SAMPLE}, "records is a Sample; write Sampled"),
        (Observed, {"records": SAMPLE}, "records is a Sample; write Sampled"),
        (Observed, {"summary": "middle"}, 'summary is "middle"; write median'),
        (Sampled, {"summary": "sum"}, "records is no Sample; give one, or write Quantity"),
        (Sampled, {"records": SAMPLE, "summary": "median"}, 'summary is "median"; write mean, sum or percentiles'),
        (Sampled, {"records": SAMPLE, "summary": (50, 995)}, r'summary is "\(50, 995\)"; write mean, sum or perc'),
        (Sampled, {"records": SAMPLE, "by": ("client",)}, "a Sample needs by with labels"),
        (Quantity, {"records": "transfer"}, "records is 'transfer'; did you mean \"transfers\"?"),
        (Quantity, {"where": "completed"}, 'value and where are expressions, such as pl.col."bytes"..sum'),
        (Quantity, {"by": "client"}, 'by is "client"; write by=."client",.'),
        (Quantity, {"by": {"client": [0, 0]}}, r"the labels of client are \[0, 0\]; write a list of different labels"),
        (Quantity, {"at": {"iw": 3}}, "the labels of iw are 3; write a list of different labels"),
        (Quantity, {"digits": -1}, "digits is -1; write a whole number from 0"),
    ],
)
def test_an_argument_of_a_quantity_that_its_regime_cannot_use_is_refused(
    regime: Any, arguments: dict[str, Any], problem: str
) -> None:
    with pytest.raises(RequestError, match=problem):
        regime("p", "P", "ms", pl.col("x").mean(), **arguments)


@pytest.mark.parametrize("name", [*(name for name in dir(Quantities) if not name.startswith("_")), "_run", ""])
def test_a_quantity_cannot_have_the_name_of_a_method_of_quantities(name: str) -> None:
    with pytest.raises(RequestError, match=f'quantity "{name}": '):
        Quantity(name, "T", "ms", pl.col("x").mean())


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"grid": "homes"}, '"time" is of a grid "homes"; there is one without a name'),
        ({"title": "Again"}, 'two quantities are called "time"'),
    ],
)
def test_a_study_refuses_a_quantity_that_it_would_leave_out(
    tmp_path: Path, changed: dict[str, Any], problem: str
) -> None:
    (tmp_path / "study.toml").write_text(DECLARED)
    DeclaredStudy(tmp_path / "__init__.py", [replace(TIME, name="other"), TIME])
    with pytest.raises(RequestError, match=problem):
        DeclaredStudy(tmp_path / "__init__.py", [replace(TIME, **changed), TIME])


DONE = Quantity("done", "Time", "ms", pl.col("completion_time_s").mean())
LATE = Quantity("late", "Delay", "ms", pl.col("delay_min_s").mean())
DELAY = replace(LATE, value=pl.col("completion_tim_s").mean())
EVERY = Quantity("every", "Time", "ms", 1e3 * pl.col("completion_time_s"))
WHICH = Quantity("which", "Time", "ms", pl.col("completion_time_s").mean(), by={"client": [0, 1]})


def printed(labels: Sequence[Any], key: str = "iw") -> xr.DataArray:
    return xr.DataArray(np.ones(len(labels)), {key: labels}, [key])


def shown(**arguments: Any) -> dict[str, Any]:
    """A study with this table."""
    return {"tables": lambda q: [table("t", "T", "", [q.done], **arguments)]}


def says(found: str = "q.done.sel(iw=3)", expected: str = "above(0)", **arguments: Any) -> dict[str, Any]:
    """A study with this claim."""
    return {"claims": lambda q: [Source("S").says("gain", "T", eval(found), eval(expected), "why", **arguments)]}


def two_dimensions(q: Quantities) -> list[Any]:
    return [table("both", "Both", "", [q.done, q.which])]


@pytest.mark.parametrize(
    ("declared", "arguments", "problem"),
    [
        (("iw =", "drop ="), {}, 'key "drop" is the name of an argument of sel; rename the key'),
        (("iw =", "metric ="), {}, 'key "metric" is the name of a column of the tables; rename the key'),
        (("iw =", "timeouts ="), {}, 'key "timeouts" is the name of a column of the records; rename the key'),
        ((), {"quantities": [LATE]}, '"late" reads "delay_min_s", no .* "transfers"; write records = "streams"'),
        ((), {"quantities": [replace(DONE, at={"iw": [3, 11]})]}, '"done" is at iw 11; known here: 10, 3'),
        ((), {"quantities": [EVERY]}, 'quantity "every" has a value for each row; aggregate them'),
        ((), {"quantities": [DELAY]}, 'reads "completion_tim_s", .*; did you mean "completion_time_s"?'),
        (
            (),
            {"quantities": [DONE, WHICH], "tables": two_dimensions},
            'table "both": which has the dimensions iw, client, and done has iw; select or reduce, or make two tables',
        ),
        (
            (),
            {"claims": lambda q: [Source("S").says("gain", "T", q.done, above(0))]},
            'claim "gain" still has the dimensions iw; select or reduce them',
        ),
        ((), {"answer": lambda q: [f"{value(q.dne)}"]}, 'no quantity "dne"; there are done'),
        (
            (),
            {"claims": lambda q: 2 * [Source("S").says("gain", "T", q.done.sel(iw=3), above(0))]},
            'two claims are called "gain"; give each its own id',
        ),
        ((), {"quantities": [replace(DONE, where=pl.col("bytes"))]}, "its where is not true or false; compare"),
        ((), {"quantities": [replace(DONE, value=pl.col("application").first())]}, '"done" is no number; count it'),
        ((), {"quantities": [replace(DONE, value=pl.col("application") + 1)]}, '"done": '),
        ((), {"quantities": [replace(DONE, by={"iw": [3, 10]})]}, '"done" is by iw, a key of its grid; leave it out'),
        ((), {"quantities": [replace(DONE, by={"client": ["a"]})]}, '"done": client is never "a"; write numbers'),
        ((), {"tables": lambda q: [table("t", "T", "", q.done)]}, 'table "t": quantities and notes are lists; write '),
        (
            (),
            {"tables": lambda q: [table("t", "T", "", [q.done], notes="N")]},
            "notes are lists; write ",
        ),
        ((), {"tables": lambda q: [table("t", "T", "", [q.done.drop_attrs()])]}, "an array has no digits; write named"),
        ((), {"tables": lambda q: [headed(q.done, flights="F")]}, 'the heading of "flights" is .F.; write text for iw'),
        ((), {"tables": lambda q: [headed(q.done, iw={3: "F"})]}, 'the heading of "iw" is {3: .F.}; write text for iw'),
        ((), {"tables": lambda q: [q.at(ix=3)]}, 'no quantity has the key "ix"; known here: draw, iw'),
        ((), {"tables": lambda q: [relative(q.done)]}, 'the base of "done" is {}; write one label of a key'),
        ((), {"tables": lambda q: [change(q.done, iw=[3])]}, r'the base of "done" is {.iw.: \[3\]}; write one label'),
        ((), {"tables": lambda q: [change(q.done, iw=4)]}, 'the base of "done" is {.iw.: 4}; write one label'),
        (
            (),
            {"tables": lambda q: [observed(q.done, "iw")]},
            '"done" has no median over iw: its dimensions are iw, draw; observed takes ',
        ),
        ((), {"tables": lambda q: [each(q.done.expand_dims("x"), "{value}")]}, '"done" still has the dimensions '),
        ((), {"answer": lambda q: [each(q.done.sel(iw=3), "{value}")]}, '"done" has no dimension left, so no label; '),
        ((), {"tables": lambda q: [q.run]}, "these quantities were stored without their run; measure"),
        ((), {"tables": lambda q: [table("t", "T", "", [])]}, 'table "t" has no quantity; give at least one'),
        ((), {"tables": lambda q: [table("t", "T", "", [q.done, q.done])]}, 'two quantities are called "done"'),
        ((), {"tables": lambda q: 2 * [table("t", "T", "", [q.done])]}, 'table "t" has the name of another table'),
        ((), {"tables": lambda q: [table("users", "T", "", [q.done])]}, 'table "users" has the name of the records'),
        ((), {"tables": lambda q: [None]}, "None is no Table; return a list of Table"),
        ((), {"claims": lambda q: [None]}, "None is no ClaimSpec; return a list of ClaimSpec"),
        ((), {"claims": lambda q: None}, "None is no list; return a list of ClaimSpec"),
        ((), {"quantities": [replace(DONE, at={"rtt": [3]})]}, '"done" has labels at "rtt", no key of its grid'),
        (("keys = {", "kys = {"), {"quantities": [replace(DONE, at={"iw": [3]})]}, 'grid.kys: unknown key "kys"; did'),
        ((), {"tables": lambda q: [q.done]}, "is no Table; return a list of Table"),
        (
            (),
            shown(published={"dne": printed([3])}),
            'published has "dne", no quantity of the table; did you mean "done"',
        ),
        ((), shown(published={"done": printed(["3"])}), 'published of "done" has text as iw, and the quantity has not'),
        ((), shown(misprints={"done": printed([3], "rtt")}), 'misprints of "done" has the dimension "rtt"; the quan'),
        ((), {"answer": lambda q: "One sentence."}, '"One sentence." is no list; return a list of str'),
        ((), {"answer": lambda q: [1 // 0]}, "integer division or modulo by zero"),
        ((), says("q.done.max()"), 'claim "gain" has no draws, so no interval; reduce named dimensions'),
        ((), says("3.0"), 'claim "gain" has a number as its value; leave the draws to it'),
        ((), says(expected="3"), 'claim "gain" has no expected value; write for example near'),
        ((), says(needs="valeu"), "claim \"gain\" needs 'valeu'; write one of interval, absence, value"),
        ((), says(expected="near(3, 's')"), 'claim "gain" expects s, and its value is in ms; convert it'),
        ((), says(expected="near(math.nan)"), "no value is nan; write finite numbers, the lower one first"),
        ((), says(expected="near(3, 'ms', -1)"), "the tolerance is -1; write a number from 0"),
        (("[3, 10]", "[3, 3]"), {}, "study.toml: grid.keys.iw.values: 3 stands twice; every cell needs a label of its"),
        (("[3, 10]", "[]"), {}, "grid.keys.iw: there is no label; give at least one"),
        (("[3, 10]", "3"), {}, r"grid.keys.iw.values: 3 is not a list; write \[ ... \]"),
        (("[3, 10]", "[nan]"), {}, "grid.keys.iw.values: nan is no label; write numbers or texts"),
        (("[3, 10]", "{ a = 3 }"), {}, "grid.keys.iw.values: a is 3; write { .tcp.sack. = true }, its settings"),
        (("[3, 10]", "{ a = {} }"), {}, "grid.keys.iw: set has no effect; leave it out"),
        (("[3, 10]", "[3, 10], factor = '2'"), {}, 'grid.keys.iw: factor multiplies numbers; "2" is none'),
        (("[3, 10]", "['a', 10], factor = 2"), {}, 'grid.keys.iw: factor multiplies numbers; "a" is none'),
        (("[3, 10]", "[3, 10], write = '5'"), {}, 'grid.keys.iw: write is "5"; write {} for the label'),
        (("[3, 10]", "[3, 10], write = '{x}'"), {}, 'grid.keys.iw: write is "{x}"; write {} for the label'),
        (("keys = {", "captur = [], keys = {"), {}, 'grid.captur: unknown key "captur"; did you mean "capture"?'),
        (("keys = {", "capture = [{ iw = 4 }], keys = {"), {}, "grid.capture of iw has 4; known here: 10, 3"),
        (
            ("keys = {", "engine = 'simulat', keys = {"),
            {},
            'grid.engine: "simulat" is no engine; did you mean "simulate"?',
        ),
        (("keys = {", "replicates = 0, keys = {"), {}, "grid.replicates: 0 is no number of replicates"),
        (("keys = {", "replicates = { model = 2, modl = 3 }, keys = {"), {}, '"modl" is no engine; did you mean'),
        (("iw =", "value ="), {}, 'key "value" is the name of a column of the tables; rename the key'),
        (("iw =", "experiment ="), {}, 'key "experiment" is the name of a dimension or coordinate'),
        (('title = "IW", ', ""), {}, "grid.keys.iw.title: this key is missing"),
        (("values =", "value ="), {}, 'grid.keys.iw.value: unknown key "value"; did you mean "values"?'),
        (
            (),
            {"claims": lambda q: [Source("S").says("gain", "T", q.done.sel(iw=4), above(0))]},
            "not all values found in index 'iw'",
        ),
    ],
)
def test_a_mistake_in_a_study_is_one_sentence_before_any_cell_is_built(
    tmp_path: Path, declared: tuple[str, ...], arguments: dict[str, Any], problem: str
) -> None:
    (tmp_path / "study.toml").write_text(DECLARED.replace(*declared) if declared else DECLARED)
    (tmp_path / "a.toml").write_bytes((EXAMPLES / "download.toml").read_bytes())
    unbuilt = DeclaredStudy(
        tmp_path / "__init__.py", **({"quantities": [DONE]} | arguments), build=lambda *_: pytest.fail("built")
    )
    with pytest.raises(RequestError, match=problem):
        firstflight.run(unbuilt)


def test_a_value_may_read_a_key_whose_labels_are_texts(tmp_path: Path) -> None:
    texts = 'values = { few = { "tcp.initial_window" = 3 }, many = { "tcp.initial_window" = 10 } }'
    declared = DECLARED.replace('set = "tcp.initial_window", values = [3, 10]', texts).replace("model", "simulate")
    (tmp_path / "study.toml").write_text(declared)
    (tmp_path / "a.toml").write_bytes((EXAMPLES / "download.toml").read_bytes())
    small = pl.col("iw").is_in(["few"]).mean()
    study = DeclaredStudy(tmp_path / "__init__.py", [Quantity("small", "Share", "", small)])
    assert study.quantities(firstflight.run(study)).small.isel(draw=0).values.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (DECLARED.replace('title = "T"', ""), "study.toml: title: this key is missing"),
        (DECLARED.replace("replicates = 1", "replicates = 0"), "replicates: 0 is too small; write at least 1"),
        (DECLARED.replace('["model"]', '["modle"]'), r'study.toml: engines\[0\]: "modle" is no engine; did you mean'),
        (DECLARED.replace("= []", '= "None."'), r'study.toml: limitations: "None." is not a list; write \[ ... \]'),
        (DECLARED.replace("grid = ", 'grid = "a.toml" # '), 'study.toml: grid: "a.toml" is not a table; write { '),
        (DECLARED.replace("grid = ", "grids = 3 # "), "study.toml: grids: 3 is not a table; write { "),
        (DECLARED.replace("grid = ", "grids = { x = 3 } # "), "study.toml: grids.x: 3 is not a table; write { "),
        (DECLARED.replace("grid = ", "grids = {} # "), "study.toml: grids: this is empty; give at least one"),
        (f"keys = {{ iw = 3 }}\n{DECLARED}", "study.toml: keys.iw: 3 is not a table; write { "),
        (f"{DECLARED}\n[grids.other]", r"study.toml: it has both \[grid\] and \[grids\]; write .grid., or"),
        (DECLARED.replace("grid = ", "gird = "), "study.toml: gird: unknown key .gird.; did you mean .grid."),
        (DECLARED.replace("grid = ", "# "), "study.toml: it has no grid; write .grid."),
        (f"note = 'N'\n{DECLARED}", "study.toml: note: unknown key .note.; "),
        ("title = T", "study.toml: Invalid value"),
    ],
)
def test_a_study_without_all_parts_is_one_sentence(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(RequestError, match=problem):
        DeclaredStudy(tmp_path / "__init__.py", [])


def test_a_published_table_has_one_value_of_a_cell() -> None:
    twice = pl.DataFrame({"iw": [3, 3, 10], "rtt": [20, 20, 20], "value": [1.0, 2.0, 3.0]})
    with pytest.raises(RequestError, match="the published table has two values at 3, 20; keep one"):
        by_labels(twice, "iw", "rtt")


def test_a_table_that_a_study_does_not_have_is_refused() -> None:
    run = firstflight.run(study := find("rfc6928-rounds"), only={"segments": 10})
    with pytest.raises(
        RequestError, match='"rfc6928-rounds" has no table "rounds" of this run; did you mean "round_trips"'
    ):
        study.table(run, "rounds")


def test_a_study_without_quantities_runs(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(DECLARED.replace("model", "simulate"))
    (tmp_path / "a.toml").write_bytes((EXAMPLES / "download.toml").read_bytes())
    run = firstflight.run(study := DeclaredStudy(tmp_path / "__init__.py", []))
    assert study.claims(run) == []


def test_studies_of_an_rfc_come_first() -> None:
    of_an_rfc = [name.startswith("rfc") for name in NAMES]
    assert (NAMES[0], of_an_rfc) == ("rfc2415", sorted(of_an_rfc, reverse=True))


def test_a_study_that_gives_its_folder_is_told_to_give_its_file(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r'" is a folder; write k.DeclaredStudy\(__file__, ...\)$'):
        DeclaredStudy(tmp_path, [])


def only(times: xr.DataArray) -> Quantities:
    return Quantities({TIME: times})


@pytest.fixture
def times() -> xr.DataArray:
    #       rtt   20          100         300; replicates 9, 10, 14 and so on
    return quantity(
        np.array(
            [
                [[30.0, 36, 39], [120, 150, 156], [400, 460, 490]],
                [[20.0, 21, 25], [90, 100, 110], [250, 300, 260]],
            ]
        )
    )


POSITIVE = above(0, "percent")


def claim(found: xr.DataArray, expected: Expectation = POSITIVE, **options: Any) -> ClaimSpec:
    return Source("source").says("id", "text", found, expected, "why", **options)


def test_draw_0_is_the_mean_over_replicates_and_draw_i_leaves_replicate_i_out(times: xr.DataArray) -> None:
    cell = times.sel(iw=3, rtt=100)
    assert cell.values.tolist() == [142.0, 153.0, 138.0, 135.0]


def test_the_interval_of_a_mean_is_students() -> None:
    # Student's t of 9, 10, 14: mean 11, standard deviation 2.6458, t of 2 degrees of freedom 4.3027.
    values = quantity(np.broadcast_to([9.0, 10.0, 14.0], (2, 3, 3)).copy()).sel(iw=3, rtt=20)
    found = estimate(values)
    assert (found.value, found.replicates) == (11.0, 3)
    assert found.low == pytest.approx(11 - 4.302653 * 2.645751 / math.sqrt(3), abs=1e-5)
    assert found.high == pytest.approx(11 + 4.302653 * 2.645751 / math.sqrt(3), abs=1e-5)


def test_one_replicate_has_no_interval() -> None:
    found = estimate(quantity(np.ones((2, 3, 1))).sel(iw=3, rtt=20))
    assert found.value == 1
    assert math.isnan(found.low)


def test_a_difference_of_paired_cells_is_narrower_than_either(times: xr.DataArray) -> None:
    few, many = times.sel(iw=3, rtt=100), times.sel(iw=10, rtt=100)
    difference = estimate(few - many)
    assert difference.value == 42.0
    # 30, 50, 46 by replicate: deviation 10.583.
    assert difference.high - difference.value == pytest.approx(4.302653 * 10.583 / math.sqrt(3), abs=1e-2)


def test_an_array_with_a_dimension_left_is_refused_by_its_name(times: xr.DataArray) -> None:
    with pytest.raises(ValueError, match='"time" still has the dimensions rtt'):
        estimate(times.sel(iw=3))


def test_a_claim_on_a_whole_grid_is_judged_by_its_interval(times: xr.DataArray) -> None:
    def specs(q: Quantities) -> Sequence[ClaimSpec]:
        gain = 100 * (1 - q.time.sel(iw=10) / q.time.sel(iw=3))
        return [claim(gain.min("rtt")), claim(gain.min("rtt"), near(50, "percent", 1))]

    least, wrong = judge(specs, only(times))
    # 22/35 of 20 ms, 100/142 of 100 ms, 270/450 of 300 ms.
    assert least.found == pytest.approx(100 * (1 - 100 / 142))
    assert (least.verdict, wrong.verdict) == ("holds", "differs")
    assert least.low is not None
    assert least.low < least.found < (least.high or 0)


def test_a_source_makes_claims_with_the_unit_and_the_tolerance_of_the_expectation() -> None:
    talk, found = Source("a talk", "talk-", needs="value"), xr.DataArray(57.0)
    spec, other = (
        talk.says("gain", "It gains 60%.", found, near(60, "percent", 5), "Round.", "Note."),
        talk.says("least", "It gains.", found, above(0, "ms"), "A sign.", needs="absence"),
    )
    sentence = Sentence("talk-gain", "a talk", "It gains 60%.", near(60, "percent", 5), "Round.", "value")
    assert spec == ClaimSpec(sentence, found, "Note.")
    assert (other.sentence.expectation, other.sentence.needs, other.note) == (above(0, "ms"), "absence", "")
    assert (spec.judge().verdict, spec.judge().tolerance, spec.judge().unit) == ("holds", 5, "percent")


DIRECTION = "The claim is a direction only."


@pytest.mark.parametrize(
    ("source", "expected", "why"),
    [
        (Source("RFC 1"), above(0, "ms"), DIRECTION),
        (Source("RFC 1"), below(0, "segments"), DIRECTION),
        (Source("RFC 1"), at_most(0, "pp of IW 3's"), DIRECTION),
        (Source("RFC 1"), above(1, "ratio"), DIRECTION),
        (Source("RFC 1"), at_most(100, "% of IW 3's"), DIRECTION),
        (OURS, above(0, "percent"), DIRECTION),
        (Source("RFC 1", why="As printed."), above(0), "As printed."),
        (Source(OURS.name, why=FIXED), above(0), FIXED),
    ],
)
def test_a_direction_needs_no_reason_and_a_source_gives_its_own(
    source: Source, expected: Expectation, why: str
) -> None:
    assert source.says("id", "A sentence.", xr.DataArray(1.0), expected).sentence.why == why


@pytest.mark.parametrize("source", [Source("RFC 1"), OURS])
@pytest.mark.parametrize(
    "expected",
    [
        at_least(5, "percent"),
        near(3, "rounds"),
        near(3, "rounds", 1),
        at_least(0, "percent", 1),
        at_most(100, "ms"),
        at_least(100, "Mbit/s"),
        at_least(100, "percent"),
        at_most(1, "segments"),
        at_least(1, "pp"),
        at_most(0, "timeouts"),
        at_most(0, "ratio"),
        at_most(1, "% of IW 3's"),
    ],
)
def test_a_claim_with_another_limit_needs_a_reason(source: Source, expected: Expectation) -> None:
    with pytest.raises(RequestError, match='claim "id" has no reason for its limit or tolerance; write why'):
        source.says("id", "A sentence.", xr.DataArray(1.0), expected)


def test_a_change_is_against_the_base_in_the_same_cell(times: xr.DataArray) -> None:
    ten = times.sel(iw=10, rtt=20, draw=0) / times.sel(iw=3, rtt=20, draw=0)
    assert float(relative(times, iw=3).sel(iw=10, rtt=20, draw=0)) == pytest.approx(100 * float(ten))
    assert float(change(times, iw=3).sel(iw=10, rtt=20, draw=0)) == pytest.approx(100 * (float(ten) - 1))
    assert "iw" not in change(times, iw=3).sel(iw=10, drop=True).coords


def test_a_claim_that_reads_a_missing_cell_cannot_be_checked_and_names_it(times: xr.DataArray) -> None:
    lacking = times.where(~((times["iw"] == 10) & (times["rtt"] == 300)))

    def specs(q: Quantities) -> Sequence[ClaimSpec]:
        return [
            # xarray's mean skips NaN: without a check this one would be judged on two of three cells.
            claim(q.time.sel(iw=10).mean("rtt"), needs="value"),
            claim(q.time.sel(iw=10).max("rtt"), needs="value"),
            claim(q.time.sel(iw=3).mean("rtt"), needs="value"),
            claim(q.time.sel(iw=10, rtt=300), needs="value"),
        ]

    found = judge(specs, only(lacking))
    assert [each.verdict for each in found] == ["cannot be checked", "cannot be checked", "holds", "cannot be checked"]
    assert found[0].reason == found[3].reason == "This run has no value for iw 10, rtt 300."
    assert found[0].found is None


def test_a_key_all_of_whose_labels_are_missing_is_not_named(times: xr.DataArray) -> None:
    nothing = times.where(times["iw"] > 10)
    (found,) = judge(lambda q: [claim(q.time.mean(["iw", "rtt"]))], only(nothing))
    assert found.reason == "This run has no value for any cell."


def test_a_ratio_and_a_comparison_of_two_missing_cells_cannot_be_checked(times: xr.DataArray) -> None:
    nothing = times.where(times["rtt"] < 300)

    def specs(q: Quantities) -> Sequence[ClaimSpec]:
        few, many = q.time.sel(iw=3, rtt=300), q.time.sel(iw=10, rtt=300)
        faster = (q.time.sel(iw=10) < q.time.sel(iw=3)).sum("rtt")
        return [claim(few / many), claim(faster), claim((q.time.sel(rtt=20) > 0).sum("iw"), needs="value")]

    ratio, count, other = judge(specs, only(nothing))
    assert ratio.reason == count.reason == "This run has no value for rtt 300."
    assert (other.verdict, other.found) == ("holds", 2)


def test_a_kind_that_is_counted_in_a_missing_cell_cannot_be_checked(times: xr.DataArray) -> None:
    kinds = times.copy(data=np.zeros_like(times.values)).where(times["rtt"] < 300)
    repair = Quantity("repair", "Repair", "", pl.col("time").sum(), kinds=("fast", "early", "timeout"))

    def specs(q: Quantities) -> Sequence[ClaimSpec]:
        found = [claim((q.repair.sel(iw=3) == kind).sum("rtt"), near(0), needs="value") for kind in range(3)]
        return [*found, claim((q.repair.sel(rtt=20) == 0).sum("iw"), near(2), needs="value")]

    *counted, other = judge(specs, Quantities({repair: kinds.rename("repair")}))
    assert [each.reason for each in counted] == ["This run has no value for iw 3, rtt 300."] * 3
    assert other.verdict == "holds"


def test_a_count_of_values_that_equal_others_cannot_be_checked_without_all(times: xr.DataArray) -> None:
    lacking = times.where(~((times["iw"] == 10) & (times["rtt"] == 300)))

    def specs(q: Quantities) -> Sequence[ClaimSpec]:
        return [claim((q.time.sel(iw=10) == 142).sum("rtt"), near(0), needs="value")]

    # Filled with values such as the run has, some of which are 142.
    (found,) = judge(specs, only(lacking.copy(data=lacking.where(lacking["iw"] == 10, 142).values)))
    assert found.reason == "This run has no value for iw 10, rtt 300."


def test_a_count_of_equal_values_of_two_quantities_without_data_cannot_be_checked(times: xr.DataArray) -> None:
    again = Quantity("again", "Again", "", pl.col("time").sum())
    nothing = times.where(False)

    def specs(q: Quantities) -> Sequence[ClaimSpec]:
        return [claim(100 * (q.time == q.again).mean(["iw", "rtt"]), at_least(90), needs="value")]

    (found,) = judge(specs, Quantities({TIME: nothing, again: nothing.rename("again")}))
    assert found.reason == "This run has no value for any cell."


def test_a_median_over_cells_cannot_be_checked_where_no_single_label_moves_it(times: xr.DataArray) -> None:
    # Cells of one label are too few to move it: 2 of 6, or 3 of 6 on one side.
    lacking = times.where((times["iw"] == 3) & (times["rtt"] == 20))
    (found,) = judge(lambda q: [claim(q.time.median(["iw", "rtt"]))], only(lacking))
    assert found.verdict == "cannot be checked"


def test_what_no_run_can_have_says_why() -> None:
    nothing = xr.DataArray(float("nan"))
    measured = of_rows(TIME, rows({(3, 0): 30, (10, 0): 20}), {"iw": IWS}).where(lambda of: of["iw"] > 3)
    (found,) = judge(lambda q: [claim(nothing, note="It is lost.")], only(measured))
    assert (found.verdict, found.reason) == ("cannot be checked", "It is lost.")


def test_quartiles_and_sums_over_replicates() -> None:
    found = {}
    summaries: Sequence[Summary] = ("lower quartile", "upper quartile", "sum")
    for over in summaries:
        of = Observed("time", "Time", "ms", pl.col("time").mean(), summary=over)
        measured = of_rows(of, rows({(3, 0): 30, (3, 1): 36, (3, 2): 90, (3, 3): 92, (3, 4): 93}), {"iw": [3]})
        found[over] = float(measured.sel(iw=3, draw=0))
    assert found == {"lower quartile": 36, "upper quartile": 92, "sum": 341}


def test_a_grid_of_one_engine_is_in_its_runs_only_and_may_be_computed_by_another() -> None:
    study = find("thalheim")
    keys = [study.keys(engine) for engine in study.engines]
    simulated, emulated = ({key["experiment"] for key in own} for own in keys)
    assert simulated - emulated == {"shaped"}
    assert emulated - simulated == {"simulated", "simulated_shallow"}
    assert {"shaper"} == keys[0][0].keys() - keys[1][0].keys()


def test_charts_over_several_keys_show_every_cell(times: xr.DataArray) -> None:
    loads = xr.concat([times, 2 * times], "load").assign_coords(load=[1, 2])
    three = named(loads, "t", "T", "")
    drawn = [
        panels(three, "", "", "iw", "rtt", "load", base=100, marked=10),
        heat_map(three, "", "", "rtt", "iw", "load"),
        scatter(three.rename("ratio"), times, "", "", "load", "rtt", base=1),
    ]
    for figure in drawn:
        assert figure is not None
        found = figure.chart["data"]["values"]
        assert sorted(row["value"] for row in found) == sorted(three.isel(draw=0).values.ravel().tolist())
    found = drawn[0].chart["data"]["values"]  # type: ignore[union-attr]
    assert {row["mark"] for row in found if "mark" in row} == {"22.0", "100.0", "270.0", "44.0", "200.0", "540.0"}
    found = drawn[2].chart["data"]["values"]  # type: ignore[union-attr]
    assert {(row["value"] / row["against"], row["load"]) for row in found} == {(1, 1), (2, 2)}


def test_a_run_with_other_keys_is_refused(tmp_path: Path) -> None:
    study = find("rfc6928-rounds")
    (cell,) = study.cells("model")[:1]
    old = replace(cell, key={**cell.key, "rtt_ms": 20})
    identity = Identity(study.name, "model", seed=1, replicates=1, scenario=None)
    with RunWriter.create(tmp_path / "old", identity, [old]) as made:
        made.write(identity.cell_hash(old), old, model.run_cell(old, 1, 1), {})
    with pytest.raises(RequestError, match="another version of rfc6928-rounds: its cells have the keys seg"):
        study.claims(made)


def rows(times: dict[tuple[int, int], float]) -> pl.DataFrame:
    """Of (iw, replicate)."""
    return pl.DataFrame([{"iw": iw, "replicate": replicate, "time": time} for (iw, replicate), time in times.items()])


def of_rows(of: Quantity, rows: pl.DataFrame, coordinates: Mapping[str, Sequence[Any]]) -> xr.DataArray:
    return of.measure(of.by_replicate(rows, coordinates), coordinates)


def test_the_rows_of_one_cell_give_what_they_give_among_those_of_others() -> None:
    cells = {iw: rows({(iw, 0): 30 + iw, (iw, 1): 36}) for iw in IWS}
    alone = pl.concat(TIME.by_replicate(of_cell, ["iw"], one_cell=True) for of_cell in cells.values())
    xr.testing.assert_identical(TIME.measure(alone, {"iw": IWS}), of_rows(TIME, pl.concat(cells.values()), {"iw": IWS}))


def test_a_median_has_the_interval_of_resampled_replicates_and_stands_without_some() -> None:
    of = Observed("time", "Time", "ms", pl.col("time").mean())
    measured = of_rows(of, rows({(3, 0): 30, (3, 1): 36, (3, 2): 90, (10, 0): 20, (10, 2): 24}), {"iw": IWS})
    few, many = estimate(measured.sel(iw=3)), estimate(measured.sel(iw=10))
    assert (few.value, few.low, few.high) == (36, 30, 90)
    assert (many.value, many.low, many.high) == (22, 20, 24)


def test_quantities_with_different_kinds_of_intervals_do_not_mix() -> None:
    mean = of_rows(Quantity("mean", "Mean", "ms", pl.col("time").mean()), rows({(3, 0): 30, (3, 1): 36}), {"iw": [3]})
    median = of_rows(
        Observed("median", "Median", "ms", pl.col("time").mean()), rows({(3, 0): 30, (3, 1): 36}), {"iw": [3]}
    )
    with pytest.raises(ValueError, match="different kinds of intervals"):
        estimate((mean - median).sel(iw=3).rename("mixed"))


def test_labels_without_a_value_are_left_out_by_at() -> None:
    of = Quantity("time", "Time", "ms", pl.col("time").mean(), at={"iw": [10]})
    measured = of_rows(of, rows({(3, 0): 30, (10, 0): 20}), {"iw": IWS})
    assert measured["iw"].values.tolist() == [10]
    assert float(measured.sel(iw=10, draw=0)) == 20
    assert not Quantities({of: measured}).absent()


def test_a_sentence_is_left_out_only_if_it_needs_a_missing_cell(times: xr.DataArray) -> None:
    lacking = times.where(times["rtt"] < 300)

    def sentences(q: Quantities) -> Sequence[str]:
        return [f"{float(q.time.sel(rtt=rtt).isel(draw=0).max()):.0f} ms" for rtt in RTTS]

    found = depending(sentences, only(lacking), lambda own, other: own != other)
    assert [lacking for _, lacking in found] == [{}, {}, {"": {"iw": [3, 10], "rtt": [300]}}]


def test_a_table_has_a_row_per_cell_with_data(times: xr.DataArray) -> None:
    lacking = times.where(times["rtt"] < 300)
    published = xr.DataArray([[34.0]], {"iw": [3], "rtt": [20]}, ["iw", "rtt"])
    made = table("times", "Times", "", [lacking], across="iw", published={"time": published})
    assert made.frame.select("iw", "rtt", "ours", "published").rows() == [
        (3, 20, 35.0, 34.0),
        (3, 100, 142.0, None),
        (10, 20, 22.0, None),
        (10, 100, 100.0, None),
    ]
    assert made.frame["unit"].unique().to_list() == ["ms"]


def test_quantities_and_their_parts_are_copied_and_pickled(times: xr.DataArray) -> None:
    whole = only(times.where(times["rtt"] < 300))
    filled = whole.filled(whole.absent(), {}, 1)
    for of in (whole, whole.at(iw=3), whole.at(iw=3).at(rtt=20), filled):
        for made in (copy.copy(of), copy.deepcopy(of), pickle.loads(pickle.dumps(of))):
            assert made.time.identical(of.time)
    assert [of.name for of in whole.read()] == ["time"]


def test_a_ratio_has_a_unit_of_its_own(times: xr.DataArray) -> None:
    for of in (relative(times, iw=3), change(times, iw=3)):
        assert of.attrs["units"] == "percent"


def test_an_unknown_quantity_is_refused_with_the_known_ones(times: xr.DataArray) -> None:
    with pytest.raises(AttributeError, match='no quantity "tmie"; there are time'):
        _ = only(times).tmie


@pytest.mark.slow
def test_no_answer_takes_a_resample_for_a_value() -> None:
    random = np.random.default_rng(1)

    def resampled(of: Quantity, array: xr.DataArray) -> xr.DataArray:
        found: xr.DataArray = made_up.__getattr__(of.name)
        factors = xr.DataArray(random.uniform(0.05, 20, found.shape), found.coords, found.dims)
        return found.where(found.draw == 0, found * factors) if "draw" in found.dims else found

    for study in map(find, NAMES):
        assert isinstance(study, DeclaredStudy)
        for engine in study.engines:
            made_up = study._made_up(engine)
            others = Quantities(dict(made_up._measured.values()), fill=resampled)
            assert list(study._answer(others)) == list(study._answer(made_up)), study.name


@pytest.mark.slow
def test_the_restart_window_study_runs_from_its_files() -> None:
    import firstflight

    study = find("restart-window")
    assert len(study.cells("simulate")) == 2 * 4 * 7
    run = firstflight.run(study, replicates=2, only={"idle_s": [0.1, 30], "iw": 10})
    verdicts = {claim.id: claim.verdict for claim in study.claims(run)}
    assert verdicts["restart-only-after-rto"] == "cannot be checked"
    assert verdicts["restart-prevents-loss"] == "cannot be checked"
    (times_table,) = study.tables(run)
    # 0.1 s is below the RTO: all rules send the same packets.
    below = times_table.frame.filter((pl.col("idle_s") == 0.1) & (pl.col("metric") == "time"))
    assert below["ours"].n_unique() == 1
    assert below.height == 4
    assert study.answer(run) == []


def test_a_scenario_whose_keys_are_varied_is_drawn_against_them(small: Scenario) -> None:
    import firstflight
    from firstflight.studies import of

    run = firstflight.run(small, replicates=2, vary={"tcp.initial_window": [3, 10], "tcp.sack": [False, True]})
    figures = {figure.name: figure for figure in of(run).figures(run)}
    assert list(figures) == ["transfer_time", "page_time", "retransmitted"]
    drawn = figures["page_time"].chart
    (rows,) = drawn["datasets"].values() if "datasets" in drawn else [drawn["data"]["values"]]
    # As the table beside it has them.
    pages = run.tables()["pages"].frame.filter(pl.col("metric") == "mean_completion_time")
    shown = pages.select("initial_window", "sack", "ours", "low", "high")
    keys = ("initial_window", "sack", "value", "low", "high")
    assert sorted(tuple(row[key] for key in keys) for row in rows) == sorted(shown.iter_rows())
    assert all(row["low"] < row["value"] < row["high"] for row in rows)
    means = (
        run.pages.group_by("initial_window", "sack").agg(pl.col("completion_time_s").fill_nan(None).mean()).collect()
    )
    counted = sorted((row["initial_window"], row["sack"], row["value"]) for row in rows)
    assert [row[2] for row in counted] == pytest.approx([row[2] for row in sorted(means.iter_rows())], rel=0.05)


EACH = Observations("time", "Time", "ms", pl.col("time").mean(), by={"user": [0, 1, 2]})
ROWS = pl.DataFrame(
    {
        "iw": [3] * 6 + [10] * 5,
        "user": [0, 1, 2] * 3 + [0, 1],
        "replicate": [0] * 3 + [1] * 3 + [0] * 3 + [1] * 2,
        "time": [30.0, 35, 50, 34, 39, 54, 20, 10, 26, 24, 14],
    }
)


def test_labels_of_records_are_in_the_order_of_the_scenario() -> None:
    records = pl.DataFrame(
        {"iw": [3, 3, 3], "replicate": [0, 0, 0], "application": ["b", "a", "a"], "time": [1.0, 2.0, 3.0]},
        schema_overrides={"application": pl.Enum(["b", "a"])},
    )
    of = Quantity("time", "Time", "s", pl.col("time").mean(), by=("application",))
    measured = of_rows(of, records, {"iw": [3]})
    assert measured["application"].values.tolist() == ["b", "a"]
    assert estimate(measured.sel(iw=3, application="a")).value == 2.5


def test_single_observations_stay_paired_until_they_are_summarized() -> None:
    times = of_rows(EACH, ROWS, {"iw": IWS})
    saved = times.sel(iw=3, drop=True) - times.sel(iw=10, drop=True)
    # Saved by user: 10 and 10, 25 and 25, 24 and none.
    found = estimate(observed(saved, "user", "replicate"))
    assert found.value == 24
    assert 10 <= found.low < 24 <= found.high <= 25
    by_user = observed(saved, "replicate")
    assert by_user.sel(draw=0).values.tolist() == [10, 25, 24]
    assert (estimate(by_user.sel(user=0)).low, estimate(by_user.sel(user=0)).high) == (10, 10)
    assert math.isnan(estimate(by_user.sel(user=2)).low)
    assert estimate(observed(times.sel(iw=3), "user", "replicate", summary="upper quartile")).value == 47.25


def test_places_of_as_many_observations_draw_their_own_resamples() -> None:
    times = of_rows(EACH, ROWS, {"iw": IWS})
    alike = xr.concat([times.sel(iw=3, drop=True)] * 2, "copy")
    # With draws in common these two would err together, and their ratio would never move.
    medians = observed(alike, "user", "replicate")
    ratio = estimate(medians.isel(copy=0) / medians.isel(copy=1))
    assert ratio.value == 1
    assert ratio.low < 1 < ratio.high


def test_a_result_about_the_cells_that_there_are_lacks_none_unless_there_is_none() -> None:
    def one(q: Quantities) -> list[ClaimSpec]:
        return [claim(q.time.max(), needs="value")]

    some, all_of_it = ROWS.filter(pl.col("iw") == 10), ROWS.clear()
    for partial, rows, verdict in (
        (False, some, "cannot be checked"),
        (True, some, "holds"),
        (True, all_of_it, "cannot be checked"),
    ):
        of = replace(EACH, partial=partial)
        [judged] = judge(one, Quantities({of: of_rows(of, rows, {"iw": IWS})}))
        assert judged.verdict == verdict


def test_a_line_has_bars_between_other_quantities_a_base_and_an_axis_linear_about_zero() -> None:
    times = of_rows(EACH, ROWS, {"iw": IWS}).rename(user="who").assign_coords(who=["a", "b", "c"])
    ends = (
        observed(times, "replicate", summary="lower quartile"),
        observed(times, "replicate", summary="upper quartile"),
    )
    figure = lines(observed(times, "replicate"), "Time", "", "who", "iw", linear_within=7, base=28, between=ends)
    assert figure is not None
    chart = figure.chart
    rows = chart["data"]["values"]
    assert [row for row in rows if row["who"] == "a" and row["iw"] == "3"] == [
        {"who": "a", "iw": "3", "value": 32, "low": 31, "high": 33}
    ]
    rule, bars, _ = chart["layer"]
    assert rule["encoding"]["y"] == {"datum": 28}
    assert bars["encoding"]["y"]["axis"]["values"] == [-7, -14, -28, 0, 7, 14, 28]
    assert bars["encoding"]["y"]["scale"] == {"constant": 7, "nice": False, "type": "symlog"}
    assert "xOffset" in bars["encoding"]


def test_the_legend_of_sources_has_the_lines_of_the_picture_and_no_axis_begins_far_below_zero() -> None:
    times = of_rows(EACH, ROWS, {"iw": IWS})
    found = observed(times, "replicate")
    figure = lines(found - found.isel(draw=0).min(), "Time", "", "iw", "user", beside={"a book": found.isel(draw=0)})
    assert figure is not None
    assert figure.narrow is not None
    for chart, orient in ((figure.chart, None), (figure.narrow, "bottom")):
        _, line, points = chart["layer"]
        assert line["mark"] == "line"
        assert line["encoding"]["strokeDash"]["legend"].get("orient") == orient
        assert "strokeDash" not in points["encoding"]
        assert line["encoding"]["y"]["scale"] == {"nice": False, "zero": True}


def test_a_sample_resamples_clusters_the_same_in_every_cell() -> None:
    # Sixty clusters of ten users; with IW 10 each is 2 ms faster, whatever cluster it is in.
    users = pl.DataFrame({"cluster": [place // 10 for place in range(600)], "user": range(600)}).with_columns(
        time=100.0 + pl.col("cluster") + pl.col("user") % 10, fast=pl.col("cluster") < 3
    )
    rows = pl.concat(
        users.with_columns(pl.lit(iw).alias("iw"), pl.col("time") - saved) for iw, saved in ((3, 0.0), (10, 2.0))
    )
    pieces = []

    def of(run: Any, piece: Mapping[str, Any]) -> pl.LazyFrame:
        pieces.append(piece)
        return rows.lazy()

    sample = Sample(of, ("cluster",), ("iw",))
    mean = Sampled("time", "Time", "ms", pl.col("time"), records=sample, grid="one")
    count = Sampled("count", "Users", "", pl.lit(1) + 0 * pl.col("user"), records=sample, summary="sum", grid="one")
    middle = Sampled("middle", "Median", "ms", pl.col("time"), records=sample, summary=(50,), grid="one")
    few = Sampled("few", "Few", "ms", pl.col("time"), pl.col("fast"), sample, grid="one")

    class One:
        cells: ClassVar = [{"experiment": "one", "place": "a", "iw": iw} for iw in (3, 10)]

    found = measured(One(), [mean, count, middle, few], {"one": {"place": ["a", "b"], "iw": [3, 10, 16]}})  # type: ignore[arg-type]
    assert pieces == [{"experiment": "one", "place": "a"}]
    time = found[mean].sel(place="a")
    assert float(time.sel(iw=3, draw=0)) == 134.0
    interval = estimate(time.sel(iw=3))
    assert 128 < interval.low < 131 < 137 < interval.high < 140
    saved = estimate(time.sel(iw=3) - time.sel(iw=10))
    assert (saved.value, saved.low, saved.high) == pytest.approx((2, 2, 2))
    assert float(found[count].sel(place="a", iw=3, draw=0)) == 600
    assert float(found[middle].sel(place="a", iw=10, percentile=50, draw=0)) == pytest.approx(132, abs=0.5)
    # Thirty users are too few for an interval.
    assert estimate(found[few].sel(place="a", iw=3)).value == 105.5
    assert np.isnan(estimate(found[few].sel(place="a", iw=3)).low)
    # A cell that the run lacks has neither a mean nor a sum.
    for quantity in (mean, count):
        assert found[quantity].sel(place="b").isnull().all()
        assert found[quantity].sel(place="a", iw=16).isnull().all()


@pytest.mark.parametrize("name", ["rfc6928-cluster", "uk-homes"])
def test_ids_of_claims_are_known_without_a_run(name: str) -> None:
    # Their claims pick percentiles of quantities that have no row here.
    study: Any = find(name)
    ids = study.claim_ids(study.engines[0])
    assert len(ids) == len(set(ids)) > 10


def test_words_of_labels_and_the_extreme_cell_are_those_of_the_value_not_of_a_draw() -> None:
    times = quantity(np.array([[[5.0, 7.0], [2.0, 4.0], [9.0, 9.0]], [[1.0, 1.0], [1.0, 16.0], [math.nan, math.nan]]]))
    assert value(times.sel(iw=3, rtt=20)) == 6
    assert each(times.sel(iw=3), "{value:.0f} ms at {label}") == "6 ms at 20, 3 ms at 100, 9 ms at 300"
    assert extreme(times) == {"iw": 3, "rtt": 300}
    assert extreme(times, least=True) == {"iw": 10, "rtt": 20}


def test_parts_stand_along_a_new_key_and_labels_are_fixed_for_all_quantities_at_once() -> None:
    times = quantity(np.arange(12.0).reshape(2, 3, 2))
    both = along("way", {"there": times, "back": 2 * times.isel(rtt=slice(2))})
    assert (both.dims[0], both.attrs) == ("way", times.attrs)
    assert value(both.sel(way="back", iw=10, rtt=100)) == 2 * value(times.sel(iw=10, rtt=100))
    assert both.sel(way="back", rtt=300).isnull().all()
    q = Quantities({TIME: times, replace(TIME, name="page"): times.expand_dims(http=["1.0"])})
    assert q.at(iw=10, http="1.0").time.identical(times.sel(iw=10, drop=True))
    assert (q.read(), "time" in q.at(iw=3)) == ([TIME], True)


def test_a_source_gives_its_reason_and_says_of_which_part_a_claim_is() -> None:
    own = Source("a talk", "talk-", "value", "A sign.", "-htb", "Over a shaper: ")
    spec = own.says("gain", "It gains.", xr.DataArray(1.0), above(0, "percent"))
    said = spec.sentence
    assert (said.id, said.text, said.why, said.needs) == (
        "talk-gain-htb",
        "Over a shaper: It gains.",
        "A sign.",
        "value",
    )
    assert own.says("gain", "It gains.", xr.DataArray(1.0), above(0, "percent"), "Another.").sentence.why == "Another."

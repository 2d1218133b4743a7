import json

import polars as pl
import pytest

from firstflight.analysis.table import Metric, Table, number, rows_frame

ROWS = [
    {"webs": 8, "iw": 1, "metric": "delay", "ours": 0.56, "low": 0.54, "high": 0.58, "published": 0.6, "unit": "s"},
    {"webs": 8, "iw": 3, "metric": "delay", "ours": 0.46, "unit": "s"},
    {"webs": 16, "iw": 1, "metric": "delay", "ours": float("nan"), "published": 0.64, "unit": "s"},
    {"webs": 8, "iw": 1, "metric": "drops", "ours": 1.26, "published": 9.0, "unit": "percent"},
]


def table(**changes) -> Table:
    fields = {
        "name": "t",
        "title": "A table",
        "caption": "Of delays.",
        "keys": ("webs", "iw"),
        "frame": rows_frame(("webs", "iw"), ROWS),
        "across": "iw",
        "metrics": (Metric("delay", "Delay"), Metric("drops", "Drops", 1)),
        "notes": ("A note.",),
    }
    return Table(**(fields | changes))


def test_csv_is_tidy_with_the_keys_first_and_empty_fields_for_nothing():
    assert table().csv() == (
        "webs,iw,metric,ours,low,high,published,unit\n"
        "8,1,delay,0.56,0.54,0.58,0.6,s\n"
        "8,3,delay,0.46,,,,s\n"
        "16,1,delay,,,,0.64,s\n"
        "8,1,drops,1.26,,,9.0,percent\n"
    )


def test_as_a_dataset_it_has_the_keys_as_dimensions_and_nan_where_there_is_no_row():
    of = table().to_xarray()
    assert dict(of.sizes) == {"webs": 2, "iw": 2, "metric": 2}
    assert of.published.sel(webs=16, iw=1, metric="delay") == 0.64
    assert of.ours.sel(webs=8).values.tolist() == [[0.56, 1.26], [0.46, pytest.approx(float("nan"), nan_ok=True)]]
    assert of.ours.sel(webs=16).isnull().all()


def test_json_has_the_rows_as_objects():
    document = json.loads(table().json())
    assert document["name"] == "t"
    assert document["rows"][1] == {
        "webs": 8,
        "iw": 3,
        "metric": "delay",
        "ours": 0.46,
        "low": None,
        "high": None,
        "published": None,
        "unit": "s",
    }


def test_a_notebook_shows_the_text_escaped():
    shown = table(title="A < B")._repr_html_()
    assert shown.startswith("<pre>A &lt; B\nOf delays.")


def test_a_block_that_is_too_wide_continues_below_with_the_same_rows():
    block = table(frame=rows_frame(("webs", "iw"), ROWS[:2])).text(23)
    assert "Delay (s)\nwebs               iw=1\n8     0.56 ±0.02 [0.60]\n\nwebs  iw=3\n8     0.46\n" in block


def test_text_gives_a_block_a_metric_with_the_published_value_beside_ours():
    misprint = frozenset({("drops", "8", "1")})
    assert table(misprints=misprint).text() == (
        "A table\n"
        "Of delays.\n\n"
        "Delay (s)\n"
        "webs               iw=1  iw=3\n"
        "8     0.56 ±0.02 [0.60]  0.46\n"
        "16             \N{EN DASH} [0.64]\n\n"
        "Drops (percent)\n"
        "webs        iw=1\n"
        "8     1.3 [9.0?]\n\n"
        "this run ±half of the 95% CI [published]\n"
        "A note."
    )


def test_text_without_a_key_to_spread_gives_a_column_a_metric():
    frame = rows_frame(("webs",), [row | {"published": None} for row in ROWS if row["iw"] == 1 and row["webs"] == 8])
    assert table(keys=("webs",), across=None, frame=frame, notes=(), caption="").text() == (
        "A table\n\n"
        "webs   Delay (s)  Drops (percent)\n"
        "8     0.56 ±0.02              1.3\n\n"
        "this run ±half of the 95% CI"
    )


@pytest.mark.parametrize(("value", "low", "high", "shown"), [(0.56, 0.56, 0.56, "0.56"), (0.0, -1e-17, 1e-17, "0.00")])
def test_an_interval_without_a_width_is_not_shown(value: float, low: float, high: float, shown: str) -> None:
    row = next(row for row in ROWS if row["iw"] == 1 and row["webs"] == 8)
    frame = rows_frame(("webs",), [row | {"published": None, "ours": value, "low": low, "high": high}])
    lines = table(keys=("webs",), across=None, frame=frame, notes=()).text().splitlines()
    assert lines[-3:] == [f"8          {shown}", "", "this run"]


def test_frame_without_a_column_is_refused_with_its_name():
    with pytest.raises(ValueError, match="table t: the frame lacks published"):
        table(frame=rows_frame(("webs", "iw"), ROWS).drop("published"))
    with pytest.raises(ValueError, match="ftps is not one of its keys"):
        table(across="ftps")


def test_difference_counts_in_steps_of_the_aim():
    assert Metric("m", "M", near=0.1).difference(1.2, 1.0) == pytest.approx(2)
    assert Metric("m", "M", compare="absolute", near=3).difference(92, 98) == pytest.approx(-2)
    assert Metric("m", "M").difference(1.0, 0.0) is None


def test_numbers_show_no_sign_on_a_rounded_zero():
    assert number(-0.001, 2) == "0.00"
    assert number(-0.01, 2) == "-0.01"
    assert number(12345.678, 1) == "12,345.7"
    assert number(None, 1) == number(float("nan"), 1) == "\N{EN DASH}"


def test_table_without_rows_keeps_its_columns():
    frame = rows_frame(("webs", "iw"), [])
    assert isinstance(frame, pl.DataFrame)
    assert table(frame=frame).csv() == "webs,iw,metric,ours,low,high,published,unit\n"

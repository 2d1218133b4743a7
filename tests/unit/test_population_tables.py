"""Tables of paths: the values read from a file, and the places of its errors."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from firstflight import RequestError
from firstflight.scenario import Scenario
from small_population import SEARCH, whole

LAWS: dict[str, Any] = {"up": "1Mbit", "buffer": "100ms", "loss": 0}
HOMES = "# measured at home\nhome,rtt_s,down_bps\na,0.02,8e6\nb,0.05,1000000\n\nc,0.30,256000\n"


def of_table(directory: Path, text: str, *applications: dict[str, Any], **keys: Any) -> Scenario:
    """Users of the table that `text` is."""
    (directory / "homes.csv").write_text(text, encoding="utf-8")
    table = {"paths": "table", "file": "homes.csv"} | LAWS | keys
    return whole({k: v for k, v in table.items() if v is not None}, *applications, directory=directory)


def test_each_row_is_a_user_and_other_columns_are_left_alone(tmp_path: Path) -> None:
    plan = of_table(tmp_path, HOMES).to_plan()["population"]
    assert plan["users"] == 3
    assert plan["paths"] == {
        "kind": "table",
        "draw": "each",
        "rtt_ns": [20_000_000, 50_000_000, 300_000_000],
        "down_bps": [8_000_000, 1_000_000, 256_000],
        "up_bps": {"distribution": "constant", "value": 1_000_000},
        "buffer_ns": {"distribution": "constant", "value": 100_000_000},
        "loss": {"distribution": "constant", "value": 0.0},
        "weight": [1.0, 1.0, 1.0],
        "bytes": None,
        "tls_bytes": None,
        "tls_exchanges": None,
    }


def test_a_dumped_table_needs_no_file(tmp_path: Path) -> None:
    made = of_table(tmp_path, HOMES, row_sampling="weighted", users=1000)
    (tmp_path / "homes.csv").unlink()
    assert Scenario.from_toml(made.to_toml()).to_plan() == made.to_plan()


def test_parquet_is_read_like_csv(tmp_path: Path) -> None:
    frame = pl.DataFrame({"rtt_s": [0.02, 0.05], "down_bps": [8_000_000, 1_000_000], "weight": [1, 3], "bytes": [5, 9]})
    frame.write_parquet(tmp_path / "homes.parquet")
    table = {"paths": "table", "file": "homes.parquet"} | LAWS
    plan = whole(table, SEARCH | {"size": "row"}, directory=tmp_path).to_plan()
    assert plan["population"]["paths"]["weight"] == [1.0, 3.0]
    assert plan["population"]["paths"]["bytes"] == [5, 9]
    assert plan["applications"][0]["size_from_row"] is True


ODD = [
    ("", "homes.csv is empty; a table begins with a line of names"),
    ("rtt_s,down_bps\n", "homes.csv has no rows below its names; give at least one user"),
    ("rtt_s,rate\n0.1,1e6\n", "homes.csv has no column down_bps; it has rtt_s, rate"),
    ("rtt_s,down_bps,weights\n0.1,1e6,1\n", 'homes.csv has a column "weights"; did you mean "weight"?'),
    ("rtt_s,down_bps\n0.1,1e6\n0.2,fast\n", 'homes.csv, line 3, down_bps: "fast" is not a number'),
    ("# two\nrtt_s,down_bps\n\n0.1,1e6\n#\n,1e6\n", "homes.csv, line 6, rtt_s: there is no value; fill it or leave"),
    ("rtt_s,down_bps\n0.1,1e6\n-0.1,1e6\n", "homes.csv, line 3, rtt_s: -0.1 is out of range: a round trip is above 0"),
    ("rtt_s,down_bps\nnan,1e6\n", "homes.csv, line 2, rtt_s: nan is out of range"),
    ("rtt_s,down_bps\n0.1,0\n", "homes.csv, line 2, down_bps: 0 is out of range: a rate is at least 2"),
    ("rtt_s,down_bps,weight\n0.1,1e6,0\n0.1,1e6,0\n", "all weights are 0; give at least one row some"),
    ("rtt_s,down_bps,bytes\n0.1,1e6,1.5\n", "homes.csv, line 2, bytes: 1.5 is out of range: a size is a whole number"),
    ("rtt_s,down_bps,rtt_s\n0.1,1e6,0.2\n", "homes.csv has more than one column rtt_s; keep one"),
    ("rtt_s,down_bps\n0.1,1e6\n0.1,1e6,7\n", "homes.csv, line 3 cannot be read as CSV"),
]


@pytest.mark.parametrize(("text", "expected"), ODD, ids=[expected[:40] for _, expected in ODD])
def test_an_odd_table_is_named_with_line_and_column(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(RequestError) as found:
        of_table(tmp_path, text)
    assert expected in str(found.value)
    assert "\n" not in str(found.value)


def test_a_loss_of_one_is_refused_in_a_table(tmp_path: Path) -> None:
    with pytest.raises(
        RequestError, match=r"homes.csv, line 2, loss: 1 is out of range: a probability of loss is 0 or"
    ):
        of_table(tmp_path, "rtt_s,down_bps,loss\n0.1,1e6,1\n", loss=None)


WRONG = [
    ({"file": "flats.csv"}, "there is no file"),
    ({"file": None}, 'a table of paths needs file = "NAME.csv" (or .parquet) or columns'),
    ({"up": None}, '"homes.csv" has no column up_bps; add it, or set up, such as up = "1Mbit"'),
    ({"loss": None}, '"homes.csv" has no column loss; add it, or set loss, such as loss = 0.001'),
    ({"users": 4}, 'users is 4 and "homes.csv" has 3 rows; ask for no more, or write row_sampling = "weighted"'),
    ({"row_sampling": "weighted"}, "population.users: this key is missing"),
    ({"rtt": "5ms"}, 'population.rtt: unknown key "rtt"'),
    ({"columns": {"rtt_s": [0.1], "down_bps": [1e6, 2e6]}}, "down_bps has 2 values and rtt_s 1; give each row one"),
    ({"columns": {"rtt_s": [0.1], "down_bps": [1]}}, "down_bps[0]: 1 is out of range"),
]


@pytest.mark.parametrize(("keys", "expected"), WRONG, ids=[str(keys)[:40] for keys, _ in WRONG])
def test_keys_that_do_not_fit_a_table_are_named(tmp_path: Path, keys: dict[str, Any], expected: str) -> None:
    with pytest.raises(RequestError) as found:
        of_table(tmp_path, HOMES, **keys)
    assert expected in str(found.value)


def test_a_law_beside_its_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r'"homes\.csv" has a column up_bps, so that up would not be used; keep'):
        of_table(tmp_path, "rtt_s,down_bps,up_bps\n0.1,1e6,1e6\n")


def test_a_file_that_is_no_parquet_says_so(tmp_path: Path) -> None:
    (tmp_path / "homes.parquet").write_text("rtt_s,down_bps\n")
    with pytest.raises(RequestError, match=r"homes\.parquet cannot be read as Parquet"):
        whole({"paths": "table", "file": "homes.parquet"} | LAWS, directory=tmp_path)

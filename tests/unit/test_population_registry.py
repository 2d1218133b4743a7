"""Built-in populations: each can be run, and any key of one can be replaced."""

from pathlib import Path
from typing import Any

import pytest

from firstflight import RequestError, populations
from firstflight.engines.simulate import run_cell
from firstflight.scenario import Cell, Scenario
from small_population import MARGINALS, whole


@pytest.mark.parametrize("name", populations.NAMES)
def test_a_built_in_is_whole(name: str) -> None:
    made = whole({"name": name, "users": 20})
    assert made.population is not None
    assert (made.population.name, made.population.users) == (name, 20)
    assert Scenario.from_toml(made.to_toml()).to_plan() == made.to_plan()
    assert run_cell(Cell({}, made), seed=1, replicates=1)["users"].height == 20


@pytest.fixture
def somewhere(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A built-in of this name that is MARGINALS."""
    monkeypatch.setattr(populations, "_BUILT_IN", {"somewhere": ("", "")})
    monkeypatch.setattr(populations, "NAMES", ("somewhere",))
    monkeypatch.setattr(populations, "_loaded", lambda name: MARGINALS)
    return MARGINALS


@pytest.mark.usefixtures("somewhere")
def test_keys_of_a_built_in_are_replaced_one_by_one() -> None:
    plan = whole({"name": "somewhere", "users": 7, "dependence": {}}).to_plan()["population"]
    assert plan["users"] == 7
    assert plan["paths"]["correlation"][1] == 0
    assert plan["paths"]["down_bps"]["median"] == 2_000_000


def test_a_law_takes_the_place_of_a_built_ins_column(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"rtt_s": [0.1], "down_bps": [1e6], "up_bps": [1e6], "buffer_s": [0.1], "loss": [0.01]}
    monkeypatch.setattr(populations, "_BUILT_IN", {"one": ("", "")})
    monkeypatch.setattr(populations, "_loaded", lambda name: {"paths": "table", "columns": columns})
    made = whole({"name": "one", "buffer": "1s"})
    paths = made.to_plan()["population"]["paths"]
    assert paths["buffer_ns"] == {"distribution": "constant", "value": 1_000_000_000}
    assert paths["loss"] == [0.01]
    assert Scenario.from_toml(made.to_toml()).to_plan() == made.to_plan()


def test_a_file_takes_the_place_of_a_built_ins_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    columns = {"rtt_s": [0.1] * 3, "down_bps": [1e6] * 3, "up_bps": [1e6] * 3}
    built_in = {"paths": "table", "users": 3, "columns": columns, "buffer": "1s", "loss": 0.01}
    monkeypatch.setattr(populations, "_BUILT_IN", {"three": ("", "")})
    monkeypatch.setattr(populations, "_loaded", lambda name: built_in)
    (tmp_path / "two.csv").write_text("rtt_s,down_bps,up_bps\n0.2,2e6,1e6\n0.3,2e6,1e6\n", encoding="utf-8")
    made = whole({"name": "three", "file": "two.csv"}, directory=tmp_path)
    population = made.to_plan()["population"]
    assert (population["users"], population["paths"]["rtt_ns"]) == (2, [200_000_000, 300_000_000])
    assert Scenario.from_toml(made.to_toml()).to_plan() == made.to_plan()


@pytest.mark.usefixtures("somewhere")
def test_what_a_built_in_gives_is_the_callers_to_change() -> None:
    populations.find("somewhere")["rtt"]["median"] = "1s"
    assert populations.find("somewhere")["rtt"]["median"] == "70ms"


@pytest.mark.usefixtures("somewhere")
def test_a_built_in_of_other_paths_is_not_mixed_with_a_table() -> None:
    with pytest.raises(
        RequestError, match='"somewhere" has paths = "marginals"; for paths = "table" leave its name out'
    ):
        whole({"name": "somewhere", "paths": "table", "file": "homes.csv"})


@pytest.mark.usefixtures("somewhere")
def test_an_unknown_built_in_is_named_with_the_nearest() -> None:
    with pytest.raises(RequestError, match='unknown population "somwhere"; did you mean "somewhere"'):
        populations.find("somwhere")


def test_files_of_a_built_in_are_read_where_they_lie() -> None:
    folder = Path(populations.__file__).parent
    for name in populations.NAMES:
        table = populations.find(name)
        assert "file" not in table
        assert all(not isinstance(value, dict) or "file" not in value for value in table.values()), folder

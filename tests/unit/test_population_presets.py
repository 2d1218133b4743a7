"""Applications by name: complete, with the values of their sources, and open to change."""

import math

import pytest

from firstflight import RequestError
from firstflight.engines.simulate import run_cell
from firstflight.populations.applications import NAMES, PRESETS, preset
from firstflight.scenario import Cell, Scenario
from small_population import MARGINALS, whole


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_is_a_whole_application(name: str) -> None:
    made = whole(MARGINALS | {"users": 5}, {"preset": "web-search"}, {"preset": name, "name": "it"})
    assert Scenario.from_toml(made.to_toml()).to_plan() == made.to_plan()
    tables = run_cell(Cell({}, made), seed=1, replicates=1)
    assert tables["transfers"].filter(tables["transfers"]["application"].cast(str) == "web-search").height == 5
    assert PRESETS[name].what
    assert "ur choice" in PRESETS[name].sources, "what is ours is said to be"


def test_a_key_beside_a_preset_takes_the_place_of_its_own() -> None:
    (application,) = whole(MARGINALS, {"preset": "maps", "parallel": 6}).to_plan()["applications"]
    assert (application["name"], application["parallel"], application["count"]) == ("maps", 6, 1)
    assert preset("maps", parallel=6)["parallel"] == 6
    assert preset("maps")["parallel"] == 12, "a change is the caller's own"


def test_a_tenth_of_the_search_results_is_within_4380_bytes_and_half_within_9_kb() -> None:
    size = preset("web-search")["size"]
    assert size["median"] == "9kB"
    tenth = 0.5 * math.erfc(math.log(9000 / 4380) / size["sigma"] / math.sqrt(2))
    assert tenth == pytest.approx(0.1, abs=0.005)


def test_the_mean_of_a_blogs_page_is_384_kb() -> None:
    blog = preset("blog")

    def mean(law: dict[str, object]) -> float:
        return float(str(law["median"]).removesuffix("kB")) * math.exp(float(str(law["sigma"])) ** 2 / 2)

    assert mean(blog["primary"]) + blog["inline_count"] * mean(blog["inline"]) == pytest.approx(384, rel=0.005)


def test_an_unknown_preset_is_named_with_the_nearest() -> None:
    with pytest.raises(RequestError, match='unknown preset "web-serch"; did you mean "web-search"'):
        whole(MARGINALS, {"preset": "web-serch"})

"""The load of an open loop: how often files arrive if they are to offer a share of a link's rate."""

import math
import re
from typing import TYPE_CHECKING, Any

from firstflight.errors import RequestError
from firstflight.scenario.laws import Constant, Empirical, Exponential, Lognormal, Pareto, Uniform

if TYPE_CHECKING:
    from firstflight.scenario.table import ScenarioTable

_MOST = 2.0**63
_LINK = re.compile(r"([a-z][a-z0-9_-]*)(?:\[([0-9]{1,9})\])?(\.reverse)?")


def mean(law: "ScenarioTable") -> float:
    """Mean of a law, in base units; ValueError for one that has none, or one that no size or number can be."""
    try:
        value = _mean(law)
    except (OverflowError, ZeroDivisionError):
        value = math.inf
    if not value < _MOST:
        raise ValueError("the mean of this distribution is too large; narrow it, or give a maximum")
    return value


def _mean(law: "ScenarioTable") -> float:
    if isinstance(law, Constant):
        return float(law.value)
    if isinstance(law, Uniform):
        return (float(law.low) + float(law.high)) / 2
    if isinstance(law, Exponential):
        return float(law.mean)
    if isinstance(law, Lognormal):
        return _lognormal(law)
    if isinstance(law, Pareto):
        return _pareto(law)
    assert isinstance(law, Empirical)
    return _empirical(law)


def _phi(score: float) -> float:
    return math.erfc(-score / math.sqrt(2)) / 2


def _lognormal(law: Any) -> float:
    """Draws beyond a bound become the bound."""
    median, sigma = float(law.median), law.sigma
    low = 0.0 if law.minimum is None else float(law.minimum)
    high = math.inf if law.maximum is None else float(law.maximum)
    if sigma == 0:
        return min(max(median, low), high)
    below = -math.inf if low == 0 else math.log(low / median) / sigma
    above = math.inf if high == math.inf else math.log(high / median) / sigma
    inside = median * math.exp(sigma**2 / 2) * (_phi(above - sigma) - _phi(below - sigma))
    return float(low * _phi(below) + inside + (0.0 if high == math.inf else high * _phi(-above)))


def _pareto(law: Any) -> float:
    """Truncated at its maximum."""
    shape, low = law.shape, float(law.minimum)
    if law.maximum is None:
        if shape <= 1:
            raise ValueError(f"a Pareto law of shape {shape:g} without a maximum has no mean; give it a maximum")
        return float(shape * low / (shape - 1))
    ratio = low / float(law.maximum)
    if shape == 1:
        return float(low * math.log(1 / ratio) / (1 - ratio))
    return float(shape * low / (shape - 1) * (1 - ratio ** (shape - 1)) / (1 - ratio**shape))


def _empirical(law: Any) -> float:
    """Of the points joined as they are drawn, scaled and then bounded; by ten thousand steps of probability."""
    import numpy as np

    steps = (np.arange(10_000) + 0.5) / 10_000
    probabilities, values = np.array(law.points).T
    if law.interpolation == "log":
        drawn = np.exp(np.interp(steps, probabilities, np.log(np.maximum(values, 1.0))))
    else:
        drawn = np.interp(steps, probabilities, values)
    low = None if law.minimum is None else float(law.minimum)
    high = None if law.maximum is None else float(law.maximum)
    return float(np.clip(law.scale * drawn, low, high).mean())


def link_rate_bps(network: dict[str, Any], name: str) -> int:
    """Rate of a link of a plan's network by its name in the records; RequestError if it has none."""
    match = _LINK.fullmatch(name)
    pair = None
    if match is not None:
        group, index = match.group(1), int(match.group(2) or 0)
        links = network.get(group)
        trees = [item for item in network.get("group", []) if item["name"] == group]
        if isinstance(links, dict):
            pair = links
        elif isinstance(links, list) and group != "group" and index < len(links):
            pair = links[index]
        elif trees:
            if "rate_bps" in trees[0]["draw"][match.group(3) is not None]:
                raise RequestError(f'the rate of "{name}" is drawn from a law; name a link of one rate')
            pair = trees[0]["link"]
    if match is None or pair is None:
        raise RequestError(f'there is no link "{name}"; write its name as the table links of a run has it')
    rate = pair["reverse" if match.group(3) else "forward"]["rate_bps"]
    if rate is None:
        raise RequestError(f'the rate of "{name}" is unlimited; name a link that has one')
    return int(rate)

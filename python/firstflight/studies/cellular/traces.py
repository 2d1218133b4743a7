"""The traces of this folder, made by a model: `python -m firstflight.studies.cellular.traces` writes them.

The logarithm of the rate is a first-order autoregressive process: a mean, a standard deviation and a time in which the
correlation falls to 1/e. The format is mahimahi's: a line for each 1500 bytes that the link can send, in ms.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

_STEP_MS = 10
_BITS = 8 * 1500


class Radio(NamedTuple):
    """A network's rate over `length_ms`."""

    mean_bps: float
    sigma: float
    """Standard deviation of the logarithm of the rate."""
    coherence_ms: float
    length_ms: int


# Means of LTE and 5G: h2o/quicly, t/simulator-plot.rb. All else is assumed.
RADIOS = {
    "edge": Radio(150e3, 0.4, 1000, 40_000),
    "hspa": Radio(3e6, 0.6, 300, 8_000),
    "lte": Radio(30e6, 0.6, 100, 2_000),
    "5g": Radio(100e6, 0.8, 50, 1_000),
}


def opportunities_ms(radio: Radio, seed: int) -> list[int]:
    """Times of delivery opportunities, the last one at the end of the trace."""
    draw = np.random.default_rng(seed)
    steps = radio.length_ms // _STEP_MS
    kept = np.exp(-_STEP_MS / radio.coherence_ms)
    level = np.empty(steps)
    level[0] = draw.standard_normal()
    for step in range(1, steps):
        level[step] = kept * level[step - 1] + np.sqrt(1 - kept**2) * draw.standard_normal()
    rate = np.exp(radio.sigma * level)
    sent = np.concatenate([[0.0], np.cumsum(rate / rate.mean() * radio.mean_bps * _STEP_MS / 1e3 / _BITS)])
    count = round(sent[-1])
    times = np.interp(np.arange(1, count + 1), sent * count / sent[-1], np.arange(steps + 1) * _STEP_MS)
    return [int(time) for time in np.ceil(times)]


def main() -> None:
    """Write the files."""
    for seed, (name, radio) in enumerate(RADIOS.items()):
        lines = "".join(f"{time}\n" for time in opportunities_ms(radio, seed))
        (Path(__file__).parent / f"{name}.trace").write_text(lines, encoding="ascii")


if __name__ == "__main__":
    main()

"""Made-up flows for tests of `advise`: a table as an operator would write it."""

from pathlib import Path

import numpy as np


def write(path: Path, flows: int, *, seed: int = 1, rates: bool = True, again: bool = True, window: int = 10) -> Path:
    """Homes 20 to 200 ms away on lines of 5 to 100 Mbit/s, responses of about 30 kB, a few retransmitted segments."""
    random = np.random.default_rng(seed)
    rtt_ms = 20 * 10 ** random.random(flows)
    mbps = 5 * 20 ** random.random(flows)
    size = np.maximum(300, 30e3 * np.exp(random.normal(size=flows))).astype(int)
    segments = -(-size // 1448)
    lost = random.binomial(segments, 0.004)
    columns = {"rtt_ms": rtt_ms.round(3), "bytes": size}
    if rates:
        columns["down_mbps"] = mbps.round(3)
    if again:
        columns |= {"segments_sent": segments + lost, "retransmissions": lost}
        columns["first_flight_segments"] = np.minimum(window, segments)
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path

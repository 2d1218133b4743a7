"""AvgDC: the users of a Google data center with average paths, 2010.

Round trips and bandwidths have the shares of Figure 5 (`dukkipati2010.py`); their dependence is fitted to the figure's
shares of the bandwidth-delay product. Three medians of the bandwidth are published: the shares give 1.03 Mbit/s, the
2012 reproduction cites 1.2, RFC 6928 says 1.7; this follows the shares, since the buckets' gains come with
them. Buffers: RFC 6928 quotes that most access routers hold at least 130 ms and that queues of 1 s and more are seen;
"most" is taken as four fifths, 1 s as one user in twenty. At low rates that is less than a packet; there the queue
holds 40 packets, the smallest of the testbed that RFC 6928 quotes in appendix A. Losses are fitted to the
retransmission rate with an initial window of 3 (1.98%). The uplink as sold, and the assumption that a subnet explains
half of the variance, are ours.
"""

from typing import Any

from firstflight.populations import dukkipati2010 as published

BUFFER_S = [[0.0, 0.06], [0.2, 0.13], [0.9, 0.6], [0.95, 1.0], [1.0, 2.0]]
LOSSY_SHARE, MOST_LOSS = 0.05, 0.3
"""Share of the users who lose packets, and the most that one loses; between, evenly.

    python research/rfc6928_cluster_fit.py base
"""


def population() -> dict[str, Any]:
    """The `[population]` table."""
    return table(published.rtt(), published.down(), LOSSY_SHARE, MOST_LOSS)


def table(rtts: published.Points, downs: published.Points, lossy_share: float, most_loss: float) -> dict[str, Any]:
    """The `[population]` table of users with these round trips (s) and bandwidths (bits/s)."""
    return {
        "paths": "marginals",
        "rtt": published.empirical(rtts),
        "down": published.empirical(downs),
        "up": published.empirical(published.up(downs)),
        "buffer": published.empirical(BUFFER_S),
        "min_buffer": "40p",
        "loss": losses(lossy_share, most_loss),
        "dependence": dependence(published.DEPENDENCE),
        "subnet_users": 20,
        "subnet_variance_fraction": 0.5,
    }


def dependence(rtt_down: float) -> dict[str, float]:
    """Correlations where that of round trip and bandwidth is `rtt_down`: the uplink follows the downlink."""
    return {"rtt_down": rtt_down, "down_up": _SOLD_TOGETHER, "rtt_up": round(_SOLD_TOGETHER * rtt_down, 6)}


_SOLD_TOGETHER = 0.95


def losses(lossy_share: float, most_loss: float) -> dict[str, Any]:
    """A law of loss probabilities: most users lose nothing, a share of them up to `most_loss`."""
    return {
        "distribution": "empirical",
        "interpolation": "linear",
        "points": [[0.0, 0.0], [1 - lossy_share, 0.0], [1.0, most_loss]],
    }

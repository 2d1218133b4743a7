"""SlowDC: the users of a Google data center with the largest share of slow paths, 2010.

Published: nearly 20% of the traffic is below 100 kbit/s and a third below 256 kbit/s (RFC 6928), the median is
500 kbit/s, the median round trip 70 ms (CS244 2014). Above the median the bandwidths have AvgDC's shares above 512
kbit/s, the round trips are AvgDC's scaled to their median, and the dependence of both, buffers, the uplink and subnets
are AvgDC's: ours. Losses and where the slowest begin are fitted to the values published for an initial window of 3: a
mean latency of 828 ms, 3.54% of the segments retransmitted, 90% of the traffic without any.
"""

from typing import Any

from firstflight.populations import avgdc
from firstflight.populations import dukkipati2010 as published

QUANTILES_BPS = ((0.2, 100_000.0), (1 / 3, 256_000.0), (0.5, 500_000.0))
"""The published points of the bandwidth."""
MEDIAN_RTT_S = 0.07
LEAST_DOWN_BPS = 60_000.0
"""The lower end of the slowest fifth, fitted as the losses are."""
LOSSY_SHARE, MOST_LOSS = 0.028, 0.35
"""As AvgDC's, fitted to SlowDC's base.

    python research/rfc6928_cluster_fit.py base
"""
_ABOVE = 512_000.0


def population() -> dict[str, Any]:
    """The `[population]` table."""
    return avgdc.table(rtt(), down(), LOSSY_SHARE, MOST_LOSS)


def rtt() -> published.Points:
    """Round trips, s."""
    average = published.rtt()
    scale = MEDIAN_RTT_S / published.quantile(average, 0.5)
    return [[p, scale * value] for p, value in average]


def down(least_bps: float = LEAST_DOWN_BPS) -> published.Points:
    """Bandwidths, bits/s: through the published quantiles, AvgDC's shares above the median."""
    average = published.down()
    start = published.share_below(average, _ABOVE)
    upper = [[0.5 + 0.5 * (p - start) / (1 - start), value] for p, value in average if value > _ABOVE]
    return [[0.0, least_bps], *(list(point) for point in QUANTILES_BPS), *upper]

"""Findings on the flows before any simulation: too few, or not those of users, and a fix."""

from collections.abc import Iterator

import polars as pl

from firstflight.advise.fit import FittedPopulation
from firstflight.analysis.ab import least_units
from firstflight.counted import counted
from firstflight.errors import RequestError
from firstflight.observe import Observation

LOOPBACK_RTT_S = 0.0002
NEAR_RTT_S = 0.001
"""A median below is a machine room's: light in glass goes 100 km in 1 ms, there and back."""
LONGER_PERCENT = 5
"""Of the handshakes of which only the time is known."""
SAME_NETWORK = 100
"""Connections of one network that users would not all be in."""
NOT_LINUX_OR_NOT_YOURS = (
    "IIS",
    "CloudFront",
    "Cloudflare",
    "Fastly",
    "Akamai",
    "S3",
    "Azure",
    "Google",
    "load balanc",
    "ALB",
    "AWS",
)
"""In the title of a log's format: the senders are Windows hosts, or those of a CDN or cloud."""
HOURLY = "for as many hours as it takes, and of busy ones"


def check_enough(observed: Observation, population: FittedPopulation) -> None:
    """RequestError if there are too few flows even for the interval of a mean."""
    least = least_units("mean")
    flows = population.rows.height
    if flows >= least:
        return
    if population.usable > flows:
        raise RequestError(
            f"--max-connections {flows:,} of {population.usable:,} usable connections is too few: the interval of a "
            f"mean takes {least:,}; give --max-connections {least:,} or more"
        )
    left_out = [f"{count:,} {why}" for count, why in population.left_out] + [str(one) for one in observed.problems]
    also = f"; left out: {'; '.join(left_out)}" if left_out else ""
    raise RequestError(
        f"{observed.source.path} has {counted(flows, 'usable connection')}, too few to advise on: the interval of a "
        f"mean takes {least:,}, that of the 95th percentile {least_units('p95'):,} and of the 99th "
        f"{least_units('p99'):,}; collect {HOURLY}{also}"
    )


def doubts(observed: Observation, population: FittedPopulation) -> Iterator[str]:
    """Sentences on flows that may not be those of users, each with a fix."""
    rtt_s = float(population.rows["rtt_s"].median() or 0.0)  # type: ignore[arg-type]
    if rtt_s < LOOPBACK_RTT_S and observed.source.kind == "capture":
        yield (
            f"median RTT {1e3 * rtt_s:.3g} ms: was this captured on the loopback interface? Capture where users' "
            "packets arrive: tcpdump -i eth0 (the interface of the default route)"
        )
    elif rtt_s < NEAR_RTT_S:
        yield (
            f"median RTT {1e3 * rtt_s:.3g} ms: is this log from behind a load balancer? Then this advises for the path "
            "to it: take the log of the machine where users' TCP connections end"
        )
    if observed.source.lines_apart:
        yield (
            f"the log does not show connections: each of {population.usable:,} responses counts as the first of one, "
            "and over HTTP/2 and kept connections most are later ones; log $connection and $connection_requests "
            "(nginx) or the client's port (Apache: %{remote}p)"
        )
    for note in observed.source.notes:
        if any(words in note for words in ("(0-RTT)", "if it is TLS")):
            yield f"{note}; take a capture of whole packets (tcpdump -s 0) and of connections without early data"
    handshakes = population.rows.drop_nulls("tls_bytes")
    longer = 100 * handshakes.filter(pl.col("tls_exchanges") > 1).height / max(1, handshakes.height)
    if population.assumed_percent("tls_bytes") and longer > LONGER_PERCENT:
        yield (
            f"TLS handshakes of {longer:.0f}% take two RTTs or more: TLS 1.2, or flights above the current window; "
            "their bytes are assumed to fit, so a larger window may gain more: take a capture, which shows them"
        )
    subnets = population.rows["subnet"]
    if population.rows.height >= SAME_NETWORK and subnets.null_count() == 0 and subnets.n_unique() == 1:
        yield (
            f"all {population.rows.height:,} connections come from one network (/24 or /48): is a proxy in front? "
            "Take the log of the proxy, or the one of more users"
        )


def is_elsewhere(observed: Observation) -> bool:
    """Whether a log's format shows that its hosts are not Linux, or not the reader's."""
    return observed.source.kind == "log" and any(word in observed.source.form for word in NOT_LINUX_OR_NOT_YOURS)

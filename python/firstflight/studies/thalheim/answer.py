"""The study's answer in three sentences, computed from the run."""

from __future__ import annotations

from firstflight.analysis.medians import Medians

from .gain import gain, is_known, transfers
from .grid import NAME, mouse, settings, together
from .measure import SHARE, TIME, Place, Values


def answer(values: Values) -> list[str]:
    """What the proposed window gains, what parallel connections do, what an elephant leaves."""
    data = Medians(values, NAME)
    return [_gains(data), _parallel(data), _elephant(data)]


def _gains(data: Medians[Place]) -> str:
    base, proposed = settings()["base_window"], settings()["proposed_window"]
    known = [point for point in transfers() if point.iw == proposed and is_known(data, point)]
    if not known:
        return f"This run does not compare an initial window of {proposed} with one of {base}."
    gains = {point: float(gain(data, point)[0]) for point in known}
    most = max(known, key=gains.__getitem__)
    where = f"{most.size_kb} kB at {most.rate_mbit} Mbit/s and {most.delay_ms} ms one way"
    if len(known) == 1:
        return f"IW {proposed} instead of {base} saves {gains[most]:.0f} % of the transfer time of {where}."
    mean = sum(gains.values()) / len(gains)
    return (
        f"IW {proposed} instead of {base} saves {min(gains.values()):.0f} to {gains[most]:.0f} % of the transfer time, "
        f"{mean:.0f} % on average, and most ({gains[most]:.0f} %) for {where}."
    )


def _parallel(data: Medians[Place]) -> str:
    chosen = settings()["parallel"]
    many, iw, base = max(chosen["connections"]), settings()["proposed_window"], settings()["base_window"]
    try:
        times = {
            (queue, flows, window): float(data(Place(TIME, together(settings()[queue], flows, window)))[0])
            for queue in ("ample_packets", "small_packets")
            for flows in (1, many)
            for window in (base, iw)
        }
    except KeyError:
        return "This run lacks the parallel connections."
    return (
        f"{chosen['total_kb']} kB take {times['ample_packets', 1, base]:.2f} s on one connection with IW {base}, "
        f"{times['ample_packets', 1, iw]:.2f} s with {iw}, and {times['ample_packets', many, base]:.2f} s on {many} "
        f"connections with IW {base}; over a queue of {settings()['small_packets']} packets {many} connections take "
        f"{times['small_packets', many, base]:.2f} s with IW {base} and {times['small_packets', many, iw]:.2f} s with "
        f"{iw}."
    )


def _elephant(data: Medians[Place]) -> str:
    iw = settings()["proposed_window"]
    try:
        alone, beside = (float(data(Place(TIME, mouse(flows, iw)))[0]) for flows in (0, 1))
        share = float(data(Place(SHARE, mouse(1, iw)))[0])
    except KeyError:
        return "This run lacks the short requests beside a long download."
    return (
        f"A long download keeps {share:.0f} % of the link while {settings()['mice']['size_kb']} kB are sent with IW "
        f"{iw}, which take {beside:.2f} s beside it and {alone:.2f} s alone."
    )

"""Section 3, the half-and-half experiment: Table 6."""

from __future__ import annotations

from firstflight.analysis.claim import above, at_least, at_most
from firstflight.studies.rfc2415.claims.statement import DELAY, Data, Statement, at, change
from firstflight.studies.rfc2415.measure import Place

NO_EFFECT = "The RFC calls its own changes of up to 5 % (Table 6: 0.64 to 0.67 s, 0.68 to 0.71 s) no effect."


def _alike(webs: int, iw: int) -> Place:
    # 16 and 32 webs are part of the base grid; 64 exist for this table only.
    return at(DELAY, (webs, 0), iw, variant="mix" if webs == 64 else "base")


def _split(webs: int, iw: int) -> Place:
    return at(DELAY, (webs, 0), "1+3", variant="mix", group="web" if iw == 1 else "web_iw3")


def _harm(data: Data, webs: int, iw: int) -> float:
    return change(data, _alike(webs, iw), _split(webs, iw))


STATEMENTS = (
    Statement(
        "rfc2415-s3-33",
        "Clients that all use IW 3 do better than clients that all use IW 1 (smallest decrease of the page "
        "delay, 16, 32, 64 webs).",
        above(0),
        0,
        "percent",
        "A direction needs no tolerance.",
        lambda data: min(-change(data, _alike(webs, 1), _alike(webs, 3)) for webs in (16, 32, 64)),
    ),
    Statement(
        "rfc2415-s3-34",
        "Splits 8/8 and 16/16: mixing has no negative effect on the IW 1 half (larger change of its delay "
        "against all IW 1).",
        at_most(0),
        5,
        "percent",
        NO_EFFECT,
        lambda data: max(_harm(data, webs, 1) for webs in (16, 32)),
        needs="absence",
    ),
    Statement(
        "rfc2415-s3-35",
        "Splits 8/8 and 16/16: the IW 3 half keeps its performance (larger change of its delay against all IW 3).",
        at_most(0),
        5,
        "percent",
        NO_EFFECT,
        lambda data: max(_harm(data, webs, 3) for webs in (16, 32)),
    ),
    Statement(
        "rfc2415-s3-36",
        "Split 32/32: the IW 3 half is adversely affected (change of its delay against all IW 3).",
        at_least(5),
        0,
        "percent",
        "More than the 5 % that the RFC calls no effect; Table 6 prints 0.86 and 1.20 s (40 %).",
        lambda data: _harm(data, 64, 3),
        lambda data: (
            f"Within the split the halves have {data(_split(64, 1)):.2f} s (IW 1) and "
            f"{data(_split(64, 3)):.2f} s (IW 3)."
        ),
    ),
)

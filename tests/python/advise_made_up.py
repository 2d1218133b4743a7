"""An advice made of made-up numbers, for tests of the page and of the terminal."""

import math

from firstflight.advise import deploy
from firstflight.advise.advice import SCHEMA, SENT_AGAIN, Advice, Cost, Flows, Gain, Harm, Segment, Users
from firstflight.advise.brackets import Assumption, Setting
from firstflight.advise.budget import Check, check, parse
from firstflight.advise.decide import Evidence, decide
from firstflight.advise.in_use import InUse
from firstflight.advise.words import confidence, sentences
from firstflight.analysis.intervals import Estimate

SETTINGS = (Setting("typical", "as seen"), Setting("shallow <buffers>", "20 ms"))
BUDGET = parse("retransmissions=+0.5,p99=+5%")
CHANGES = {
    ("typical", 16): -6.0,
    ("typical", 32): -11.0,
    ("shallow <buffers>", 16): -4.0,
    ("shallow <buffers>", 32): -1.0,
}
"""Change of the mean time in percent; 32 costs three points of retransmitted segments where buffers are shallow."""


def advice() -> Advice:
    """16 is advised: 32 is over the budget with shallow buffers."""
    checks = {key: [_again(*key), _tail(*key)] for key in CHANGES}
    evidence = Evidence(
        in_use=10,
        candidates=(16, 32),
        settings=[setting.name for setting in SETTINGS],
        changes={key: _around(value) for key, value in CHANGES.items()},
        step=lambda setting, one, other: _around(CHANGES[setting, other] - CHANGES[setting, one]),
        checks=checks,
        flows=1900,
    )
    decision = decide(evidence)
    statistics = {"typical": ("mean", "p50", "p95", "p99"), "shallow <buffers>": ("mean", "p99")}
    gains = tuple(
        Gain(
            setting,
            window,
            statistic,
            Estimate(0.3, 0.29, 0.31),
            Estimate(0.3 * (1 + value / 100), 0.27, 0.29),
            _around(value) if statistic != "p99" else Estimate(value),
            (0, 0),
            "" if statistic != "p99" else "1900 pairs are too few: p99 needs 2,000",
        )
        for (setting, window), value in CHANGES.items()
        for statistic in statistics[setting]
    )
    costs = tuple(
        Cost(setting, window, SENT_AGAIN, Estimate(1, 0.9, 1.1), Estimate(1.2, 1.1, 1.3), Estimate(0.2, 0.1, 0.3))
        for setting, window in CHANGES
    )
    harm = tuple(Harm("shallow <buffers>", window, "long download", 300, _around(1.5), "") for window in (16, 32))
    users = (Users(16, 41.0, 0.0), Users(32, 60.0, 3.2))
    segments = tuple(
        segment
        for window in (16, 32)
        for segment in (
            Segment("Round trip", "up to 20 ms", window, 97.0, 873, _around(-6), "better", ""),
            Segment(
                "Round trip", "20 to 50 ms", window, 3.0, 27, Estimate(-9), "too few flows", "27 pairs are too few"
            ),
            Segment("Round trip", "above 50 ms", window, 0.0, 0, Estimate(math.nan), "no flows", "no pairs"),
        )
    )
    level, why = confidence(decision, evidence)
    return Advice(
        schema=SCHEMA,
        flows=Flows(
            source="flows <1>.csv",
            kind="table",
            read=2000,
            usable=1900,
            simulated=1900,
            replicates=12,
            left_out=("100 without a round trip",),
            problems=("3 x rtt_ms is not a number (lines 4, 7, 9)",),
            notes=("a segment is taken to hold 1448 bytes",),
            assumed=(),
            cut=2,
            loss_seen_percent=0.7,
            quantiles=(
                {
                    "what": "round trip",
                    "unit": "ms",
                    "known": 900,
                    "p5": 9.0,
                    "p25": 12.0,
                    "p50": 18.0,
                    "p75": 19.0,
                    "p95": 21.0,
                },
            ),
        ),
        in_use=InUse(10, 92.0, 700, "first flights of responses that were longer"),
        candidates=(16, 32),
        budget=BUDGET,
        settings=SETTINGS,
        assumptions=(Assumption("buffer before the user's line", 0.0, "130 ms; bracket: 20 ms and 1 s"),),
        decision=decision,
        answer=tuple(sentences(decision, evidence, gains, costs, harm, users)),
        level=level,
        why_level=why,
        gains=gains,
        users=users,
        segments=segments,
        costs=costs,
        harm=harm,
        checks=tuple(one for each in checks.values() for one in each),
        deploy=tuple(deploy.steps(decision.initial_window, 10, in_use_known=True)),
        watch=tuple(deploy.watch(decision.initial_window)),
        limits=("The users are those who came.",),
        seed=1,
        method="percentile bootstrap",
    )


def _around(value: float) -> Estimate:
    return Estimate(value, value - 0.5, value + 0.5)


def _again(setting: str, window: int) -> Check:
    points = 3.0 if (setting, window) == ("shallow <buffers>", 32) else 0.1
    return check(BUDGET[0], window, setting, Estimate(points, points - 0.1, points + 0.1), 1900)


def _tail(setting: str, window: int) -> Check:
    return check(BUDGET[1], window, setting, _around(-2), 1900)

"""The claims of loss-recovery on made-up recoveries and times; their values are calculated by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from firstflight.studies.kernel import Quantities
from specs_by_hand import found, made_up, misjudged, put, value_decides

NAME = "loss-recovery"
KINDS = {"F": 0, "E": 1, "P": 2, "T": 3, "-": math.nan}
"""Fast retransmit, early retransmit, tail loss probe, timeout; no transfer."""


def matrices() -> Quantities:
    """Any recovery at every position of every window; at position 0, without loss, a timeout."""
    q = made_up(NAME)
    q.repair[:] = np.floor(2 * q.repair.values - 2)
    put(q.repair, 3.0, position=0)
    return q


def recover(q: Quantities, follows: str, stack: str, iw: int, kinds: str) -> None:
    """The recoveries of a window from the first position on; none beyond."""
    every = [KINDS[kind] for kind in kinds] + [math.nan] * (16 - iw)
    put(q.repair, every, follows=follows, stack=stack, iw=iw, position=slice(1, None))


def test_shares_of_positions() -> None:
    q = matrices()
    recover(q, "nothing", "new_reno", 3, "TFT")
    recover(q, "nothing", "new_reno", 10, "FFFFFFETTP")
    recover(q, "data", "new_reno", 3, "FFT")
    recover(q, "data", "new_reno", 10, "FFFTFEFPTT")
    recover(q, "nothing", "new_reno_early", 3, "EFT")
    recover(q, "nothing", "new_reno_early", 10, "FFFEEEETTT")
    recover(q, "data", "new_reno_early", 3, "FET")
    recover(q, "data", "new_reno_early", 10, "FFFFFFEETT")
    every = found(NAME, q)
    # Fast: 6 of 10 against 1 of 3, 5 of 10 against 2 of 3. With early: 7 of 10 against 2 of 3, 8 of 10 against 2 of 3.
    assert every["rfc6928-s5.3-fast-retransmit-flight"] == pytest.approx(60 - 33.3333333)
    assert every["rfc6928-s5.3-fast-retransmit-response"] == pytest.approx(50 - 66.6666667)
    assert every["rfc6928-s5.3-limited-and-early-flight"] == pytest.approx(70 - 66.6666667)
    assert every["rfc6928-s5.3-limited-and-early-response"] == pytest.approx(80 - 66.6666667)
    assert every["rfc5827-timeouts-avoided"] == pytest.approx(66.6666667 - 33.3333333)


def test_positions_without_a_transfer_are_in_no_share() -> None:
    q = matrices()
    recover(q, "nothing", "new_reno", 3, "F--")
    recover(q, "nothing", "new_reno", 10, "FT-------F")
    assert found(NAME, q)["rfc6928-s5.3-fast-retransmit-flight"] == pytest.approx(66.6666667 - 100)


def test_exceptions_from_the_rules_of_fast_retransmit() -> None:
    q = matrices()
    for iw in range(1, 17):
        recover(q, "nothing", "new_reno", iw, ("F" * (iw - 3) + "TTT")[-iw:])
    assert found(NAME, q)["rfc6928-s5.3-three-duplicates-needed"] == 0
    assert found(NAME, q)["rfc6928-s5.3-three-segments-suffice"] == 0
    # Recovered although two segments at most follow: four.
    for iw, position in ((1, 1), (5, 3), (16, 15), (16, 16)):
        put(q.repair, 0.0, follows="nothing", stack="new_reno", iw=iw, position=position)
    # Recovered in another way, as it must be.
    put(q.repair, KINDS["E"], follows="nothing", stack="new_reno", iw=5, position=4)
    # Not recovered by fast retransmit although three or more follow: five.
    for iw, position, kind in ((4, 1, "E"), (10, 7, "P"), (16, 1, "T"), (12, 2, "E"), (9, 1, "T")):
        put(q.repair, KINDS[kind], follows="nothing", stack="new_reno", iw=iw, position=position)
    # Not measured.
    put(q.repair, math.nan, follows="nothing", stack="new_reno", iw=7, position=[2, 6])
    assert found(NAME, q)["rfc6928-s5.3-three-duplicates-needed"] == 4
    assert found(NAME, q)["rfc6928-s5.3-three-segments-suffice"] == 5


def test_cost_of_a_timeout_compared_with_fast_retransmit() -> None:
    q = matrices()
    put(q.repair, math.nan, stack="new_reno", position=slice(1, None))
    #             follows, IW, position, recovery, without loss, with it
    for follows, iw, position, kind, without, lost in (
        ("nothing", 2, 1, "T", 100, 1000),
        ("nothing", 5, 4, "T", 150, 1250),
        ("data", 5, 2, "T", 210, 1810),
        ("nothing", 5, 1, "F", 150, 180),
        ("data", 16, 9, "F", 170, 260),
        ("data", 16, 16, "P", 170, 9170),
        ("data", 3, 3, "E", 190, 9190),
    ):
        place = {"follows": follows, "stack": "new_reno", "iw": iw}
        put(q.repair, KINDS[kind], **place, position=position)
        put(q.time, without, **place, position=0)
        put(q.time, lost, **place, position=position)
    # 900, 1100 and 1600 ms against 30 and 90.
    assert found(NAME, q)["rfc6928-s5.3-lengthy-timeout"] == pytest.approx(1200 - 60)


def test_timeouts_of_linux() -> None:
    q = matrices()
    put(q.repair, 2.0, stack="linux")
    for follows, iw, position in (("nothing", 1, 1), ("nothing", 16, 16), ("data", 3, 2)):
        put(q.repair, 3.0, follows=follows, stack="linux", iw=iw, position=position)
    assert found(NAME, q)["rfc8985-s7-no-timeouts"] == 3


# Of 5, 10, 20, 40 and 100 segments, at a loss of 0.5, 1, 2 and 5%.
SACK_3 = [[1, 2, 3, 4], [2, 3, 4, 11], [5, 6, 7, 22], [9, 10, 11, 20], [12, 13, 15, 40]]
NO_SACK_10 = [[0.5, 1.5, 2.5, 3.5], [3, 4, 6, 12], [4, 8, 8.5, 9.5], [15, 16, 17, 27], [10, 11, 14, 25]]
# The same sizes, at 64, 256 and 1024 kbit/s.
SACK_3_CONGESTED = [[40, 10, 1], [50, 20, 4], [60, 30, 9], [70, 40, 11], [280, 150, 25]]
NO_SACK_10_CONGESTED = [[60, 5, 2], [80, 25, 5], [90, 35, 8], [110, 45, 12], [210, 90, 18]]


def test_times_without_sack_compared_with_times_with_it() -> None:
    q = made_up(NAME)
    put(q.random_loss, SACK_3, stack="sack", iw=3)
    put(q.random_loss, NO_SACK_10, stack="new_reno", iw=10)
    put(q.random_loss, 1.1 * np.array(SACK_3), stack="linux", iw=3)
    put(q.random_loss, 0.5 * np.array(NO_SACK_10), stack="linux_no_sack", iw=10)
    put(q.congested, SACK_3_CONGESTED, stack="sack", iw=3)
    put(q.congested, NO_SACK_10_CONGESTED, stack="new_reno", iw=10)
    put(q.congested, 1.25 * np.array(SACK_3_CONGESTED), stack="linux", iw=3)
    put(q.congested, 0.8 * np.array(NO_SACK_10_CONGESTED), stack="linux_no_sack", iw=10)
    every = {of: value for of, value in found(NAME, q).items() if of.startswith("rfc6928-cw10-")}
    assert every == pytest.approx(
        {
            # Sums of 8 against 10, 25 against 20, 30 against 40, 75 against 50, 60 against 80: 198 against 200.
            "rfc6928-cw10-no-sack-5-segments": 20,
            "rfc6928-cw10-no-sack-10-segments": -25,
            "rfc6928-cw10-no-sack-20-segments": 25,
            "rfc6928-cw10-no-sack-40-segments": -50,
            "rfc6928-cw10-no-sack-100-segments": 25,
            "rfc6928-cw10-no-sack-all-sizes": 1,
            # 99 against 220.
            "rfc6928-cw10-no-sack-linux": 55,
            # 550 against 500, 200 against 250, 45 against 50; 0.8 times 795 against 1.25 times 800.
            "rfc6928-cw10-no-sack-64-kbps": -10,
            "rfc6928-cw10-no-sack-256-kbps": 20,
            "rfc6928-cw10-no-sack-1024-kbps": 10,
            "rfc6928-cw10-no-sack-congested-linux": 36.4,
        }
    )


def test_segments_that_arrive_twice() -> None:
    q = made_up(NAME)
    # 20 and 100 segments, at 256 and 1024 kbit/s each.
    for stack, iw, shares in (
        ("new_reno", 3, [[0.1, 0.2], [0.4, 0.5]]),
        ("new_reno", 4, [[0.15, 0.25], [0.45, 0.55]]),
        ("new_reno", 6, [[0.3, 0.6], [0.7, 0.8]]),
        ("new_reno", 10, [[1, 2], [3, 6]]),
        ("new_reno", 16, [[2, 2.5], [3.5, 4]]),
        ("new_reno", 32, [[1, 3], [5, 7]]),
        ("sack", 3, [[0.01, 0.02], [0.03, 0.04]]),
        ("sack", 4, [[0.11, 0.12], [0.13, 0.14]]),
        ("sack", 6, [[0.21, 0.9], [0.22, 0.23]]),
        ("sack", 10, [[0.1, 0.2], [0.3, 0.6]]),
        ("sack", 16, [[0.4, 0.5], [0.6, 0.7]]),
        ("sack", 32, [[0.15, 0.25], [0.35, 0.85]]),
        ("linux", 3, [[1.7, 0.31], [0.32, 0.33]]),
        ("linux", 4, [[1.11, 1.12], [1.13, 1.14]]),
        ("linux", 6, [[0.05, 0.06], [0.07, 0.08]]),
        ("linux", 10, [[1.21, 1.22], [1.23, 1.24]]),
        ("linux", 16, [[1.31, 1.32], [1.33, 1.34]]),
        ("linux", 32, [[1.41, 1.42], [1.43, 1.44]]),
    ):
        put(q.duplicates, shares, stack=stack, iw=iw)
    every = {of: value for of, value in found(NAME, q).items() if of.startswith("rfc6928-s7-")}
    assert every == pytest.approx(
        {
            # Means of NewReno with IW 3, 10, 16 and 32: 0.3, 3, 3 and 4. Of SACK from 10 on: 0.3, 0.55 and 0.4.
            "rfc6928-s7-newreno-duplicates": 2.7,
            "rfc6928-s7-sack-in-check": 0.9,
            "rfc6928-s7-newreno-above-sack": 2.45,
            "rfc6928-s7-newreno-grows": 1,
            "rfc6928-s7-linux-in-check": 1.7,
        }
    )


def test_verdicts_on_either_side_of_the_limits() -> None:
    more = ((1e-9, 100), (0, -1e-9))
    none = ((0,), (1,))
    one_in_a_hundred = ((0, 1), (1.001,))
    cw10 = ["5-segments", "10-segments", "20-segments", "40-segments", "100-segments", "all-sizes", "linux"]
    cw10 += ["64-kbps", "256-kbps", "1024-kbps", "congested-linux"]
    in_matrices = {
        "rfc6928-s5.3-fast-retransmit-flight": more,
        "rfc6928-s5.3-fast-retransmit-response": more,
        "rfc6928-s5.3-limited-and-early-flight": more,
        "rfc6928-s5.3-limited-and-early-response": more,
        "rfc6928-s5.3-three-duplicates-needed": none,
        "rfc6928-s5.3-three-segments-suffice": none,
        "rfc6928-s5.3-lengthy-timeout": more,
        "rfc5827-timeouts-avoided": more,
        "rfc8985-s7-no-timeouts": none,
    }
    drawn = {f"rfc6928-cw10-no-sack-{name}": more for name in cw10} | {
        "rfc6928-s7-newreno-duplicates": more,
        "rfc6928-s7-sack-in-check": one_in_a_hundred,
        "rfc6928-s7-newreno-above-sack": more,
        "rfc6928-s7-newreno-grows": more,
        "rfc6928-s7-linux-in-check": one_in_a_hundred,
    }
    q = made_up(NAME)
    assert misjudged(NAME, q, in_matrices | drawn) == {}
    assert value_decides(NAME, q) == set(in_matrices)

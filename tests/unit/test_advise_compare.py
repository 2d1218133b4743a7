"""`firstflight compare`: two data sets whose difference is known."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from firstflight.advise.compare import ArmsCompared, Change, compare_arms
from firstflight.advise.comparison_page import answer, interval, light, render
from firstflight.cli.compare import lines
from firstflight.errors import RequestError

NEAR_MS, FAR_MS = 30.0, 150.0


def write(path: Path, near: int, far: int, *, near_s: float, far_s: float, **columns: object) -> Path:
    """`near` connections with 30 ms RTT and `far` with 150 ms: 20 kB each, 14 segments, in the times given."""
    frame = pl.DataFrame(
        {
            "rtt_ms": [NEAR_MS] * near + [FAR_MS] * far,
            "bytes": [20_000] * (near + far),
            "completion_time_s": [near_s] * near + [far_s] * far,
        }
    ).with_columns(**{name: pl.lit(value) for name, value in columns.items()})
    frame.write_csv(path)
    return path


def change(found: ArmsCompared, statistic: str) -> Change:
    return next(each for each in found.changes if each.statistic == statistic)


@pytest.fixture
def shifted(tmp_path: Path) -> tuple[Path, Path]:
    """Near users get twice as fast, far ones stay; far users were a fifth and are three fifths."""
    before = write(tmp_path / "before.csv", 800, 200, near_s=0.12, far_s=0.6, initial_window_segments=10)
    after = write(tmp_path / "after.csv", 240, 360, near_s=0.06, far_s=0.6, initial_window_segments=20)
    return before, after


def test_a_shift_of_the_mix_is_evened_out_before_and_after(shifted: tuple[Path, Path]) -> None:
    found = compare_arms(*shifted, harm="mean=+5%")
    mean = change(found, "mean")
    # The mean of both mixes: 0.6 near, 0.4 far.
    assert mean.before.value == pytest.approx(0.6 * 0.12 + 0.4 * 0.6)
    assert mean.after.value == pytest.approx(0.6 * 0.06 + 0.4 * 0.6)
    assert mean.change.value == pytest.approx(100 * (0.276 / 0.312 - 1))
    assert mean.as_seen.value == pytest.approx(100 * (0.384 / 0.216 - 1))
    for side, path, rows, window, rtt_s in (
        (found.before, shifted[0], 1000, 10, 0.03),
        (found.after, shifted[1], 600, 20, 0.15),
    ):
        assert (side.source, side.connections, side.compared, side.current.window) == (path.name, rows, rows, window)
        assert (side.median_rtt_s, side.median_bytes, side.unfinished) == (pytest.approx(rtt_s), 20_000, 0)
    assert any("not concurrent" in doubt for doubt in found.doubts)
    assert any("mix of RTTs and sizes changed" in doubt for doubt in found.doubts)


def test_concurrent_arms_are_compared_as_seen_and_an_uneven_split_is_named(shifted: tuple[Path, Path]) -> None:
    found = compare_arms(*shifted, harm="mean=+5%", concurrent=True)
    assert change(found, "mean").change.value == pytest.approx(100 * (0.384 / 0.216 - 1))
    assert len(found.doubts) == 1
    assert "check how users were assigned" in found.doubts[0]
    assert found.outcome == "over the budget"


def homes(path: Path, seed: int, *, factor: float, lost: float, flows: int = 3000, window: int = 10) -> Path:
    """Times of four RTTs with noise, `factor` times as long; a share `lost` of 20 segments retransmitted."""
    random = np.random.default_rng(seed)
    rtt_ms = 20 * 10 ** random.random(flows)
    again = random.binomial(20, lost, flows)
    pl.DataFrame(
        {
            "rtt_ms": rtt_ms,
            "bytes": np.full(flows, 28_960),
            "completion_time_ms": factor * 4 * rtt_ms * np.exp(random.normal(0, 0.2, flows)),
            "segments_sent": 20 + again,
            "retransmissions": again,
            "first_flight_segments": np.full(flows, window),
        }
    ).write_csv(path)
    return path


@pytest.mark.parametrize("concurrent", [False, True])
def test_a_gain_of_a_fifth_is_found_in_each_statistic(tmp_path: Path, concurrent: bool) -> None:
    pair = (
        homes(tmp_path / "a.csv", 1, factor=1.0, lost=0.01),
        homes(tmp_path / "b.csv", 2, factor=0.8, lost=0.01, window=16),
    )
    found = compare_arms(*pair, harm="retransmissions=+0.5,mean=+2%", concurrent=concurrent)
    for statistic in ("mean", "p50", "p75", "p90"):
        estimate = change(found, statistic).change
        assert estimate.low < -20 < estimate.high < 0
    assert found.outcome == "faster"
    assert [(each.term.name, each.verdict) for each in found.checks] == [
        ("retransmissions", "within"),
        ("mean", "within"),
    ]
    assert (found.before.current.window, found.after.current.window) == (10, 16)
    assert not found.doubts if concurrent else "not concurrent" in found.doubts[0]
    back = compare_arms(pair[1], pair[0], harm="mean=+2%", concurrent=concurrent)
    assert change(back, "mean").change.low > 0
    assert back.outcome == "over the budget"


def test_each_limit_is_held_against_its_own_statistic(tmp_path: Path) -> None:
    before = homes(tmp_path / "a.csv", 1, factor=1.0, lost=0.01)
    after = homes(tmp_path / "b.csv", 2, factor=1.1, lost=0.03, window=32)
    # About +1.9 points and +10%: each limit would let the other's change pass or stop it.
    found = compare_arms(before, after, harm="retransmissions=+3,mean=+4%", concurrent=True)
    assert [each.verdict for each in found.checks] == ["within", "over"]
    assert change(found, "retransmissions").change.low < 1.9 < change(found, "retransmissions").change.high
    found = compare_arms(before, after, harm="retransmissions=+1,mean=+20%", concurrent=True)
    assert [each.verdict for each in found.checks] == ["over", "within"]
    assert found.outcome == "over the budget"
    found = compare_arms(before, after, harm="retransmissions=+3,mean=+20%", concurrent=True)
    assert found.outcome == "slower"
    assert compare_arms(before, after, harm="others=+5%").checks[0].verdict == "no data"


def test_harm_to_one_bucket_is_over_although_the_mean_gains(tmp_path: Path) -> None:
    before = write(tmp_path / "a.csv", 900, 300, near_s=0.5, far_s=0.6)
    after = write(tmp_path / "b.csv", 900, 300, near_s=0.25, far_s=0.7)
    found = compare_arms(before, after, harm="mean=+5%,groups=+5%", concurrent=True)
    assert change(found, "mean").change.high < 0
    assert found.outcome == "over the budget"
    over = [each for each in found.checks if each.verdict == "over"]
    assert [each.where for each in over] == ["RTT 100 to 200 ms"]
    assert over[0].found.value == pytest.approx(100 / 6)


def test_cells_that_one_data_set_hardly_has_are_left_out_and_counted(tmp_path: Path) -> None:
    before = write(tmp_path / "a.csv", 600, 20, near_s=0.1, far_s=0.6)
    after = write(tmp_path / "b.csv", 600, 19, near_s=0.1, far_s=9.0)
    found = compare_arms(before, after, harm="mean=+5%")
    assert (found.before.compared, found.after.compared) == (600, 600)
    assert change(found, "mean").change.value == pytest.approx(0)
    assert any(doubt.endswith(": 39 connections") for doubt in found.doubts)
    lonely = write(tmp_path / "c.csv", 0, 600, near_s=0.1, far_s=0.6)
    few = r"no cell of RTT and size has 20 connections of each: .*d\.csv has 600 connections, .*c\.csv 600 connections;"
    with pytest.raises(RequestError, match=few):
        compare_arms(write(tmp_path / "d.csv", 600, 0, near_s=0.1, far_s=0.6), lonely, harm="mean=+5%")


def test_times_tell_whether_arms_are_concurrent(tmp_path: Path) -> None:
    def over(name: str, began_s: float) -> Path:
        path = write(tmp_path / name, 500, 100, near_s=0.1, far_s=0.6)
        frame = pl.read_csv(path)
        frame.with_columns(start_s=began_s + pl.int_range(pl.len())).write_csv(path)
        return path

    before, later, same = over("a.csv", 1e9), over("b.csv", 1e9 + 1000), over("c.csv", 1e9 + 10)
    with pytest.raises(RequestError, match="do not overlap in time"):
        compare_arms(before, later, harm="mean=+5%", concurrent=True)
    assert not any("overlap" in doubt for doubt in compare_arms(before, later, harm="mean=+5%").doubts)
    assert any("add --concurrent" in doubt for doubt in compare_arms(before, same, harm="mean=+5%").doubts)
    assert not compare_arms(before, same, harm="mean=+5%", concurrent=True).doubts


def test_a_change_that_took_no_effect_and_unfinished_responses_are_doubts(tmp_path: Path) -> None:
    before = homes(tmp_path / "a.csv", 1, factor=1.0, lost=0.0, flows=500)
    after = homes(tmp_path / "b.csv", 2, factor=1.0, lost=0.0, flows=500)
    frame = pl.read_csv(after).with_columns(completed=(pl.int_range(pl.len()) >= 7).cast(pl.Int64))
    frame.write_csv(after)
    doubts = compare_arms(before, after, harm="mean=+5%", concurrent=True).doubts
    assert doubts[0].startswith("both data sets show an initial window of 10")
    assert doubts[1].startswith("unfinished responses: 0 before, 7 after")


def test_times_in_a_column_of_another_name_are_a_doubt(tmp_path: Path) -> None:
    paths = [homes(tmp_path / name, 1, factor=1.0, lost=0.0, flows=500) for name in ("before.csv", "after.csv")]
    for path, window in zip(paths, (10, 20), strict=True):
        frame = pl.read_csv(path).drop("first_flight_segments").with_columns(initial_window=window)
        frame.rename({"completion_time_ms": "duration_ms"}).write_csv(path)
    found = compare_arms(paths[0], paths[1], harm="mean=+5%", concurrent=True)
    assert [side.current.window for side in (found.before, found.after)] == [10, 20]
    assert [doubt.partition(":")[0] for doubt in found.doubts] == ["before.csv", "after.csv"]
    assert 'write "duration_ms" as completion_time_ms' in found.doubts[0]


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 500, 100, near_s=0.1, far_s=0.6)
    with pytest.raises(RequestError, match="name two data sets"):
        compare_arms(path, path, harm="mean=+5%")
    with pytest.raises(RequestError, match="there is no file"):
        compare_arms(path, tmp_path / "none.csv", harm="mean=+5%")
    bare = tmp_path / "bare.csv"
    pl.read_csv(path).drop("completion_time_s").write_csv(bare)
    with pytest.raises(RequestError, match="neither completion times nor retransmissions"):
        compare_arms(path, bare, harm="mean=+5%")


def nginx_log(path: Path, sizes: list[int], seconds: float, *, completion: str = "OK") -> Path:
    """One line per size in the format of docs/observe.md, an RTT of 30 ms."""
    path.write_text(
        "".join(
            f"msec={1000 + i}.000 remote_addr=10.0.0.1 connection={i} connection_requests=1 connection_time=9.000 "
            f"request_time={seconds:.3f} request_completion={completion} status=200 server_protocol=HTTP/1.1 "
            f"request_length=80 bytes_sent={size} body_bytes_sent={size} tcpinfo_rtt=30000 tcpinfo_rttvar=9 "
            "tcpinfo_snd_cwnd=10 tcpinfo_rcv_space=9\n"
            for i, size in enumerate(sizes)
        )
    )
    return path


def combined_log(path: Path, sizes: list[int], seconds: float) -> Path:
    """A combined log that ends with $request_time."""
    start = '10.0.0.1 - - [26/Nov/2026:05:00:00 +0000] "GET / HTTP/1.1" 200'
    path.write_text("".join(f'{start} {size} "-" "-" {seconds:.3f}\n' for size in sizes))
    return path


@pytest.mark.parametrize("log", [nginx_log, combined_log])
def test_times_of_a_log_count_for_long_responses_and_are_a_doubt(tmp_path: Path, log: Callable[..., Path]) -> None:
    sizes = [20_000] * 100 + [300_000] * 500
    pair = log(tmp_path / "a.log", sizes, 1.0), log(tmp_path / "b.log", sizes, 0.8)
    found = compare_arms(*pair, harm="mean=+5%", concurrent=True)
    assert (found.before.connections, found.before.compared) == (600, 500)
    mean = change(found, "mean")
    assert (mean.before.value, mean.after.value) == (pytest.approx(1.0), pytest.approx(0.8))
    assert mean.change.value == pytest.approx(-20)
    assert found.doubts[0].startswith("times are the log's")
    assert light(found)[0] == "care"


def test_logs_of_short_responses_are_refused_and_a_capture_is_asked_for(tmp_path: Path) -> None:
    # nginx logs 0.000 for 120 kB that take the user 0.23 s: the kernel takes all of it at once.
    pair = [nginx_log(tmp_path / f"{name}.log", [120_000] * 600, 0.0) for name in "ab"]
    with pytest.raises(RequestError, match="above 256 KiB only; compare captures: tcpdump"):
        compare_arms(pair[0], pair[1], harm="mean=+5%")
    # Nor does an unfinished response make times of the others known.
    pair = [nginx_log(tmp_path / f"{name}.log", [120_000] * 600, 0.0, completion="") for name in "cd"]
    with pytest.raises(RequestError, match="neither completion times"):
        compare_arms(pair[0], pair[1], harm="mean=+5%")


def test_the_worst_change_stands_in_the_headline_even_within_the_budget(tmp_path: Path) -> None:
    before = homes(tmp_path / "before.csv", 1, factor=1.0, lost=0.005, flows=900)
    after = homes(tmp_path / "after.csv", 2, factor=0.8, lost=0.015, flows=900)
    found = compare_arms(before, after, harm="retransmissions=+5,mean=+5%", concurrent=True)
    assert found.outcome == "faster"
    again = change(found, "retransmissions").change
    assert again.low > 0
    assert answer(found).endswith(f"limit. Worst change: retransmission rate {interval(again, ' pp')}.")
    better = homes(tmp_path / "better.csv", 3, factor=0.8, lost=0.003, flows=900)
    none = compare_arms(before, better, harm="retransmissions=+5,mean=+5%", concurrent=True)
    assert answer(none).endswith("Nothing that was measured is shown to get worse.")


def test_too_few_connections_are_named_as_the_reason(tmp_path: Path) -> None:
    pair = [homes(tmp_path / f"{name}.csv", seed, factor=1.0, lost=0, flows=300) for name, seed in (("a", 1), ("b", 2))]
    assert answer(compare_arms(pair[0], pair[1], harm="mean=+5%", concurrent=True)) == (
        "Inconclusive: too few connections; the 95% CI of a mean needs 400 on each side."
    )


def test_the_command_prints_and_stores_every_number(
    firstflight: Callable[..., Any], tmp_path: Path, shifted: tuple[Path, Path]
) -> None:
    before, after = shifted
    done = firstflight("compare", before, after, "--out", tmp_path / "out")
    assert done.status == 0, done.err
    compared = compare_arms(*shifted, harm="retransmissions=+0.5,p99=+5%,others=+5%,groups=+5%")
    assert "\n".join(lines(compared)) in done.out
    stored = json.loads((tmp_path / "out" / "comparison.json").read_text(), parse_constant=pytest.fail)
    assert stored["schema"] == 3
    assert stored["after"]["current"]["window"] == 20
    assert "<h1>" in (tmp_path / "out" / "comparison.html").read_text()
    for words in (["compare", before], ["compare", before, after, "--iw", "10"], ["advise"]):
        refused = firstflight(*words)
        assert refused.status == 2
        assert refused.err.count("\n") == 2


def test_the_page_opens_with_verdict_number_doubt_and_what_removes_it(
    tmp_path: Path, shifted: tuple[Path, Path]
) -> None:
    before_after = compare_arms(*shifted, harm="mean=+50%")
    page = render(before_after, "firstflight compare a b")
    first_screen = page[page.index('id="answer"') : page.index('id="change"')]
    assert light(before_after)[0] == "care"
    assert "After is faster" in first_screen
    assert interval(change(before_after, "mean").change, "%") in first_screen.replace("\u00a0", " ").replace(
        "\u2212", "-"
    )
    assert "it need not be the window" in first_screen
    assert "--concurrent" in first_screen
    assert "mix of RTTs and sizes changed" in first_screen
    pair = [
        homes(tmp_path / f"{name}.csv", seed, factor=by, lost=0) for name, seed, by in (("a", 1, 1.0), ("b", 2, 0.8))
    ]
    arms = compare_arms(pair[0], pair[1], harm="mean=+5%", concurrent=True)
    clean = render(replace(arms, doubts=()), "")
    assert light(replace(arms, doubts=()))[0] == "go"
    assert "it need not be the window" not in clean
    assert light(replace(arms, outcome="over the budget"))[0] == "stop"

"""Tables, figures and the answer."""

from collections.abc import Mapping, Sequence

import xarray as xr

from firstflight.analysis.table import Table
from firstflight.engines.model.slow_start import SlowStart
from firstflight.report.figure import Figure
from firstflight.studies.cs244_2014 import responses as r
from firstflight.studies.cs244_2014.claims import LATER, crossing, gain_ms, gain_percent, ten_segments_ms
from firstflight.studies.kernel import Quantities, along, headed, lines, named, observed, table

_MSS, _HEADERS, _MEDIAN_BYTES = 1448, 52, 9300
"""Payload of a full packet and its headers, with timestamps; the median response with its response header."""


def _median(values: xr.DataArray, name: str, title: str, unit: str, digits: int = 1) -> xr.DataArray:
    """By bucket, over single responses."""
    return named(observed(r.by_bucket(values.rename(name)), *r.RESPONSE), name, title, unit, digits)


def _count(values: xr.DataArray, name: str, title: str) -> xr.DataArray:
    """The number of responses by bucket; none where there are none."""
    counts = r.by_bucket(values).count(r.RESPONSE)
    return named(counts.where(counts > 0), name, title, "count", 0)


def tables(q: Quantities) -> Sequence[Table]:
    """Gains by bucket and path, rounds, and for an emulated run the simulator next to it."""
    gain, pairs = gain_ms(q.time), q.disturbed.sum("iw", skipna=False)
    few, many = (q.time.sel(iw=iw, drop=True).where(gain.notnull()) for iw in (r.FEW, r.MANY))
    disturbed = (r.by_bucket(pairs) > 0).sum(r.RESPONSE)
    results = [
        table(
            "by_bandwidth",
            "Gain of IW 10 over IW 3 by bandwidth",
            "Medians over pairs: the same request of the same user with either window. The time is from the opening of "
            "the connection to the last byte; percent are of the time with IW 3.",
            [
                _median(gain, "gain", "Gain", "ms"),
                _median(gain_percent(q.time), "gain_percent", "Gain", "percent"),
                _median(few, "time_iw3", "Time with IW 3", "ms", 0),
                _median(many, "time_iw10", "Time with IW 10", "ms", 0),
                pair_count := _count(gain, "pairs", "Pairs"),
                named(disturbed.where(pair_count.notnull()), "disturbed", "Disturbed, left out", "count", 0),
            ],
        ),
        table(
            "windows",
            "First flights and timeouts",
            "The largest first flight, and the responses during which the retransmission timer expired although "
            "nothing was lost.",
            [
                named(r.by_bucket(q.first_flight).max(r.RESPONSE), "first_flight", "First flight", "segments", 0),
                named(
                    100 * r.by_bucket(q.timed_out).mean(r.RESPONSE), "timeouts", "Responses with a timeout", "percent"
                ),
            ],
            "iw",
        ),
        table(
            "ten_segments",
            f"Time of ten segments (IW {r.MANY})",
            f"One RTT is {r.ROUND_TRIP_MS} ms; by arithmetic ten full packets take as long at {r.full_kbps(r.TEN):.0f} "
            "kbit/s.",
            [named(ten_segments_ms(q), "ten_segments", "Ten segments of a first flight on the link", "ms")],
        ),
    ]
    if "shaped_time" in q:
        times = xr.concat([q.time.expand_dims(path=["line"]), q.shaped_time], "path", join="outer")
        results.append(
            table(
                "paths",
                "Gain of IW 10 over IW 3 on a link and over Mininet's shaper",
                "`line` transmits one packet after the other. The others are Mininet's htb, a bucket of 1600 bytes: "
                "`htb-flights` with GSO packets of up to 64 kB (Linux before 3.12), `htb-pairs` with those of two "
                "segments (Linux since then, at this RTT). `rto-1s`: no timeout below 1 s.",
                [
                    _median(gain_ms(times), "gain", "Gain", "ms"),
                    _median(gain_percent(times), "gain_percent", "Gain", "percent"),
                ],
                "path",
                order=("bandwidth_kbps", "path"),
            )
        )
    if "simulated_time" in q:
        results.append(_engines(q.time, q.simulated_time))
    return results


def _engines(emulated: xr.DataArray, simulated: xr.DataArray) -> Table:
    difference = emulated - simulated
    close = (abs(difference) <= 1) | (abs(difference) <= 0.01 * simulated)
    within = 100 * r.by_bucket(close.where(difference.notnull())).mean(r.RESPONSE)
    percent = 100 * difference / simulated
    return table(
        "engines",
        "The kernel next to the simulator",
        "The same requests of the same users; medians of the differences, response by response, disturbed ones left "
        "out.",
        [
            _median(difference, "difference", "Emulated minus simulated", "ms", 2),
            _median(percent, "difference_percent", "Emulated minus simulated", "percent", 2),
            named(within, "within", "Within 1% or 1 ms", "percent", 0),
            _count(difference, "pairs", "Responses"),
        ],
        "iw",
    )


def figures(q: Quantities) -> Sequence[Figure | None]:
    """The post's Figure 2, every user's gain next to the computed one, and the kernel against the simulator."""
    if "simulated_time" in q:
        # A row disturbed on one side is excluded on both.
        both = q.time.notnull()
        sides = {"emulated (kernel)": q.time, "simulated": q.simulated_time.where(both)}
    else:
        shaped = {
            f"simulated, {path}": q.shaped_time.sel(path=path, drop=True)
            for path in q.shaped_time["path"].values
            if path not in LATER
        }
        sides = {"simulated": q.time, **shaped}
    charts = [
        _improvement({name: gain(times) for name, times in sides.items()}, key, title, unit, *axis)
        for gain, key, title, unit, *axis in (
            (gain_ms, "improvement", "Gain", "ms", r.ROUND_TRIP_MS / 2, r.ROUND_TRIP_MS),
            (gain_percent, "improvement_percent", "Gain", "% of the time with IW 3"),
        )
    ]
    charts.append(_users({name: gain_ms(times) for name, times in sides.items()}))
    if "simulated_time" in q:
        late = observed(100 * (q.time / q.simulated_time - 1), *r.RESPONSE[1:])
        charts.append(
            lines(
                headed(named(late, "engines", "Emulated above simulated", "%"), rate_kbps="bandwidth, kbit/s"),
                "The kernel against the simulator, user by user",
                "Time of each user's undisturbed responses on the running kernel, in percent above that of the same "
                "responses in the simulator: median, with its 95% CI.",
                "rate_kbps",
                "iw",
                linear_within=1,
            )
        )
    return charts


def _improvement(
    gains: Mapping[str, xr.DataArray],
    key: str,
    title: str,
    unit: str,
    linear_within: float | None = None,
    base: float | None = None,
) -> Figure | None:
    by = r.by_bucket(_side_by_side(gains))
    middle, low, high = (
        named(observed(by, *r.RESPONSE, summary=summary), key, title, unit)
        for summary in ("median", "lower quartile", "upper quartile")
    )
    return lines(
        middle,
        f"Improvement by bandwidth, IW 3 to IW 10, {unit}",
        "The post's Figure 2: median over pairs of responses with their inter-quartile range, by the bandwidth of the "
        "user."
        + (
            " Dashed: one round trip, which the post finds at every bandwidth. The axis is linear within half of one "
            "and logarithmic beyond."
            if base
            else ""
        ),
        "bandwidth_kbps",
        "engine",
        linear_within=linear_within,
        base=base,
        between=(low, high),
    )


def _users(gains: Mapping[str, xr.DataArray]) -> Figure | None:
    medians = {name: of.median(r.RESPONSE[1:]) for name, of in gains.items()}
    measured = next(iter(medians.values()))
    computed = measured.copy(data=[computed_gain_ms(rate) for rate in r.RATES_KBPS]).where(measured.notnull())
    return lines(
        named(_side_by_side({"arithmetic": computed, **medians}), "users", "Gain", "ms"),
        "The gain of every user",
        "Median gain of each user, by bandwidth. Arithmetic: gain of slow start for the median response (9 kB): "
        f"nothing up to {r.always_busy_kbps(r.FEW):.0f} kbit/s, where three segments keep the link busy until the "
        "first ACK returns, and a whole round trip (dashed) only where sending takes no time. Ten segments take a "
        f"round trip at {r.full_kbps(r.TEN):.0f} kbit/s. Above the line on the left: retransmission timers that expire "
        "although nothing is lost, which costs IW 3 more.",
        "rate_kbps",
        "engine",
        linear_within=r.ROUND_TRIP_MS / 2,
        base=r.ROUND_TRIP_MS,
    )


def computed_gain_ms(rate_kbps: float) -> float:
    """The gain of the median response with IW 10 over IW 3 by the closed form of slow start, without timers."""
    few = SlowStart(_MEDIAN_BYTES, _MSS, r.FEW, r.ROUND_TRIP_MS / 1000, 1000 * rate_kbps, _HEADERS)
    return 1000 * few.gain_s(r.MANY)


def _side_by_side(arrays: Mapping[str, xr.DataArray]) -> xr.DataArray:
    return headed(along("engine", arrays), engine="path", rate_kbps="bandwidth, kbit/s")


def answer(q: Quantities) -> Sequence[str]:
    """The gain by bandwidth, the reason for the dependence, and the slowest users."""
    gains, percent = (r.by_bucket(of(q.time)).median(r.RESPONSE).values for of in (gain_ms, gain_percent))
    by_name = zip(r.BUCKETS, gains, percent, strict=True)
    gained = [f"{round(gain)} ms ({round(share)}%) at {name}" for name, gain, share in by_name if gain == gain]
    crossing_kbps, _, _ = crossing(ten_segments_ms(q))
    sentences = [
        f"By bandwidth in kbit/s, an initial window of {r.MANY} instead of {r.FEW} gains in the median "
        f"{', '.join(gained)}; an RTT is {r.ROUND_TRIP_MS} ms.",
        "A saved round gains an RTT only where the link would have been idle: up to "
        f"{r.always_busy_kbps(r.FEW):.0f} kbit/s {r.FEW} segments keep the link busy until the first ACK returns, and "
        f"{r.TEN} segments do so up to {r.full_kbps(r.TEN):.0f} kbit/s "
        f"({f'measured: {crossing_kbps:.0f}' if crossing_kbps == crossing_kbps else 'not measured in this run'}).",
        _slowest(q.timed_out),
    ]
    if "shaped_time" in q:
        medians = r.by_bucket(gain_ms(q.shaped_time)).median(r.RESPONSE)
        ranges = [
            f"{of.min():.0f} to {of.max():.0f} ms ({of['path'].item()})"
            for of in medians
            if of["path"].item() not in LATER
        ]
        sentences.append(
            f"Over Mininet's shaper the median gains by bandwidth are {' and '.join(ranges)}: the published gain "
            "depends on how segments are grouped into GSO packets. On a link that transmits packets one by one it "
            "does not."
        )
    return sentences


def _slowest(timed_out: xr.DataArray) -> str:
    late = timed_out["rate_kbps"].where((timed_out > 0).any(["iw", *r.RESPONSE[1:]]), drop=True)
    if not late.size:
        return "No retransmission timer is known to have expired."
    share = 100 * timed_out.sel(rate_kbps=slice(None, float(late.max()))).mean(r.RESPONSE)
    return (
        f"Up to {late.max():.0f} kbit/s a segment takes so long that the retransmission timer expires although nothing "
        f"is lost, in {share.sel(iw=r.FEW):.0f}% of the responses with IW {r.FEW} and {share.sel(iw=r.MANY):.0f}% with "
        f"IW {r.MANY}."
    )

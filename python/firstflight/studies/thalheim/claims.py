"""The talk's statements: those of its figure, its formula, and its two remarks.

The sentences are paraphrased. Limits and tolerances were fixed before the first run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import xarray as xr

from firstflight.analysis.claim import Expectation
from firstflight.analysis.link_share import PACKET_BYTES, PAYLOAD_BYTES
from firstflight.engines.model.slow_start import SlowStart
from firstflight.engines.model.throughput import transfer_time_s
from firstflight.studies.kernel import ClaimSpec, Quantities, Source, above, at_least, near

BASE, PROPOSED = 3, 10
"""Initial windows of the talk: what its figure is relative to, and what it proposes, segments."""
RATE_MBIT, DELAY_MS = 10, 50
"""The path of the small queue, of parallel connections and of the elephant; the delay is that of one way."""
AMPLE_QUEUE, SMALL_QUEUE = 1000, 25
TOTAL_KB, MANY = 600, 6
OBJECT_KB, MOUSE_KB = TOTAL_KB // MANY, 20
HEADER_BYTES = 300
"""What the server sends before a file."""
COORDINATES = ["rate_mbit", "size_kb", "delay_ms", "iw"]
COMPARISON = "The sentence compares and gives no number, so any difference in its direction will do."
_ONE_WINDOW = "A formula that is off by more would not tell one initial window from the next but one."
_NOTICED = 1
TALK = Source("J. Thalheim's talk", "talk-")
GREATER = above(0, "percentage points")


def relative(times: xr.DataArray, base: xr.DataArray | None = None) -> xr.DataArray:
    """Percent of the time with the base window, in `times` or elsewhere."""
    return 100 * times / (times if base is None else base).sel(iw=BASE, drop=True)


def gain(times: xr.DataArray) -> xr.DataArray:
    """Percent of the base window's time that each larger window saves."""
    return 100 - relative(times).sel(iw=slice(BASE + 1, None))


def talk_ms(times: xr.DataArray) -> xr.DataArray:
    """The talk's words as a time: windows that double each round trip, one round trip for the handshake."""

    def words(rate_mbit: int, size_kb: int, delay_ms: int, iw: int) -> float:
        return 1000 * transfer_time_s(1000 * size_kb + HEADER_BYTES, PAYLOAD_BYTES, iw, 2 * delay_ms / 1000)

    return _computed(words, times)


def closed_form_ms(times: xr.DataArray) -> xr.DataArray:
    """The model engine's closed form: the same, and the time that the link takes for the bytes."""

    def closed(rate_mbit: int, size_kb: int, delay_ms: int, iw: int) -> float:
        size, headers = 1000 * size_kb + HEADER_BYTES, PACKET_BYTES - PAYLOAD_BYTES
        model = SlowStart(size, PAYLOAD_BYTES, iw, 2 * delay_ms / 1000, 1e6 * rate_mbit, headers)
        return 1000 * model.completion_time_s

    return _computed(closed, times)


def _computed(formula: Callable[..., float], times: xr.DataArray) -> xr.DataArray:
    found: xr.DataArray = xr.apply_ufunc(formula, *(times[key] for key in COORDINATES), vectorize=True)
    return found


def claims(q: Quantities) -> Sequence[ClaimSpec]:
    """In the order of the talk, then those of its figure over each form of Mininet's shaper."""
    # Simulated, a transfer alone on its path has nothing random: its value decides.
    exact = "simulated_time" not in q
    found = [*_figure(q.time, q.request_time, exact), *_formula(q, exact), *_remarks(q)]
    for shaper in q.shaped_time["shaper"].values if "shaped_time" in q else ():
        found += _figure(q.shaped_time.sel(shaper=shaper), q.shaped_request_time.sel(shaper=shaper), exact, shaper)
    return found


def _claim(
    name: str,
    text: str,
    found: xr.DataArray,
    note: str,
    expected: Expectation = GREATER,
    why: str = COMPARISON,
    exact: bool = False,
) -> ClaimSpec:
    return TALK.says(name, text, found, expected, why, note, "value" if exact else "interval")


def _figure(times: xr.DataArray, requests: xr.DataArray, exact: bool, shaper: str = "") -> Iterator[ClaimSpec]:
    gains = gain(times)
    by_delay, by_size = (_means(gains, key) for key in ("delay_ms", "size_kb"))
    large = gains.isel(size_kb=slice(-2, None))
    by_rate, sizes = _means(large, "rate_mbit"), " and ".join(str(size) for size in large["size_kb"].values)

    def claim(
        name: str,
        text: str,
        found: xr.DataArray,
        note: str,
        expected: Expectation = GREATER,
        why: str = COMPARISON,
    ) -> ClaimSpec:
        if shaper:
            name, text = f"{name}-{shaper}", f"Over Mininet's shaper ({shaper}): {text}"
        return _claim(name, text, found, note, expected, why, exact)

    yield claim(
        "gain-from-0",
        f"The transfer time falls by 0 % at least: no window above {BASE} makes it longer (least gain over the "
        "figure).",
        gains.min(COORDINATES),
        f"It is {_extreme(gains, least=True)}; of {gains.isel(draw=0).size} gains.",
        at_least(0, "percent", 1),
        "One point is below what a figure shows.",
    )
    yield claim(
        "gain-to-60",
        "The transfer time falls by up to 60 % (largest gain over the figure).",
        gains.max(COORDINATES),
        f"It is {_extreme(gains)}; from the request on, without the handshake, {_extreme(gain(requests))}.",
        near(60, "percent", 5),
        "60 is a round number.",
    )
    yield claim(
        "gain-grows-with-delay",
        "The gain grows with the delay (mean gain over rates, sizes and windows: the least step from one delay to the "
        "next).",
        by_delay.diff("delay_ms").min("delay_ms"),
        _trend(gains, "delay_ms", "ms", 1),
    )
    along_size = _trend(gains, "size_kb", "kB", -1)
    yield claim(
        "gain-falls-with-size",
        "The gain falls with the size (mean gain over rates, delays and windows: smallest size minus largest).",
        by_size.isel(size_kb=0, drop=True) - by_size.isel(size_kb=-1, drop=True),
        along_size,
    )
    yield claim(
        "gain-falls-with-each-size",
        "Read strictly: the gain falls with every step of the size (the least fall from one size to the next).",
        (-by_size.diff("size_kb")).min("size_kb"),
        along_size,
    )
    yield claim(
        "rate-carries-gain-to-larger-files",
        f"Higher rates carry the gain to larger files (mean gain of {sizes} kB: the least step from one rate to the "
        "next).",
        by_rate.diff("rate_mbit").min("rate_mbit"),
        f"Mean gain: {_each(by_rate, 'rate_mbit', 'Mbit/s')}.",
    )


def _means(gains: xr.DataArray, key: str) -> xr.DataArray:
    return gains.mean([other for other in COORDINATES if other != key])


def _extreme(gains: xr.DataArray, least: bool = False) -> str:
    values = gains.sel(draw=0).stack(at=COORDINATES)
    found = values[values.values.argmin() if least else values.values.argmax()]
    rate, size, delay, iw = found["at"].item()
    return f"{float(found):.1f} % with IW {iw} for {size} kB at {rate} Mbit/s and {delay} ms one way"


def _each(means: xr.DataArray, key: str, unit: str) -> str:
    return ", ".join(f"{float(mean):.1f} % at {int(mean[key])} {unit}" for mean in means.sel(draw=0))


def _trend(gains: xr.DataArray, key: str, unit: str, sign: int) -> str:
    steps = sign * gains.sel(draw=0).diff(key)
    return (
        f"Mean gain of windows above {BASE}: {_each(_means(gains, key), key, unit)}. Of {steps.size} single steps "
        f"{int((steps < -_NOTICED).sum())} go the other way by more than {_NOTICED} point."
    )


def _formula(q: Quantities, exact: bool) -> Sequence[ClaimSpec]:
    """The formula itself, which is lost, and what its words say."""
    distance, closed = (abs(100 * (of(q.time) / q.time - 1)) for of in (talk_ms, closed_form_ms))
    by_rate = [
        f"{float(own):.1f} % at {int(own['rate_mbit'])} Mbit/s (closed form {float(near_by):.2f} %)"
        for own, near_by in zip(*(of.sel(draw=0).median(COORDINATES[1:]) for of in (distance, closed)), strict=True)
    ]
    return (
        _claim(
            "formula",
            "The talk's formula for the transfer time gives the measured times.",
            xr.DataArray(float("nan")),
            "The formula is an image that is not preserved; the next claim and the table `formula` hold what the "
            "talk says of it in words against the measured times, and the closed form of docs/model.md beside it.",
            near(0, "percent", 5),
            _ONE_WINDOW,
        ),
        _claim(
            "formula-in-words",
            "While nothing is lost the throughput is cwnd x MTU / RTT (median distance of the measured transfer times "
            "from windows that double each round trip, and one round trip for the handshake).",
            distance.median(COORDINATES),
            f"Median over {distance.isel(draw=0).size} transfers; by rate {', '.join(by_rate)}.",
            near(0, "percent", 5),
            _ONE_WINDOW,
            exact,
        ),
    )


def _remarks(q: Quantities) -> Iterator[ClaimSpec]:
    """Parallel connections, then the elephant: the least over the windows."""

    def windows(found: xr.DataArray, unit: str = "") -> str:
        each = zip(found["iw"].values, found.sel(draw=0).values, strict=True)
        return f"{', '.join(f'{value:.3g}{unit} with IW {iw}' for iw, value in each)}."

    flights = q.first_flights.sel(queue_packets=AMPLE_QUEUE)
    together = flights.sel(flows=MANY, drop=True) / flights.sel(flows=1, drop=True)
    yield _claim(
        "parallel-slow-starts",
        f"Parallel connections add up their slow starts: {MANY} that open together send {MANY} times as much before "
        "the first acknowledgement as one does (least over the windows).",
        together.min("iw"),
        windows(together),
        near(MANY, "times"),
        "A count of segments, so the tolerance is 0.",
        exact=True,
    )
    objects = q.object_time.sel(flows=MANY, drop=True)
    place = {"rate_mbit": RATE_MBIT, "size_kb": OBJECT_KB, "iw": objects["iw"].values}
    for name, queue, alone in (
        ("ample", AMPLE_QUEUE, q.time.sel(delay_ms=DELAY_MS, drop=True)),
        ("small", SMALL_QUEUE, q.shallow_time),
    ):
        longer = 100 * (objects.sel(queue_packets=queue) / alone.sel(place) - 1)
        yield _claim(
            f"parallel-compete-{name}",
            f"Parallel connections compete: an object of {OBJECT_KB} kB takes longer beside {MANY - 1} others than "
            f"alone (queue of {queue} packets, least over the windows).",
            longer.min("iw"),
            windows(longer, " %"),
            above(0, "percent"),
        )
    share = q.elephant_share.sel(flows=1)
    yield _claim(
        "elephant",
        "An elephant takes more than its share against a short request: more than half of the link while a response "
        f"of {MOUSE_KB} kB is sent (least over the windows).",
        share.min("iw"),
        windows(share, " %"),
        above(50, "percent"),
        "Half is the fair share of two flows.",
    )

"""Thalheim's talk: the time of one download by initial window, delay, rate and size; traffic that shares its link."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl
import xarray as xr

from firstflight.analysis.link_share import PACKET_BYTES, PAYLOAD_BYTES, median_share
from firstflight.analysis.table import Table
from firstflight.engines.model.slow_start import SlowStart, transfer_time_s
from firstflight.records import Run
from firstflight.report.figure import Figure
from firstflight.scenario import Scenario
from firstflight.studies import kernel as k

BASE, PROPOSED = 3, 10
"""Initial windows of the talk: the base of its figure, and the proposed one, segments."""
RATE_MBIT, DELAY_MS = 10, 50
"""The path of the small queue, of parallel connections and of the long flow; the delay is that of one way."""
AMPLE_QUEUE, SMALL_QUEUE = 1000, 25
TOTAL_KB, MANY = 600, 6
OBJECT_KB, MOUSE_KB = TOTAL_KB // MANY, 20
HEADER_BYTES = 300
"""The bytes that the server sends before a file."""
COORDINATES = ["rate_mbit", "size_kb", "delay_ms", "iw"]
_ONE_WINDOW = "A formula with a larger error could not distinguish an initial window from the next but one."
_NOTICED = 1
TALK = k.Source("J. Thalheim's talk", "talk-")
GREATER = k.above(0, "percentage points")


def relative(times: xr.DataArray, base: xr.DataArray | None = None) -> xr.DataArray:
    """Percent of the time with the base window, in `times` or elsewhere."""
    return 100 * times / (times if base is None else base).sel(iw=BASE, drop=True)


def gain(times: xr.DataArray) -> xr.DataArray:
    """Percent of the base window's time that each larger window saves."""
    return 100 - relative(times).sel(iw=slice(BASE + 1, None))


def talk_ms(times: xr.DataArray) -> xr.DataArray:
    """The talk's words as a time: windows that double each round trip, one round trip for the handshake."""
    return _computed(times, lambda rate, size, rtt_s, iw: transfer_time_s(size, PAYLOAD_BYTES, iw, rtt_s))


def closed_form_ms(times: xr.DataArray) -> xr.DataArray:
    """The model engine's closed form: the same, and the time that the link takes for the bytes."""
    headers = PACKET_BYTES - PAYLOAD_BYTES
    return _computed(
        times, lambda rate, size, rtt_s, iw: SlowStart(size, PAYLOAD_BYTES, iw, rtt_s, rate, headers).completion_time_s
    )


def _computed(times: xr.DataArray, formula: Callable[[float, int, float, int], float]) -> xr.DataArray:
    """By a formula of rate (bits/s), size (bytes), RTT (s) and IW."""
    rate, size, delay, iw = (times[key] for key in COORDINATES)
    given = (1e6 * rate, 1000 * size + HEADER_BYTES, 2 * delay / 1000, iw)
    times_ms: xr.DataArray = 1000 * xr.apply_ufunc(formula, *given, vectorize=True)
    return times_ms


def claims(q: k.Quantities) -> Sequence[k.ClaimSpec]:
    """In the order of the talk, then those of its figure over each form of Mininet's shaper."""
    # Simulated, a transfer alone on its path has nothing random: its value decides.
    alone = replace(TALK, needs="interval" if "simulated_time" in q else "value")
    specs = [*_figure(alone, q.time, q.request_time), *_formula(alone, q), *_remarks(q)]
    for shaper in q.shaped_time["shaper"].values if "shaped_time" in q else ():
        source = replace(alone, part=f"-{shaper}", where=f"Over Mininet's shaper ({shaper}): ")
        specs += _figure(source, q.shaped_time.sel(shaper=shaper), q.shaped_request_time.sel(shaper=shaper))
    return specs


def _figure(talk: k.Source, times: xr.DataArray, requests: xr.DataArray) -> Iterator[k.ClaimSpec]:
    gains = gain(times)
    by_delay, by_size = (_means(gains, key) for key in ("delay_ms", "size_kb"))
    large = gains.isel(size_kb=slice(-2, None))
    by_rate, sizes = _means(large, "rate_mbit"), " and ".join(str(size) for size in large["size_kb"].values)
    yield talk.says(
        "gain-from-0",
        f"The transfer time falls by 0% at least: no window above {BASE} makes it longer (least gain over the figure).",
        gains.min(COORDINATES),
        k.at_least(0, "percent", 1),
        "One point is below the resolution of a figure.",
        f"The least gain is {_extreme(gains, least=True)}; of {gains.isel(draw=0).size} gains.",
    )
    yield talk.says(
        "gain-to-60",
        "The transfer time falls by up to 60% (largest gain over the figure).",
        gains.max(COORDINATES),
        k.near(60, "percent", 5),
        "60 is a round number.",
        "33 kB were added after the first run, whose other sizes miss where three of five round trips are saved. It is "
        f"{_extreme(gains)}; from the request on, without the handshake, {_extreme(gain(requests))}.",
    )
    yield talk.says(
        "gain-grows-with-delay",
        "The gain grows with the delay (mean gain over rates, sizes and windows: the least step from one delay to the "
        "next).",
        by_delay.diff("delay_ms").min("delay_ms"),
        GREATER,
        note=_trend(gains, "delay_ms", "ms", 1),
    )
    along_size = _trend(gains, "size_kb", "kB", -1)
    yield talk.says(
        "gain-falls-with-size",
        "The gain falls with the size (mean gain over rates, delays and windows: smallest size minus largest).",
        by_size.isel(size_kb=0, drop=True) - by_size.isel(size_kb=-1, drop=True),
        GREATER,
        note=along_size,
    )
    yield talk.says(
        "gain-falls-with-each-size",
        "Read strictly: the gain falls with every step of the size (the least fall from one size to the next).",
        (-by_size.diff("size_kb")).min("size_kb"),
        GREATER,
        note=f"33 kB, added for the gain of 60%, gain more than 20 kB: whole round trips are saved. {along_size}",
    )
    yield talk.says(
        "rate-carries-gain-to-larger-files",
        f"With higher rates larger files gain, too (mean gain of {sizes} kB: the least step from one rate to the "
        "next).",
        by_rate.diff("rate_mbit").min("rate_mbit"),
        GREATER,
        note=f"Mean gain: {k.each(by_rate, '{value:.1f}% at {label} Mbit/s')}.",
    )


def _means(gains: xr.DataArray, key: str) -> xr.DataArray:
    return gains.mean([other for other in COORDINATES if other != key])


def _extreme(gains: xr.DataArray, least: bool = False) -> str:
    at = k.extreme(gains, least)
    path = "with IW {iw} for {size_kb} kB at {rate_mbit} Mbit/s and {delay_ms} ms one way".format(**at)
    return f"{k.value(gains.sel(at)):.1f}% {path}"


def _trend(gains: xr.DataArray, key: str, unit: str, sign: int) -> str:
    steps = sign * gains.sel(draw=0).diff(key)
    return (
        f"Mean gain of windows above {BASE}: {k.each(_means(gains, key), f'{{value:.1f}}% at {{label}} {unit}')}. "
        f"Of {steps.size} single steps {int((steps < -_NOTICED).sum())} go the other way by more than {_NOTICED} point."
    )


def _formula(talk: k.Source, q: k.Quantities) -> Iterator[k.ClaimSpec]:
    """The formula itself, which is lost, and its description in words."""
    distance, closed = (abs(100 * (of(q.time) / q.time - 1)) for of in (talk_ms, closed_form_ms))
    by_rate = [
        f"{error:.1f}% at {int(error['rate_mbit'])} Mbit/s (closed form {near_by:.2f}%)"
        for error, near_by in zip(*(of.sel(draw=0).median(COORDINATES[1:]) for of in (distance, closed)), strict=True)
    ]
    yield talk.says(
        "formula",
        "The talk's formula for the transfer time gives the measured times.",
        xr.DataArray(float("nan")),
        k.near(0, "percent", 5),
        _ONE_WINDOW,
        "The formula is an image that is not preserved; the next claim and the table `formula` compare the talk's "
        "description in words and the closed form of docs/model.md with the measured times.",
    )
    yield talk.says(
        "formula-in-words",
        "While nothing is lost the throughput is cwnd x MTU / RTT (median distance of the measured transfer times from "
        "windows that double each round trip, and one round trip for the handshake).",
        distance.median(COORDINATES),
        k.near(0, "percent", 5),
        _ONE_WINDOW,
        f"Median over {distance.isel(draw=0).size} transfers; by rate {', '.join(by_rate)}.",
    )


def _remarks(q: k.Quantities) -> Iterator[k.ClaimSpec]:
    """Parallel connections, then the long flow: the least over the windows."""
    flights = q.first_flights.sel(queue_packets=AMPLE_QUEUE)
    together = flights.sel(flows=MANY, drop=True) / flights.sel(flows=1, drop=True)
    yield TALK.says(
        "parallel-slow-starts",
        f"Parallel connections add up their slow starts: {MANY} that open together send {MANY} times as much before "
        "the first ACK as one does (least over the windows).",
        together.min("iw"),
        k.near(MANY, "times"),
        "A count of segments, so the tolerance is 0.",
        note=k.each(together, "{value:.3g} with IW {label}") + ".",
        needs="value",
    )
    objects = q.object_time.sel(flows=MANY, drop=True)
    place = {"rate_mbit": RATE_MBIT, "size_kb": OBJECT_KB, "iw": objects["iw"].values}
    for name, queue, alone in (
        ("ample", AMPLE_QUEUE, q.time.sel(delay_ms=DELAY_MS, drop=True)),
        ("small", SMALL_QUEUE, q.shallow_time),
    ):
        longer = 100 * (objects.sel(queue_packets=queue) / alone.sel(place) - 1)
        yield TALK.says(
            f"parallel-compete-{name}",
            f"Parallel connections compete: an object of {OBJECT_KB} kB takes longer next to {MANY - 1} others than "
            f"alone (queue of {queue} packets, least over the windows).",
            longer.min("iw"),
            k.above(0, "percent"),
            note=k.each(longer, "{value:.3g}% with IW {label}") + ".",
        )
    share = q.elephant_share.sel(flows=1)
    yield TALK.says(
        "elephant",
        "A long flow takes more than its share against a short request: more than half of the link while a response "
        f"of {MOUSE_KB} kB is sent (least over the windows).",
        share.min("iw"),
        k.above(50, "percent"),
        "Half is the fair share of two flows.",
        k.each(share, "{value:.3g}% with IW {label}") + ".",
    )


_ONE_PATH = "10 Mbit/s, 50 ms one way."
_RELATIVE = f"Time relative to IW {BASE}"


def tables(q: k.Quantities) -> Sequence[Table]:
    """Relative and plain times, next to formulas and engines, and traffic that shares the link."""
    emulated = "simulated_time" in q
    times = [k.named(q.time, "median_time", "Median" if emulated else "Time", "ms")]
    if emulated:
        between = q.upper_quartile - q.lower_quartile
        times += [k.named(between, "quartile_range", "Between the quartiles", "ms", 2), q.disturbed]
    small_queue = [
        k.named(relative(q.shallow_time), "relative_time", _RELATIVE, "percent", 0),
        k.named(100 * (q.shallow_time / _at_delay(q.time) - 1), "longer", "Longer", "percent", 0),
        q.again,
    ]
    formulas = {"talk": ("The talk's words", talk_ms, 0), "closed_form": ("Closed form", closed_form_ms, 1)}
    results = [
        k.table(
            "relative",
            f"Transfer time relative to an initial window of {BASE}",
            "In percent: below 100 is a gain. The talk's figure in numbers; delay one way, ample queue.",
            [k.named(relative(q.time), "relative_time", "Time", "percent", 0)],
            "iw",
        ),
        k.table(
            "times",
            "Transfer times",
            "From the opening of the connection to the last byte."
            + (" Over the transfers that no stall of the machine disturbed." if emulated else ""),
            times,
            "iw",
            notes=_mostly_disturbed(q),
        ),
        k.table(
            "formula",
            "Formulas against measured times",
            "Difference of a formula's time from the measured one. The talk's formula, from its words: windows that "
            "double each round trip, and one for the handshake. The closed form of docs/model.md: the same, plus the "
            "transmission time of the bytes.",
            [
                k.named(100 * (of(q.time) / q.time - 1), name, title, "percent", digits)
                for name, (title, of, digits) in formulas.items()
            ],
            "iw",
        ),
        k.table(
            "shallow",
            f"The same over a queue of {SMALL_QUEUE} packets",
            f"{DELAY_MS} ms one way. Longer: than over the ample queue.",
            small_queue,
            "iw",
        ),
        k.table(
            "parallel",
            f"{TOTAL_KB} kB over connections that open together",
            f"{_ONE_PATH} Medians; `flows` connections share the bytes.",
            [q.page_time, q.object_time, q.first_flights, q.retransmitted],
            order=("queue_packets", "iw", "flows"),
        ),
        k.table(
            "mice",
            f"Requests of {MOUSE_KB} kB next to a long download",
            f"{_ONE_PATH} A queue of 83 packets; medians. `flows`: number of downloads, started ten seconds before. "
            "Share: of the bytes that the link transmitted while the server sent the short response.",
            [q.mouse_time, q.elephant_share.reindex_like(q.mouse_time["flows"])],
            order=("iw", "flows"),
        ),
    ]
    if emulated:
        results.insert(2, _engines(q))
    return results


def _at_delay(times: xr.DataArray) -> xr.DataArray:
    return times.sel(delay_ms=DELAY_MS, drop=True)


def _mostly_disturbed(q: k.Quantities) -> Sequence[str]:
    disturbed, count = (of.sel(draw=0).stack(at=COORDINATES) for of in (q.disturbed, q.transfers))
    mostly = disturbed.where(2 * disturbed > count, drop=True)
    return [
        f"{rate} Mbit/s, {delay} ms, {size} kB, IW {iw}: {left_out:.0f} of {of:.0f} transfers were disturbed; the "
        "figure rests on the others."
        for (rate, size, delay, iw), left_out, of in zip(
            mostly["at"].values, mostly.values, count.sel(at=mostly["at"]).values, strict=True
        )
    ]


def _engines(q: k.Quantities) -> Table:
    """The emulated median next to the simulated time of the same cell."""
    simulated, measured = (
        k.along("experiment", {"transfer": transfer, "shallow": shallow.expand_dims(delay_ms=[DELAY_MS])})
        for transfer, shallow in ((q.simulated_time, q.simulated_shallow_time), (q.time, q.shallow_time))
    )
    return k.table(
        "engines",
        "The kernel's times against the simulator's",
        "Simulated: the same cell in virtual time. Difference: of the kernel's median from it.",
        [
            k.named(simulated.where(measured.notnull()), "simulated", "Simulated", "ms"),
            k.named(100 * (measured / simulated - 1), "difference", "Kernel against simulator", "percent", 2),
        ],
        "iw",
        order=("experiment", *COORDINATES),
    )


def figures(q: k.Quantities) -> Sequence[Figure | None]:
    """The talk's figure, one per rate; an overview; formulas; traffic that shares the link."""
    emulated = "simulated_time" in q
    of_kernel = " Medians of transfers without host stalls, with their 95% CIs, next to the simulator's."
    caption = (
        f"Time of the whole download by initial window in segments, in percent of that with {BASE}. Rows: size. "
        f"Columns: one-way delay. {of_kernel if emulated else f'Green: faster than with {BASE}; red: slower.'} "
        f"Ringed, with values: {PROPOSED} segments."
    )
    saved = k.named(gain(q.time).sel(iw=PROPOSED), "overview", "Saved", "percent", 0)
    charts = [
        k.heat_map(
            saved,
            f"Gain of an initial window of {PROPOSED} over {BASE}",
            f"Percent of the transfer time with {BASE} segments that {PROPOSED} save. Across: delay, one way.",
            "delay_ms",
            "size_kb",
            "rate_mbit",
        )
    ]
    times = relative(q.time)
    if emulated:
        times = k.along("engine", {"kernel": times, "simulator": relative(q.simulated_time)})
    charts += [
        k.panels(
            k.named(times.sel(rate_mbit=rate), f"relative_{rate}", _RELATIVE, "percent", 0),
            f"Transfer time relative to an initial window of {BASE}, at {rate} Mbit/s",
            caption,
            "iw",
            "size_kb",
            "delay_ms",
            100,
            "engine" if emulated else None,
            None if emulated else PROPOSED,
        )
        for rate in reversed(q.time["rate_mbit"].values)
    ]
    formulas = {"the talk's words": talk_ms, "closed form": closed_form_ms}
    shares = k.along("formula", {name: of(q.time) / q.time for name, of in formulas.items()})
    ample, base = _at_delay(q.time), f"{BASE} segments and an ample queue"
    queues = {"ample queue": relative(ample), f"queue of {SMALL_QUEUE} packets": relative(q.shallow_time, ample)}
    small_queue = k.along("queue", queues).where(q.shallow_time.notnull())
    how = "Medians with their 95% CIs, on 10 Mbit/s and 50 ms one way"
    return [
        *charts,
        k.scatter(
            k.named(shares, "formulas", "Formula / measured", "", 2),
            q.time,
            "Two formulas against the measured times",
            "One point per transfer: the formula's time divided by the measured one. The talk's words: windows that "
            "double each round trip, at any link rate. The closed form adds the transmission time of the bytes. "
            f"Measured {'on the kernel' if emulated else 'in the simulator'}.",
            "formula",
            "rate_mbit",
            1,
        ),
        k.panels(
            k.named(small_queue, "small_queue", _RELATIVE, "percent", 0),
            f"The same over a queue of {SMALL_QUEUE} packets",
            f"Transfer time in percent of that with {base}; {DELAY_MS} ms one way. The axis of times is logarithmic.",
            "iw",
            "size_kb",
            "rate_mbit",
            100,
            "queue",
            log=True,
        ),
        k.lines(
            k.named(q.page_time, "parallel", "Until all are complete", "ms"),
            f"{TOTAL_KB} kB over one, two and six connections",
            f"Time until all connections are complete; they open together and share the bytes. {how}.",
            "iw",
            "flows",
            "queue_packets",
        ),
        k.lines(
            k.named(q.mouse_time, "mice", "Median time", "ms"),
            f"Requests of {MOUSE_KB} kB alone and next to a long download",
            f"{how}, a queue of 83 packets.",
            "iw",
            "flows",
        ),
    ]


def answer(q: k.Quantities) -> Sequence[str]:
    """The gain of the proposed window, parallel connections, and the effect of a long flow."""
    gains, mice = gain(q.time).sel(iw=PROPOSED, draw=0), q.mouse_time.sel(iw=PROPOSED)
    most, at = float(gains.max()), "{size_kb} kB at {rate_mbit} Mbit/s and {delay_ms} ms".format(**k.extreme(gains))

    def page(queue: int, flows: int, iw: int) -> str:
        return f"{k.value(q.page_time.sel(queue_packets=queue, flows=flows, iw=iw)):.0f} ms"

    return [
        f"IW {PROPOSED} instead of {BASE} saves {gains.min():.0f} to {most:.0f}% of the transfer time, "
        f"{gains.mean():.0f}% on average, and most ({most:.0f}%) for {at} one way.",
        f"{TOTAL_KB} kB take {page(AMPLE_QUEUE, 1, BASE)} on one connection with IW {BASE}, "
        f"{page(AMPLE_QUEUE, 1, PROPOSED)} with {PROPOSED}, and {page(AMPLE_QUEUE, MANY, BASE)} on {MANY} connections "
        f"with IW {BASE}; over a queue of {SMALL_QUEUE} packets {MANY} connections take "
        f"{page(SMALL_QUEUE, MANY, BASE)} with IW {BASE} and {page(SMALL_QUEUE, MANY, PROPOSED)} with {PROPOSED}.",
        f"A long download keeps {k.value(q.elephant_share.sel(flows=1, iw=PROPOSED)):.0f}% of the link while "
        f"{MOUSE_KB} kB are sent with IW {PROPOSED}, which take {k.value(mice.sel(flows=1)):.0f} ms next to it and "
        f"{k.value(mice.sel(flows=0)):.0f} ms alone.",
    ]


# In real time only rows without a stall of the machine count.
DISTURBED = pl.col("disturbed")
CALM = k.DONE & (DISTURBED == 0)
MOUSE = CALM & k.of("mouse")
TIME = 1e3 * pl.col("completion_time_s")
REQUEST_TIME = 1e3 * (pl.col("completion_time_s") - pl.col("handshake_time_s"))
END_S = pl.col("start_s") + pl.col("completion_time_s")
# Of connections that run together either all came through undisturbed or none counts.
TOGETHER = (pl.len() == pl.col("flows").first()) & (DISTURBED.max() == 0)


def of_parallel(name: str, title: str, unit: str, value: pl.Expr) -> k.Quantity:
    """A measure of connections that open together."""
    together = pl.when(TOGETHER).then(value)
    return k.Observed(name, title, unit, together, k.DONE, digits=0, grid="parallel")


def elephants(run: Run) -> pl.LazyFrame:
    """The long download's share of the link while each short response was sent, percent, in medians by replicate."""
    transfers, links = (run.table(name, experiment="mice", flows=1) for name in ("transfers", "links"))
    bottleneck = links.filter(pl.col("link").cast(pl.String) == "links[0]")
    return median_share(transfers.filter(MOUSE), bottleneck, ["flows", "iw", "replicate"], DELAY_MS / 1000)


# Of one file alone on its path.
of_transfer = partial(k.Observed, where=CALM)
QUANTITIES = (
    of_transfer("time", "Time", "ms", TIME.max(), grid="transfer"),
    of_transfer("request_time", "Time from the request on", "ms", REQUEST_TIME.max(), grid="transfer"),
    of_transfer("lower_quartile", "Lower quartile", "ms", TIME.max(), grid="transfer", summary="lower quartile"),
    of_transfer("upper_quartile", "Upper quartile", "ms", TIME.max(), grid="transfer", summary="upper quartile"),
    k.Observed("transfers", "Transfers", "transfers", pl.len(), k.DONE, digits=0, grid="transfer", summary="sum"),
    k.Observed(
        "disturbed", "Disturbed", "transfers", DISTURBED.sum(), k.DONE, digits=0, grid="transfer", summary="sum"
    ),
    of_transfer("shallow_time", "Time", "ms", TIME.max(), grid="shallow"),
    of_transfer("again", "Retransmitted segments", "segments", pl.col("retransmissions").max(), grid="shallow"),
    of_transfer("shaped_time", "Time", "ms", TIME.max(), grid="shaped"),
    of_transfer("shaped_request_time", "Time from the request on", "ms", REQUEST_TIME.max(), grid="shaped"),
    of_transfer("simulated_time", "Simulated", "ms", TIME.max(), grid="simulated"),
    of_transfer("simulated_shallow_time", "Simulated", "ms", TIME.max(), grid="simulated_shallow"),
    of_parallel("page_time", "All complete", "ms", 1e3 * (END_S.max() - pl.col("start_s").min())),
    of_parallel("object_time", "Mean of the objects", "ms", TIME.mean()),
    of_parallel("first_flights", "First flights together", "segments", pl.col("first_flight_segments").sum()),
    of_parallel("retransmitted", "Retransmitted segments", "segments", pl.col("retransmissions").sum()),
    k.Observed("mouse_time", "Completion time", "ms", TIME.median(), MOUSE, digits=0, grid="mice"),
    k.Observed(
        "elephant_share",
        "The long download's share",
        "percent",
        pl.col("share").max(),
        records=elephants,
        grid="mice",
        at={"flows": [1]},
    ),
)


def build(grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The small queue; the same bytes over all connections; no application for a long download that is not there."""
    if grid in ("shallow", "simulated_shallow"):
        return scenario.replace("network.links[0].queue", f"{SMALL_QUEUE}p")
    if grid == "parallel":
        return scenario.replace("application.object.size", f"{TOTAL_KB // labels['flows']}kB")
    if grid == "mice" and not labels["flows"]:
        return scenario.replace("application", scenario.to_dict()["application"][:1])
    return scenario


STUDY = k.DeclaredStudy(__file__, QUANTITIES, claims, tables, figures, answer, build)

"""Tables, figures and the answer."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from firstflight.analysis.table import Table
from firstflight.report.figure import Figure
from firstflight.studies.kernel import Quantities, along, extreme, heat_map, lines, named, panels, scatter, table, value
from firstflight.studies.thalheim.claims import (
    AMPLE_QUEUE,
    BASE,
    COORDINATES,
    DELAY_MS,
    MANY,
    MOUSE_KB,
    PROPOSED,
    SMALL_QUEUE,
    TOTAL_KB,
    closed_form_ms,
    gain,
    relative,
    talk_ms,
)

_ONE_PATH = "10 Mbit/s, 50 ms one way."
_RELATIVE = f"Time relative to IW {BASE}"


def tables(q: Quantities) -> Sequence[Table]:
    """Relative and plain times, next to formulas and engines, and traffic that shares the link."""
    emulated = "simulated_time" in q
    times = [named(q.time, "median_time", "Median" if emulated else "Time", "ms")]
    if emulated:
        between = q.upper_quartile - q.lower_quartile
        times += [named(between, "quartile_range", "Between the quartiles", "ms", 2), q.disturbed]
    small_queue = [
        named(relative(q.shallow_time), "relative_time", _RELATIVE, "percent", 0),
        named(100 * (q.shallow_time / _at_delay(q.time) - 1), "longer", "Longer", "percent", 0),
        q.again,
    ]
    formulas = {"talk": ("The talk's words", talk_ms, 0), "closed_form": ("Closed form", closed_form_ms, 1)}
    found = [
        table(
            "relative",
            f"Transfer time relative to an initial window of {BASE}",
            "In percent: below 100 is a gain. The talk's figure in numbers; delay one way, ample queue.",
            [named(relative(q.time), "relative_time", "Time", "percent", 0)],
            "iw",
        ),
        table(
            "times",
            "Transfer times",
            "From the opening of the connection to the last byte."
            + (" Over the transfers that no stall of the machine disturbed." if emulated else ""),
            times,
            "iw",
            notes=_mostly_disturbed(q),
        ),
        table(
            "formula",
            "Formulas against measured times",
            "Difference of a formula's time from the measured one. The talk's formula, from its words: windows that "
            "double each round trip, and one for the handshake. The closed form of docs/model.md: the same, plus the "
            "transmission time of the bytes.",
            [
                named(100 * (of(q.time) / q.time - 1), name, title, "percent", digits)
                for name, (title, of, digits) in formulas.items()
            ],
            "iw",
        ),
        table(
            "shallow",
            f"The same over a queue of {SMALL_QUEUE} packets",
            f"{DELAY_MS} ms one way. Longer: than over the ample queue.",
            small_queue,
            "iw",
        ),
        table(
            "parallel",
            f"{TOTAL_KB} kB over connections that open together",
            f"{_ONE_PATH} Medians; `flows` connections share the bytes.",
            [q.page_time, q.object_time, q.first_flights, q.retransmitted],
            order=("queue_packets", "iw", "flows"),
        ),
        table(
            "mice",
            f"Requests of {MOUSE_KB} kB next to a long download",
            f"{_ONE_PATH} A queue of 83 packets; medians. `flows`: number of downloads, started ten seconds before. "
            "Share: of the bytes that the link transmitted while the server sent the short response.",
            [q.mouse_time, q.elephant_share.reindex_like(q.mouse_time["flows"])],
            order=("iw", "flows"),
        ),
    ]
    if emulated:
        found.insert(2, _engines(q))
    return found


def _at_delay(times: xr.DataArray) -> xr.DataArray:
    return times.sel(delay_ms=DELAY_MS, drop=True)


def _mostly_disturbed(q: Quantities) -> Sequence[str]:
    disturbed, count = (of.sel(draw=0).stack(at=COORDINATES) for of in (q.disturbed, q.transfers))
    mostly = disturbed.where(2 * disturbed > count, drop=True)
    return [
        f"{rate} Mbit/s, {delay} ms, {size} kB, IW {iw}: {left_out:.0f} of {of:.0f} transfers were disturbed; the "
        "figure rests on the others."
        for (rate, size, delay, iw), left_out, of in zip(
            mostly["at"].values, mostly.values, count.sel(at=mostly["at"]).values, strict=True
        )
    ]


def _engines(q: Quantities) -> Table:
    """The emulated median next to the simulated time of the same cell."""
    simulated, measured = (
        along("experiment", {"transfer": transfer, "shallow": shallow.expand_dims(delay_ms=[DELAY_MS])})
        for transfer, shallow in ((q.simulated_time, q.simulated_shallow_time), (q.time, q.shallow_time))
    )
    return table(
        "engines",
        "The kernel's times against the simulator's",
        "Simulated: the same cell in virtual time. Difference: of the kernel's median from it.",
        [
            named(simulated.where(measured.notnull()), "simulated", "Simulated", "ms"),
            named(100 * (measured / simulated - 1), "difference", "Kernel against simulator", "percent", 2),
        ],
        "iw",
        order=("experiment", *COORDINATES),
    )


def figures(q: Quantities) -> Sequence[Figure | None]:
    """The talk's figure, one per rate; an overview; formulas; traffic that shares the link."""
    emulated = "simulated_time" in q
    of_kernel = " Medians of transfers without host stalls, with their 95% CIs, next to the simulator's."
    caption = (
        f"Time of the whole download by initial window in segments, in percent of that with {BASE}. Rows: size. "
        f"Columns: one-way delay. {of_kernel if emulated else f'Green: faster than with {BASE}; red: slower.'} "
        f"Ringed, with values: {PROPOSED} segments."
    )
    saved = named(gain(q.time).sel(iw=PROPOSED), "overview", "Saved", "percent", 0)
    found = [
        heat_map(
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
        times = along("engine", {"kernel": times, "simulator": relative(q.simulated_time)})
    found += [
        panels(
            named(times.sel(rate_mbit=rate), f"relative_{rate}", _RELATIVE, "percent", 0),
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
    shares = along("formula", {name: of(q.time) / q.time for name, of in formulas.items()})
    ample, base = _at_delay(q.time), f"{BASE} segments and an ample queue"
    queues = {"ample queue": relative(ample), f"queue of {SMALL_QUEUE} packets": relative(q.shallow_time, ample)}
    small_queue = along("queue", queues).where(q.shallow_time.notnull())
    how = "Medians with their 95% CIs, on 10 Mbit/s and 50 ms one way"
    return [
        *found,
        scatter(
            named(shares, "formulas", "Formula / measured", "", 2),
            q.time,
            "Two formulas against the measured times",
            "One point per transfer: the formula's time divided by the measured one. The talk's words: windows that "
            "double each round trip, at any link rate. The closed form adds the transmission time of the bytes. "
            f"Measured {'on the kernel' if emulated else 'in the simulator'}.",
            "formula",
            "rate_mbit",
            1,
        ),
        panels(
            named(small_queue, "small_queue", _RELATIVE, "percent", 0),
            f"The same over a queue of {SMALL_QUEUE} packets",
            f"Transfer time in percent of that with {base}; {DELAY_MS} ms one way. The axis of times is logarithmic.",
            "iw",
            "size_kb",
            "rate_mbit",
            100,
            "queue",
            log=True,
        ),
        lines(
            named(q.page_time, "parallel", "Until all are complete", "ms"),
            f"{TOTAL_KB} kB over one, two and six connections",
            f"Time until all connections are complete; they open together and share the bytes. {how}.",
            "iw",
            "flows",
            "queue_packets",
        ),
        lines(
            named(q.mouse_time, "mice", "Median time", "ms"),
            f"Requests of {MOUSE_KB} kB alone and next to a long download",
            f"{how}, a queue of 83 packets.",
            "iw",
            "flows",
        ),
    ]


def answer(q: Quantities) -> Sequence[str]:
    """The gain of the proposed window, parallel connections, and the effect of a long flow."""
    gains, mice = gain(q.time).sel(iw=PROPOSED, draw=0), q.mouse_time.sel(iw=PROPOSED)
    most, at = float(gains.max()), "{size_kb} kB at {rate_mbit} Mbit/s and {delay_ms} ms".format(**extreme(gains))

    def page(queue: int, flows: int, iw: int) -> str:
        return f"{value(q.page_time.sel(queue_packets=queue, flows=flows, iw=iw)):.0f} ms"

    return [
        f"IW {PROPOSED} instead of {BASE} saves {float(gains.min()):.0f} to {most:.0f}% of the transfer time, "
        f"{float(gains.mean()):.0f}% on average, and most ({most:.0f}%) for {at} one way.",
        f"{TOTAL_KB} kB take {page(AMPLE_QUEUE, 1, BASE)} on one connection with IW {BASE}, "
        f"{page(AMPLE_QUEUE, 1, PROPOSED)} with {PROPOSED}, and {page(AMPLE_QUEUE, MANY, BASE)} on {MANY} connections "
        f"with IW {BASE}; over a queue of {SMALL_QUEUE} packets {MANY} connections take "
        f"{page(SMALL_QUEUE, MANY, BASE)} with IW {BASE} and {page(SMALL_QUEUE, MANY, PROPOSED)} with {PROPOSED}.",
        f"A long download keeps {value(q.elephant_share.sel(flows=1, iw=PROPOSED)):.0f}% of the link while "
        f"{MOUSE_KB} kB are sent with IW {PROPOSED}, which take {value(mice.sel(flows=1)):.0f} ms next to it and "
        f"{value(mice.sel(flows=0)):.0f} ms alone.",
    ]

"""From observed connections to a population: one user per connection, path and size as they were seen together.

Nothing is fitted to a law: a row of the population is a row of the data, so that any dependence there (long
RTTs with low rates, say) is kept here. A value that the data lacks is left null; `sensitivity` gives the
assumption for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from firstflight.advise.assume import Assumed
from firstflight.advise.deploy import LINUX_DEFAULT
from firstflight.errors import RequestError
from firstflight.observe import Observation
from firstflight.observe.observation import TLS
from firstflight.observe.plain import IGNORED
from firstflight.observe.tables import MSS_BYTES
from firstflight.scenario.paths_table import MOST_EXCHANGES
from firstflight.scenario.tls import segments, server_flight

# The limits of a path in the simulator.
_RTT_S = (1e-5, 30.0)
_DOWN_BPS = (1e3, 1e11)
_MOST_OF_LAW = 20.0
"""Equal shares of all segments with which one connection counts at most in the law of losses."""
SHOWING_BYTES = 64 * MSS_BYTES
"""Of a response at least, for its mean rate to say more of the line than of slow start: from 10 segments, 64 take three
round trips."""
CHAIN = "tranco-2026"
"""The certificates of a handshake of which the data shows no bytes."""
ENOUGH_SHOWN = 200
"""Minimum number of users with such a response, whose link rates are then used for the others."""


@dataclass(frozen=True)
class CurrentWindow:
    """`window`: the most frequent one; `share_percent` of `flows`, those that show one; `how`: in words."""

    window: int
    share_percent: float
    flows: int
    how: str

    @property
    def known(self) -> bool:
        """Whether the data shows the window."""
        return self.flows > 0


def current_window(first: pl.DataFrame) -> CurrentWindow:
    """Of the first response of each connection: the format's value, else the first flights, else Linux's default.

    `first`: columns `initial_window_segments`, `first_flight_segments`, `segments_sent`, `retransmissions`,
    `tls_bytes`, `tls_flight_bytes`, `tls_exchanges`, `tls_answer_flight_segments`, null where unknown. A first flight
    shows the window only where more segments followed it: a short response does not fill it. Over TLS it is the
    handshake's, which shows the window if it is longer. After one of at most half of the window Linux leaves it as it
    was, and the response's flight shows it.
    """
    windows = first["initial_window_segments"].drop_nulls()
    if windows.len():
        return _most_frequent(windows, "from the data")
    sent = pl.col("segments_sent") - pl.col("retransmissions").fill_null(0)
    handshake = (pl.col("tls_bytes") / MSS_BYTES).ceil()
    after_handshake = pl.when(2 * handshake <= pl.col("tls_answer_flight_segments")).then("tls_answer_flight_segments")
    full = pl.when(pl.col("tls_exchanges") == 1).then((pl.col("tls_flight_bytes") / MSS_BYTES).ceil())
    fills = full > pl.col("first_flight_segments")
    flight = pl.when(pl.col("tls_bytes").is_null() | fills).then("first_flight_segments").otherwise(after_handshake)
    sent = pl.when(fills).then(full).otherwise(sent)
    filled = first.select(flight=flight, sent=sent).filter(pl.col("flight") > 0, pl.col("sent") > pl.col("flight"))
    if filled.height:
        return _most_frequent(filled["flight"], "first flights of longer responses")
    return CurrentWindow(LINUX_DEFAULT, 0.0, 0, "assumed: Linux's default since 2.6.39; the data does not show it")


def _most_frequent(windows: pl.Series, how: str) -> CurrentWindow:
    counts = windows.cast(pl.Int64).value_counts().sort(["count", windows.name], descending=[True, False])
    window, count = counts.row(0)
    return CurrentWindow(int(window), 100 * count / windows.len(), windows.len(), how)


@dataclass(frozen=True)
class FittedPopulation:
    """`rows`: one user a row: `client` (its number in the observation), `rtt_s`, `max_rtt_s`, `down_bps`, `up_bps`,
    `buffer_s`, `loss`, `weight`, `bytes`, `segments` (of the response), `subnet`, lower bounds of the path
    (`min_down_bps`, `min_buffer_bytes`), and of a handshake of TLS before the response `tls_bytes`,
    `tls_exchanges` and `tls_resumed`; null where unknown or without a handshake. `read`: connections in
    the file; `left_out`: (how many, why); `usable`: connections with the required data, of which `rows` is a sample
    if it has fewer; `loss_seen_percent`: share of segments retransmitted, None where the data lacks it;
    `sizes`: the application whose sizes are assumed, None where the data has them; `given`: the operator's
    knowledge. `rows` also states for each user whether a response was long enough to show its line (`shows_line`).
    """

    rows: pl.DataFrame
    current: CurrentWindow
    read: int
    left_out: tuple[tuple[int, str], ...]
    usable: int
    loss_seen_percent: float | None
    sizes: str | None = None
    given: Assumed = field(default_factory=Assumed)
    assumed_rtt_percent: float = 0.0
    assumed_tls_percent: float = 0.0

    @property
    def shows_lines(self) -> bool:
        """Whether enough users had a response that bounds the rate of their lines, to speak for the others."""
        return int(self.rows["shows_line"].sum()) >= ENOUGH_SHOWN

    def known(self, column: str) -> int:
        """The number of users for whom the data has this value."""
        return self.rows.height - self.rows[column].null_count()

    def assumed_percent(self, column: str) -> float:
        """The number of users for whom this is assumed, because the data lacks it."""
        if (column == "bytes" and self.sizes is not None) or (column == "down_bps" and self.given.paths is not None):
            return 100.0
        if column == "rtt_s":
            return self.assumed_rtt_percent
        if column == "tls_bytes":
            return self.assumed_tls_percent
        return 100 * (1 - self.known(column) / self.rows.height)

    @property
    def has_handshakes(self) -> bool:
        """Whether a handshake of TLS was seen on any connection."""
        return self.known("tls_bytes") > 0

    @property
    def first_flight(self) -> str:
        """A sentence on users whose handshake of TLS overflows the current window; empty for none."""
        seen = self.rows.filter(segments(pl.col("tls_bytes"), MSS_BYTES) > self.current.window)
        if seen.is_empty():
            return ""
        share = 100 * float(seen["weight"].sum()) / float(self.rows["weight"].sum())
        return (
            f"The first flight is the TLS handshake: that of {share:.3g}% of the users (median "
            f"{float(seen['tls_bytes'].median()) / 1e3:.3g} kB) does not fit into {self.current.window} segments."  # type: ignore[arg-type]
        )

    @property
    def assumed(self) -> tuple[str, ...]:
        """The assumed parts of paths and sizes, and the number of users of each."""
        parts = [f"the {what} of {share:.3g}% of the users" for what, share in self.assumed_shares.items()]
        return (*parts, *self.given.texts)

    @property
    def assumed_shares(self) -> dict[str, float]:
        """Of how many users, in percent, each assumed part of path and size is."""
        names = {"rtt_s": "RTT", "down_bps": "link rate", "bytes": "response size", "tls_bytes": "TLS handshake size"}
        shares = {what: self.assumed_percent(column) for column, what in names.items()}
        return {what: share for what, share in shares.items() if share}


def fit(observed: Observation, users: int, seed: int) -> FittedPopulation:
    """The population of at most `users` of the observed connections; a larger number of them is sampled by `seed`.

    RequestError if none has the required data. For the number that statistics need, see `analysis.ab.contrast`.
    """
    name = observed.source.path
    frame, left_out = _usable(observed)
    if frame.is_empty():
        reasons = "; ".join(f"{count:,} {why}" for count, why in left_out) or "it holds no connection"
        without = observed.transfers.is_empty() and not observed.users.is_empty()
        if observed.users["rtt_s"].null_count() == observed.users.height and not without:
            instead = "; assume them, such as --assume paths=uk-2023+30ms or rtt=50ms"
            instead += "".join(f" ({note})" for note in observed.source.notes if "to log it" in note)
            raise RequestError(f"{name} has no RTTs{instead}")
        instead = (
            "; add --assume-sizes web-search to assume the sizes of that application on these paths" if without else ""
        )
        reasons += "".join(f"; {note}" for note in observed.source.notes if note.startswith(IGNORED))
        raise RequestError(f"{name} has no connection to judge by, which needs an RTT and a size: {reasons}{instead}")
    window = current_window(frame)
    loss, seen = _loss(frame)
    frame = frame.with_columns(loss=loss)
    usable = frame.height
    if usable > users:
        frame = frame.sample(users, seed=seed).sort("client")
    rows = frame.select(
        "client",
        "rtt_s",
        "max_rtt_s",
        "down_bps",
        "up_bps",
        (pl.col("buffer_bytes") * 8 / pl.col("down_bps")).alias("buffer_s"),
        "loss",
        pl.col("weight").fill_null(1.0),
        "bytes",
        "segments",
        "subnet",
        "min_down_bps",
        "min_buffer_bytes",
        "shows_line",
        *_handshake(),
        "tls_resumed",
    )
    assumed_tls = 100 * float(rows["tls_assumed"].mean() or 0.0)  # type: ignore[arg-type]
    rows = rows.drop("tls_assumed")
    return FittedPopulation(
        rows, window, observed.users.height, left_out, usable, seen, assumed_tls_percent=assumed_tls
    )


def _handshake() -> Iterator[pl.Expr]:
    """The server's flight and the exchanges of a handshake of TLS. If the data lacks the bytes, they are those of a
    chain of `CHAIN` or, if it was resumed, of none, and its time shows the exchanges.
    """
    bytes_, time_s = pl.coalesce("tls_flight_bytes", "tls_bytes"), pl.col("tls_time_s")
    resumed = pl.col("tls_resumed").fill_null(0) == 1
    flight = pl.when(resumed).then(server_flight(None)).otherwise(server_flight(CHAIN))
    seen = pl.any_horizontal(pl.col(name).is_not_null() for name in TLS)
    lasted = (time_s / pl.col("rtt_s")).round().cast(pl.Int64)
    yield pl.when(seen).then(pl.coalesce(bytes_, flight)).alias("tls_bytes")
    exchanges = pl.coalesce("tls_exchanges", pl.when(bytes_.is_null()).then(lasted), 1).clip(1, MOST_EXCHANGES)
    yield pl.when(seen).then(exchanges).alias("tls_exchanges")
    yield (seen & bytes_.is_null()).alias("tls_assumed")


def first_responses(observed: Observation) -> pl.DataFrame:
    """One row per connection, with its path, its first response and its handshake of TLS; null where unknown."""
    first = observed.transfers.sort(
        "client", pl.col("object").fill_null(0), pl.col("start_s"), maintain_order=True
    ).unique("client", keep="first", maintain_order=True)
    kept = [
        "client",
        "object",
        "bytes",
        "completed",
        "completion_time_s",
        "segments_sent",
        "retransmissions",
        "first_flight_segments",
        "initial_window_segments",
    ]
    handshakes = observed.handshakes.select("client", *(pl.col(column).alias(name) for name, column in TLS.items()))
    return (
        observed.users.drop("replicate", "row")
        .join(first.select(kept), on="client", how="left", maintain_order="left")
        .join(handshakes, on="client", how="left", maintain_order="left")
    )


def _usable(observed: Observation) -> tuple[pl.DataFrame, tuple[tuple[int, str], ...]]:
    """Connections with the data that a user of the simulator needs, each with its first response; and the numbers that
    lack each part.

    The initial window acts on the first response of a connection; later ones are left out (after a pause they may begin
    with it again, but when is not in the data).
    """
    longest = observed.transfers.group_by("client").agg(pl.col("bytes").max().alias("longest"))
    frame = (
        first_responses(observed)
        .join(observed.bounds, on="client", how="left", maintain_order="left")
        .join(longest, on="client", how="left", maintain_order="left")
        .with_columns(shows_line=pl.col("min_down_bps").is_not_null() & (pl.col("longest") >= SHOWING_BYTES))
    )
    left_out = []
    for why, good in (
        ("whose first response is not in the data", pl.col("object").fill_null(0) == 0),
        ("without a response of at least one byte", pl.col("bytes") > 0),
        ("without an RTT", pl.col("rtt_s").is_not_nan() & pl.col("rtt_s").is_not_null()),
        (f"with an RTT below {1e3 * _RTT_S[0]:g} ms or above {_RTT_S[1]:g} s", pl.col("rtt_s").is_between(*_RTT_S)),
        (
            "with a rate below 1 kbit/s or above 100 Gbit/s",
            pl.col("down_bps").is_null() | pl.col("down_bps").is_between(*_DOWN_BPS),
        ),
    ):
        before = frame.height
        frame = frame.filter(good)
        if frame.height < before:
            left_out.append((before - frame.height, why))
    # A window below the MSS of a full segment is not distinguished: sizes are in segments of Ethernet with timestamps.
    return frame.with_columns((pl.col("bytes") / 1448).ceil().alias("segments")), tuple(left_out)


def _loss(frame: pl.DataFrame) -> tuple[pl.Series, float | None]:
    """Each user's probability of loss, null where nothing is known; and the share of segments retransmitted, percent.

    A short connection shows little about its loss: no retransmission of 5 segments is not 0%, one of 5 is not 20%.
    So each is drawn towards that of all by an empirical Bayes estimate (beta-binomial, spread by moments).
    """
    loss = frame["loss"]
    counted = frame["segments_sent"].is_not_null() & frame["retransmissions"].is_not_null()
    if not counted.any():
        known = loss.drop_nulls().to_numpy()
        return loss, 100 * float(known.mean()) if len(known) else None
    sent = frame["segments_sent"].fill_null(0).to_numpy().astype(np.float64)
    again = np.where(counted.to_numpy(), frame["retransmissions"].fill_null(0).to_numpy(), 0).astype(np.float64)
    sent = np.where(counted.to_numpy(), sent, 0)
    shrunk = pl.Series("loss", shrunken(again, sent))
    return pl.select(pl.coalesce(loss, shrunk)).to_series(), 100 * float(again.sum() / max(sent.sum(), 1))


def shrunken(events: npt.NDArray[np.float64], trials: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Posterior means of binomial shares under a beta law with the moments of the shares themselves; shape as given.

    All equal to the overall share where they do not spread more than chance makes them. In the law that all share no
    connection counts with more than `_MOST_OF_LAW` equal parts, so that one of many gigabytes does not speak for all.
    """
    if trials.sum() == 0:
        return np.zeros(len(trials))
    weights = _bounded(trials, _MOST_OF_LAW / len(trials))
    n = weights.sum()
    share = np.divide(events, trials, out=np.zeros(len(trials)), where=trials > 0)
    overall = float((weights * share).sum() / n)
    share = np.where(trials > 0, share, overall)
    chance = overall * (1 - overall)
    spread = float((weights * (share - overall) ** 2).sum()) - (np.count_nonzero(weights) - 1) * chance
    between = spread / (n - float((weights**2).sum()) / n) if len(weights) > 1 else 0.0
    if between <= 0 or chance == 0:
        return np.full(len(trials), overall)
    # How many segments of prior knowledge the law of all users is worth.
    prior = max(chance / between - 1, 0.0)
    shrunk: npt.NDArray[np.float64] = share if prior == 0 else (events + prior * overall) / (trials + prior)
    return shrunk


def _bounded(values: npt.NDArray[np.float64], share: float) -> npt.NDArray[np.float64]:
    """`values`, none of them more than `share` of their new sum."""
    bounded = values
    for _ in range(20):  # each round is closer by a factor of 20 at least
        bounded = np.minimum(values, share * bounded.sum())
    return bounded

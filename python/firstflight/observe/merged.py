"""Connections whose rows come in pieces: one row is kept of each, so memory grows with them and not with the file."""

from collections.abc import Callable

import polars as pl

from firstflight.observe.room import Room

# In an additional table of the connections: the number of the row that it belongs to.
OF = "client"
# Rows that may wait to be merged; with more connections than that, as many as there are, so that each row is merged a
# few times at most.
_WAITING = 1 << 16

Merge = Callable[[pl.DataFrame], pl.Series]


class Merged:
    """Rows of connections, merged as they come. `same` gives for rows in the order of their appearance the connection
    of each, from 0 in the order of appearance, and `columns` the values kept from the rows of one: both must be able to
    continue from their own results.
    """

    def __init__(self, same: Merge, columns: dict[str, pl.Expr], room: Room) -> None:
        self._same = same
        self._columns = columns
        self._room = room
        self._rows: list[pl.DataFrame] = []
        self._merged = 0
        self._height = 0
        self._settled: dict[str, list[pl.DataFrame]] = {}
        self._waiting: dict[str, list[pl.DataFrame]] = {}

    def add(self, rows: pl.DataFrame, **beside: pl.DataFrame) -> None:
        """More rows, and additional tables whose `OF` says to which of these rows a row belongs, from 0."""
        for name, frame in beside.items():
            of = (pl.col(OF) + self._height).cast(pl.UInt32)
            self._waiting.setdefault(name, []).append(frame.with_columns(of))
        self._rows.append(rows)
        self._height += rows.height
        self._room.add(rows, *beside.values())
        if self._height - self._merged > max(_WAITING, self._merged):
            self._merge()

    def done(self) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
        """The connections, a row each in the order of their appearance, and the additional tables, whose `OF` is the
        number of the connection; all of them empty without rows.
        """
        if not self._rows:
            return pl.DataFrame(), {}
        self._merge()
        return self._rows[0], {name: pl.concat(frames) for name, frames in self._settled.items()}

    def _merge(self) -> None:
        rows = pl.concat(self._rows)
        number = self._same(rows).cast(pl.UInt32)
        grouped = rows.with_columns(number.alias("number")).group_by("number").agg(**self._columns).sort("number")
        # Two connections that were kept apart may turn out to be one, and then the numbers of others move.
        if number.head(self._merged).n_unique() < self._merged:
            for frames in self._settled.values():
                frames[:] = [_numbered(frame, number) for frame in frames]
        for name, frames in self._waiting.items():
            self._settled.setdefault(name, []).extend(_numbered(frame, number) for frame in frames)
        self._waiting.clear()
        # A copy: a string that is merely picked holds on to all the text that it was picked from.
        texts = [name for name, dtype in rows.schema.items() if dtype == pl.String]
        anew = [pl.concat_str(name, pl.lit("")).alias(name) for name in texts]
        self._rows = [grouped.select(rows.columns).with_columns(anew)]
        self._merged = self._height = grouped.height
        self._room.keep_only(*self._rows, *(frame for frames in self._settled.values() for frame in frames))


def in_order(group: pl.Series, order: pl.Series) -> pl.Series:
    """For rows of groups, given as they stand: numbers of the groups in the order of `order`'s least in each, from 0;
    themselves in that order.
    """
    groups = pl.DataFrame({"group": group, "order": order}).with_columns(first=pl.col("order").min().over("group"))
    return groups.sort("order").select(pl.col("first").rank("dense").cast(pl.Int64) - 1).to_series()


def _numbered(frame: pl.DataFrame, number: pl.Series) -> pl.DataFrame:
    return frame.with_columns(number.gather(frame[OF]).alias(OF))

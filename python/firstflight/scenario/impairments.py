"""Impairments of packets on a link. Another impairment is a class here and a line in `IMPAIRMENTS`."""

from abc import ABC, abstractmethod
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

from firstflight.scenario.table import Table
from firstflight.scenario.units import Duration


class Impairment(Table, ABC):
    """An impairment of packets between their transmission and the far end of a link."""

    @abstractmethod
    def plan(self) -> dict[str, Any]:
        """The impairment as the native module reads it."""


class Jitter(Impairment):
    """A separate delay for each packet beyond the propagation delay: `"uniform"` from 0 to twice the mean, or
    `"exponential"`.

    With `keep_order` a packet waits for those before it, as where a link layer retransmits and delivers in order.
    """

    mean: Duration
    distribution: Literal["uniform", "exponential"] = "uniform"
    keep_order: bool = True

    def plan(self) -> dict[str, Any]:
        """The impairment as the native module reads it."""
        own = {"distribution": self.distribution, "mean_ns": int(self.mean), "keeps_order": self.keep_order}
        return {"kind": "jitter"} | own


class Reordering(Impairment):
    """A `share` of packets comes later by `delay`, and others overtake them."""

    share: float = Field(ge=0, le=1)
    delay: Duration

    def plan(self) -> dict[str, Any]:
        """The impairment as the native module reads it."""
        return {"kind": "reordering", "share": self.share, "delay_ns": int(self.delay)}


class Duplication(Impairment):
    """A `share` of packets comes twice, the copy later by `delay`."""

    share: float = Field(ge=0, le=1)
    delay: Duration = Duration("0s")

    def plan(self) -> dict[str, Any]:
        """The impairment as the native module reads it."""
        return {"kind": "duplication", "share": self.share, "delay_ns": int(self.delay)}


class Wake(Impairment):
    """The far end sleeps `after` a time without packets, and takes the one that wakes it later by `delay`; those behind
    wait for that one.
    """

    delay: Duration
    after: Duration = Duration("5ms")

    def plan(self) -> dict[str, Any]:
        """The impairment as the native module reads it."""
        return {"kind": "wake", "delay_ns": int(self.delay), "after_ns": int(self.after)}


def _reader(key: str, written: Any) -> BeforeValidator:
    """Of a table, or of the value of its key `key` alone; `written`: the forms that a scenario may have there."""

    def read(data: Any) -> Any:
        return data if data is None or isinstance(data, dict | Table) else {key: data}

    return BeforeValidator(read, json_schema_input_type=written)


_WRITTEN = PlainSerializer(lambda impairment: None if impairment is None else impairment.model_dump(exclude_none=True))

AnyJitter = Annotated[Jitter | None, _reader("mean", Duration | Jitter | None), _WRITTEN]
AnyReordering = Annotated[Reordering | None, _WRITTEN]
AnyDuplication = Annotated[Duplication | None, _reader("share", float | Duplication | None), _WRITTEN]
AnyWake = Annotated[Wake | None, _reader("delay", Duration | Wake | None), _WRITTEN]

# The keys of a link, in the order in which they befall a packet.
IMPAIRMENTS = ("jitter", "reordering", "duplication", "wake")

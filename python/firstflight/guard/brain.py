"""The guard's decisions: pure functions of finished connections and the time, the same on a host and in rehearsal."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from ipaddress import ip_network
from typing import Any, Literal

from firstflight.errors import RequestError
from firstflight.guard.groups import Groups, Node
from firstflight.guard.outcome import Arm, Network, Outcome
from firstflight.guard.policy import RFC6928_SEGMENTS, LearnedWindow, Policy
from firstflight.guard.stop_rule import Events, StopAnswer, StopRule, StopVerdict, Trial

# RFC 3390: min(4 MSS, max(2 MSS, 4380 bytes)) is three segments at 1460 bytes.
RFC3390_SEGMENTS = 3


@dataclass(frozen=True, slots=True)
class WindowDecision:
    """The window of a prefix from now on; None removes ours. `evidence` holds the data for the decision."""

    prefix: Network
    initial_window: int | None
    reason: str
    evidence: dict[str, Any]
    share: float = 1.0
    """Part of the prefix's connections that get it: below 1 where connections are drawn."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The operator's settings."""

    policy: Policy
    rule: StopRule = field(default_factory=StopRule)
    shares: tuple[float, ...] = (0.5, 0.9)
    """Shares of the raised arm, one after the other as harm is excluded; the last one leaves a control arm for good."""
    draw: Literal["prefix", "connection"] = "prefix"
    """The unit of the draw of an arm: a prefix, again in each period, or a connection, by the host with
    `WindowDecision.share`.
    """
    fallback: Literal["rfc6928", "rfc3390"] = "rfc6928"
    """The window of a group after a stop: the system's ten segments, or RFC 3390's three."""
    hold_s: float = 7 * 86400.0
    """A group that was stopped is tried again after this time."""
    silence_s: float = 3600.0
    """Without a finished connection for this long nothing stays raised."""
    most_prefixes: int = 65_536
    """Prefixes known at most; beyond that, the one seen longest ago makes room, in a network that has many."""
    secret: bytes = b""
    """Makes the draw of arms unpredictable for clients."""

    def __post_init__(self) -> None:
        if not self.shares or not all(0 < share < 1 for share in self.shares):
            raise RequestError(f"the shares of the raised arm are {self.shares}; give each between 0 and 1")


@dataclass(slots=True)
class NetworkGroup:
    """The state of networks that are judged together. Times are the brain's."""

    trial: Trial
    estimate: LearnedWindow = field(default_factory=LearnedWindow)
    stage: int = 0
    held_until: float | None = None
    """After a stop."""
    evidence: dict[str, Any] = field(default_factory=dict)
    """Of the last verdict."""
    seen_at: float = 0.0
    parts: dict[str, Events] = field(default_factory=dict)
    """Events of this stage by network within the group."""

    def is_held(self, at: float) -> bool:
        """Whether nothing is raised after a stop."""
        return self.held_until is not None and at < self.held_until


@dataclass(slots=True)
class _Unit:
    """A prefix whose arm is drawn."""

    name: bytes
    chain: tuple[Node, ...]
    group: str
    seen_at: float
    arm: Arm = "control"
    tried_since: int | None = None
    """First period of the trial that goes on; None while neither arm is raised."""
    window: int | None = None
    share: float = 1.0

    def names(self) -> list[str]:
        """Its networks, smallest first."""
        return [node.name for node in self.chain]


class Brain:
    """Takes finished connections in order of time and gives decisions. It has no clock and touches nothing."""

    def __init__(self, settings: Settings, groups: Groups | None = None) -> None:
        self._settings = settings
        self._groups = groups or Groups()
        self._states: dict[str, NetworkGroup] = {}
        self._remembered: dict[str, NetworkGroup] = {}
        """Of an earlier process, until a connection of the group finishes."""
        self._units: dict[Network, _Unit] = {}
        self._by_network: dict[str, OrderedDict[Network, None]] = {}
        """The prefixes of each largest network, the one seen longest ago first."""
        self._period = -1
        self._last_outcome = 0.0
        self._decisions: dict[Network, WindowDecision] = {}

    def decide(
        self, outcomes: Iterable[Outcome], now: float | None = None, *, monitored: bool = True
    ) -> list[WindowDecision]:
        """Changes that follow from connections that finished by `now` (the last one's time if None).

        To be called at least once per period, also without outcomes. With `monitored` false everything falls back.
        """
        self._decisions = {}
        for outcome in outcomes:
            self._advance(outcome.at)
            if outcome.is_finished:
                self._last_outcome = max(self._last_outcome, outcome.at)
            elif outcome.prefix not in self._units:
                continue
            self._take(outcome)
        if now is not None:
            self._advance(now)
            if now - self._last_outcome > self._settings.silence_s:
                self._release(f"no connection finished for {self._settings.silence_s:g} s")
        if not monitored:
            self._release("monitoring stopped")
        return list(self._decisions.values())

    def group_of(self, prefix: Network) -> str | None:
        """Name of the group that a prefix is judged with; None for one that was not seen lately."""
        unit = self._units.get(prefix)
        return None if unit is None else unit.group

    def e_values(self) -> dict[str, float]:
        """Evidence of harm by group."""
        return {name: state.trial.e_value for name, state in self._states.items()}

    def verdicts(self) -> dict[str, StopVerdict]:
        """The state of each group that is or was tried, by name."""
        return {name: state.trial.verdict() for name, state in self._states.items()}

    def states(self) -> dict[str, NetworkGroup]:
        """The state of each group, by name, to be stored."""
        return self._remembered | self._states

    def restore(self, states: dict[str, NetworkGroup]) -> None:
        """Begin with the state of an earlier process."""
        self._remembered = states

    def _take(self, outcome: Outcome) -> None:
        unit = self._units.get(outcome.prefix) or self._new_unit(outcome)
        if unit is None:
            return
        unit.seen_at = outcome.at
        self._by_network[unit.chain[-1].name].move_to_end(outcome.prefix)
        for node in unit.chain:
            node.connections += 1
        group = self._states[unit.group]
        group.seen_at = outcome.at
        self._settings.policy.learn(group.estimate, outcome)
        # Connections that were opened before the first draw are all control's; they close in that period.
        drawn = unit.tried_since is not None and unit.tried_since < self._period
        if not drawn or group.is_held(outcome.at):
            return
        parts = unit.names()[: unit.names().index(unit.group)]
        # A /48 within the group is one client: a site that has it has 256 prefixes of the usual length (RFC 6177).
        events = group.trial.count(outcome, parts[0] if parts and outcome.prefix.version == 6 else None)
        if any(events):
            for part in parts:
                before = group.parts.get(part, Events())
                group.parts[part] = Events(*(old + new for old, new in zip(before, events, strict=True)))
            self._judge(unit.group, group, outcome.at)

    def _judge(self, name: str, group: NetworkGroup, at: float) -> None:
        verdict = group.trial.verdict()
        group.evidence = asdict(verdict)
        if verdict.answer is StopAnswer.STOP:
            stopped = self._source(group) or name
            held = (
                group if stopped == name else self._states.setdefault(stopped, NetworkGroup(self._trial(), seen_at=at))
            )
            held.held_until, held.evidence = at + self._settings.hold_s, group.evidence
            for prefix, unit in self._units.items():
                if unit.group == name and stopped in unit.names():
                    unit.tried_since = None
                    self._set(prefix, unit, self._fallback(at), "stopped: the raised arm is worse", stopped)
            if stopped != name:
                self._leave_out(group, stopped)
                self._judge(name, group, at)
        elif verdict.answer is StopAnswer.ENOUGH and group.stage + 1 < len(self._settings.shares):
            group.stage += 1
            group.parts.clear()
            group.trial.split(self._settings.shares[group.stage])
            for prefix, unit in self._units.items():
                if unit.group == name:
                    self._set(prefix, unit, unit.window, "no harm found: a larger share")

    def _source(self, group: NetworkGroup) -> str | None:
        """The smallest network within the group without which little of its evidence is left; None if it is spread."""
        for part in sorted(group.parts, key=lambda part: -ip_network(part).prefixlen):
            if group.trial.e_value_without(group.parts[part]) ** 2 < 1 / self._settings.rule.alpha:
                return part
        return None

    def _leave_out(self, group: NetworkGroup, stopped: str) -> None:
        events = group.parts[stopped]
        group.trial.leave_out(events)
        network = ip_network(stopped)
        for part, before in list(group.parts.items()):
            other = ip_network(part)
            if other.version == network.version and other.subnet_of(network):  # type: ignore[arg-type]
                del group.parts[part]
            elif other.version == network.version and network.subnet_of(other):  # type: ignore[arg-type]
                group.parts[part] = Events(*(old - new for old, new in zip(before, events, strict=True)))

    def _advance(self, at: float) -> None:
        """Begin a period: age, regroup, draw arms, set windows."""
        period = int(at // self._settings.rule.period_s)
        if period <= self._period:
            return
        elapsed_s = (period - self._period) * self._settings.rule.period_s if self._period >= 0 else 0.0
        self._period = period
        if at - self._last_outcome > self._settings.silence_s:
            self._release(f"no connection finished for {self._settings.silence_s:g} s")
        for prefix, unit in list(self._units.items()):
            if at - unit.seen_at > self._groups.half_life_s:
                self._forget(prefix, "not seen lately")
        in_use = {node.name for unit in self._units.values() for node in unit.chain}
        self._groups.age(elapsed_s, in_use)
        for name, state in list(self._states.items()):
            # A group that was stopped is remembered as long as it is held.
            if self._is_old(state, at) or (name not in in_use and not state.is_held(at)):
                del self._states[name]
        for name in [name for name, state in self._remembered.items() if self._is_old(state, at)]:
            del self._remembered[name]
        for prefix, unit in self._units.items():
            self._draw(prefix, unit, at)

    def _is_old(self, state: NetworkGroup, at: float) -> bool:
        return not state.is_held(at) and at - state.seen_at > self._groups.half_life_s

    def _new_unit(self, outcome: Outcome) -> _Unit | None:
        chain = self._groups.chain(outcome.prefix)
        if not chain:
            return None
        if len(self._units) >= self._settings.most_prefixes:
            self._forget(next(iter(self._crowd(chain[-1].name))), "room for another prefix")
        unit = self._units[outcome.prefix] = _Unit(str(outcome.prefix).encode(), chain, "", outcome.at)
        self._by_network.setdefault(chain[-1].name, OrderedDict())[outcome.prefix] = None
        self._draw(outcome.prefix, unit, outcome.at)
        return unit

    def _crowd(self, name: str) -> OrderedDict[Network, None]:
        """Of which prefixes one makes room: the network's own if it has more than its part, else those of the largest.

        So a network's many prefixes lower no window of a network that has fewer.
        """
        prefixes = self._by_network.get(name, OrderedDict())
        if len(prefixes) * len(self._by_network) > len(self._units):
            return prefixes
        return max(self._by_network.values(), key=len)

    def _forget(self, prefix: Network, reason: str) -> None:
        unit = self._units.pop(prefix)
        self._set(prefix, unit, None, reason)
        name = unit.chain[-1].name
        del self._by_network[name][prefix]
        if not self._by_network[name]:
            del self._by_network[name]

    def _draw(self, prefix: Network, unit: _Unit, at: float) -> None:
        """The prefix's group, arm and window for this period."""
        node = self._groups.chosen(unit.chain)
        if node.name != unit.group:
            unit.group, unit.tried_since = node.name, None
        group = self._state(unit, at)
        if group.held_until is not None and not group.is_held(at):
            # The hold is over: a trial with its own error rate begins.
            group.held_until, group.stage, group.trial, group.parts = None, 0, self._trial(), {}
        window = self._settings.policy.window(group.estimate)
        unit.arm = "control"
        held = self._is_held(unit, at)
        if (why := "held after a stop" if held else self._not_tried(node, window)) is not None:
            unit.tried_since = None
            self._set(prefix, unit, self._fallback(at) if held else None, why)
            return
        if unit.tried_since is None:
            unit.tried_since = self._period
        if self._settings.draw == "connection" or self._coin(unit) < group.trial.share:
            unit.arm = "raised"
            self._set(prefix, unit, window, f"{self._settings.policy.name}, raised arm")
        else:
            self._set(prefix, unit, None, "control arm")

    def _is_held(self, unit: _Unit, at: float) -> bool:
        """Whether the prefix's group was stopped, or a smaller network of the prefix."""
        known = (self._states.get(name) for name in unit.names()[: unit.names().index(unit.group) + 1])
        return any(state is not None and state.is_held(at) for state in known)

    def _not_tried(self, node: Node, window: int) -> str | None:
        if node.connections < self._groups.least_connections:
            missing = int(self._groups.least_connections - node.connections) + 1
            return f"too few: {missing} more connections needed"
        return "nothing larger was learned" if window <= RFC6928_SEGMENTS else None

    def _state(self, unit: _Unit, at: float) -> NetworkGroup:
        """The state of a prefix's group. A new one takes over the hold of the next larger one."""
        state = self._states.get(unit.group)
        if state is None and (state := self._remembered.pop(unit.group, None)) is not None:
            self._states[unit.group] = state
        if state is None:
            state = self._states[unit.group] = NetworkGroup(self._trial(), seen_at=at)
            known = self.states()
            names = unit.names()
            for larger in names[names.index(unit.group) + 1 :]:
                if (parent := known.get(larger)) is not None:
                    state.held_until, state.evidence = parent.held_until, parent.evidence
                    state.estimate = LearnedWindow(parent.estimate.segments, parent.estimate.samples)
                    break
        return state

    def _trial(self) -> Trial:
        return Trial(self._settings.rule, self._settings.shares[0])

    def _fallback(self, at: float) -> int | None:
        """RFC 3390's window on the word of two groups: the clients of one could fake their losses."""
        # A group that took over a hold has the end of the other's.
        stops = {state.held_until for state in self.states().values() if state.is_held(at)}
        return RFC3390_SEGMENTS if self._settings.fallback == "rfc3390" and len(stops) > 1 else None

    def _coin(self, unit: _Unit) -> float:
        """A number from 0 to 1 that cannot be predicted without the secret."""
        text = b"%s %d" % (unit.name, self._period)
        return int.from_bytes(blake2b(text, digest_size=8, key=self._settings.secret).digest()) / 2**64

    def _release(self, reason: str) -> None:
        """Remove every window of ours; prefixes are drawn again when they are next seen."""
        for prefix in list(self._units):
            self._forget(prefix, reason)

    def _set(self, prefix: Network, unit: _Unit, window: int | None, reason: str, stopped: str = "") -> None:
        group = self._states.get(unit.group)
        share = 1.0
        if self._settings.draw == "connection" and group is not None and (window or 0) > RFC6928_SEGMENTS:
            share = group.trial.share
        if (window, share) == (unit.window, unit.share):
            return
        evidence: dict[str, Any] = {"group": unit.group, "arm": unit.arm}
        if group is not None:
            evidence |= {"share": group.trial.share, "estimate_segments": group.estimate.segments, **group.evidence}
        if stopped not in ("", unit.group):
            evidence["network"] = stopped
        unit.window, unit.share = window, share
        self._decisions[prefix] = WindowDecision(prefix, window, reason, evidence, share)

"""A scenario: who talks to whom, over which paths, with which TCP. It is data and names no engine."""

import html
import re
import tomllib
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, field_validator, model_validator

from firstflight.counted import nearest
from firstflight.errors import RequestError
from firstflight.input_files import named_text, or_packaged
from firstflight.populations.applications import preset
from firstflight.scenario.applications import Application, Arrivals, FileTransfer, RequestResponse, Video, WebPage
from firstflight.scenario.arms import Arm, arms_plan, check_arms
from firstflight.scenario.datagrams import ConstantRate, DatagramApplication, Dns, Game, StreamApplication, Voice
from firstflight.scenario.document import Text, as_written, check, parsed, written
from firstflight.scenario.explain import cut, sentence, shown
from firstflight.scenario.laws import law_plan, mean
from firstflight.scenario.network import Chain, Dumbbell, Star, link_rate_bps
from firstflight.scenario.population import AnyPopulation, PathsTable, star_of_users
from firstflight.scenario.queries import Queries
from firstflight.scenario.table import ScenarioTable, by_name, choose
from firstflight.scenario.tcp import Stack, Tcp, check_profile, friendly
from firstflight.scenario.tree import Tree
from firstflight.scenario.units import Bytes, Duration, within

_HOSTS = re.compile(r"([a-z][a-z0-9_-]*)(?:\[([0-9]{1,9})\])?")
# Segments of a dotted path: a key, or a key with an index.
_STEP = re.compile(r"([A-Za-z0-9_-]+)(?:\[([0-9]{1,9})\])?")

# The size of the option in each segment (RFC 7323 appendix A).
_TIMESTAMPS_BYTES = 12
# Headers without options or extensions.
_TCP_BYTES = 20
IP_HEADER_BYTES = {"ipv4": 20, "ipv6": 40}
# What every link carries (RFC 791 section 3.2, RFC 8200 section 5), the most that a header can say, and Ethernet's.
_SMALLEST_MTU = {"ipv4": 68, "ipv6": 1280}
LARGEST_MTU = 65_535
_DEFAULT_MTU = 1500


_Kinds = FileTransfer | WebPage | RequestResponse | Video | Arrivals | ConstantRate | Dns | Game | Voice
_KINDS = by_name("kind", get_args(_Kinds))


# An application can also be written as one of `firstflight.populations.applications` with some other keys.
def _application(data: Any, info: Any) -> Any:
    if isinstance(data, dict) and "preset" in data:
        try:
            data = preset(str(data["preset"]), **{key: value for key, value in data.items() if key != "preset"})
        except RequestError as error:
            raise ValueError(str(error)) from None
    return choose(data, _KINDS, "kind", "application", info.context)


_NamedKind = Annotated[_Kinds, Field(discriminator="kind")]
_Preset = Annotated[dict[str, Any], Field(json_schema_extra={"required": ["preset"]})]
AnyApplication = Annotated[_Kinds, BeforeValidator(_application, json_schema_input_type=_NamedKind | _Preset)]


AnyNetwork = Dumbbell | Star | Chain | Tree
_TOPOLOGIES = by_name("topology", get_args(AnyNetwork))


def _network(data: Any, info: ValidationInfo) -> Any:
    return choose(data, _TOPOLOGIES, "topology", "network", info.context)


_NamedNetwork = Annotated[AnyNetwork, Field(discriminator="topology")]
Network = Annotated[AnyNetwork, BeforeValidator(_network, json_schema_input_type=_NamedNetwork)]


class Scenario(ScenarioTable):
    """One experiment. Every field can be read, assigned (checked immediately; RequestError) and written as TOML.

    `duration`: simulated time. `stats_interval`: interval of the link counters; by default the whole run.
    `header_size`: TCP and IP header bytes per packet. With `ip` or `mtu`, segments without `mss` fill an `mtu`. A
    scenario has either `network` (shared by all clients) or `population` (one path per user).
    """

    name: Text = Field(min_length=1, description="a name")
    description: Text | None = Field(default=None, description="one line: title of the report")
    duration: Duration = Field(description="simulated time")
    stats_interval: Duration | None = Field(
        default=None, description="interval length of the link counters; default: one interval, the whole run"
    )
    ip: Literal["ipv4", "ipv6"] = Field(default="ipv4", description='version of all packets: `"ipv4"` or `"ipv6"`')
    mtu: Bytes | None = Field(
        default=None,
        description="largest IP packet, on every link: path MTU discovery and fragmentation are not modeled. An `mss` "
        'that is not set is `mtu` less `header_size`; default: `"1500B"`, with IPv4 as much as the largest `mss` needs',
    )
    header_size: Annotated[Bytes, within(("<=", LARGEST_MTU))] | None = Field(
        default=None, description='TCP and IP header bytes per packet; default: `"40B"`, with IPv6 `"60B"`'
    )
    tcp: Tcp = Field(description="TCP of all endpoints, see below")
    network: Network | None = Field(default=None, description="links, see below; default: this or `[population]`")
    population: AnyPopulation | None = Field(
        default=None, description="users, each with a separate path, see below; default: this or `[network]`"
    )
    application: list[AnyApplication] = Field(min_length=1, description="applications, see below; one or more")
    arm: list[Arm] | None = Field(default=None, description="fractions of the users with a different TCP, see below")

    @field_validator("duration", "stats_interval")
    @classmethod
    def _not_zero(cls, value: Duration | None) -> Duration | None:
        if value is not None and value == 0:
            raise ValueError('a length of "0s" leaves nothing to simulate: write for example "60s"')
        return value

    @model_validator(mode="after")
    def _packets_that_there_are(self) -> Self:
        least = _TCP_BYTES + IP_HEADER_BYTES[self.ip]
        if self.ip == "ipv6" and self.header_bytes() < least:
            raise ValueError(
                f'header_size is "{self.header_size}", and IPv6 and TCP have {least}B at least; leave it out'
            )
        smallest = max(_SMALLEST_MTU[self.ip], self.header_bytes() + 1)
        if self._largest_segment() is not None and not smallest <= (mtu := self.mtu or _DEFAULT_MTU) <= LARGEST_MTU:
            raise ValueError(f"mtu is {int(mtu)}B, and must be from {smallest}B to {LARGEST_MTU}B")
        return self

    @model_validator(mode="after")
    def _one_kind_of_paths(self) -> Self:
        if (self.network is None) == (self.population is None):
            both = "both are given; keep one" if self.network else "neither is given; write one of them"
            raise ValueError(f"a scenario has either [network] or [population]: {both}")
        if self.population is not None and self.stats_interval is not None:
            raise ValueError("stats_interval cuts the counters of links, which a population has none of; leave it out")
        return self

    @field_validator("arm")
    @classmethod
    def _arms_together(cls, value: list[Arm] | None) -> list[Arm] | None:
        check_arms(value or [])
        return value

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a TOML file. RequestError with file, key and the correct form."""
        path = or_packaged(path)
        return cls.from_toml(named_text(path), directory=path.parent, source=str(path))

    @classmethod
    def from_toml(cls, text: str, *, directory: Path | None = None, source: str = "scenario") -> Self:
        """A scenario from TOML text; see `from_dict`."""
        try:
            document = parsed(text)
        except tomllib.TOMLDecodeError as error:
            raise RequestError(f"{source}: this is not TOML: {error}") from None
        except RequestError as error:
            raise RequestError(f"{source}: {error}") from None
        return cls.from_dict(document, directory=directory, source=source)

    @classmethod
    def from_dict(cls, document: dict[str, Any], *, directory: Path | None = None, source: str = "scenario") -> Self:
        """A scenario from a document as parsed from TOML; files in it are relative to `directory`.

        RequestError begins with `source`.
        """
        prefix = f"{source}: " if source else ""
        if not isinstance(document, dict):
            raise RequestError(f"{prefix}{shown(document)} is not a table of keys")
        try:
            check(document)
            scenario = cls.model_validate(document, context={"directory": directory})
            scenario.to_plan()
        except ValidationError as error:
            raise RequestError(f"{prefix}{sentence(error, _written_names(document))}") from None
        except RequestError as error:
            raise RequestError(f"{prefix}{error}") from None
        return scenario

    def to_dict(self) -> dict[str, Any]:
        """The document for `from_dict`; measured distributions are included."""
        return self.model_dump(exclude_none=True)

    def to_toml(self) -> str:
        """The scenario as a self-contained TOML file."""
        return written(self.to_dict())

    def replace(self, path: str, value: Any) -> Self:
        """A copy with `value`, as in a file, at the key `path`.

        Parts of the path are joined by dots; an application has its name: "tcp.initial_window",
        "application.web.clients", "network.left[0].rate". Raises RequestError.
        """
        return self.replace_all([(path, value)])

    def replace_all(self, values: Iterable[tuple[str, Any]], *, directory: Path | None = None) -> Self:
        """As `replace`, for keys that are valid only together; files in them are relative to `directory`."""
        document = self.to_dict()
        for index, application in enumerate(document["application"]):
            application.setdefault("name", self.names()[index])
        for path, value in values:
            if not isinstance(path, str):
                raise RequestError(f'{path!r} is not a path of keys: write for example "application.web.clients"')
            *steps, last = path.split(".")
            table: Any = document
            for step, following in pairwise([*steps, last]):
                table = _step(table, step, following, path)
            _set(table, last, as_written(value), path)
        return type(self).from_dict(document, directory=directory, source="")

    def with_population(self, **keys: Any) -> Self:
        """A copy with a population instead of the network: keys of [population], such as `name="uk-2023", users=100`.

        Hosts of clients and servers are dropped. Raises RequestError.
        """
        document = self.to_dict() | {"population": keys}
        kept = {key: value for key, value in document.items() if key not in ("network", "stats_interval")}
        for application in kept["application"]:
            for key in ("clients", "client_hosts", "server_hosts", "server_choice"):
                application.pop(key, None)
        return type(self).from_dict(kept, source="")

    def _repr_html_(self) -> str:
        """The notebook view: the file."""
        return f"<pre>{html.escape(self.to_toml())}</pre>"

    def to_plan(self) -> dict[str, Any]:
        """The scenario for the native module: complete, in base units. RequestError if it is inconsistent."""
        try:
            outer = self.tcp.over(None)
        except ValueError as error:
            raise RequestError(f"tcp.{error}") from None
        paths = self.population or self.network
        assert paths is not None
        return {
            "duration_ns": int(self.duration),
            "meter_interval_ns": None if self.stats_interval is None else int(self.stats_interval),
            "header_bytes": self.header_bytes(),
            "network" if self.population is None else "population": paths.plan(),
            "applications": [self._application_plan(index, name, outer) for index, name in enumerate(self.names())],
            **arms_plan(self.arm),
        }

    def one_network(self, who: str, *, plain: bool = False) -> AnyNetwork:
        """The network. RequestError, which begins with `who`, for a population, and if `plain` for a tree or arms."""
        if self.network is None:
            raise RequestError(
                f'{who} needs one [network], and "{self.name}" has a [population]: take its first users as a network '
                "(scenario.star_of_users in Python), or run all of them with the engine simulate"
            )
        if plain and self.arm:
            raise RequestError(
                f'{who} has no arms, and "{self.name}" has some; leave them out, or use the engine simulate'
            )
        if plain and isinstance(self.network, Tree):
            raise RequestError(
                f'{who} has no trees, and the network of "{self.name}" is one; write a dumbbell, star or chain, or use '
                "the engine simulate"
            )
        return self.network

    def over_tcp(self, who: str) -> Self:
        """Itself. RequestError that `who` has no QUIC, if an application uses it."""
        for name, application in zip(self.names(), self.application, strict=True):
            if isinstance(application, FileTransfer) and application.transport == "quic":
                raise RequestError(
                    f'application.{name}.transport: {who} has no QUIC; write "tcp", or run real stacks with --engine '
                    "emulate"
                )
        return self

    def header_bytes(self) -> int:
        """TCP and IP header bytes per packet."""
        return _TCP_BYTES + IP_HEADER_BYTES[self.ip] if self.header_size is None else int(self.header_size)

    def mtu_bytes(self) -> int:
        """Size of the largest IP packet, in bytes."""
        if self._largest_segment() is not None:
            return int(self.mtu or _DEFAULT_MTU)
        applications = self.to_plan()["applications"]
        ends = [*applications, *(arm for application in applications for arm in application.get("arms", ()))]
        most = max(int(tcp[end]["mss_bytes"]) for tcp in ends for end in ("client_tcp", "server_tcp"))
        return max(_DEFAULT_MTU, most + self.header_bytes())

    def _largest_segment(self) -> int | None:
        """Bytes of payload that fit into a packet; None where the largest `mss` decides on the packets."""
        if self.ip == "ipv4" and self.mtu is None:
            return None
        return int(self.mtu or _DEFAULT_MTU) - self.header_bytes()

    def star_of_users(self, seed: int, replicate: int = 0, users: int = 10) -> "Scenario":
        """The first `users` of a replicate of the population as a star network; see `scenario.population`."""
        return star_of_users(self, seed, replicate, users)

    def full_payload_bytes(self, index: int) -> int:
        """Payload of an application's full segment: the smaller MSS, minus timestamps if both endpoints offer them."""
        application = self.to_plan()["applications"][index]
        ends = application["client_tcp"], application["server_tcp"]
        options = _TIMESTAMPS_BYTES if all(end["timestamps"] for end in ends) else 0
        return max(1, min(int(end["mss_bytes"]) for end in ends) - options)

    def stacks(self, index: int) -> tuple[Stack, Stack]:
        """TCP implementations of an application's client and server in the emulator."""
        application = self.application[index]
        shared: Stack = (application.tcp.stack if application.tcp else None) or self.tcp.stack or "kernel"
        client: Stack | None = application.client_tcp.stack if application.client_tcp else None
        server: Stack | None = application.server_tcp.stack if application.server_tcp else None
        return client or shared, server or shared

    def names(self) -> list[str]:
        """Names of the applications; kind and index for one without."""
        names = [
            item.name or (item.kind if len(self.application) == 1 else f"{item.kind}{index}")
            for index, item in enumerate(self.application)
        ]
        for name in names:
            if names.count(name) > 1:
                raise RequestError(f'application: two are called "{name}"; give each its own name')
        return names

    def recorded_names(self) -> list[str]:
        """Names of the applications in the records, each followed by its name in each arm."""
        arms = ["", *(f".{arm.name}" for arm in self.arm or [])]
        return [f"{name}{arm}" for name in self.names() for arm in arms]

    def _application_plan(self, index: int, name: str, outer: dict[str, Any]) -> dict[str, Any]:
        application = self.application[index]
        where = f"application.{name}"
        plan: dict[str, Any] = {
            "name": name,
            "kind": application.kind,
            **(self._of_users(application, where) if self.network is None else self._among_hosts(index, where)),
            "start": law_plan(application.start),
            "response_header_bytes": int(application.response_header or 0),
            "service_time_ns": int(application.service_time or 0),
            "class": application.priority,
        }
        if not isinstance(application, StreamApplication):
            plan["count"] = application.count
            if application.tls is not None:
                plan["handshakes"] = application.tls.plan()
        plan |= self._ends(application, where, outer)
        if self.arm:
            plan["arms"] = [self._ends(application, where, outer, arm) for arm in self.arm]
        plan |= application.plan()
        for datagrams, table in ((application, plan), (getattr(application, "dns", None), plan.get("dns", {}))):
            if isinstance(datagrams, DatagramApplication | Queries):
                table["datagram_header_bytes"] = self._datagram_header(datagrams, where)
        if isinstance(application, Arrivals | WebPage) and application.load is not None:
            plan["gap" if isinstance(application, Arrivals) else "think"] = self._gap(application, plan, where)
        return plan

    def _ends(
        self, application: AnyApplication, where: str, outer: dict[str, Any], arm: Arm | None = None
    ) -> dict[str, Any]:
        """TCP of both ends of an application, of those in an arm or of the rest."""
        ends = {}
        for end in ("client_tcp", "server_tcp"):
            effective, named, sized = outer, "tcp", "tcp" if _sets_mss(self.tcp) else None
            sets_nagle = self.tcp.sets("nagle")
            try:
                for key, table in self._tables(application, where, end, arm):
                    if table is not None:
                        named = key
                        effective = table.over(effective)
                        sized = key if _sets_mss(table) else None if table.profile else sized
                        sets_nagle |= table.sets("nagle")
                effective = self._in_packets(effective, sized, named)
                if application.tls is not None and not sets_nagle:
                    # Programs that speak TLS set TCP_NODELAY.
                    effective = effective | {"nagle": "off"}
                check_profile(effective)
            except ValueError as error:
                raise RequestError(f"{named}.{error}") from None
            ends[end] = effective
        return ends

    def _in_packets(self, profile: dict[str, Any], sized: str | None, named: str) -> dict[str, Any]:
        """The profile with segments that fit into a packet; `sized`: the table that sets its `mss`."""
        if self.ip == "ipv6" and profile["startup"]["scheme"] == "quick_start":
            raise RequestError(f'{named}.startup: "quick_start" is not modeled over IPv6; write ip = "ipv4"')
        most = self._largest_segment()
        if most is None:
            return profile
        if sized is None:
            return profile | {"mss_bytes": most}
        if profile["mss_bytes"] > most:
            raise RequestError(
                f'{sized}.mss is "{profile["mss_bytes"]}B", which exceeds the mtu of {self.mtu_bytes()}B with '
                f'{self.header_bytes()}B of headers; write at most "{most}B", leave it out, or write a larger mtu'
            )
        return profile

    def _datagram_header(self, datagrams: DatagramApplication | Queries, where: str) -> int:
        """Bytes of headers of each datagram; RequestError for datagrams that do not fit into a packet."""
        given = datagrams.header_size
        header = datagrams.over_ip + IP_HEADER_BYTES[self.ip] if given is None else int(given)
        if self._largest_segment() is None:
            return header
        most = self.mtu_bytes() - header
        for key, payload in datagrams.payloads().items():
            if payload is None:
                raise RequestError(f'{where}.{key}: it has no upper end, and a packet has one; add maximum = "{most}B"')
            if payload > most:
                raise RequestError(
                    f"{where}.{key}: {payload:.0f}B exceed the mtu of {self.mtu_bytes()}B with {header}B of headers, "
                    "and fragmentation is not modeled; make it smaller, or mtu larger"
                )
        return header

    @staticmethod
    def _tables(application: AnyApplication, where: str, end: str, arm: Arm | None) -> list[tuple[str, Tcp | None]]:
        """The changes to the TCP of an endpoint, in order."""
        places: list[tuple[str, Any]] = [(where, application)]
        if arm is not None:
            places.append((f"arm.{arm.name}", arm))
        return [(f"{place}.{key}", getattr(table, key)) for place, table in places for key in ("tcp", end)]

    def _gap(self, application: Arrivals | WebPage, plan: dict[str, Any], where: str) -> dict[str, Any]:
        """The law of the time between a client's files or pages by which all clients make the load."""
        assert application.load is not None
        if self.network is None:
            instead = "idle_time" if isinstance(application, Arrivals) else "think_time"
            raise RequestError(f"{where}.load: a population has no link that all share; write {instead} instead")
        try:
            rate = link_rate_bps(self.network.plan(), application.of or "")
        except RequestError as error:
            raise RequestError(f"{where}.of: {error}") from None
        file_bytes = 0.0
        for key, size, number in application.laws_of_bytes():
            try:
                objects = 1.0 if number is None else mean(number)
                file_bytes += objects * (mean(size) + plan["response_header_bytes"])
            except ValueError as error:
                raise RequestError(f"{where}.{key}: {error}") from None
        payload = min(int(plan[end]["mss_bytes"]) for end in ("client_tcp", "server_tcp"))
        on_the_wire = file_bytes * (payload + self.header_bytes()) / payload
        clients = plan["clients"] * application.user_fraction
        return {"distribution": "exponential", "mean": clients * on_the_wire * 8 / (application.load * rate)}

    def clients(self, index: int) -> int:
        """Number of clients of an application in the network; one per user of a population."""
        application = self.application[index]
        if not isinstance(application.clients, str):
            return application.clients
        if self.network is None:
            return 1
        selection, groups = application.client_hosts or self.network.default_hosts[0], self.network.hosts()
        return 1 if "[" in selection else groups.get(selection, 1)

    def _among_hosts(self, index: int, where: str) -> dict[str, Any]:
        """The hosts of an application's endpoints in the network."""
        assert self.network is not None
        application = self.application[index]
        if application.user_fraction != 1 and not isinstance(self.network, Tree):
            raise RequestError(
                f"{where}.user_fraction: a share of the users needs a [population] or a tree; set clients instead"
            )
        if isinstance(application, FileTransfer) and application.size == "row":
            raise RequestError(f'{where}.size: "row" is that of a [population]; write a size, such as "9kB"')
        if _has_tls_of_row(application):
            raise RequestError(f'{where}.tls.flights: "row" is that of a [population]; write the flights')
        clients, servers = self.network.default_hosts
        groups = self.network.hosts()
        return {
            "clients": self.clients(index),
            "share": application.user_fraction,
            "client_hosts": _hosts(groups, application.client_hosts or clients, f"{where}.client_hosts"),
            "server_hosts": _hosts(groups, application.server_hosts or servers, f"{where}.server_hosts"),
            "server_choice": application.server_choice,
        }

    def _of_users(self, application: Application, where: str) -> dict[str, Any]:
        """The users who run an application: its endpoints are those of the user's path."""
        for key in ("clients", "client_hosts", "server_hosts", "server_choice"):
            if getattr(application, key) != type(application).model_fields[key].default:
                raise RequestError(
                    f"{where}.{key}: in a population each user has one client and one server; leave it out"
                )
        from_row = isinstance(application, FileTransfer) and application.size == "row"
        if from_row and (not isinstance(self.population, PathsTable) or self.population.columns.bytes is None):
            raise RequestError(
                f'{where}.size: "row" needs a population of paths = "table" with a column bytes; write a size, such as '
                '"9kB", or add the column'
            )
        columns = getattr(self.population, "columns", None)
        if _has_tls_of_row(application) and getattr(columns, "tls_bytes", None) is None:
            raise RequestError(
                f'{where}.tls.flights: "row" needs a population of paths = "table" with a column tls_bytes; write the '
                "flights, or add the column"
            )
        return {"clients": 1, "share": application.user_fraction, "size_from_row": from_row}


def _has_tls_of_row(application: Application) -> bool:
    tls = getattr(application, "tls", None)
    return tls is not None and tls.flights == "row"


def _sets_mss(table: Tcp) -> bool:
    return any(friendly(key) == "mss" for key, _ in table)


def _hosts(groups: dict[str, int], selection: str, where: str) -> str:
    match = _HOSTS.fullmatch(selection)
    group = match.group(1) if match else selection
    if match is None or group not in groups:
        raise RequestError(f'{where}: there are no hosts "{cut(selection)}"; {nearest(group, groups)}')
    if match.group(2) is not None and int(match.group(2)) >= groups[group]:
        raise RequestError(f'{where}: there is no host "{selection}"; {group}[0] to {group}[{groups[group] - 1}] exist')
    if group == "node" and match.group(2) is None:
        raise RequestError(f'{where}: "node" needs an index, such as "node[0]"')
    return selection


def _written_names(document: dict[str, Any]) -> list[str | None]:
    applications = document.get("application")
    if not isinstance(applications, list):
        return []
    names = [item.get("name") if isinstance(item, dict) else None for item in applications]
    return [name if isinstance(name, str) else None for name in names]


def _step(table: Any, step: str, following: str, path: str) -> Any:
    match = _STEP.fullmatch(step)
    if match is None:
        raise RequestError(f'"{cut(path)}" is not a path of keys: write for example "application.web.clients"')
    key, index = match.group(1), match.group(2)
    if isinstance(table, list):
        names = [item.get("name") for item in table if isinstance(item, dict)]
        if key not in names:
            raise RequestError(f'"{path}": nothing is called "{key}"; {nearest(key, filter(None, names))}')
        return table[names.index(key)]
    _check_table(table, key, path)
    # A kind by its name alone, such as recovery = "scoreboard", has rules to step into, too.
    if table.setdefault(key, {}) == following:
        table[key] = {following: {}}
    value = table[key]
    if index is not None:
        if not isinstance(value, list) or int(index) >= len(value):
            raise RequestError(f'"{path}": there is no {step}')
        return value[int(index)]
    return value


# By the key that names a file: its contents as read.
_READ = {"trace": ("opportunities_ms",), "file": ("points", "columns")}


def _set(table: Any, key: str, value: Any, path: str) -> None:
    _check_table(table, key, path)
    table[key] = value
    for content in _READ.get(key, ()):
        table.pop(content, None)


def _check_table(table: Any, key: str, path: str) -> None:
    if isinstance(table, list):
        example = re.sub(rf"\.{re.escape(key)}\b", f"[0].{key}", path, count=1)
        raise RequestError(f'"{path}": the value before "{key}" is a list; write which one, such as "{example}"')
    if not isinstance(table, dict):
        raise RequestError(f'"{path}": the value before "{key}" is not a table')

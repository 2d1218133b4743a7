"""Populations: the joint law of users' paths. Each user of a replicate has their own path and is alone on it; its first
users can be had as a network.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from firstflight.errors import RequestError
from firstflight.populations import find
from firstflight.scenario.laws import ProbabilityLaw, RateLaw, TimeLaw, law_plan
from firstflight.scenario.paths_table import Columns, column_plan, read_columns
from firstflight.scenario.table import ScenarioTable, choose
from firstflight.scenario.units import Duration, Packets, within

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from firstflight.scenario.applications import Application
    from firstflight.scenario.scenario import Scenario


# Their order in the plan's matrix.
VARIABLES = ("rtt", "down", "up", "buffer", "loss")

# An eigenvalue below this is zero but for rounding: one quantity would follow from the others.
_LEAST_EIGENVALUE = 1e-9


def correlations(pairs: Mapping[str, float]) -> list[float]:
    """The correlation matrix that `pairs` ("rtt_down": -0.3) describe, 25 numbers row by row in the order of VARIABLES.

    A pair can be named either way round; those left out are 0. ValueError for an unknown pair, one given twice, a
    correlation not between -1 and 1, and for numbers that no quantities can have together: it says which.
    """
    import numpy as np

    matrix = np.eye(len(VARIABLES))
    given: set[frozenset[int]] = set()
    for name, correlation in pairs.items():
        first, second = _indices(name)
        if frozenset((first, second)) in given:
            raise ValueError(f'"{name}" is given both ways round; keep one')
        if not -1 < correlation < 1:
            raise ValueError(f"{name} is {correlation:g}: write a correlation between -1 and 1, both left out")
        given.add(frozenset((first, second)))
        matrix[first, second] = matrix[second, first] = correlation
    for size in range(3, len(VARIABLES) + 1):
        for chosen in combinations(range(len(VARIABLES)), size):
            smallest = float(np.linalg.eigvalsh(matrix[np.ix_(chosen, chosen)])[0])
            if smallest < _LEAST_EIGENVALUE:
                raise ValueError(_impossible(matrix, chosen, smallest))
    return [float(value) for value in matrix.ravel()]


def _indices(name: str) -> tuple[int, int]:
    parts = name.split("_")
    if len(parts) != 2 or parts[0] == parts[1] or any(part not in VARIABLES for part in parts):
        raise ValueError(f'"{name}" is not a pair of {", ".join(VARIABLES)}: write for example rtt_down = -0.3')
    return VARIABLES.index(parts[0]), VARIABLES.index(parts[1])


def _impossible(
    matrix: np.ndarray[tuple[int, int], np.dtype[np.float64]], chosen: tuple[int, ...], smallest: float
) -> str:
    named = [f"{VARIABLES[a]}_{VARIABLES[b]} = {matrix[a, b]:g}" for a, b in combinations(chosen, 2)]
    return (
        f"no quantities have {', '.join(named[:-1])} and {named[-1]} together (the matrix of these is not positive "
        f"definite: its smallest eigenvalue is {smallest:.3g}); move them towards 0"
    )


def _edges(edges: list[float]) -> list[float]:
    if any(edge <= 0 for edge in edges) or any(b <= a for a, b in pairwise(edges)):
        raise ValueError(f"{edges} are not ascending numbers above zero; write for example [0.02, 0.05, 0.1]")
    return edges


Edges = Annotated[list[float], AfterValidator(_edges)]


class Buckets(ScenarioTable):
    """Upper edges, each in its bucket; values above the last one have a separate bucket.

    The defaults are those of Dukkipati et al. 2010: figure 5 (round trip, bandwidth, bandwidth-delay product) and
    figure 7 (segments of the response).
    """

    rtt_s: Edges = Field(default=[0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0])
    down_bps: Edges = Field(default=[56e3, 256e3, 512e3, 1e6, 2e6, 3e6, 5e6])
    bdp_bytes: Edges = Field(default=[1e3, 5e3, 1e4, 5e4, 1e5])
    segments: Edges = Field(default=[3.0, 4.0, 7.0, 10.0, 15.0, 30.0, 50.0])


# The native module numbers users in 32 bits.
MOST_USERS = 2**31 - 1


class Population(ScenarioTable, ABC):
    """The common keys of every population. A replicate is an independent sample of `users` users.

    `name`: a built-in, whose keys are taken where they are not given here. `records` "rows" stores each connection, and
    "aggregates" counts, sums and histograms of each of the `buckets`. A drop-tail queue holds at least `min_buffer`
    full packets; `extra_rtt` is added to every round trip.
    """

    name: str | None = Field(
        default=None, description="name of a built-in population; other keys given here replace its values"
    )
    users: int = Field(
        ge=1,
        le=MOST_USERS,
        description="number per replicate; optional for a table drawn row by row: its number of rows",
    )
    records: Literal["rows", "aggregates"] = Field(
        default="rows", description='`"rows"`: each connection; `"aggregates"`: counts, sums and histograms by bucket'
    )
    min_buffer: Packets = Field(default=Packets("10p"), description="minimum size of each queue, in full packets")
    extra_rtt: Annotated[Duration, within(("<=", 10**18))] = Field(
        default=Duration("0s"), description="added to every RTT"
    )
    buckets: Buckets = Field(
        default_factory=Buckets,
        description="`{ rtt_s, down_bps, bdp_bytes, segments }`: lists of upper bucket edges for aggregates; a value "
        "on an edge belongs to the bucket below it; default: those of Dukkipati et al. 2010, figures 5 and 7",
    )

    @field_validator("min_buffer")
    @classmethod
    def _holds_a_packet(cls, value: Packets) -> Packets:
        if value < 1:
            raise ValueError('a queue of "0p" drops everything: write at least "1p"')
        return value

    def plan(self) -> dict[str, Any]:
        """The population as the native module reads it."""
        return {
            "users": self.users,
            "keep": self.records,
            "paths": self.paths_plan(),
            "least_buffer_packets": int(self.min_buffer),
            "farther_ns": int(self.extra_rtt),
            "buckets": self.buckets.model_dump(),
        }

    @abstractmethod
    def paths_plan(self) -> dict[str, Any]:
        """The law of the paths as the native module reads it."""


class Marginals(Population):
    """Paths from the laws of each quantity and their dependence.

    `rtt` is the round trip without queueing, `down` and `up` the rates of the access link, `buffer` the queue before
    it as time at the `down` rate, `loss` the probability with which each packet on the downlink is lost.
    `dependence` holds correlations of normal scores (a Gaussian copula), such as `rtt_down = -0.3`; pairs left out
    are 0. `subnet_users` consecutive users share an access network, which explains `subnet_variance_fraction` of the
    variance of every normal score.
    """

    paths: Literal["marginals"] = "marginals"
    rtt: TimeLaw = Field(description="RTT without queueing and transmission time (distribution of times)")
    down: RateLaw = Field(description="downlink rate of the access link (distribution of rates)")
    up: RateLaw = Field(description="uplink rate of the access link (distribution of rates)")
    buffer: TimeLaw = Field(
        description="queue before the access link, as time at its rate, in both directions (distribution of times)"
    )
    loss: ProbabilityLaw = Field(
        default=0.0,
        validate_default=True,
        description="loss probability of a packet on the downlink, independent per packet (distribution of "
        "probabilities, below 1)",
    )
    dependence: dict[str, float] = Field(
        default={}, description="`{ rtt_down = -0.3 }`: correlations, see below; default: `{}`, independent"
    )
    subnet_users: int = Field(
        default=1, ge=1, le=MOST_USERS, description="number of consecutive users per access network, like a /24"
    )
    subnet_variance_fraction: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="fraction of the variance of every normal score explained by the access network, below 1",
    )

    @field_validator("dependence")
    @classmethod
    def _possible(cls, value: dict[str, float]) -> dict[str, float]:
        correlations(value)
        return value

    def paths_plan(self) -> dict[str, Any]:
        """The law of the paths as the native module reads it."""
        return {
            "kind": "marginals",
            "rtt_ns": law_plan(self.rtt, "ns"),
            "down_bps": law_plan(self.down),
            "up_bps": law_plan(self.up),
            "buffer_ns": law_plan(self.buffer, "ns"),
            "loss": law_plan(self.loss),
            "correlation": correlations(self.dependence),
            "subnet_users": self.subnet_users,
            "subnet_share": self.subnet_variance_fraction,
        }


def _without_what_the_file_gives(schema: dict[str, Any]) -> None:
    schema["required"] = [name for name in schema["required"] if name not in ("columns", "users")]


class PathsTable(Population):
    """Paths from a table, one user per row: `file` (CSV or Parquet next to the scenario) or `columns` in place.

    `columns` wins when both are given, so that a dumped scenario stands alone. `row_sampling` "in_order": user i is row
    i, and `users` is the number of rows if it is left out; "weighted": rows are drawn by weight, with replacement.
    The laws `up`, `buffer` and `loss` stand for columns that the table lacks.
    """

    model_config = ConfigDict(json_schema_extra=_without_what_the_file_gives)

    paths: Literal["table"] = "table"
    file: str | None = Field(
        default=None,
        description="CSV or Parquet in the scenario's folder, one row per user; default: this or `columns`",
    )
    columns: Columns = Field(
        description="the columns inline: `{ rtt_s = [...], down_bps = [...] }`; default: read from `file`"
    )
    row_sampling: Literal["in_order", "weighted"] = Field(
        default="in_order",
        description='`"in_order"`: user i is row i; `"weighted"`: rows are drawn by weight, with replacement',
    )
    up: RateLaw | None = Field(default=None, description="for a table without rates up (distribution of rates)")
    buffer: TimeLaw | None = Field(default=None, description="for a table without queues (distribution of times)")
    loss: ProbabilityLaw | None = Field(
        default=None, description="for a table without losses (distribution of probabilities)"
    )

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, dict):
            return data
        columns = data.get("columns")
        if columns is None:
            if not isinstance(data.get("file"), str):
                raise ValueError('a table of paths needs file = "NAME.csv" (or .parquet) or columns')
            columns = read_columns(data["file"], (info.context or {}).get("directory"))
        rows = columns.get("rtt_s") if isinstance(columns, dict) else getattr(columns, "rtt_s", None)
        users = data.get("users")
        if users is None and data.get("row_sampling", "in_order") == "in_order" and isinstance(rows, list | tuple):
            users = len(rows)
        return data | {"columns": columns} | ({} if users is None else {"users": users})

    @model_validator(mode="after")
    def _complete(self) -> Self:
        table = f'"{self.file}"' if self.file else "the table"
        for key, column in _FILLED.items():
            law, values = getattr(self, key), getattr(self.columns, column)
            if law is None and values is None:
                raise ValueError(f"{table} has no column {column}; add it, or set {key}, {_EXAMPLES[key]}")
            if law is not None and values is not None:
                raise ValueError(f"{table} has a column {column}, so that {key} would not be used; keep one")
        if self.records == "aggregates" and self.row_sampling == "in_order" and len(set(self.columns.weight or ())) > 1:
            raise ValueError(
                f'{table} has weights, and records = "aggregates" counts users without them; write row_sampling = '
                '"weighted" or records = "rows"'
            )
        rows = len(self.columns.rtt_s)
        if self.row_sampling == "in_order" and self.users > rows:
            raise ValueError(
                f"users is {self.users} and {table} has {rows} rows; ask for no more, or write row_sampling = "
                '"weighted"'
            )
        return self

    def paths_plan(self) -> dict[str, Any]:
        """The table as the native module reads it: a column's values, or the law that stands for it."""
        columns = self.columns
        up, buffer, loss = self.up, self.buffer, self.loss
        return {
            "kind": "table",
            "draw": "each" if self.row_sampling == "in_order" else "weighted",
            "rtt_ns": column_plan(columns, "rtt_s", 1e9),
            "down_bps": column_plan(columns, "down_bps"),
            "up_bps": column_plan(columns, "up_bps") if up is None else law_plan(up),
            "buffer_ns": column_plan(columns, "buffer_s", 1e9) if buffer is None else law_plan(buffer, "ns"),
            "loss": column_plan(columns, "loss") if loss is None else law_plan(loss),
            "weight": columns.weight or [1.0] * len(columns.rtt_s),
            "bytes": column_plan(columns, "bytes"),
            "tls_bytes": column_plan(columns, "tls_bytes"),
            "tls_exchanges": column_plan(columns, "tls_exchanges"),
        }


# The laws that can stand for a column, and an example of each.
_FILLED = {"up": "up_bps", "buffer": "buffer_s", "loss": "loss"}
_EXAMPLES = {"up": 'such as up = "1Mbit"', "buffer": 'such as buffer = "100ms"', "loss": "such as loss = 0.001"}

_PATHS: dict[str, type[ScenarioTable]] = {"marginals": Marginals, "table": PathsTable}


def _population(data: Any, info: ValidationInfo) -> Any:
    if isinstance(data, dict) and data.get("name") is not None:
        data = _based_on(data)
    return choose(data, _PATHS, "paths", "population", info.context)


def _based_on(data: dict[str, Any]) -> dict[str, Any]:
    """The built-in that `data` names, with the keys of `data` in place of the built-in's."""
    try:
        built_in = find(str(data["name"]))
    except RequestError as error:
        raise ValueError(str(error)) from None
    if data.get("paths", built_in["paths"]) != built_in["paths"]:
        raise ValueError(
            f'"{data["name"]}" has paths = "{built_in["paths"]}"; for paths = "{data["paths"]}" leave its name out'
        )
    if "file" in data and "columns" not in data:
        # A table of one's own stands in the place of the built-in's, with as many users as it has rows.
        built_in = {key: value for key, value in built_in.items() if key not in ("columns", "users")}
    elif "columns" in built_in and "columns" not in data:
        # A law in the scenario replaces the built-in one.
        replaced = {column for key, column in _FILLED.items() if key in data}
        built_in["columns"] = {name: values for name, values in built_in["columns"].items() if name not in replaced}
    return built_in | data


_Named = Annotated[dict[str, Any], Field(json_schema_extra={"required": ["name"]})]
AnyPopulation = Annotated[
    Marginals | PathsTable, BeforeValidator(_population, json_schema_input_type=Marginals | PathsTable | _Named)
]


def star_of_users(scenario: Scenario, seed: int, replicate: int = 0, users: int = 10) -> Scenario:
    """The first `users` of a replicate of a population, each at a spoke of a star with the path that was drawn for
    them; the hub adds nothing.

    User i sits at `spokes[i]`. An application that only some of them run, or whose sizes come from the table's rows, is
    there once for each user who runs it, called NAME.i. All users act at the same time, and end with the scenario's
    duration; random losses and the draws of such applications are others than in the population. RequestError for a
    scenario without a population, for more users than it has, and where none of them does anything.
    """
    import numpy as np

    from firstflight import _native

    population = scenario.population
    if population is None:
        raise RequestError(f'"{scenario.name}" has a [network] already, and no [population] to take users from')
    if not 1 <= users <= population.users:
        raise RequestError(f"users is {users}; the population has 1 to {population.users} to take")
    try:
        drawn = _native.draw_users(json.dumps(scenario.to_plan()), seed, replicate, users)
    except (ValueError, OverflowError) as error:
        raise RequestError(f'scenario "{scenario.name}": {error}') from None
    path = {name: np.frombuffer(content, np.dtype(dtype)) for name, (dtype, content) in drawn["users"].items()}
    spokes = []
    for user in range(users):
        rtt_ns = round(float(path["rtt_s"][user]) * 1e9)
        spokes.append(
            {
                "rate": f"{int(path['down_bps'][user])}bit",
                "delay": f"{rtt_ns // 2}ns",
                "queue": f"{int(path['buffer_bytes'][user])}B",
                "loss": float(path["loss"][user]),
                "reverse": {
                    "rate": f"{int(path['up_bps'][user])}bit",
                    "delay": f"{rtt_ns - rtt_ns // 2}ns",
                    "queue": f"{drawn['up_buffer_bytes'][user]}B",
                    "loss": 0.0,
                },
            }
        )
    document = scenario.to_dict()
    document.pop("population")
    document["name"] = f"{scenario.name}-star"
    document["network"] = {
        "topology": "star",
        "hub": {"rate": "unlimited", "delay": "0s", "queue": "1000p"},
        "spokes": spokes,
    }
    document["application"] = [
        application
        for index, item in enumerate(scenario.application)
        for application in _applications(
            item,
            item.model_dump(exclude_none=True) | {"name": scenario.names()[index], "user_fraction": 1.0},
            drawn["runs"][index],
            drawn["bytes"],
            drawn["handshakes"],
        )
    ]
    if not document["application"]:
        raise RequestError(f"none of the first {users} users runs an application; take more of them")
    return type(scenario).from_dict(document, source="")


def _applications(
    item: Application,
    table: dict[str, Any],
    runs: list[bool],
    sizes: list[float],
    handshakes: list[tuple[float, int]],
) -> list[dict[str, Any]]:
    """The application for all users at once where it can be, else one for each who runs it."""
    from_row, tls = table.get("size") == "row", getattr(item, "tls", None)
    tls_from_row = tls is not None and tls.flights == "row"
    if all(runs) and not from_row and not tls_from_row:
        return [table | {"clients": len(runs), "client_hosts": "spokes"}]
    return [
        table
        | {"name": f"{table['name']}.{user}", "client_hosts": f"spokes[{user}]"}
        | ({"size": f"{round(sizes[user])}B"} if from_row else {})
        | ({"tls": tls.of_row(*handshakes[user])} if tls is not None and tls_from_row else {})
        for user, does in enumerate(runs)
        if does
    ]

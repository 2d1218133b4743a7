"""The checked request of `firstflight advise`; and whether a directory holds the advice of another request."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict, Unpack

from firstflight.advise.assume import Assumed, check_sizes
from firstflight.advise.assume import parse as parse_assumed
from firstflight.advise.budget import DEFAULT as DEFAULT_HARM
from firstflight.advise.budget import Term, parse
from firstflight.advise.certificates import CertificateChain
from firstflight.advise.certificates import parse as parse_chain
from firstflight.errors import RequestError
from firstflight.input_files import check_is_file, or_packaged, read_text
from firstflight.records import files
from firstflight.scenario.cell import check_seed
from firstflight.scenario.explain import cut

DEFAULT_WINDOWS = "10,16,20,32"
MOST_WINDOW = 1000
"""Nothing above was tried on a kernel; systemd-networkd takes 1023 at most."""
FEWEST_CONNECTIONS, DEFAULT_CONNECTIONS, MOST_CONNECTIONS = 100, 10_000, 100_000
REQUEST = "request.json"


class Options(TypedDict, total=False):
    """Options of the command line. None is the default.

    `iw`: the candidates, such as "10,16,20,32"; `harm`: the harm budget, such as "p99=+5%"; `kind`: the format of the
    flows, if not detected; `max_connections`: the number to simulate, at most (10,000); `assume_sizes`: a built-in
    application with the sizes that the data lacks (`sizes.NAMES`); `assume`: known values that the data lacks, such as
    "lines=uk-2023" (`assume.KEYS`); `certificates`: a chain to compare, such as "ml-dsa-44,intermediates=2".
    """

    iw: str | None
    harm: str | None
    kind: str | None
    seed: int | None
    max_connections: int | None
    assume_sizes: str | None
    assume: Sequence[str]
    certificates: str | None


@dataclass(frozen=True)
class AdviceRequest:
    """The options for `flows`, checked: RequestError for values out of range and a file that cannot be read."""

    flows: Path
    iw: str = DEFAULT_WINDOWS
    harm: str = DEFAULT_HARM
    seed: int = 1
    max_connections: int = DEFAULT_CONNECTIONS
    assume_sizes: str | None = None
    assume: Sequence[str] = ()
    certificates: str | None = None
    kind: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", check_seed(self.seed))
        if not FEWEST_CONNECTIONS <= self.max_connections <= MOST_CONNECTIONS:
            raise RequestError(
                f"--max-connections is {self.max_connections}; write a number from {FEWEST_CONNECTIONS} to "
                f"{MOST_CONNECTIONS}"
            )
        if self.assume_sizes is not None:
            check_sizes(self.assume_sizes)
        _ = self.windows, self.budget, self.assumed, self.chain, self.digest

    @cached_property
    def windows(self) -> tuple[int, ...]:
        """The candidates, ascending."""
        return windows(self.iw)

    @cached_property
    def budget(self) -> tuple[Term, ...]:
        """The terms of the harm budget."""
        return parse(self.harm)

    @cached_property
    def assumed(self) -> Assumed:
        """The values of `--assume`."""
        return parse_assumed(self.assume)

    @cached_property
    def chain(self) -> CertificateChain | None:
        """The chain of `--certificates`."""
        return None if self.certificates is None else parse_chain(self.certificates)

    @cached_property
    def digest(self) -> str:
        """Hash of the contents of the flows."""
        return _digest(self.flows)

    def identity(self) -> dict[str, object]:
        """The request whose results share one directory. Windows may be added, the budget changed and certificates
        compared without another simulation.
        """
        return {
            "flows": self.flows.name,
            "digest": self.digest,
            "kind": self.kind,
            "seed": self.seed,
            "max_connections": self.max_connections,
            "assume_sizes": self.assume_sizes,
            "assume": ",".join(sorted(self.assume)) or None,
        }

    def words(self) -> list[str]:
        """The command line without --out, every option given."""
        words = ["firstflight", "advise", str(self.flows)]
        for name in [field.name for field in fields(self)][1:]:
            value = getattr(self, name)
            for part in value if name == "assume" else [value]:
                words += [] if part is None else [f"--{name.replace('_', '-')}", str(part)]
        return words


def windows(text: str) -> tuple[int, ...]:
    """The initial windows of "10,16,20,32", ascending. RequestError for anything else."""
    numbers = []
    for part in text.split(","):
        word = part.strip()
        if not re.fullmatch("[0-9]{1,9}", word) or not 1 <= int(word) <= MOST_WINDOW:
            raise RequestError(
                f'--iw "{cut(text)}": "{cut(word)}" is not a number of segments from 1 to {MOST_WINDOW}; write for '
                f"example --iw {DEFAULT_WINDOWS}"
            )
        if int(word) in numbers:
            raise RequestError(f'--iw "{text}": {word} is there twice; keep one')
        numbers.append(int(word))
    return tuple(sorted(numbers))


def with_current(asked: tuple[int, ...], current: int) -> list[int]:
    """The windows to simulate. RequestError if there is nothing to compare with the current one."""
    if set(asked) == {current}:
        raise RequestError(
            f"--iw names only {current}, which is the current window, so there is nothing to compare it with; write "
            f"for example --iw {DEFAULT_WINDOWS}"
        )
    return sorted({*asked, current})


def check(flows: str | Path, **options: Unpack[Options]) -> AdviceRequest:
    """The request, or RequestError."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    return AdviceRequest(Path(flows), **given)


def _digest(path: Path) -> str:
    path = or_packaged(path)
    try:
        check_is_file(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:20]
    except FileNotFoundError:
        raise RequestError(f'there is no file "{path}"') from None
    except OSError as error:
        raise RequestError(f'"{path}" cannot be read: {error.strerror}') from None


def windows_before(directory: Path, request: AdviceRequest) -> set[int]:
    """The windows that were asked for in `directory` before. RequestError if it holds the advice of another request."""
    path = directory / REQUEST
    if not path.exists():
        return set()
    try:
        saved_request = json.loads(read_text(path))
        identity = dict(saved_request["identity"])
        windows_there = {int(window) for window in saved_request["windows"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise RequestError(f'"{path}" is damaged; choose another --out or add --set-aside') from None
    new_identity = request.identity()
    differing = [name for name in new_identity if identity.get(name) != new_identity[name]]
    if not differing:
        return windows_there
    if "digest" in differing:
        what = (
            f"the flows of {identity.get('flows')}"
            if "flows" in differing
            else f"{identity.get('flows')} with another content"
        )
    else:
        shown = [
            [name, *("not given" if it.get(name) is None else it[name] for it in (identity, new_identity))]
            for name in differing
        ]
        what = ", ".join(f"{name} {before} (now {now})" for name, before, now in shown)
    raise RequestError(
        f'"{directory}" holds the advice of another request: {what}; choose another --out, or add --set-aside'
    )


def remember(directory: Path, request: AdviceRequest, every: set[int]) -> None:
    """Store the request of `directory`. `every`: all windows that were asked for there."""
    content = {
        "identity": request.identity(),
        "windows": sorted(every),
        "harm": [asdict(term) for term in request.budget],
    }
    with files.explained(directory):
        files.write_json(directory / REQUEST, content)

"""Groups of prefixes that are judged together: as small as their samples allow, bounded in number, aged.

A prefix belongs to the smallest of its networks (/24, /20, /16 of IPv4; /48, /40, /32 of IPv6; then its AS) that had
enough connections lately. There is no group of everything, so that one network can never speak for all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path

from firstflight.errors import RequestError
from firstflight.guard.outcome import Network
from firstflight.input_files import check_is_file, named_text

# Three times a list of all prefixes of the Internet.
_MOST_BYTES = 100 << 20
_LEVELS = {4: (24, 20, 16), 6: (48, 40, 32)}


@dataclass(slots=True)
class Node:
    """A network or an AS, with its connections, older ones weighing less."""

    name: str
    connections: float = 0.0


class AsTable:
    """Autonomous systems by prefix; the longest match counts."""

    def __init__(self, prefixes: Mapping[Network, int]) -> None:
        self._prefixes = prefixes
        self._lengths = {
            version: sorted({prefix.prefixlen for prefix in prefixes if prefix.version == version}, reverse=True)
            for version in _LEVELS
        }

    @classmethod
    def read(cls, path: Path) -> "AsTable":
        """Lines of a prefix and an AS number, separated by blanks or a comma; `#` begins a comment."""
        check_is_file(path)
        return cls(dict(_prefixes(path, named_text(path, _MOST_BYTES).splitlines())))

    def number(self, prefix: Network) -> int | None:
        """The AS of a prefix; None if no entry holds it."""
        for length in self._lengths[prefix.version]:
            if length <= prefix.prefixlen:
                group = self._prefixes.get(prefix.supernet(new_prefix=length))
                if group is not None:
                    return group
        return None


def _prefixes(path: Path, lines: Iterable[str]) -> Iterable[tuple[Network, int]]:
    for place, line in enumerate(lines, 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            prefix, text = words
            number = int(text.upper().removeprefix("AS"))
            if not 0 < number < 1 << 32:
                raise ValueError
            yield ip_network(prefix), number
        except ValueError:
            raise RequestError(
                f'{path}:{place}: "{line.strip()[:80]}" is no prefix with an AS; write for example 192.0.2.0/24 AS64500'
            ) from None


@dataclass(slots=True)
class Groups:
    """All networks that were seen lately."""

    least_connections: int = 1000
    """A network with fewer joins the next larger one."""
    half_life_s: float = 7 * 86400.0
    """After this time a connection weighs half."""
    most: int = 65_536
    """Networks kept at most; prefixes beyond that belong to no group."""
    table: AsTable | None = None
    _nodes: dict[str, Node] = field(default_factory=dict)

    def chain(self, prefix: Network) -> tuple[Node, ...]:
        """The networks of a prefix, smallest first; empty if there is no room for them."""
        names = self._names(prefix)
        missing = sum(name not in self._nodes for name in names)
        if len(self._nodes) + missing > self.most:
            return ()
        return tuple(self._nodes.setdefault(name, Node(name)) for name in names)

    def chosen(self, chain: tuple[Node, ...]) -> Node:
        """The smallest network with enough connections; the largest one if none has."""
        for node in chain:
            if node.connections >= self.least_connections:
                return node
        return chain[-1]

    def counts(self) -> dict[str, float]:
        """Connections of each network by name, older ones weighing less, to be kept."""
        return {name: node.connections for name, node in self._nodes.items()}

    def largest(self) -> Node | None:
        """The network with most connections; of several the smallest."""
        return max(self._nodes.values(), key=lambda node: node.connections, default=None)

    def restore(self, counts: Mapping[str, float]) -> None:
        """Begin with the counts of an earlier process."""
        self._nodes = {name: Node(name, connections) for name, connections in counts.items()}

    def age(self, elapsed_s: float, in_use: set[str]) -> None:
        """Let connections weigh less, and forget networks of which nothing is left and that are not `in_use`."""
        factor = 0.5 ** (elapsed_s / self.half_life_s)
        for name, node in list(self._nodes.items()):
            node.connections *= factor
            if node.connections < 0.5 and name not in in_use:
                del self._nodes[name]

    def _names(self, prefix: Network) -> list[str]:
        lengths = [length for length in _LEVELS[prefix.version] if length <= prefix.prefixlen]
        names = [str(prefix.supernet(new_prefix=length)) for length in lengths] or [str(prefix)]
        number = self.table.number(prefix) if self.table is not None else None
        return names if number is None else [*names, f"AS{number}"]

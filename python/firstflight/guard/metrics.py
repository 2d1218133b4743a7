"""Prometheus metrics on loopback: per group and arm, bounded in number."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from firstflight.errors import MachineError
from firstflight.guard.closed import Counts
from firstflight.guard.outcome import Network, Outcome

# Networks of this length, and no more than this number; the rest are one.
_LENGTHS = {4: 16, 6: 32}
_MOST_GROUPS = 100
_COUNTERS = {
    "connections": "Finished connections that were judged.",
    "first_flight_known_connections": "Of these, short enough to show a loss in the first flight.",
    "first_flight_lost_connections": "Of these, with a retransmission that no DSACK explains.",
    "retransmissions": "Segments of data retransmitted in judged connections.",
    "timeouts": "Retransmission timeouts in judged connections.",
    "acked_bytes": "Data acknowledged in judged connections.",
    "marks": "Segments acknowledged with a CE mark in judged connections.",
}
_TOTALS = {
    "reported_connections": ("reported", "Connections whose end the kernel reported."),
    "passed_over_connections": ("passed_over", "Over loopback, of other ports, or without acknowledged data."),
    "beyond_limit_connections": ("beyond", "Left out since more closed than are judged per second."),
    "dropped_reports": ("dropped", "Reports that the kernel dropped since the socket was full."),
}


class Metrics:
    """Counters by group and arm, and the text of a scrape."""

    def __init__(self) -> None:
        self._groups: dict[Network, str] = {}
        self._counted: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0] * len(_COUNTERS))
        self._text = b""

    @classmethod
    @contextmanager
    def served(cls, port: int | None) -> Iterator["Metrics"]:
        """With a port, at http://127.0.0.1:PORT/metrics. Raises MachineError if it is taken."""
        metrics = cls()
        if port is None:
            yield metrics
            return
        # 5 MB that a guard without metrics does not need.
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_here = self.path == "/metrics"
                self.send_response(200 if is_here else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.end_headers()
                self.wfile.write(metrics._text if is_here else b"see /metrics\n")

            def log_message(self, *_: Any) -> None:
                """Scrapes are no news."""

        try:
            server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except OSError as error:
            raise MachineError(f"metrics on 127.0.0.1:{port}: {error.strerror}; choose another port") from None
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield metrics
        finally:
            server.shutdown()
            server.server_close()

    def count(self, outcome: Outcome) -> None:
        """Add a judged connection."""
        prefix = outcome.prefix
        name = self._groups.get(prefix)
        if name is None:
            name = str(prefix.supernet(new_prefix=min(_LENGTHS[prefix.version], prefix.prefixlen)))
            known = {group for group, _ in self._counted}
            if name not in known and len(known) >= _MOST_GROUPS:
                name = "other"
            if len(self._groups) >= 65_536:
                self._groups.clear()
            self._groups[prefix] = name
        counters = self._counted[name, outcome.arm]
        known_flight = outcome.first_flight_lost is not None
        values = (
            1,
            known_flight,
            bool(outcome.first_flight_lost),
            outcome.retransmissions,
            outcome.timeouts,
            outcome.bytes_acked,
            outcome.marks or 0,
        )
        for place, value in enumerate(values):
            counters[place] += value

    def show(self, status: dict[str, Any], counts: Counts) -> None:
        """The text for the next scrape."""
        lines: list[str] = []

        def metric(name: str, kind: str, meaning: str, values: list[tuple[str, float]]) -> None:
            lines.append(f"# HELP firstflight_guard_{name} {meaning}")
            lines.append(f"# TYPE firstflight_guard_{name} {kind}")
            lines.extend(f"firstflight_guard_{name}{labels} {value:.15g}" for labels, value in values)

        for place, (name, meaning) in enumerate(_COUNTERS.items()):
            by_arm = [(f'{{group="{g}",arm="{a}"}}', numbers[place]) for (g, a), numbers in self._counted.items()]
            metric(f"{name}_total", "counter", meaning, by_arm)
        for name, (which, meaning) in _TOTALS.items():
            metric(f"{name}_total", "counter", meaning, [("", getattr(counts, which))])
        metric("routes", "gauge", "Prefixes whose initial window is set now.", [("", status["windows_set"])])
        metric("hands_off_prefixes", "gauge", "Prefixes with a route of another process.", [("", status["hands_off"])])
        if "route_changes" in status:
            metric("route_changes_total", "counter", "Routes set, changed or removed.", [("", status["route_changes"])])
            metric("barred", "gauge", "1 while policy routing forbids routes.", [("", status["barred"] is not None)])
            waiting = [("", status["windows_waiting"])]
            metric("waiting_prefixes", "gauge", "Prefixes without their window until routes have settled.", waiting)
        evidence = [(f'{{group="{group["group"]}"}}', group["e_value"]) for group in status["groups"]]
        metric("e_value", "gauge", "Evidence that the raised arm is worse; 1/alpha stops it.", evidence)
        self._text = ("\n".join(lines) + "\n").encode()

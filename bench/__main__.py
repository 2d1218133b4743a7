"""`python -m bench`, from a checkout: the cost of the simulator, next to ns-2 and ns-3 where they are installed.

Benchmarks, not timed tests: a speed that falls short is printed as such and fails nothing. Only checks can fail (exit
status 1): that both simulators did the same work, that a count of instructions has not risen, that the guard saw each
connection.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial

from bench import bulk, captures, cost, guard, instructions, linkbox, lossy, population, same_work, sweep
from bench.peers import INSTALL, Ns2, Peer, build_ns3, find_ns2
from bench.row import Row, as_json, as_text
from firstflight.errors import FirstflightError, MachineError

Step = tuple[str, Callable[[], list[Row]]]


def simulator(peers: bool, json: bool = False) -> int:
    """Measure, and print a table (JSON if asked: [{work, ours, peer, peer_value, ratio, unit}]) to stdout.

    `peers`: compare with ns-2 and ns-3 too, as far as they are installed; a missing one leaves its figures out and
    is named on stderr with the line that installs it. Takes about two minutes alone and seven with both peers,
    on an otherwise idle machine with two cores. Returns 0, or 1 if a check that both simulators did the same
    work did not hold. Raises MachineError where a program fails or the scripts are missing.
    """
    with build_ns3() if peers else nullcontext() as ns3:
        ns2 = find_ns2() if peers else None
        present: list[Peer] = [peer for peer in (ns2, ns3) if peer is not None]
        if peers and len(present) < 2:
            missing = " and ".join(sorted({"ns-2", "ns-3"} - {peer.name for peer in present}))
            print(f"{missing} not found, so only firstflight is measured there: {INSTALL}", file=sys.stderr)
        rows = [row for step in _steps(present, ns2, peers) for row in _measured(step)]
    print(as_json(rows) if json else as_text(rows))
    return 1 if any(row.same is False for row in rows) else 0


def _steps(present: list[Peer], ns2: Ns2 | None, beside: bool) -> Iterator[Step]:
    for form in bulk.FORMS:
        yield form.title, partial(bulk.rows, form, present)
    yield "instructions", _instructions
    yield lossy.TITLE, partial(lossy.rows, ns2)
    yield "RFC 2415 sweep", lambda: sweep.rows(ns2, beside)
    yield "two threads", lambda: [sweep.threads_row()]
    yield "packet-hop", lambda: [cost.hop_row()]
    yield "shared queue", lambda: [cost.shared_queue_row()]
    yield "connections", cost.connection_rows
    yield "linearity", cost.linearity_rows
    yield "populations", population.rows
    yield "captures", captures.rows
    if ns2 is not None:
        yield "same work, bulk", lambda: same_work.bulk_rows(ns2)
        yield f"same work, {lossy.TITLE}", lambda: lossy.same_work_rows(ns2)
        yield "same work, authors' TCP", lambda: same_work.authors_rows(ns2)
        yield "same work, pages", lambda: same_work.page_rows(ns2)


def _instructions() -> list[Row]:
    """The instructions a packet, or none and a word on stderr where they cannot be counted."""
    try:
        return instructions.rows()
    except MachineError as error:
        print(f"no instructions a packet: {error}", file=sys.stderr)
        return []


def _measured(step: Step) -> list[Row]:
    title, measure = step
    if sys.stderr.isatty():
        print(f"measuring {title} ...", file=sys.stderr)
    return measure()


def main() -> int:
    """Measure what the command line asks for; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure the cost of the simulator.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--peers", action="store_true", help="compare with ns-2 and ns-3, if installed")
    instead.add_argument("--instructions", action="store_true", help="count only instructions per packet")
    instead.add_argument("--linkbox", action="store_true", help="measure the link emulator: accuracy and capacity")
    instead.add_argument("--guard", action="store_true", help="measure the CPU cost of the guard next to nginx")
    options = parser.parse_args()
    try:
        if options.guard:
            return guard.main(options.json)
        if options.instructions:
            return instructions.main(options.json)
        if options.linkbox:
            return linkbox.main(options.json)
        return simulator(options.peers, options.json)
    except FirstflightError as error:
        print(f"bench: {error}", file=sys.stderr)
        return error.exit_status


if __name__ == "__main__":
    sys.exit(main())

"""Commands and their options. Each command imports its implementation when it is called."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from firstflight.cli.guarding import guard
from firstflight.errors import require_linux

app = typer.Typer(
    name="firstflight",
    help="A laboratory for TCP's initial window.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(guard, name="guard", short_help="Raise the initial window of this host, with a stop rule.")


class Format(StrEnum):
    """The format of a printed table."""

    text = "text"
    csv = "csv"
    json = "json"


class Picture(StrEnum):
    """The format of a written figure."""

    svg = "svg"
    png = "png"
    pdf = "pdf"


Directory = Annotated[Path, typer.Argument(metavar="DIR", help="A run's directory.", show_default=False)]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set a key of the scenario, such as tcp.initial_window=10."),
]
Seed = Annotated[int | None, typer.Option(help="Seed of all random numbers.", show_default=False)]


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        from firstflight.records.machine import version as package_version

        print(package_version())
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(2)


@app.command(short_help="Run a study or a scenario.")
def run(
    what: Annotated[
        str, typer.Argument(metavar="STUDY|FILE.toml", help="A study's name or a scenario file.", show_default=False)
    ],
    engine: Annotated[
        str | None,
        typer.Option(help="simulate, model or emulate. Default: the study's first engine.", show_default=False),
    ] = None,
    replicates: Annotated[int | None, typer.Option(help="Replicates of each cell.", show_default=False)] = None,
    seed: Seed = None,
    jobs: Annotated[
        int | None, typer.Option(help="Number of threads. Default: one per CPU.", show_default=False)
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE[,VALUE]", help="Run only these cells of the grid.")
    ] = None,
    settings: Settings = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE,VALUE[,VALUE]", help="Run a scenario once per value of a key."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Output directory. Default: runs/NAME.", show_default=False)
    ] = None,
    on: Annotated[
        str,
        typer.Option(
            metavar="PLACE",
            help="Where to compute: local, dask (processes on this machine), dask+tls://HOST:PORT or dask://HOST:PORT.",
        ),
    ] = "local",
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="With --on dask: storage that all workers share, for chunks.", show_default=False
        ),
    ] = None,
    set_aside: Annotated[
        bool, typer.Option("--set-aside", help="If DIR holds another run, rename it to DIR.1 and start a new one.")
    ] = False,
) -> None:
    """Run a study or a scenario. The same command continues an interrupted run."""
    from firstflight.cli.running import Wanted, run_command

    wanted = Wanted(engine, replicates, seed, jobs, only or [], settings or [], vary or [], on, store)
    run_command(what, wanted, out, set_aside)


@app.command(short_help="List the studies.")
def studies() -> None:
    """List the studies: name, source, engines and subject."""
    from firstflight.cli.reading import print_studies

    print_studies()


@app.command()
def claims(directory: Directory, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Check each claim of the publication against a run."""
    from firstflight.cli.reading import print_claims

    print_claims(directory, json)


@app.command()
def table(
    directory: Directory,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A table's name. Without it, print all names.", show_default=False),
    ] = None,
    format: Annotated[Format, typer.Option(help="text, csv (tidy) or json.")] = Format.text,
) -> None:
    """Print a table of a run next to the published values. Without NAME, list the tables."""
    from firstflight.cli.reading import print_table

    print_table(directory, name, format.value)


@app.command(short_help="Write the report of a run.")
def report(
    directory: Directory,
    figures: Annotated[
        bool, typer.Option("--figures", help="Also write each figure to DIR/figures, as SVG and PNG.")
    ] = False,
    format: Annotated[
        list[Picture] | None, typer.Option(help="With --figures: format to write, such as pdf. May be repeated.")
    ] = None,
) -> None:
    """Write DIR/report.html: one page with text, figures and tables, without external files."""
    from firstflight.cli.reading import write_report

    write_report(directory, figures, [form.value for form in format or []])


@app.command(short_help="Show one transfer segment by segment.")
def trace(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="A scenario file.", show_default=False)],
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="F", help="Draw sequence numbers, cwnd, rwnd and queue to .svg, .png or .pdf.", show_default=False
        ),
    ] = None,
    ladder: Annotated[
        Path | None,
        typer.Option(
            metavar="F",
            help="Draw segments between the endpoints, and rounds, to .svg, .png or .pdf.",
            show_default=False,
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,VALUE[,VALUE]", help="With --plot or --ladder: draw one transfer per value of a key."
        ),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="F", help="Write the segments as CSV. - is stdout.", show_default=False)
    ] = None,
    pcap: Annotated[
        Path | None,
        typer.Option(metavar="F", help="Write the packets as pcapng, or pcap if F ends in .pcap.", show_default=False),
    ] = None,
    at: Annotated[
        Literal["client", "server"] | None,
        typer.Option(help="With --pcap: capture at this endpoint. Default: client.", show_default=False),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --pcap: capture at the receiving side of this link, both directions.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        Literal["simulate", "emulate", "both"],
        typer.Option(help="Run in the simulator, over the local kernel, or, with --plot, both."),
    ] = "simulate",
    settings: Settings = None,
    seed: Seed = None,
) -> None:
    """Print each segment of one transfer: the first connection of the scenario's first application."""
    from firstflight.cli.tracing import Outputs, trace_command

    outputs = Outputs(plot, ladder, csv, pcap, at, link, engine)
    trace_command(file, outputs, settings or [], vary or [], seed)


@app.command(short_help="Open the explorer in a browser.")
def explore(
    what: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE.toml|RUN",
            help="A scenario file or a run's directory. Default: a download.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Open the cell of the run that has this value.")
    ] = None,
    settings: Settings = None,
    seed: Seed = None,
    out: Annotated[
        Path | None, typer.Option(metavar="F", help="Write the page to this file instead.", show_default=False)
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on loopback. 0: any free port.")] = 0,
) -> None:
    """Open the explorer in a browser: one transfer with two settings side by side, segment by segment. The page is
    served on loopback and loads nothing else.
    """
    from firstflight.cli.exploring import explore_command

    explore_command(what, only or [], settings or [], seed, out, port)


@app.command(short_help="Run any program inside a scenario's network.")
def shell(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="A scenario file.", show_default=False)],
    program: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- PROGRAM...]", help="Program to run. Default: your shell.", show_default=False),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Host to run it on: client, server, node1, spokes0 ...")
    ] = "client",
    beside: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST=COMMAND", help="Also run COMMAND on HOST meanwhile. May be repeated.", show_default=False
        ),
    ] = None,
    serve: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Serve the files in DIR with nginx at http://server/ and https://server/.",
            show_default=False,
        ),
    ] = None,
    pcap: Annotated[
        Path | None,
        typer.Option(metavar="F", help="Write the packets at the server as pcapng.", show_default=False),
    ] = None,
    links: Annotated[
        Path | None,
        typer.Option(
            metavar="F",
            help="Write the packets at the receiving side of each link as pcapng, one interface per link.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="F", help="Draw the connection with most bytes, to .svg, .png or .pdf.", show_default=False
        ),
    ] = None,
    settings: Settings = None,
    seed: Seed = None,
) -> None:
    """Run a shell or any program on a host of a scenario's network, over its links. TCP is the local kernel's, set as
    the scenario says. Hosts have names (server, client, node0 ...). Needs user namespaces, not root.
    """
    require_linux("firstflight shell")
    from firstflight.cli.shelling import Wanted, shell_command

    wanted = Wanted(program or [], host, beside or [], serve, pcap, links, plot)
    raise typer.Exit(shell_command(file, wanted, settings or [], seed))


@app.command(short_help="Run packet scripts.")
def script(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Scripts, or directories of .pkt files.", show_default=False)
    ],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    tolerance: Annotated[
        str, typer.Option(metavar="DURATION", help="Allowed time error of an event. packetdrill allows 4ms.")
    ] = "1us",
) -> None:
    """Run packet scripts in packetdrill's language: they list the packets that a TCP must send and receive."""
    from firstflight.cli.scripting import script_command

    raise typer.Exit(script_command(paths, json, tolerance))


@app.command(short_help="Compare the local kernel with the linux profile.")
def conform(
    count: Annotated[int, typer.Option(min=1, max=100_000, help="Number of connections to record.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the random connections.")] = 1,
    cc: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Congestion controls, such as cubic,reno,bbr.", show_default="cubic,reno"),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the scripts in DIR, for firstflight script.", show_default=False),
    ] = None,
) -> None:
    """Record random connections of the local kernel as packet scripts, run them through the linux profile, and shrink
    those that differ. Needs user namespaces and a TUN device, not root.
    """
    require_linux("firstflight conform")
    from firstflight.cli.conforming import conform_command

    raise typer.Exit(conform_command(count, seed, cc, record))


@app.command(short_help="Measure the initial window of a server.")
def probe(
    urls: Annotated[
        list[str] | None,
        typer.Argument(metavar="URL...", help="https or http. A host name means https.", show_default=False),
    ] = None,
    listed: Annotated[
        Path | None,
        typer.Option("--list", metavar="FILE", help="File with more URLs, one per line.", show_default=False),
    ] = None,
    mss: Annotated[
        str, typer.Option(metavar="BYTES,...", help="Segment sizes (MSS) to offer the server.")
    ] = "64,536,1460",
    repeats: Annotated[int, typer.Option(min=1, max=100, help="Connections per segment size.")] = 3,
    pause: Annotated[float, typer.Option(metavar="S", min=0, help="Pause between connections to one server.")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per URL, with each flight.")] = False,
) -> None:
    """Request an object, send no ACK for it, and count the segments until the server retransmits. Needs CAP_NET_RAW
    (sudo). Changes nothing on this machine.
    """
    require_linux("firstflight probe")
    from firstflight.cli.probing import probe_command

    raise typer.Exit(probe_command(urls or [], listed, mss, repeats, pause, as_json))


@app.command(short_help="Compare two initial windows round by round.")
def explain(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE.toml]", help="A scenario file. Default: 30 kB, RTT 100 ms.")
    ] = None,
    iw: Annotated[str, typer.Option(metavar="N,N", help="Initial windows to compare, in segments.")] = "3,10",
    settings: Settings = None,
    seed: Seed = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE.html",
            help="Also write a page with ladder diagrams and a glossary.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print the rounds of a transfer with each initial window, and the time that the larger one saves."""
    from firstflight.cli.explaining import explain_command

    explain_command(file, iw, settings or [], seed, out)


@app.command(short_help="Read your own traffic: logs, captures, tables.")
def observe(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="A log, snapshots, a capture or a table; a rotated log in order; - for standard input.",
            show_default=False,
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            help="nginx, ss, capture, ndt7, log or table. Default: detected from the content.", show_default=False
        ),
    ] = None,
    log_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "--log-format",
            metavar="STRING",
            help="Format of a log: nginx's log_format, Apache's LogFormat, or JSON fields (\"bytes=response.size\").",
            show_default=False,
        ),
    ] = None,
    mss: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            help="Payload of a full segment, if the file does not have it. Default: 1448.",
            min=1,
            max=65495,
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="F", help="Write one row per response, to .parquet or .csv.", show_default=False),
    ] = None,
) -> None:
    """Read your own traffic as records. Print a summary, the columns that it lacks and the rows skipped."""
    from firstflight.cli.observing import observe_command

    observe_command(files, kind, log_format, mss, out)


@app.command(short_help="Recommend an initial window for your own users.")
def advise(
    flows: Annotated[
        Path | None,
        typer.Argument(metavar="FLOWS", help="Observed connections: a log, capture or table.", show_default=False),
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="BEFORE AFTER", help="Compare two data sets instead. Nothing is simulated.", show_default=False
        ),
    ] = None,
    concurrent: Annotated[
        bool,
        typer.Option("--concurrent", help="With --compare: both arms were served at the same time, split at random."),
    ] = False,
    iw: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...", help="Candidate initial windows, in segments. Default: 10,16,20,32.", show_default=False
        ),
    ] = None,
    harm: Annotated[
        str | None,
        typer.Option(
            metavar="BUDGET",
            help="Limits on regressions. Default: retransmissions=+0.5,p99=+5%,others=+5%,groups=+5%.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Output directory. Default: runs/advice-NAME.", show_default=False),
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Format of FLOWS, if not detected.", show_default=False)] = None,
    max_connections: Annotated[
        int | None, typer.Option(help="Maximum number of connections to simulate. Default: 10000.", show_default=False)
    ] = None,
    assume_sizes: Annotated[
        str | None,
        typer.Option(
            metavar="APPLICATION",
            help="For flows without sizes, such as speed tests: assume those of an application, such as web-search.",
            show_default=False,
        ),
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Value to assume where FLOWS lacks it. May be repeated: "
            "paths=uk-2023+30ms or rtt=50ms (for flows without RTT), lines=uk-2023 (or uk-2015, avgdc, 20Mbit), "
            "buffer=130ms, connections=4, loss=0.5%.",
            show_default=False,
        ),
    ] = None,
    certificates: Annotated[
        str | None,
        typer.Option(
            metavar="CHAIN",
            help="Show what users lose with other certificates, such as ml-dsa-44 or ml-dsa-44,intermediates=2, and "
            "which window, chain or record size wins it back.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = None,
    jobs: Annotated[
        int | None, typer.Option(help="Number of threads. Default: one per CPU.", show_default=False)
    ] = None,
    set_aside: Annotated[
        bool, typer.Option("--set-aside", help="If DIR holds other advice, rename it to DIR.1 and start a new one.")
    ] = False,
) -> None:
    """Recommend an initial window from observed connections: gain and cost of each candidate by user group, with
    confidence.
    """
    from firstflight.errors import RequestError

    if compare is not None:
        from firstflight.cli.comparing_arms import compare_arms_command

        simulating = {
            "FLOWS": flows,
            "--iw": iw,
            "--max-connections": max_connections,
            "--assume-sizes": assume_sizes,
            "--assume": assume,
            "--certificates": certificates,
            "--jobs": jobs,
            "--set-aside": set_aside,
        }
        if given := [name for name, value in simulating.items() if value]:
            raise RequestError(f"--compare takes two data sets and simulates nothing; leave out {', '.join(given)}")
        compare_arms_command(compare, harm, kind, out, seed, concurrent)
        return
    if concurrent:
        raise RequestError("--concurrent is about the data sets of --compare; add --compare BEFORE AFTER")
    if flows is None:
        raise RequestError("advise: FLOWS is missing; name a log, capture or table, or add --compare BEFORE AFTER")
    from firstflight.cli.advising import advise_command

    advise_command(
        flows,
        iw or "10,16,20,32",
        harm,
        kind,
        out,
        seed,
        jobs,
        max_connections,
        assume_sizes,
        assume or [],
        certificates,
        set_aside,
    )


@app.command(short_help="Evaluate a scheme by the cases of RFC 9743.")
def scorecard(
    scheme: Annotated[
        str,
        typer.Argument(
            metavar="SCHEME|FILE.toml",
            help="A start-up scheme or congestion control, or a file with a [tcp] table.",
            show_default=False,
        ),
    ],
    reference: Annotated[
        str, typer.Option(metavar="SCHEME|FILE.toml", help="Scheme to compare with, in the profile linux.")
    ] = "cubic",
    replicates: Annotated[
        int | None, typer.Option(help="Replicates of each case. Default: 30.", show_default=False)
    ] = None,
    seed: Seed = None,
    jobs: Annotated[
        int | None, typer.Option(help="Number of threads. Default: one per CPU.", show_default=False)
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="CASE[,CASE]", help="Run only these cases, such as bufferbloat.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Output directory. Default: runs/scorecard-SCHEME.", show_default=False),
    ] = None,
    set_aside: Annotated[
        bool, typer.Option("--set-aside", help="If DIR holds another run, rename it to DIR.1 and start a new one.")
    ] = False,
) -> None:
    """Simulate every evaluation case of RFC 9743 with a scheme and with a reference. Print the verdicts and write a
    page.
    """
    from firstflight.cli.scoring import scorecard_command

    scorecard_command(scheme, reference, replicates, seed, jobs, only or [], out, set_aside)


@app.command(short_help="List the features of this machine.")
def doctor(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the features of this machine and how to fix each one that is missing."""
    from firstflight.cli.examining import examine

    raise typer.Exit(examine(json))

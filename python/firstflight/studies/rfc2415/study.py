"""The study: from a point of the grid to a scenario, from a run to tables, claims and figures."""

from __future__ import annotations

import tomllib
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any

from firstflight.scenario import Scenario
from firstflight.scenario.cell import Cell
from firstflight.scenario.units import BitsPerSecond, Packets
from firstflight.studies.rfc2415 import answer, claims, tables
from firstflight.studies.rfc2415.grid import REPLICATES, SCALE_FACTOR, Point, points
from firstflight.studies.rfc2415.measure import HERE, measure
from firstflight.studies.study import Study

if TYPE_CHECKING:
    from firstflight.analysis import Claim, Table
    from firstflight.records import Run
    from firstflight.report.figure import Figure

SCENARIO = HERE / "scenario.toml"
LONG_DURATION = "1440s"
# ns-2's default window, which also is its first ssthresh.
FTP_WINDOW_20 = {"max_send_window_segments": 20, "initial_ssthresh_segments": 20, "receive_window": "29200B"}
RED = {
    # ns-2's defaults of 1998, before gentle mode existed; the RFC names only "the RED included with ns-2".
    "kind": "red",
    "min_threshold_packets": 5.0,
    "max_threshold_packets": 15.0,
    "max_probability": 0.1,
    "weight": 0.002,
    "gentle": False,
    "mean_packet": "500B",
}


class Rfc2415(Study):
    """Poduri and Nichols 1998, as published and with what they left unreported."""

    name = "rfc2415"
    title = "RFC 2415: does a larger initial window help web pages on a busy link?"
    source = "K. Poduri, K. Nichols: Simulation Studies of Increased Initial TCP Window Size, RFC 2415, 1998."
    engines = ("simulate",)
    shows = "initial windows of 1 to 4 segments for web pages beside file transfers on a 1.5 Mbit/s link"
    asked = (
        "8 to 64 web clients and up to three endless file transfers share a 1.5 Mbit/s link with room for 25 packets. "
        "Does an initial window of two, three or four segments instead of one bring pages sooner, and what does it do "
        "to drops and to the other traffic? The RFC's tables and figures, ours beside the printed values, and a "
        "verdict for each of its statements."
    )
    limitations = (
        "The authors' scripts are lost. ACK policy, RTT samples and recovery are those of their TCP, which survives in "
        "ns-2.35. File sizes, access delay, the first timeout and the start of a page's clock are fitted, once for all "
        "cells, on the columns for 8 and 16 webs without ftps; scenario.toml and study.toml mark each of them. All "
        "other cells are predictions.",
        "The RFC's numbers come from single runs of an unknown seed: part of any difference is their scatter, which "
        "our intervals do not cover.",
        "Goodput in the RFC's Table 6 is about a fifth below what its own utilisation implies; ratios can be compared, "
        "absolute values cannot.",
        "The figures of the RFC's PDF edition are not available as numbers; where a point follows from a "
        "printed table it is shown.",
        "RED, reverse traffic, faster links and longer runs follow our reading of one sentence each; the "
        "RFC gives no settings.",
        "Pages and files still under way when the run ends count for goodput, not for delays.",
    )
    replicates = 10

    def cells(self, engine: str) -> list[Cell]:
        """The grid of `grid.points`, each with its scenario."""
        return [Cell(point._asdict(), scenario(point), REPLICATES.get(point.variant)) for point in points()]

    def tables(self, run: Run) -> list[Table]:
        """Tables 1 to 6, the data of Figures 1 to 4, `red`, `reverse`, `scale`, `longer`; those with data."""
        return tables.all_tables(measure(run))

    def claims(self, run: Run) -> list[Claim]:
        """Every statement of the RFC with its verdict."""
        return claims.all_claims(measure(run))

    def figures(self, run: Run) -> list[Figure]:
        """Page delay, drop rate and Figures 1 to 4."""
        from firstflight.studies.rfc2415 import figures  # late: charts are only needed for a report

        return figures.all_figures(self.tables(run))

    def answer(self, run: Run) -> list[str]:
        """What users gain, what it costs, how far the RFC is confirmed."""
        return answer.answer(measure(run), self.claims(run))


def scenario(point: Point) -> Scenario:
    """The scenario of a grid point, made from scenario.toml. Raises RequestError if that file is wrong."""
    document = deepcopy(_document())
    applications = {application["name"]: application for application in document["application"]}
    web, ftp = applications["web"], applications["ftp"]
    web |= {"clients": point.webs, "version": point.http}
    ftp["clients"] = point.ftps
    chosen = [web, ftp] if point.ftps else [web]
    if point.iw == "1+3":
        document["tcp"]["initial_window"] = 1
        web["clients"] = point.webs // 2
        chosen.append(deepcopy(web) | {"name": "web_iw3", "tcp": {"initial_window": 3}})
    else:
        document["tcp"]["initial_window"] = int(point.iw)
    if point.variant == "reverse":
        chosen += [_mirrored(application) for application in chosen]
    if point.variant in SCALE_FACTOR:
        _scale(document["network"], chosen, SCALE_FACTOR[point.variant])
    if point.variant == "red":
        bottleneck = document["network"]["bottleneck"]
        bottleneck["queue"] |= RED
    if point.variant == "ftp_window_20":
        ftp["tcp"] = FTP_WINDOW_20
    if point.variant == "long":
        document["duration"] = LONG_DURATION
    document["application"] = chosen
    return Scenario.from_dict(document, directory=HERE, source=str(SCENARIO))


@cache
def _document() -> dict[str, Any]:
    with SCENARIO.open("rb") as file:
        return tomllib.load(file)


def _mirrored(application: dict[str, Any]) -> dict[str, Any]:
    return deepcopy(application) | {
        "name": f"mirrored_{application['name']}",
        "client_hosts": "right",
        "server_hosts": "left",
    }


def _scale(network: dict[str, Any], applications: list[dict[str, Any]], factor: int) -> None:
    """Rates, clients and buffers times `factor`.

    The bottleneck's buffer keeps its 200 ms. Delays, file sizes and the window limit of 11 segments stay:
    they belong to distance, content and hosts, not to the link's rate.
    """
    for name in ("bottleneck", "left", "right"):
        link = network[name]
        link["rate"] = f"{int(BitsPerSecond(link['rate'])) * factor}bit"
        link["queue"]["limit"] = f"{int(Packets(link['queue']['limit'])) * factor}p"
    for application in applications:
        application["clients"] *= factor

"""The scorecard of RFC 9743: a scheme instead of the reference in every evaluation case."""

from collections.abc import Mapping, Sequence, Set
from typing import Any

import xarray as xr

from firstflight.analysis.table import Metric, Table, rows_frame
from firstflight.errors import RequestError
from firstflight.records import Run
from firstflight.report.figure import Figure
from firstflight.scenario import Scenario
from firstflight.studies.kernel import ClaimSpec, DeclaredStudy, Quantities, Source, at_least, at_most, intervals, named
from firstflight.studies.scorecard.case import Case, Judged, MeasureChange, Verdict, counted, in_order, in_words
from firstflight.studies.scorecard.scheme import Scheme, scheme

NAME, REFERENCE = "scorecard", "cubic"
CHANGE = Metric("change", "Change", 2)
# Sections of RFC 9743 that no case measures.
NOT_MEASURED = [
    (
        "5.3.1",
        "Differences with congestion control principles",
        "Not a measurement: the proposal explains its deviations from RFC 2914 and RFC 7141.",
    ),
    ("7.6", "Misbehaving nodes", "Not modeled: simulated receivers and routers follow their protocols."),
    ("7.10", "Multipath transport", "Not modeled: a connection has one path."),
]

__all__ = ["NAME", "REFERENCE", "Judged", "Scheme", "Scorecard", "scheme"]


class Scorecard(DeclaredStudy):
    """The cases of study.toml for one scheme, whose label is the second of the key `scheme`."""

    def __init__(self, scheme: Scheme, reference: Scheme) -> None:
        if scheme.name == reference.name:
            raise RequestError(f'"{scheme.name}" is the reference too; choose another with --reference')
        self.schemes = {reference.name: reference, scheme.name: scheme}
        self._cases: list[Case] = []
        super().__init__(
            __file__, (), self._claims_of, lambda q: (), self._figures_of, self._answer_of, self._build_case
        )
        key = {"scheme": {"title": "scheme", "values": list(self.schemes)}}
        self._case_tables = self._declared["grids"]
        self._declared["grids"] = {
            name: {"scenario": "path.toml", "keys": key | case.get("keys", {})}
            for name, case in self._case_tables.items()
        }
        self._cases += [Case(name, case) for name, case in self._case_tables.items()]
        self._choose({case.id for case in self._cases})
        self._own, self._reference = scheme.name, reference.name
        self.title = f"RFC 9743 scorecard of {scheme.name} against {reference.name}"  # type: ignore[misc]

    @classmethod
    def of(cls, run: Run) -> "Scorecard":
        """That of a run. Its cells name the schemes, and their settings are in the scenarios."""
        names = list(dict.fromkeys(str(cell["scheme"]) for cell in run.cells))
        if len(names) < 2:
            raise RequestError(f'"{run.directory}" has no finished case yet; continue it with "firstflight scorecard"')
        reference, scheme = names
        card = cls(Scheme(scheme), Scheme(reference))
        card._choose({str(cell["experiment"]) for cell in run.cells})
        return card

    def _choose(self, names: Set[str]) -> None:
        """Measure these cases only: results that depend on others need not be computed."""
        self._lacking = [case for case in self._cases if case.id not in names]
        self._cases = [case for case in self._cases if case.id in names]
        self._quantities = [quantity for case in self._cases for quantity in case.quantities()]

    @property
    def words(self) -> list[str]:
        """The scheme, and the reference where it is another than CUBIC."""
        other = [] if self._reference == REFERENCE else ["--reference", self._reference]
        return [NAME, self._own, *other]

    def _build_case(self, grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
        """The applications of the case, its settings, and the scheme at its own servers."""
        case = self._case_tables[grid]
        fields = dict(self.schemes[labels["scheme"]].fields)
        settings = {f"application.{name}.server_tcp": fields for name in case["applications"] if name.startswith("own")}
        document = scenario.to_dict()
        document["application"] = [entry for entry in document["application"] if entry["name"] in case["applications"]]
        return Scenario.from_dict(document).replace_all(
            [*case.get("set", {}).items(), *(settings if fields else {}).items()]
        )

    def cases(self, run: Run) -> list[Judged]:
        """Every case of the RFC, in its order."""
        q = self.quantities(run)
        lacking = [case.row() for case in self._lacking]
        not_measured = [Judged("", section, title, reason, "not applicable") for section, title, reason in NOT_MEASURED]
        return in_order([*(case.judged(q) for case in self._cases), *lacking, *not_measured])

    def case_counts(self, run: Run) -> dict[str, dict[Verdict, int]]:
        """The number of cases by verdict: of own flows, of others, without results."""
        return counted(self.cases(run))

    def tables(self, run: Run) -> list[Table]:
        """The changes, to be read by programs."""
        changes = [
            {"case": case.id, "flows": change.of, "change of": f"{change.measure.title}, {change.measure.change_unit}"}
            | {"metric": "change", "ours": change.change.value, "low": change.change.low, "high": change.change.high}
            | {"published": None, "unit": ""}
            for case in self.cases(run)
            for change in (case.gain, case.harm)
            if change is not None
        ]
        keys, caption = ("case", "flows", "change of"), "Scheme against reference."
        return [Table("changes", "All changes", caption, keys, rows_frame(keys, changes), None, (CHANGE,))]

    def _claims_of(self, q: Quantities) -> Sequence[ClaimSpec]:
        specs = []
        for case in self._cases:
            said, measure = case.declared, case.measure(case.declared["judged"])
            margin = measure.margin
            expected = (at_least if measure.more_is_better else at_most)(
                -margin if measure.more_is_better else margin, measure.change_unit
            )
            why = "The RFC gives no limit; this one was fixed before the first run."
            source = Source(f"RFC 9743 section {said['section']}")
            specs.append(source.says(case.id, said["criterion"], case.change(q, said["judged"]), expected, why))
        return specs

    def _figures_of(self, q: Quantities) -> Sequence[Figure | None]:
        """Ratios to the reference; above 1 is better."""
        cases = xr.DataArray([case.declared["title"] for case in self._cases], dims="case")
        who = xr.DataArray(["own flows", "others or link"], dims="of")
        columns: list[xr.DataArray] = []
        for role in ("gain", "harm"):
            of_role: list[xr.DataArray] = [case.improvement(q, role) for case in self._cases]
            columns.append(xr.concat(of_role, cases))
        ratios = named(
            xr.concat(columns, who).expand_dims(panel=[""]), "improvements", "Times as good as the reference", ""
        )
        caption = "Ratios with 95% CI, better above 1; times are inverted. Changes in other units: see the table above."
        return [intervals(ratios, "Gain and harm by case", caption, "case", "of", "panel", base=1)]

    def _answer_of(self, q: Quantities) -> Sequence[str]:
        judged = [case.judged(q) for case in self._cases]
        gained = [(case.title, case.gain) for case in judged if case.gain and case.gain.verdict == "better"]
        harmed = [(case.title, case.harm) for case in judged if case.harm and case.harm.verdict == "worse"]
        return (
            f"{self._own} against {self._reference} in {len(judged)} cases: {in_words(counted(judged))}.",
            f"Its own flows gain in {_most(gained)}.",
            f"Others, or the link, fare worse in {_most(harmed)}.",
        )


def _most(changes: Sequence[tuple[str, MeasureChange]]) -> str:
    """Their number, and the largest one in percent."""
    number = f"{len(changes) or 'no'} case{'s' * (len(changes) != 1)}"
    relative = [(title, change) for title, change in changes if not change.measure.absolute]
    if not relative:
        return number
    title, change = max(relative, key=lambda pair: abs(pair[1].change.value))
    return f'{number}, most in "{title}" ({change.title} {change.shown()})'

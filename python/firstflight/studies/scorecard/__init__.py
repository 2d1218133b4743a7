"""The scorecard of RFC 9743: a scheme in the place of the reference in every evaluation case."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from firstflight.errors import RequestError
from firstflight.records import Run
from firstflight.scenario import Cell, Scenario
from firstflight.studies.kernel import ClaimSpec, DeclaredStudy, Quantities, at_least, at_most
from firstflight.studies.scorecard.case import VERDICTS, Case, Judged, Verdict, in_order
from firstflight.studies.scorecard.scheme import Scheme, scheme

NAME, REFERENCE = "scorecard", "cubic"

__all__ = ["NAME", "REFERENCE", "VERDICTS", "Judged", "Scheme", "Scorecard", "scheme"]


class Scorecard(DeclaredStudy):
    """The cases of study.toml for one scheme, whose label is the second of the key `scheme`."""

    def __init__(self, own: Scheme, reference: Scheme) -> None:
        if own.name == reference.name:
            raise RequestError(f'"{own.name}" is the reference too; choose another with --reference')
        self.schemes = {reference.name: reference, own.name: own}
        folder = Path(__file__).parent
        self._cases: list[Case] = []
        super().__init__(folder, (), self._claims_of, answer=self._answer_of, build=self._build_case)
        key = {"scheme": {"title": "scheme", "values": list(self.schemes)}}
        for name, case in self._declared["grids"].items():
            case |= {"scenario": "path.toml", "keys": key | case.get("keys", {})}
            self._cases.append(Case(name, case))
        self._quantities = [quantity for case in self._cases for quantity in case.quantities()]
        self._own, self._reference = own.name, reference.name
        self.title = f"RFC 9743 scorecard of {own.name} against {reference.name}"  # type: ignore[misc]

    @classmethod
    def of(cls, run: Run) -> "Scorecard":
        """That of a run. Its cells name the schemes, and what these set is in their scenarios."""
        names = list(dict.fromkeys(str(cell["scheme"]) for cell in run.cells))
        if len(names) < 2:
            raise RequestError(f'"{run.directory}" has no finished case yet; continue it with "firstflight scorecard"')
        reference, own = names
        return cls(Scheme(own), Scheme(reference))

    @property
    def words(self) -> list[str]:
        """The scheme, and the reference where it is another than CUBIC."""
        other = [] if self._reference == REFERENCE else ["--reference", self._reference]
        return [NAME, self._own, *other]

    def _build_case(self, grid: str, labels: Mapping[str, Any], scenario: Scenario) -> Scenario:
        """The applications of the case, what it sets, and the scheme at the servers of its own."""
        case = self._declared["grids"][grid]
        fields = dict(self.schemes[labels["scheme"]].fields)
        own = {f"application.{name}.server_tcp": fields for name in case["applications"] if name.startswith("own")}
        document = scenario.to_dict()
        document["application"] = [one for one in document["application"] if one["name"] in case["applications"]]
        return Scenario.from_dict(document).replace_all(
            [*case.get("set", {}).items(), *(own if fields else {}).items()]
        )

    def cases(self, run: Run) -> list[Judged]:
        """Every case of the RFC, in its order."""
        q = self.quantities(run)
        left_out = [
            Judged("", case["section"], case["title"], case["reason"], "not applicable")
            for case in self._declared["left_out"]
        ]
        return in_order([*(case.judged(q) for case in self._cases), *left_out])

    def _claims_of(self, q: Quantities) -> Sequence[ClaimSpec]:
        found = []
        for case in self._cases:
            said, measure = case.declared, case.measure(case.declared["judged"])
            margin = measure.margin
            found.append(
                ClaimSpec(
                    case.id,
                    f"RFC 9743 section {said['section']}",
                    said["criterion"],
                    case.change(q, said["judged"]),
                    at_least(-margin) if measure.more_is_better else at_most(margin),
                    measure.change_unit,
                    "The RFC gives no limit; this one was fixed before the first run.",
                )
            )
        return found

    def _answer_of(self, q: Quantities) -> Sequence[str]:
        judged = [case.judged(q) for case in self._cases]
        counted = Counter(case.verdict for case in judged)
        listed = ", ".join(f"{verdict} in {counted[verdict]}" for verdict in VERDICTS if counted[verdict])
        harmed = [case.title for case in judged if case.harm and case.harm.verdict == "worse"]
        gained = [case.title for case in judged if case.gain and case.gain.verdict == "better"]
        return (
            f"{self._own} against {self._reference}, by the criteria of {len(judged)} cases: {listed}.",
            f"Its own flows gain in {len(gained)} cases{_named(gained)}.",
            f"Others, or the link, fare worse in {len(harmed)} cases{_named(harmed)}.",
        )


def _named(titles: Sequence[str]) -> str:
    return f": {', '.join(titles)}" if titles else ""

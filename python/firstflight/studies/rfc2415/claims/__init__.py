"""Every sentence of RFC 2415 that states a result, as a check.

Tolerances come from the sentence or from the precision in which a table is printed, and were fixed
before the first run. A claim that differs is a finding.
"""

from firstflight.analysis.claim import Claim
from firstflight.studies.rfc2415.claims import http10, http11, mixed, section2, section4
from firstflight.studies.rfc2415.claims.statement import Statement
from firstflight.studies.rfc2415.measure import Measures

STATEMENTS: tuple[Statement, ...] = (
    *section2.STATEMENTS,
    *http10.STATEMENTS,
    *http11.STATEMENTS,
    *mixed.STATEMENTS,
    *section4.STATEMENTS,
)


def all_claims(measures: Measures) -> list[Claim]:
    """All claims in the RFC's order, with their verdicts for these measurements."""
    return [statement.check(measures) for statement in STATEMENTS]

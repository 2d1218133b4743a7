"""The page: two ladders on one time axis, the rounds in words, each term explained where it first appears."""

import re
from collections.abc import Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from firstflight.explain.ladder import caption, ladders, style
from firstflight.explain.rounds import Transfer
from firstflight.explain.words import TERMS, comparison, cost, first_flight, heading, line
from firstflight.report.style import css

TEMPLATE = Path(__file__).with_name("explain.html.j2")


def page(title: str, transfers: Sequence[Transfer]) -> str:
    """The page as HTML, which needs nothing else."""
    explained: set[str] = set()

    def with_terms(text: str) -> Markup:
        """The text with the first appearance of each term on the page marked."""

        def mark(found: re.Match[str]) -> str:
            term = _NAMES[found[0].lower()]
            if term in explained:
                return found[0]
            explained.add(term)
            return f'<dfn tabindex="0" title="{escape(TERMS[term])}">{found[0]}</dfn>'

        return Markup(_PATTERN.sub(mark, str(escape(text))))

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        title=title,
        sentences=[first_flight(transfers), comparison(transfers), cost(transfers)],
        transfers=[(heading(of), [line(one, of) for one in of.rounds]) for of in transfers],
        ladders=[Markup(one) for one in ladders(transfers)],
        caption=caption(transfers),
        theme=Markup(css()),
        ladder_style=Markup(style("var(--{})".format)),
        terms=TERMS,
        with_terms=with_terms,
    )


_NAMES = {name.lower(): name for name in TERMS} | {"iw": "initial window", "cwnd": "congestion window"}
_ALTERNATIVES = "|".join(sorted(_NAMES, key=len, reverse=True))
_PATTERN = re.compile(rf"\b({_ALTERNATIVES})(?=s?\b)(?! trips?\b)", re.IGNORECASE)

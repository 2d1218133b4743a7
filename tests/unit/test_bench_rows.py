"""The output of `python -m bench`: JSON for other programs, and a table for people."""

import json

from bench.row import Goal, Row, as_json, as_text


def test_json_has_the_six_keys_of_the_contract_and_nothing_else():
    row = Row("bulk, even", 8e6, "data packets / CPU s", peer="ns-2", peer_value=1e6, spread=(7.5, 8.5), note="n")

    assert json.loads(as_json([row])) == [
        {
            "work": "bulk, even",
            "ours": 8e6,
            "peer": "ns-2",
            "peer_value": 1e6,
            "ratio": 8.0,
            "unit": "data packets / CPU s",
        }
    ]


def test_a_missing_peer_has_no_value_and_no_ratio():
    row = Row("RFC 2415 sweep", 34560.0, "simulated s / CPU s", peer="ns-2", goals=(Goal(50),))

    (printed,) = json.loads(as_json([row]))
    assert printed["peer_value"] is None
    assert printed["ratio"] is None
    assert row.verdict() == ""


def test_goals_are_held_against_the_ratio_or_against_ours():
    ratio = Row("w", 30.0, "u", peer="p", peer_value=5.0, goals=(Goal(5), Goal(10)))
    cost = Row("w", 3000.0, "bytes", goals=(Goal(2048, at_least=False),), goals_of_ratio=False)

    assert ratio.verdict() == "must ≥ 5: reached, aim ≥ 10: short"
    assert cost.verdict() == "must ≤ 2,048: short"


def test_the_table_shows_the_spread_of_the_rounds():
    rows = [
        Row("bulk, even", 8e6, "data packets / CPU s", peer="ns-2", peer_value=1e6, spread=(7.5, 8.5)),
        Row("memory", 812.0, "bytes / connection"),
        Row("same work", 1.31, "s", peer="ns-2", peer_value=1.0, same=False, note="10 seeds"),
    ]

    assert as_text(rows).splitlines() == [
        "work        ours       peer            unit                  ours / peer",
        "bulk, even  8,000,000  ns-2 1,000,000  data packets / CPU s  8 (7.5 to 8.5)",
        "memory      812        -               bytes / connection    -",
        "same work   1.31       ns-2 1          s                     1.31            DIFFERS; 10 seeds",
    ]

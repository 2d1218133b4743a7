"""The population rows of the benchmark: the division of the work, the work itself, and the comparison of costs."""

import pytest

from bench.population import ARMS, CONNECTIONS, Measured, measure, replicates_of, rows_of


@pytest.mark.parametrize("connections", CONNECTIONS)
def test_the_replicates_hold_all_connections(connections):
    replicates, users = replicates_of(connections)

    assert replicates * users == connections
    # Enough for two threads to share, and for a bootstrap over replicates.
    assert replicates >= 10


def test_both_arms_are_simulated_to_the_last_connection():
    found = measure(2000, jobs=2)

    assert found.connections == len(ARMS) * 2000
    assert found.cpu_s > 0
    assert found.memory_bytes > 2**20


def test_each_cost_is_held_against_that_of_the_most_connections():
    few = Measured(connections=20_000, wall_s=1.0, cpu_s=0.1, memory_bytes=100 * 2**20)
    many = Measured(connections=2_000_000, wall_s=5.0, cpu_s=8.0, memory_bytes=200 * 2**20)

    made = {row.work: row for row in rows_of([few, many], cores=2)}

    assert made["population, 2 x 10,000, cost"].ours == pytest.approx(5.0)
    assert made["population, 2 x 10,000, cost"].ratio == pytest.approx(1.25)
    assert made["population, 2 x 1,000,000, cost"].ratio is None
    assert made["population, 2 x 1,000,000, rate"].ours == pytest.approx(250_000)
    assert made["population, 2 x 1,000,000"].verdict() == "must ≤ 33: reached, aim ≤ 20: reached"
    assert "5% busy: others used the machine" in made["population, 2 x 10,000"].note
    assert made["population, 2 x 1,000,000, memory"].ours == pytest.approx(200)

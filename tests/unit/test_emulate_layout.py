"""Testbeds have the hosts, links and paths that the simulator has for the same scenario."""

import json

import polars as pl
import pytest

from firstflight import _native
from firstflight.engines import simulate
from firstflight.engines.emulate.campaign import jobs
from firstflight.engines.emulate.layout import MOST_HOSTS, lay_out
from firstflight.engines.emulate.prepared import host_settings, prepare
from firstflight.errors import RequestError
from firstflight.scenario import Cell, Scenario

LINK = 'rate = "10Mbit", delay = "5ms", queue = "100p"'
NETWORKS = {
    "one link": f'topology = "chain"\nlinks = {{ {LINK} }}',
    "three links": f'topology = "chain"\nlinks = {{ count = 3, {LINK} }}',
    "star": f'topology = "star"\nhub = {{ {LINK} }}\nspokes = {{ count = 3, {LINK} }}',
    "dumbbell": f'topology = "dumbbell"\nbottleneck = {{ {LINK} }}\nleft = {{ count = 3, {LINK} }}\n'
    f"right = {{ count = 2, {LINK} }}",
    "tree": f'topology = "tree"\nserver = {{ {LINK} }}\n'
    f'group = [{{ name = "street", link = {{ {LINK} }} }}, '
    f'{{ name = "home", behind = "street", count = 2, link = {{ {LINK} }} }}, '
    f'{{ name = "office", count = 2, link = {{ {LINK} }} }}]',
}


def scenario(network: str, *applications: str) -> Scenario:
    text = f'name = "x"\nduration = "5s"\n[tcp]\nprofile = "linux"\n[network]\n{network}\n'
    for application in applications or ("",):
        text += '[[application]]\nkind = "file_transfer"\nsize = "3kB"\ncount = 1\nserver_choice = "by_client"\n'
        text += f"{application}\n"
    return Scenario.from_toml(text.replace("kind", 'name = "only"\nkind', 1))


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_a_pair_of_hosts_has_the_links_that_its_packets_cross_in_the_simulator(network: str) -> None:
    layout = lay_out(scenario(network))
    simulated = simulate.capture(scenario(network), seed=1)["crossings"]["link"]
    placement = layout.placements[0]
    client, server = placement.clients[0], placement.servers_of(0)[0]
    there, back = layout.path(client, server), layout.path(server, client)
    # The first packet is the SYN, the second its answer.
    assert simulated.cast(str).to_list()[: len(there + back)] == there + back


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_the_links_are_those_of_the_simulators_records_in_their_order(network: str) -> None:
    kind = simulate.capture(scenario(network), seed=1)["links"]["link"].dtype
    assert isinstance(kind, pl.Enum)
    assert kind.categories.to_list() == list(lay_out(scenario(network)).links)


def test_the_emulator_refuses_a_key_of_a_plan_that_it_does_not_name(monkeypatch: pytest.MonkeyPatch) -> None:
    one = scenario(NETWORKS["one link"])
    plan = one.to_plan()
    monkeypatch.setattr(Scenario, "to_plan", lambda _: plan)
    for where, table in (("plan", plan), ("application.only", plan["applications"][0])):
        table["newer"] = 1
        with pytest.raises(RequestError, match=f"{where}: the engine emulate does not know newer; leave it out"):
            lay_out(one)
        del table["newer"]
    lay_out(one)


def test_only_hosts_that_an_application_uses_are_made_each_with_an_address_of_its_own() -> None:
    layout = lay_out(scenario(NETWORKS["three links"]))
    assert [host.name for host in layout.hosts] == ["node[0]", "node[3]"]
    many = NETWORKS["star"].replace("count = 3", "count = 600")
    addresses = [host.address for host in lay_out(scenario(many, "clients = 600")).hosts]
    assert len(set(addresses)) == 601
    assert addresses[:2] == ["10.77.0.1", "10.77.0.2"]
    assert "10.77.2.89" in addresses


def test_clients_sit_on_the_hosts_round_robin() -> None:
    placement = lay_out(scenario(NETWORKS["dumbbell"], "clients = 4")).placements[0]
    assert placement.clients == ("left[0]", "left[1]", "left[2]", "left[0]")
    assert placement.servers_of(3) == ("right[1]",)


def test_a_client_of_a_tree_asks_its_neighbor_over_the_links_that_they_do_not_share() -> None:
    own = 'client_hosts = "users[1]"\nserver_hosts = "home[0]"'
    layout = lay_out(scenario(NETWORKS["tree"], own))
    assert [host.name for host in layout.hosts] == ["home[0]", "home[1]"]
    assert layout.path("home[1]", "home[0]") == ["home[1].reverse", "home[0]"]


def test_a_replicate_has_the_links_that_are_drawn_for_it() -> None:
    delay = 'delay = { distribution = "uniform", low = "9ms", high = "90ms" }'
    layout = lay_out(scenario(delay.join(NETWORKS["tree"].rsplit('delay = "5ms"', 1))))

    def delays(seed: int, replicate: int) -> list[int]:
        return [way["delay_ns"] for way in layout.of_replicate(seed, replicate).links.values()]

    assert delays(1, 0) == delays(1, 0) != delays(1, 1)
    drawn = [9_000_000 <= delay <= 90_000_000 for delay in delays(1, 0)]
    assert [delay for delay, is_drawn in zip(delays(1, 0), drawn, strict=True) if not is_drawn] == [
        delay for delay, is_drawn in zip(delays(2, 5), drawn, strict=True) if not is_drawn
    ]
    assert any(drawn)
    fixed = lay_out(scenario(NETWORKS["tree"]))
    assert fixed.of_replicate(1, 7) is fixed


def test_a_draw_that_no_link_can_have_refuses_its_own_replicate_alone() -> None:
    delay = 'delay = { distribution = "lognormal", median = "1s", sigma = 12.0 }'
    drawn = scenario(delay.join(NETWORKS["tree"].rsplit('delay = "5ms"', 1)))
    refused = set()
    for replicate in range(40):
        try:
            assert lay_out(drawn, 3, replicate).links == lay_out(drawn, 3, replicate).of_replicate(3, replicate).links
        except RequestError:
            refused.add(replicate)
    assert 0 < len(refused) < 40


def test_a_client_on_its_servers_host_is_refused() -> None:
    with pytest.raises(RequestError, match=r'sit on one host, "node\[0\]"'):
        lay_out(scenario(NETWORKS["one link"], 'client_hosts = "node[0]"'))


def test_a_host_speaks_with_one_tcp() -> None:
    own = scenario(NETWORKS["dumbbell"], 'server_tcp = { stack = "firstflight" }')
    stacks = {host.name: host.stack for host in lay_out(own).hosts}
    assert stacks == {"left[0]": "kernel", "right[0]": "firstflight", "right[1]": "firstflight"}
    both = ('server_tcp = { stack = "firstflight" }', 'name = "b"')
    with pytest.raises(RequestError, match=r'host "right\[0\]" has stack = "firstflight" in another use'):
        lay_out(scenario(NETWORKS["dumbbell"], *both))


def test_too_many_hosts_for_a_testbed_are_refused() -> None:
    many = NETWORKS["star"].replace("count = 3", f"count = {MOST_HOSTS}")
    with pytest.raises(RequestError, match="at most"):
        lay_out(scenario(many, f"clients = {MOST_HOSTS}"))


def test_a_slow_link_is_given_the_time_to_empty_its_queue() -> None:
    slow = NETWORKS["one link"].replace("10Mbit", "12kbit").replace("5ms", "2s")
    # A hundred packets of one second each and one in service, both ways, and the delay of each.
    assert lay_out(scenario(slow)).emptying_s() == 2 * (101 + 2)
    assert lay_out(scenario(slow.replace("12kbit", "unlimited").replace("100p", "9kB"))).emptying_s() == 4


def test_the_packets_between_two_hosts_have_the_class_of_the_application_there() -> None:
    first, second = 'server_hosts = "right[0]"', 'name = "b"\npriority = 5\nserver_hosts = "right[1]"'
    layout = lay_out(scenario(NETWORKS["dumbbell"], first, second))
    classes = {ends: priority for ends, (_, priority) in layout.paths.items()}
    assert classes == {
        ("right[0]", "left[0]"): 0,
        ("left[0]", "right[0]"): 0,
        ("right[1]", "left[0]"): 5,
        ("left[0]", "right[1]"): 5,
    }
    with pytest.raises(RequestError, match=r"only has 0 between left\[0\] and right\[1\], not 5;"):
        lay_out(scenario(NETWORKS["dumbbell"], 'server_hosts = "right[1]"', second))


def test_pages_and_fast_networks_have_the_machine_for_themselves() -> None:
    files = scenario(NETWORKS["one link"])
    pages = files.replace(
        "application", [{"name": "only", "kind": "web_page", "primary": "30kB", "inline": "10kB", "think_time": "1s"}]
    )
    fast = files.replace("network.links[0].rate", "20Mbit")
    assert [jobs([Cell({}, made)]) > 1 for made in (files, pages, fast)] == [True, False, False]


def test_what_programs_set_on_their_sockets_need_not_be_the_same_for_a_pair_of_hosts_but_for_a_server() -> None:
    both = scenario(NETWORKS["one link"], "", 'name = "other"\nclient_tcp = { nagle = "off" }')
    layout = lay_out(both)
    assert host_settings(both, layout, 1).keys() == {"node[0]", "node[1]"}
    (cell,) = prepare(Cell({}, both), layout, 1, range(1))
    assert [application["no_delay"] for application in cell.applications] == [False, True]
    served = scenario(NETWORKS["one link"], "", 'name = "other"\nserver_tcp = { nagle = "off" }')
    with pytest.raises(RequestError, match=r"application.other.server_tcp.nagle: a server has one value"):
        prepare(Cell({}, served), lay_out(served), 1, range(1))


def test_a_path_is_one_from_host_to_host_and_not_between_groups() -> None:
    topology = _native.Topology(json.dumps(scenario(NETWORKS["dumbbell"]).to_plan()), 0, 0)
    assert topology.path("left[2]", "right[1]") == ["left[2]", "bottleneck", "right[1]"]
    for ends in (("left", "right[0]"), ("right[0]", "left")):
        with pytest.raises(ValueError, match=r'"left" names 3 hosts; write one, such as "left\[0\]"'):
            topology.path(*ends)
    with pytest.raises(ValueError, match='there are no hosts "elsewhere"'):
        topology.path("elsewhere", "left[0]")

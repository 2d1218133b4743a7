"""The model's input from a scenario: one transfer between two hosts, and the links of its path.

It reads the plan that the simulator gets, so both engines answer the same question.
"""

import json
from dataclasses import dataclass
from typing import Any

from firstflight import _native
from firstflight.engines import APPLICATION, OF_KIND, PLAN, check_named
from firstflight.errors import RequestError
from firstflight.scenario import Scenario
from firstflight.scenario.tcp import friendly, spelled

QUEUES = ("drop_tail", "red")
"""Those whose limit the model knows."""

# Fields that act without a loss, and the values of them that the model knows: words stand for variants.
_KNOWN: dict[str, tuple[Any, ...]] = {
    "initial_window": ("fixed", "rfc2581", "rfc3390", "rfc6928", "linux"),
    "ack": ("every_segment", "delayed", "heartbeat"),
    "ack.every_segment_bytes": (None,),
    # With a scoreboard, the data that the window allows is counted in segments, and a probe may leave while the
    # receiver holds its ACK back.
    "recovery": ("tahoe", "reno", "new_reno"),
    "congestion_control": ("reno",),
    "startup": ("window",),
    "slow_start_growth": ("per_ack", "abc_l1"),
    "congestion_avoidance": ("per_ack", "per_window"),
    "window_validation": ("off",),
    "pacing": (None,),
    "nagle": ("off",),
    # Its 12 bytes a segment, and the samples that it allows.
    "timestamps": (False,),
    "send_buffer": (None,),
    "receive_window_growth": (None,),
    "rto.estimator": ("rfc6298",),
    "rto.samples": ("round_trip",),
    "piggyback_fin": (True,),
    "timer_tick": (None,),
}


def check_tcp(end: str, tcp: dict[str, Any]) -> None:
    """RequestError, naming the field, if the profile `tcp` of `end` ("client" or "server") is beyond the model."""
    for path, known in _KNOWN.items():
        setting: Any = tcp
        for key in path.split("."):
            # Some variants of `ack` have no such key.
            setting = setting.get(key)
        variant = _variant(setting)
        if variant not in known:
            values = " or ".join(spelled(value) for value in known)
            raise RequestError(
                f"{end}_tcp has {friendly(path)} = {spelled(variant)}, but the model engine knows only {values}; "
                "use --engine simulate"
            )


def _variant(setting: Any) -> Any:
    """Of a table, the variant: its one key where that holds a table of rules, and else the value of its first."""
    if not isinstance(setting, dict):
        return setting
    key, value = next(iter(setting.items()))
    return key if isinstance(value, dict) else value


# Of a link. Quick-Start acts for a start-up scheme that it refuses.
_REFUSED = {
    "loss": "a link on its way loses packets at random (loss = {0})",
    "lose": "a link on its way loses data packets (loss_list = {0})",
    "loss_model": "a link on its way loses packets (loss = {0[kind]})",
    "burst": "a link on its way has a token bucket (burst = {0[bytes]} B)",
    "impairments": "packets of a link on its path are subject to {0[0][kind]}",
    "rate_schedule": "the rate of a link on its way changes ({0[kind]})",
}
_LINK = f"{' '.join(_REFUSED)} delay_ns queue quick_start rate_bps"

CAPABILITY = (
    "the model engine computes one transfer without loss: one application of kind file_transfer or "
    "request_response with clients = 1, count = 1 and constant laws, on links of one rate without random loss, whose "
    f"queues are {' or '.join(QUEUES)}"
)


@dataclass(frozen=True)
class SingleTransfer:
    """One transfer, its endpoints and its path; times in ns."""

    application: str
    start_ns: int
    duration_ns: int
    header_bytes: int
    upload: bool
    """The client sends the data; otherwise the server does, once it has the request."""
    request_bytes: int
    size_bytes: int
    client_tcp: dict[str, Any]
    server_tcp: dict[str, Any]
    to_server: tuple[dict[str, Any], ...]
    """Links from client to server, in order, as the plan describes them."""
    to_client: tuple[dict[str, Any], ...]

    @property
    def sender_tcp(self) -> dict[str, Any]:
        """Profile of the data sender."""
        return self.client_tcp if self.upload else self.server_tcp

    @property
    def receiver_tcp(self) -> dict[str, Any]:
        """Profile of the data receiver."""
        return self.server_tcp if self.upload else self.client_tcp

    @property
    def mss_bytes(self) -> int:
        """The smaller MSS of both endpoints."""
        return int(min(self.client_tcp["mss_bytes"], self.server_tcp["mss_bytes"]))


def from_scenario(scenario: Scenario) -> SingleTransfer:
    """The transfer of `scenario`. RequestError, with the part concerned, if the model does not cover it."""
    scenario.over_tcp("the model").one_network("The engine model", plain=True)
    return from_plan(scenario.to_plan())


def from_plan(plan: dict[str, Any]) -> SingleTransfer:
    """The one transfer of a plan, as `Scenario.to_plan` makes it. RequestError as in `from_scenario`."""
    check_named("model", "plan", plan, PLAN)
    if len(plan["applications"]) != 1:
        raise _refusal(f"this scenario has {len(plan['applications'])} applications")
    application = plan["applications"][0]
    name, kind = application["name"], application["kind"]
    if kind not in ("file_transfer", "request_response"):
        raise _refusal(f'application "{name}" is of kind {kind}')
    check_named("model", f"application.{name}", application, f"{APPLICATION} {OF_KIND[kind]}")
    clients, count = application["clients"], application["count"]
    for is_there, found in (
        (clients != 1, f"clients = {clients}"),
        (count != 1, "no count, so it has no end" if count is None else f"count = {count}"),
        ("handshakes" in application, "tls"),
        (application["service_time_ns"], "a service_time"),
    ):
        if is_there:
            raise _refusal(f'application "{name}" has {found}')
    if kind == "file_transfer":
        upload = application["direction"] == "upload"
        request, size = application["request_bytes"], _constant(application, "size")
    else:
        upload = False
        request, size = _constant(application, "request"), _constant(application, "response")
    ways = _ways(plan, application)
    if any(other != ways[0] for other in ways):
        raise _refusal(
            f'application "{name}" draws its server among "{application["server_hosts"]}", whose links differ'
        )
    to_server, to_client = ways[0]
    for link in to_server + to_client:
        check_named("model", "a link on its way", link, _LINK)
        for key, refused in _REFUSED.items():
            if link.get(key):
                raise _refusal(refused.format(link[key]))
        if link["queue"]["kind"] not in QUEUES:
            raise _refusal(f"the queue of a link on its way is {link['queue']['kind']}")
    for end in ("client", "server"):
        check_tcp(end, application[f"{end}_tcp"])
    return SingleTransfer(
        application=name,
        start_ns=round(_constant(application, "start") * 1e9),
        duration_ns=plan["duration_ns"],
        header_bytes=plan["header_bytes"],
        upload=upload,
        request_bytes=max(round(request), 1),
        size_bytes=max(round(size), 1) + (0 if upload else application["response_header_bytes"]),
        client_tcp=application["client_tcp"],
        server_tcp=application["server_tcp"],
        to_server=to_server,
        to_client=to_client,
    )


def _ways(plan: dict[str, Any], application: dict[str, Any]) -> list[tuple[tuple[dict[str, Any], ...], ...]]:
    """The links from the first client to each server that it may ask, and those back. RequestError for hosts that are
    not there, and for a client that is its server.
    """
    try:
        topology = _native.Topology(json.dumps(plan), 0, 0)
        links = dict(json.loads(topology.links()))
        client = topology.hosts(application["client_hosts"])[0]
        servers = topology.hosts(application["server_hosts"])
        if application["server_choice"] == "by_client":
            servers = servers[:1]
        if client in servers:
            raise RequestError(
                f'application.{application["name"]}: a client and its server sit on one host, "{client}", with no '
                f"link between them; name other client_hosts or server_hosts"
            )
        pairs = [((client, server), (server, client)) for server in servers]
        return [tuple(tuple(links[name] for name in topology.path(*ends)) for ends in pair) for pair in pairs]
    except ValueError as error:
        raise RequestError(str(error)) from None


def _constant(application: dict[str, Any], field: str) -> float:
    law = application[field]
    if law["distribution"] != "constant":
        raise _refusal(
            f'application "{application["name"]}" draws its {field} from a distribution ({law["distribution"]})'
        )
    return float(law["value"])


def _refusal(finding: str) -> RequestError:
    return RequestError(f"{finding}, but {CAPABILITY}; use --engine simulate")

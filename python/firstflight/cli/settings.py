"""Words of the command line: KEY=VALUE pairs, and the scenario file they change."""

import shlex
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from firstflight.errors import RequestError
from firstflight.scenario import Scenario
from firstflight.scenario.document import parsed
from firstflight.scenario.explain import cut
from firstflight.scenario.network import Link


def load_scenario(path: Path, settings: list[str]) -> Scenario:
    """The scenario in `path` with each KEY=VALUE set."""
    scenario = Scenario.load(path)
    values = [_pair(setting, "--set", "tcp.initial_window=10") for setting in settings]
    keys = [key for key, _ in values]
    if again := next((key for key in keys if keys.count(key) > 1), None):
        raise RequestError(f'--set gives "{again}" twice: write it once')
    with suppress(RequestError):
        return scenario.replace_all([(key, _toml_value(value)) for key, value in values])
    # One by one, to see which does not fit.
    for setting, (key, value) in zip(settings, values, strict=True):
        try:
            scenario = _replaced(scenario, key, value)
        except RequestError as error:
            several = f"; for several values write --vary {cut(setting)}" if "," in value else ""
            raise RequestError(f"--set {cut(setting)}: {error}{several}") from None
    return scenario


def _replaced(scenario: Scenario, key: str, text: str) -> Scenario:
    """With the value that `text` spells, or with the text itself where the key takes no such value: version=1.0."""
    value = _toml_value(text)
    try:
        return scenario.replace(key, value)
    except RequestError:
        if not isinstance(value, bool | int | float):
            raise
        with suppress(RequestError):
            return scenario.replace(key, text)
        raise


def restrictions(only: list[str]) -> dict[str, list[str]]:
    """The values each KEY=VALUE[,VALUE] allows; one with a comma is in quotes. The same key twice allows both."""
    allowed: dict[str, list[str]] = {}
    for item in only:
        key, values = _pair(item, "--only", "webs=8,16")
        allowed.setdefault(key, []).extend(value.strip("\"'") for value in _separated("--only", item, values))
    return allowed


def variations(vary: list[str], settings: list[str]) -> dict[str, list[Any]]:
    """The values that each KEY=VALUE,VALUE gives a key of the scenario, in the order they are written; `settings`, the
    KEY=VALUE of --set, give other keys.
    """
    varied: dict[str, list[Any]] = {}
    fixed = [setting.partition("=")[0].strip() for setting in settings]
    for item in vary:
        key, values = _pair(item, "--vary", "tcp.initial_window=3,10")
        if key in varied:
            raise RequestError(f'--vary gives "{key}" twice: write all its values after one "="')
        if key in fixed:
            raise RequestError(f'--set gives "{key}", which is varied; leave that --set out')
        varied[key] = [_toml_value(value) for value in _separated("--vary", item, values)]
    return varied


def _separated(option: str, item: str, values: str) -> list[str]:
    """The parts between commas outside of brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for character in values:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        depth += not quote and ((character in "[{") - (character in "]}"))
        if character == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += character
    if depth or quote or not all(part.strip() for part in parts):
        raise RequestError(
            f'{option} "{cut(item)}": write values with commas between them, such as {item.partition("=")[0]}=3,10'
        )
    return [part.strip() for part in parts]


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key.strip() and equals and value.strip()):
        raise RequestError(f'{option} "{cut(text)}" is not KEY=VALUE: write for example {option} {example}')
    return key.strip(), value.strip()


def _toml_value(text: str) -> Any:
    """A TOML value, or the text itself where it is none, so that 50ms needs no quotes."""
    try:
        return parsed(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


# Packets; docs/running-kernel.md has the differences by length.
_SHORT_QUEUE = 25
_TICK = 'tcp.timer_tick={ period = "4ms", wheel = true }'


def print_timing_hint(scenario: Scenario) -> None:
    """One line on stderr for Linux hosts with exact timing at a short queue: which keys its result depends on."""
    if scenario.network is None or scenario.tcp.profile != "linux":
        return
    for path, link in _links(scenario.to_dict()["network"], "network"):
        try:
            queue = Link.model_validate(link).plan()["forward"]["queue"]
        except ValueError:
            # Rate, delay or queue of a tree's links may be drawn.
            continue
        limit = queue.get("limit", {})
        held = limit.get("packets") or limit.get("bytes", 0) // scenario.mtu_bytes()
        if queue["kind"] == "drop_tail" and 0 < held <= _SHORT_QUEUE:
            keys = [] if link.get("wake") else [f"{path}.wake=40us"]
            keys += [] if scenario.tcp.sets("timer_tick") else [_TICK]
            for name, application in zip(scenario.names(), scenario.to_plan()["applications"], strict=True):
                if "request_bytes" in application and not application["service_time_ns"]:
                    keys.append(f"application.{name}.service_time=100us")
            if keys:
                print(
                    f"firstflight: {path} holds {held} packets; what so short a queue drops depends on microseconds "
                    "of the hosts, which profile linux leaves out; for those of a real host add "
                    + " ".join(f"--set {shlex.quote(key)}" for key in keys),
                    file=sys.stderr,
                )
            return


def _links(table: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every link of a network's table, with its path in the scenario."""
    if isinstance(table, list):
        for index, inner in enumerate(table):
            named = isinstance(inner, dict) and "name" in inner
            yield from _links(inner, f"{path}.{inner['name']}" if named else f"{path}[{index}]")
    elif isinstance(table, dict):
        if {"rate", "delay", "queue"} <= table.keys():
            yield path, {key: value for key, value in table.items() if key in Link.model_fields}
        for key, inner in table.items():
            if key != "reverse":
                yield from _links(inner, f"{path}.{key}")

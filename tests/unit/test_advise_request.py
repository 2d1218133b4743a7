"""Valid requests to `firstflight advise`, and whether a directory holds the advice of another request."""

from pathlib import Path

import pytest

from firstflight.advise import request
from firstflight.errors import RequestError


def flows(tmp_path: Path, text: str = "rtt_ms,bytes\n") -> Path:
    path = tmp_path / "flows.csv"
    path.write_text(text)
    return path


def test_windows_are_taken_in_any_order() -> None:
    assert request.windows("32, 16,20") == (16, 20, 32)


@pytest.mark.parametrize("text", ["", "10,", "ten", "10;16", "0", "-4", "1001", "16.5", "16,16", "²"])
def test_malformed_windows_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(RequestError) as refused:
        request.windows(text)
    assert str(refused.value).startswith(f'--iw "{text}"')


def test_the_window_in_use_is_simulated_beside_the_candidates() -> None:
    assert request.with_current((16, 32), 10) == [10, 16, 32]
    assert request.with_current((10, 16), 10) == [10, 16]


def test_a_list_of_nothing_but_the_window_in_use_is_refused() -> None:
    with pytest.raises(RequestError, match="names only 10, which is the current window"):
        request.with_current((10,), 10)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="there is no file"):
        request.check(tmp_path / "none.csv")


@pytest.mark.parametrize("users", [0, 99, 100_001])
def test_a_number_of_users_out_of_range_is_refused(tmp_path: Path, users: int) -> None:
    with pytest.raises(RequestError, match="write a number from 100 to 100000"):
        request.check(flows(tmp_path), max_connections=users)


def test_a_directory_takes_more_windows_and_another_budget_of_the_same_flows(tmp_path: Path) -> None:
    path, out = flows(tmp_path), tmp_path / "out"
    out.mkdir()
    request.remember(out, request.check(path, iw="16", harm="p99=+5%"), {10, 16})
    assert request.windows_before(out, request.check(path, iw="16,32", harm="mean=+1%")) == {10, 16}


@pytest.mark.parametrize(
    ("text", "seed", "told"),
    [("rtt_ms,bytes\n1,2\n", None, "flows.csv with another content"), ("rtt_ms,bytes\n", 7, r"seed 1 \(now 7\)")],
)
def test_a_directory_with_the_advice_of_something_else_is_refused(
    tmp_path: Path, text: str, seed: int | None, told: str
) -> None:
    path, out = flows(tmp_path), tmp_path / "out"
    out.mkdir()
    request.remember(out, request.check(path, iw="16", harm="p99=+5%"), {10, 16})
    path.write_text(text)
    with pytest.raises(RequestError, match=told):
        request.windows_before(out, request.check(path, iw="16", harm="p99=+5%", seed=seed))


def test_the_command_line_has_every_option_that_was_given(tmp_path: Path) -> None:
    asked = request.check(
        flows(tmp_path), iw="16", harm="p99=+5%", assume=["loss=0.5%", "buffer=130ms"], certificates="ml-dsa-44"
    )
    assert " ".join(asked.words()[3:]) == (
        "--iw 16 --harm p99=+5% --seed 1 --max-connections 10000 --assume loss=0.5% --assume buffer=130ms "
        "--certificates ml-dsa-44"
    )


def test_a_damaged_note_of_the_request_is_told(tmp_path: Path) -> None:
    (tmp_path / request.REQUEST).write_text("{")
    with pytest.raises(RequestError, match="is damaged"):
        request.windows_before(tmp_path, request.check(flows(tmp_path), iw="16", harm="p99=+5%"))

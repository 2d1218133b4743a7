import re
from typing import Any

import pytest

from firstflight.scenario import BitsPerSecond, Bytes, Duration, Packets
from firstflight.scenario.parts import RoundTrips


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("50ms", 50_000_000),
        ("2s", 2 * 10**9),
        ("100us", 100_000),
        ("0.5ms", 500_000),
        ("2 min", 120 * 10**9),
        ("7ns", 7),
    ],
)
def test_times_are_exact_nanoseconds(text: str, nanoseconds: int) -> None:
    assert Duration(text) == nanoseconds


@pytest.mark.parametrize(
    ("count", "problem"), [(5.5, TypeError), ("5", TypeError), (-1, ValueError), (2**64, ValueError)]
)
def test_base_units_are_a_whole_number_in_the_range_of_the_quantity(count: Any, problem: type[Exception]) -> None:
    with pytest.raises(problem):
        Duration.of(count)


@pytest.mark.parametrize(
    ("text", "rate"), [("1.5Mbit", 1_500_000), ("10Gbit", 10**10), ("64kbit", 64_000), ("10mbit", 10**7)]
)
def test_rates_are_bits_per_second_in_any_case_as_tc_has_it(text: str, rate: int) -> None:
    assert BitsPerSecond(text) == rate


@pytest.mark.parametrize(("text", "size"), [("32kB", 32_000), ("64KiB", 65_536), ("1460B", 1460), ("1MB", 10**6)])
def test_kilobytes_are_decimal_and_kibibytes_binary(text: str, size: int) -> None:
    assert Bytes(text) == size


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (Duration, "1.5ms"),
        (Duration, "90s"),
        (Duration, "0s"),
        (Duration, "1234567ns"),
        (BitsPerSecond, "1.5Mbit"),
        (BitsPerSecond, "1234567bit"),
        (Bytes, "64KiB"),
        (Bytes, "1460B"),
        (Bytes, "0B"),
        (Packets, "25p"),
    ],
)
def test_what_is_written_reads_back_the_same(quantity: type[Duration], text: str) -> None:
    value = quantity(text)
    assert quantity(str(value)) == value


@pytest.mark.parametrize(
    ("quantity", "value", "expected"),
    [
        (Duration, 50, 'has no unit: write a time such as "50ms"'),
        (Duration, "50", 'has no unit: write a time such as "50ms"'),
        (Duration, "50m", 'write "min" or "ms"'),
        (Duration, "-1s", "is negative"),
        (Duration, "0.1ns", "finer than 1 ns"),
        (Duration, "soon", 'is not a time: write for example "50ms"'),
        (BitsPerSecond, "10Mbps", 'megabytes per second, so write "Mbit"'),
        (BitsPerSecond, "10MB", 'unknown unit "MB"'),
        (Bytes, "32k", 'write "kB" (1,000 bytes) or "KiB" (1,024)'),
        (Bytes, "25p", "counted in bytes, not packets"),
        (Packets, "32kB", 'write a number of packets such as "25p"'),
        (Packets, "1.5p", "finer than 1 p"),
        (RoundTrips, "1.0005bdp", "finer than 0.001 bdp"),
        (Bytes, True, "true has no unit"),
        (Duration, "1e999999999s", '"1e999999999s" is too large: a time is at most 9223372036854775807ns'),
        (Duration, "1e30s", "is too large"),
        (BitsPerSecond, "10000000Tbit", "is too large: a rate is at most 9223372036854775807bit"),
        (Duration, "1e-999999999s", "finer than 1 ns"),
        (Duration, "1.00000000000000000000000000000000000001ns", "finer than 1 ns"),
        (Duration, "9" * 5000 + "s", "is not a time"),
        (Duration, "\u0661s", "is not a time"),
    ],
)
def test_a_wrong_quantity_is_refused_with_what_would_be_right(
    quantity: type[Duration], value: object, expected: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        quantity(value)  # type: ignore[arg-type]

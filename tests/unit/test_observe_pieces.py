"""Text files are read in pieces: where they are cut makes no difference, and memory is that of the connections."""

import re

import pytest

from firstflight import observe
from firstflight.observe import columns, lines, merged
from firstflight.observe.merged import Merged
from firstflight.observe.nginx_format import LOG_FORMAT
from flows import EXAMPLES

LOG = (EXAMPLES / "nginx.log").read_text()


def same(one, other):
    assert one.users.equals(other.users)
    assert one.transfers.equals(other.transfers)
    assert one.bounds.equals(other.bounds)
    assert one.source == other.source
    assert set(one.problems) == set(other.problems)


@pytest.fixture
def in_pieces(monkeypatch):
    """Reads as if very little were to be held at once."""

    def read(path, size, **how):
        with monkeypatch.context() as patch:
            patch.setattr(lines.pieces, "__defaults__", (size,))
            patch.setattr(columns, "_ROWS_AT_ONCE", 3)
            patch.setattr(merged, "_WAITING", 5)
            return observe.read(path, **how)

    return read


@pytest.mark.parametrize("name", ["nginx.log", "visits.log.gz", "ss.txt", "ndt7.csv", "table.csv"])
def test_small_pieces_give_what_the_whole_file_gives(in_pieces, name):
    size = 100_000 if name == "visits.log.gz" else 3000
    same(in_pieces(EXAMPLES / name, size), observe.read(EXAMPLES / name))


@pytest.mark.slow
def test_odd_lines_are_told_by_the_same_numbers_wherever_the_file_is_cut(in_pieces, tmp_path):
    text = (EXAMPLES / "ss.txt").read_text().splitlines()
    text[10:10] = ["ESTAB 0 0 10.0.0.1:443 10.0.0.2:5000", "neither", "\t indented, of no socket"]
    text[40:40] = ["ESTAB 0 0 10.0.0.1:443 10.0.0.2:5000", "\t cubic mss:1448 cwnd:10"]
    path = tmp_path / "ss.txt"
    path.write_text("\n".join(text))
    seen = observe.read(path)

    assert {problem.what: problem.first for problem in seen.problems} == {
        "a socket without data": (11,),
        "neither a socket nor its data": (12, 13),
        "a socket without a round trip": (41,),
    }
    for size in (200, 701, 2000):
        same(in_pieces(path, size), seen)


@pytest.mark.parametrize(("name", "size"), [("nginx.log", 300), ("ndt7.csv", 150)])
def test_a_line_alone_in_its_piece_gives_what_it_gives_among_others(in_pieces, tmp_path, name, size):
    path = tmp_path / name
    # Numbers whose last digit distinguishes a division from a multiplication.
    path.write_text(re.sub(r"tcpinfo_rtt=\d+", "tcpinfo_rtt=50000", (EXAMPLES / name).read_text()))
    whole = observe.read(path)
    same(in_pieces(path, size), whole)


@pytest.mark.parametrize("lacks", ["", "connection_time", "connection_requests", "remote_addr", "connection"])
def test_a_server_that_was_restarted_is_noticed_wherever_the_file_is_cut(in_pieces, tmp_path, lacks):
    restarted = LOG + LOG.replace("msec=1795", "msec=1796")
    path = tmp_path / "access.log"
    path.write_text(re.sub(rf" {lacks}=\S+", "", restarted) if lacks else restarted)
    form = LOG_FORMAT.replace(f" {lacks}=${lacks}", "") if lacks else LOG_FORMAT
    seen = observe.read(path, log_format=form)

    assert seen.users.height == (144 if lacks == "connection" else 48)
    same(in_pieces(path, 3000, log_format=form), seen)


def test_lines_between_two_that_seemed_apart_make_them_one_connection(in_pieces, tmp_path):
    line = LOG.splitlines()[0]
    begun = [re.sub(r"msec=\S+", f"msec=1795287326.{tenths}00", line) for tenths in (0, 8, 4)]
    path = tmp_path / "access.log"
    path.write_text("\n".join([*begun, *LOG.splitlines()[1:]]))

    assert observe.read(path).users.height == 24
    same(in_pieces(path, 700), observe.read(path))


def test_of_connections_that_come_again_and_again_one_row_is_held(monkeypatch, in_pieces):
    held = []
    add = Merged.add

    def counted(self, rows, **beside):
        add(self, rows, **beside)
        held.append(self._height)

    monkeypatch.setattr(Merged, "add", counted)
    seen = in_pieces(EXAMPLES / "ss.txt", 3000)

    # Of 24 connections, those that wait to be merged and one piece more.
    assert max(held) <= 2 * seen.users.height + 8


def test_a_socket_that_retransmitted_more_than_it_had_sent_cannot_be(tmp_path):
    path = tmp_path / "ss.txt"
    told = "0 0 10.0.0.1:443 198.51.100.1:{}\n\t cubic rtt:20/3 mss:1448 cwnd:10 bytes_sent:5000 bytes_retrans:{}\n"
    path.write_text(told.format(5000, 90_000) + told.format(5001, 1000))
    seen = observe.read(path)

    assert seen.transfers["bytes"].to_list() == [4000]
    assert [str(problem) for problem in seen.problems] == ["1 x a socket with a number that cannot be (line 1)"]


def test_only_quoted_lines_of_a_table_are_taken_apart_by_their_quotes(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('rtt_ms,remark,bytes\n20,"a, b",1\n30,c,2\n40,"d",3\n')
    seen = observe.read(path)

    assert seen.users["rtt_s"].to_list() == pytest.approx([0.02, 0.03, 0.04])
    assert seen.transfers["bytes"].to_list() == [1, 2, 3]

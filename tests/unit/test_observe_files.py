"""Files that are damaged, odd or of another format: the good part is used, the rest is reported with its place."""

import gzip
import os
import re
import struct

import polars as pl
import pytest

import firstflight
from firstflight import observe
from firstflight.errors import RequestError
from firstflight.observe import nginx_format
from flows import EXAMPLES

LINE = next(iter((EXAMPLES / "nginx.log").read_text().splitlines()))


def told(seen):
    return {problem.what: (problem.unit, problem.count, problem.first) for problem in seen.problems}


@pytest.fixture
def file(tmp_path):
    def write(content, name="file"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (bytes(range(256)) * 40, "is of no kind that is recognized"),
        ("Dear diary,\ntoday nothing happened.\n", "is of no kind that is recognized"),
        ("a,b,c\n1,2,3\n", "is of no kind that is recognized"),
        (b"PAR1 and then nothing", "starts as a Parquet file, but cannot be opened"),
        (b"\xd4\xc3\xb2\xa1 cut", "is no capture"),
        ("rtt_ms,bytes\n", "holds no connection"),
        ("rtt_ms,bytes\nfast,large\n", "rtt_ms is not a number"),
    ],
)
def test_a_file_of_which_nothing_can_be_read_is_refused_in_one_sentence(file, content, said):
    with pytest.raises(RequestError, match=said) as refused:
        observe.read(file(content))

    assert "\n" not in str(refused.value)


def test_a_directory_and_a_file_that_is_not_there_are_refused(tmp_path):
    with pytest.raises(RequestError, match="is a directory"):
        observe.read(tmp_path)
    with pytest.raises(RequestError, match="cannot be read: No such file"):
        observe.read(tmp_path / "nothing")
    for read in (observe.read, firstflight.load_scenario):
        with pytest.raises(RequestError, match=r"^'a\\x00b' has a zero character"):
            read("a\0b")


def test_a_pipe_is_refused_before_anything_is_lost_from_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(RequestError, match="is a pipe or a device, which can be read only once"):
        observe.read(tmp_path / "pipe")


def test_a_packed_capture_is_refused_with_what_to_do(file):
    with pytest.raises(RequestError, match=r"is packed by gzip.*gunzip"):
        observe.read(file(gzip.compress((EXAMPLES / "server.pcapng").read_bytes())))


def capture(ports, flags, payload):
    """Of one packet, whose payload was not kept."""
    packet = struct.pack("!BBHHHBBH8s", 0x45, 0, 40 + payload, 0, 0, 64, 6, 0, bytes(8))
    packet += struct.pack("!HHIIBBHHH", *ports, 1, 0, 5 << 4, flags, 65535, 0, 0)
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    return head + struct.pack("<IIII", 0, 0, len(packet), len(packet) + payload) + packet


def test_a_capture_of_a_connection_that_nobody_answered_says_so(file):
    with pytest.raises(RequestError, match="1 x connections without data from the server"):
        observe.read(file(capture((50000, 443), 2, 0)))


def test_a_capture_of_https_without_data_says_that_handshakes_are_not_told_from_responses(file):
    unseen = "1 connection to port 443 that do not start like TLS"
    assert any(unseen in note for note in observe.read(file(capture((443, 50000), 16, 9))).source.notes)
    assert not any("TLS" in note for note in observe.read(file(capture((80, 50000), 16, 9))).source.notes)


def test_a_capture_of_https_says_how_many_connections_are_tls_and_keeps_the_handshakes_in_a_table(tmp_path):
    seen = observe.read(EXAMPLES / "https.pcapng")
    assert any(note.startswith(f"{seen.users.height} connections with TLS") for note in seen.source.notes)
    seen.flat().write_csv(tmp_path / "flows.csv")
    again = observe.read(tmp_path / "flows.csv").handshakes
    for column in ("bytes", "exchanges", "answer_flight_segments"):
        assert again[column].to_list() == seen.handshakes[column].to_list()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("rtt_ms,bytes\n20,1e30\n20,1000\n", "bytes is not below 1e+15"),
        ("rtt_ms,segments_sent,bytes\n20,1e12,5\n20,1,1000\n", "segments_sent is not below 4294967296"),
        ("rtt_ms,down_mbps,buffer_ms,bytes\n20,5,1e30,1\n20,5,1,1000\n", "buffer_ms is not below 1000000"),
        ("rtt_ms,bytes\n1e300,1\n20,1000\n", "rtt_ms is not below 1000000000"),
    ],
)
def test_a_number_beyond_any_is_told_and_the_other_rows_are_used(file, content, said):
    seen = observe.read(file(content))

    assert seen.transfers["bytes"].to_list() == [1000]
    assert told(seen) == {said: ("line", 1, (2,))}


def test_lines_of_a_log_with_numbers_that_cannot_be_are_left_out(file):
    endless = re.sub(r" bytes_sent=\d+", f" bytes_sent={'9' * 23}", LINE)
    unasked = re.sub(r"connection_requests=\d+", "connection_requests=0", LINE)
    seen = observe.read(file("\n".join((LINE, endless, unasked))))

    assert seen.transfers.height == 1
    assert told(seen) == {"with a number that cannot be": ("line", 2, (2, 3))}


def test_a_socket_with_numbers_that_cannot_be_is_left_out_and_the_syn_is_no_data(file):
    socket = "0 0 10.0.0.1:443 {}:50000\n\t cubic rtt:20/3 mss:1448 cwnd:10 bytes_sent:{} bytes_acked:5001 minrtt:19\n"
    seen = observe.read(file(socket.format("198.51.100.1", 5000) + socket.format("198.51.100.2", "9" * 20)))

    assert seen.transfers["delivered_bytes"].to_list() == [5000]
    assert told(seen) == {"a socket with a number that cannot be": ("line", 1, (3,))}


@pytest.mark.parametrize(
    ("own", "other", "sent"), [("443", "50000", [1, 1448]), ("https", "50000", [1, 1448]), ("50000", "443", [1447])]
)
def test_of_a_kernel_before_4_19_only_who_opened_the_connection_has_its_syn_among_the_acknowledged_bytes(
    file, own, other, sent
):
    socket = "0 0 10.0.0.1:{} 198.51.100.{}:{}\n\t cubic rtt:20/3 mss:1448 cwnd:10 bytes_acked:{} minrtt:19\n"
    seen = observe.read(file(socket.format(own, 1, other, 1) + socket.format(own, 2, other, 1448)))

    assert seen.transfers["bytes"].to_list() == sent
    left_out = ("1 socket had sent nothing and is left out",)
    assert seen.source.notes == (left_out if len(sent) == 1 else ())


def test_clients_of_a_socket_for_both_families_are_neighbors_by_their_ipv4_addresses(file):
    socket = "0 0 [::ffff:10.0.0.1]:443 [::ffff:{}]:50000\n\t cubic rtt:20/3 mss:1448 cwnd:10 bytes_sent:5000\n"
    seen = observe.read(file("".join(map(socket.format, ("198.51.100.1", "203.0.113.1", "198.51.100.2")))))

    assert seen.users["subnet"].to_list() == [0, 1, 0]


def test_a_kind_that_there_is_not_and_a_format_for_another_kind_are_refused(file):
    with pytest.raises(RequestError, match="the kinds are nginx, ss, capture, ndt7, log, table"):
        observe.read(file(LINE), "apache")
    with pytest.raises(RequestError, match='is for the kinds "nginx" and "log"'):
        observe.read(file(LINE), "ss", log_format="$tcpinfo_rtt")


@pytest.mark.parametrize("kind", observe.KINDS)
def test_junk_of_a_kind_that_was_named_is_refused_in_one_sentence(file, kind):
    with pytest.raises(RequestError) as refused:
        observe.read(file(bytes(range(256)) * 40), kind)

    assert "\n" not in str(refused.value)


def test_odd_lines_of_a_log_are_told_by_their_numbers(file):
    http3 = LINE.replace(LINE.split("tcpinfo_rtt=")[1].split()[0], "-", 1)
    seen = observe.read(
        file("\n".join(["cut off", LINE, "", "junk", LINE.replace("connection=", "connection=7"), http3]))
    )

    assert seen.transfers.height == 2
    assert told(seen) == {
        "not of the log format": ("line", 2, (1, 4)),
        "without a round trip in $tcpinfo_rtt": ("line", 1, (6,)),
    }


def test_a_packed_log_is_read_and_where_it_is_cut_off_is_told(file):
    whole = (EXAMPLES / "nginx.log").read_bytes()
    packed = gzip.compress(whole)

    assert observe.read(file(packed)).transfers.equals(observe.read(EXAMPLES / "nginx.log").transfers)
    cut = observe.read(file(packed[: len(packed) // 2]))
    assert 0 < cut.transfers.height < 72
    assert any("packed file is damaged" in problem.what for problem in cut.problems)


def test_a_log_in_another_format_is_read_by_that_format(file):
    form = """log_format timing '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
                  '"$http_user_agent" $tcpinfo_rtt';"""
    line = '10.1.2.3 - - [21/Nov/2026:18:00:00 +0000] "GET / HTTP/1.1" 200 5000 "a \\x22b\\x22 - c" 25000'

    seen = observe.read(file(f"{line}\n{line}\n"), log_format=form)

    assert seen.transfers["bytes"].to_list() == [5000, 5000]
    assert seen.users["rtt_s"].to_list() == pytest.approx([0.025, 0.025])
    assert seen.source.ignored == ("$remote_user", "$time_local", "$request", "$status", "$http_user_agent")


def test_a_format_whose_variables_nothing_separates_is_refused():
    with pytest.raises(RequestError, match=r"nothing before \$tcpinfo_rtt"):
        nginx_format.parse("$body_bytes_sent$tcpinfo_rtt")


def test_nginx_counts_connections_anew_when_it_is_started_anew(file):
    later = LINE.replace("msec=17", "msec=18")

    assert observe.read(file(f"{LINE}\n{LINE}\n{later}\n")).users.height == 2


def test_a_round_trip_that_the_answer_itself_made_long_is_not_taken_for_that_of_the_path(file):
    words = dict(word.split("=") for word in LINE.split())
    words |= {"request_time": "3.000", "connection_time": "3.100", "bytes_sent": "3000000", "tcpinfo_rtt": "200000"}
    words |= {"tcpinfo_snd_cwnd": "20"}
    seen = observe.read(file(" ".join(f"{name}={value}" for name, value in words.items())))

    assert seen.users["rtt_s"].to_list() == [None]
    assert seen.users["max_rtt_s"].to_list() == [0.2]
    assert "1 connection without an RTT: their samples include the response's own queueing delay" in seen.source.notes


def test_snapshots_cut_in_the_middle_are_read_up_to_there(file):
    text = (EXAMPLES / "ss.txt").read_text()
    place = text.index("ESTAB", len(text) // 2)
    cut = observe.read(file(text[: place + 40]))

    assert 0 < cut.users.height <= 24
    assert told(cut)["neither a socket nor its data"][1] == 1
    cut = observe.read(file(text[: text.index("\n", place) + 1]))
    assert "a socket without data" in told(cut)


def test_a_socket_on_one_line_ipv6_and_a_port_used_again_are_read(file):
    numbers = "cubic rtt:30.5/1.2 mss:1440 cwnd:10 bytes_sent:{sent} bytes_acked:{sent} "
    numbers += "data_segs_out:{segments} minrtt:{least}"
    ends = "0 0 [2001:db8::1]:443 [2001:db8:7::2]:5000"
    first = numbers.format(sent=40_000, segments=28, least=20)
    second = numbers.format(sent=9_000, segments=7, least=21)
    seen = observe.read(file(f"State Recv-Q Send-Q\nESTAB {ends} {first}\n1795284877.4\n{ends}\n\t {second}\n"), "ss")

    assert seen.transfers["bytes"].to_list() == [40_000, 9_000]
    assert seen.users["rtt_s"].to_list() == [0.02, 0.021]
    assert seen.users["subnet"].to_list() == [0, 0]
    assert seen.problems == ()


def test_ports_by_name_as_ss_writes_them_without_n_are_read(file):
    text = (EXAMPLES / "ss.txt").read_text().replace(":8080 ", ":http-alt ")
    assert observe.read(file(text)).users.equals(observe.read(EXAMPLES / "ss.txt").users)


def test_a_capture_that_is_cut_off_is_used_and_told_by_byte(file):
    whole = (EXAMPLES / "server.pcapng").read_bytes()
    cut = observe.read(file(whole[:100_001]))

    assert 0 < cut.users.height <= 8
    (problem,) = (problem for problem in cut.problems if "cut off" in problem.what)
    assert (problem.unit, problem.count) == ("byte", 1)
    assert 99_800 < problem.first[0] < 100_001


def test_bad_fields_of_a_table_are_told_by_line_and_the_rest_is_used(file):
    table = "\n".join(
        [
            "rtt_ms,down_mbps,bytes,loss_percent,colour",
            "20,1.5,15000,0.1,red",
            "-5,1.5,15000,0.1,red",
            "twenty,1.5,15000,0.1,red",
            "20,0,15000,0.1,red",
            "20,1.5,15000,100,red",
            "20,1.5",
            ",1.5,15000,0.1,red",
            '20,,"15000",,"red, or blue"',
        ]
    )
    seen = observe.read(file(table))

    assert seen.transfers["bytes"].to_list() == [15_000, 15_000]
    assert seen.users["down_bps"].to_list() == [1.5e6, None]
    assert seen.source.ignored == ("colour",)
    assert told(seen) == {
        "rtt_ms is not above 0": ("line", 1, (3,)),
        "rtt_ms is not a number": ("line", 1, (4,)),
        "down_mbps is not above 0": ("line", 1, (5,)),
        "loss_percent is not below 100": ("line", 1, (6,)),
        "not 5 fields, as the first line has": ("line", 1, (7,)),
        "rtt_ms is not there, and a path needs it": ("line", 1, (8,)),
    }


def test_rows_of_one_connection_are_one_user_with_its_least_round_trip(file):
    seen = observe.read(file("connection,rtt_ms,bytes,buffer_ms,down_kbps\nx,30,1,100,1000\ny,40,2,,\nx,20,3,,\n"))

    assert seen.users["rtt_s"].to_list() == [0.02, 0.04]
    assert seen.users["buffer_bytes"].to_list() == [12_500, None]
    assert seen.transfers.select("client", "bytes").rows() == [(0, 1), (1, 2), (0, 3)]


def test_a_quoted_field_may_have_line_breaks_and_what_is_inside_it_is_no_row(file):
    inside = '"said\n99,1000,x\nand ""more"""'
    seen = observe.read(file(f'rtt_ms,bytes,remark\n20,1,{inside}\n30,2,"a"\n{inside},1,2\n40,3,"open\n50,4,d\n'))

    assert seen.users["rtt_s"].to_list() == pytest.approx([0.02, 0.03, 0.04, 0.05])
    assert seen.transfers["bytes"].to_list() == [1, 2, 3, 4]
    assert told(seen) == {"rtt_ms is not a number": ("line", 1, (6,))}


def test_more_retransmissions_than_segments_cannot_be(file):
    seen = observe.read(file("rtt_ms,bytes,segs_out,retrans\n20,9000,3,5\n20,9000,7,5\n"))

    assert seen.transfers["segments_sent"].to_list() == [7]
    assert told(seen) == {"retrans is not at most segs_out": ("line", 1, (2,))}


def test_two_columns_that_say_the_same_are_refused(file):
    with pytest.raises(RequestError, match='columns "rtt_ms" and "rtt_us" say the same'):
        observe.read(file("rtt_ms,rtt_us\n1,1000\n"))


@pytest.mark.parametrize("empty", ["", "-", "NULL"])
def test_rows_that_name_no_connection_and_no_subnet_have_nothing_in_common(file, empty):
    rows = ["20,1,a,n", f"30,2,{empty},{empty}", f"40,3,{empty},{empty}", "50,4,a,n"]
    seen = observe.read(file("\n".join(["rtt_ms,bytes,connection,subnet", *rows])))

    assert seen.users["rtt_s"].to_list() == pytest.approx([0.02, 0.03, 0.04])
    assert seen.users["subnet"].to_list() == [0, None, None]
    assert seen.transfers["client"].to_list() == [0, 1, 2, 0]


def test_a_parquet_table_gives_what_its_csv_gives(tmp_path):
    table = pl.read_csv(EXAMPLES / "table.csv")
    table.write_parquet(tmp_path / "table.parquet")

    from_parquet, from_csv = observe.read(tmp_path / "table.parquet"), observe.read(EXAMPLES / "table.csv")

    assert from_parquet.users.equals(from_csv.users)
    assert from_parquet.transfers.equals(from_csv.transfers)


def test_mlab_rows_are_read_nested_as_bigquery_exports_them_and_with_underscores(tmp_path, file):
    measurement = {"TCPInfo": {"MinRTT": 19_000, "RTT": 25_000}}
    row = {
        "id": "x",
        "a": {"MeanThroughputMbps": 50.0, "MinRTT": 19.0, "LossRate": 0.01},
        "raw": {"ClientIP": "192.0.2.7", "Download": {"ServerMeasurements": [measurement, measurement]}},
    }
    pl.DataFrame([row, row]).write_parquet(tmp_path / "ndt7.parquet")
    nested = observe.read(tmp_path / "ndt7.parquet")
    flat = observe.read(file("a_MeanThroughputMbps,a_MinRTT\n50,19\n50,0\n"))

    assert nested.users["rtt_s"].to_list() == [0.019, 0.019]
    assert nested.users["max_rtt_s"].to_list() == [0.025, 0.025]
    assert nested.users["loss"].to_list() == [0.01, 0.01]
    assert nested.users["subnet"].to_list() == [0, 0]
    assert flat.users["down_bps"].to_list() == [nested.users["down_bps"][0]]
    assert told(flat) == {"a_MinRTT is not above 0": ("line", 1, (3,))}


def test_uploads_tell_the_rate_from_the_user(file):
    seen = observe.read(file("a.MeanThroughputMbps,a.MinRTT,raw.Upload.StartTime\n8,19,x\n"))

    assert seen.users["up_bps"][0] == pytest.approx(8e6 * 1500 / 1448)
    assert seen.users["down_bps"].to_list() == [None]


@pytest.mark.parametrize("name", ["nginx.log", "ss.txt", "server.pcapng", "table.csv"])
def test_the_table_that_is_written_gives_the_same_records_again(tmp_path, name):
    seen = observe.read(EXAMPLES / name)
    seen.flat().write_parquet(tmp_path / "flat.parquet")

    again = observe.read(tmp_path / "flat.parquet")

    assert again.users.equals(seen.users)
    assert again.transfers.drop("start_s").equals(seen.transfers.drop("start_s"))


def test_lines_in_pieces_are_the_lines_of_the_file(file):
    from firstflight.observe.lines import pieces
    from firstflight.observe.problem import Problems

    path = file("one\ntwo\r\n\nfour\nlast")
    for size in (1, 3, 7, 1 << 20):
        found = list(pieces(path, Problems(), size))
        assert [line for _, lines in found for line in lines] == ["one", "two", "", "four", "last"]
        numbers = [first + at for first, lines in found for at in range(lines.len())]
        assert numbers == [1, 2, 3, 4, 5]


def test_a_line_without_end_ends_what_can_be_read(file):
    seen = observe.read(file(f"{LINE}\n{'x' * 3_000_000}"))

    assert seen.transfers.height == 1


def test_ignored_columns_with_a_similar_name_are_noted(tmp_path):
    path = tmp_path / "flows.csv"
    path.write_text("rtt_ms,byte,completion_ms,latency_ms,colour\n20,9000,80,20,red\n")
    assert observe.read(path).source.notes == (
        'columns are ignored that may have another name here: write "byte" as bytes; write "completion_ms" as '
        "completion_time_ms",
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("rtt,bytes\n20,9000\n", 'write "rtt" as rtt_ms, rtt_s or rtt_us, by its unit'),
        ("rtt,throughput_mbps\n20,9\n", 'write "throughput_mbps" as down_mbps, if it is the access rate'),
        ("rtt_mss,bytes\n20,9000\n", 'write "rtt_mss" as rtt_ms'),
        ("status,response_size\n200,9000\n", 'status, response_size; write "response_size" as bytes'),
        ("ping_ms,response_size\n20,9000\n", 'write "ping_ms" as rtt_ms; write "response_size" as bytes or kb'),
        ("State  Recv-Q Send-Q Local Address:Port Peer Address:Port\n", "is output of ss without a connection"),
        (
            "State  Recv-Q Send-Q Local Address:Port Peer Address:Port\nESTAB 0 0 10.0.0.1:443 10.0.0.2:50000\n",
            "without -i, which has no RTTs; write it with ss -tinH",
        ),
    ],
)
def test_what_is_nearly_right_is_refused_with_what_to_write(file, content, said):
    with pytest.raises(RequestError) as refused:
        observe.read(file(content))
    assert said in str(refused.value)


def test_usual_names_that_leave_no_doubt_are_taken(file):
    seen = observe.read(file("min_rtt_ms,bytes_sent,Client-IP\n20,9000,10.0.0.1\n"))

    assert seen.users["rtt_s"].to_list() == pytest.approx([0.02])
    assert seen.transfers["bytes"].to_list() == [9000]
    assert seen.users["subnet"].to_list() == [0]

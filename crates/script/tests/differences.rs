//! The messages when an event differs from the script.

use firstflight_script::{Report, Verdict, run_text};

const MICROSECOND_NS: u64 = 1_000;

const CONNECTED: &str = "--profile=rfc
--set=mss_bytes=1000
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 65535 <mss 1000>
+0 > S. 0:0(0) ack 1 <...>
+.1 < . 1:1(0) ack 1 win 65535
+0 accept(3, ..., ...) = 4
";

/// Line of the first event after `CONNECTED`.
const NEXT: u32 = 10;

fn run(rest: &str) -> Report {
    run_text(&format!("{CONNECTED}{rest}"), MICROSECOND_NS)
}

fn differs(rest: &str, line: u32, reason: &str) -> Report {
    let report = run(rest);
    assert_eq!((report.verdict, report.line), (Verdict::Differs, line), "{}", report.reason);
    assert_eq!(report.reason, format!("line {line}: {reason}"));
    report
}

#[test]
fn a_difference_shows_the_line_what_was_expected_what_came_and_the_segments_before() {
    let rest = "+0 write(4, ..., 2000) = 2000\n+0 > P. 1:2001(2000) ack 1\n+.1 < . 1:1(0) ack 1001 win 65535\n\
                +0 < . 1:1(0) ack 2001 win 65535\n+0 write(4, ..., 500) = 500\n+0 > P. 2001:3001(1000) ack 2\n";
    let report = differs(rest, NEXT + 5, "nothing was sent by 0.200001, after 500 bytes of it");
    assert_eq!(
        report.details,
        [
            "line 15: +0 > P. 2001:3001(1000) ack 2",
            "expected  P. 2001:3001(1000) ack 2",
            "came      P. 2001:2501(500) ack 1 win 65535",
            "segments, the latest last:",
            "  0.000000 < S 0:0(0) win 65535 <mss 1000>",
            "  0.000000 > S. 0:0(0) ack 1 win 65535 <mss 1000>",
            "  0.100000 < . 1:1(0) ack 1 win 65535",
            "  0.100000 > . 1:1001(1000) ack 1 win 65535",
            "  0.100000 > P. 1001:2001(1000) ack 1 win 65535",
            "  0.200000 < . 1:1(0) ack 1001 win 65535",
            "  0.200000 < . 1:1(0) ack 2001 win 65535",
            "  0.200000 > P. 2001:2501(500) ack 1 win 65535",
        ]
    );
}

#[test]
fn fields_that_differ_are_named() {
    differs("+0 write(4, ..., 500) = 500\n+0 > . 1:501(500) ack 2\n", NEXT + 1, "acknowledgement 1 instead of 2");
    differs(
        "+0 write(4, ..., 500) = 500\n+0 > F. 2:502(500) ack 1 win 3\n",
        NEXT + 1,
        "flags . instead of F.; sequence number 1 instead of 2; window 65535 instead of 3",
    );
    differs(
        "+0 write(4, ..., 500) = 500\n+0 > [ect0] . 1:501(500) ack 1 <nop,nop,TS val 1 ecr 2>\n",
        NEXT + 1,
        "ECN bits noecn instead of ect0; options <> instead of <nop,nop,TS val 1 ecr 2>",
    );
}

#[test]
fn an_early_a_late_and_a_missing_packet_are_told_apart() {
    let write = "+0 write(4, ..., 500) = 500\n";
    differs(&format!("{write}+.5 > . 1:501(500) ack 1\n"), NEXT + 1, "it came at 0.100000 instead of 0.600000");
    differs(
        &format!("{write}+0 > . 1:501(500) ack 1\n+.2~+.3 > . 1:501(500) ack 1\n"),
        NEXT + 2,
        "nothing was sent by 0.400001",
    );
    assert_eq!(run(&format!("{write}+0 > . 1:501(500) ack 1\n+.9~+1.2 > . 1:501(500) ack 1\n")).verdict, Verdict::Pass);
    assert_eq!(run(&format!("{write}+0 > . 1:501(500) ack 1\n* > . 1:501(500) ack 1\n")).verdict, Verdict::Pass);
}

#[test]
fn the_tolerance_of_the_caller_or_of_the_script_lets_a_packet_be_off() {
    let script =
        format!("{CONNECTED}+0 write(4, ..., 500) = 500\n+0 > P. 1:501(500) ack 1\n+.997 > P. 1:501(500) ack 1\n");
    assert_eq!(run_text(&script, MICROSECOND_NS).verdict, Verdict::Differs);
    assert_eq!(run_text(&script, 2_999_999).verdict, Verdict::Differs);
    assert_eq!(run_text(&script, 3_000_000).verdict, Verdict::Pass);
    let own = format!("--tolerance_usecs=4000\n{script}");
    assert_eq!(run_text(&own, MICROSECOND_NS).verdict, Verdict::Pass);
}

#[test]
fn an_unexpected_packet_before_an_expected_one_differs_and_one_at_the_end_does_not() {
    let two = "+0 write(4, ..., 2000) = 2000\n+0 > . 1:1001(1000) ack 1\n";
    assert_eq!(run(two).verdict, Verdict::Pass);
    let report = run(&format!("{two}+.1 < . 1:1(0) ack 2001 win 65535\n+1 close(4) = 0\n+0 > F. 2001:2001(0) ack 1\n"));
    assert_eq!((report.verdict, report.line), (Verdict::Differs, NEXT + 4));
    assert!(report.reason.contains("sequence number 1001 instead of 2001"), "{}", report.reason);
}

#[test]
fn a_push_flag_is_a_note() {
    let report = run("+0 write(4, ..., 500) = 500\n+0 > . 1:501(500) ack 1\n");
    assert_eq!(report.verdict, Verdict::Pass);
    assert_eq!(report.notes, ["PSH is otherwise than written in line 11"]);
}

#[test]
fn strict_segments_takes_each_line_for_one_segment() {
    let rest = "+0 write(4, ..., 2000) = 2000\n+0 > P. 1:2001(2000) ack 1\n";
    assert_eq!(run(rest).verdict, Verdict::Pass);
    let strict = format!("--strict_segments\n{CONNECTED}{rest}");
    assert!(run_text(&strict, MICROSECOND_NS).reason.contains("1000 bytes of payload instead of 2000"));
}

#[test]
fn calls_that_return_something_else_differ() {
    differs(
        "+0 read(4, ..., 10) = 0\n",
        NEXT,
        "read() would block at 0.100000; a script says when a call that blocks returns, as in +0...0.100",
    );
    differs("+0 write(9, ..., 10) = 10\n", NEXT, "write() returned -1 EBADF instead of 10");
    differs(
        "+0 shutdown(4, SHUT_WR) = 0\n+0 write(4, ..., 10) = 10\n",
        NEXT + 1,
        "write() returned -1 EPIPE instead of 10",
    );
    differs(
        "+0 getsockopt(4, SOL_TCP, TCP_MAXSEG, [1460], [4]) = 0\n",
        NEXT,
        "getsockopt() found 1000 instead of 1460",
    );
}

#[test]
fn a_blocking_call_returns_when_it_can_and_at_the_time_that_the_script_says() {
    let data = "< P. 1:101(100) ack 1 win 65535\n";
    assert_eq!(run(&format!("+0...0.3 read(4, ..., 1000) = 100\n+.3 {data}")).verdict, Verdict::Pass);
    differs(
        &format!("+0...0.5 read(4, ..., 1000) = 100\n+.3 {data}"),
        NEXT,
        "read() returned at 0.400000 instead of 0.600000",
    );
    differs("+0...0.5 read(4, ..., 1000) = 100\n", NEXT, "read() has not returned by 0.600001");
    differs(&format!("+0...0.3 read(4, ..., 1000) = 50\n+.3 {data}"), NEXT, "read() returned 100 instead of 50");
}

#[test]
fn a_syn_in_an_open_connection_leaves_later_numbers_as_they_were() {
    for syn in ["S 0:0(0) win 1000", "S 70000:70000(0) win 1000", "S. 4242:4242(0) ack 1 win 1000"] {
        let rest = format!(
            "+0 write(4, ..., 500) = 500
+0 > P. 1:501(500) ack 1
+.1 < {syn} <mss 1000>
+0 > . 501:501(0) ack 1
+.1 < P. 1:101(100) ack 501 win 65535
+.2 > . 501:501(0) ack 101
"
        );
        let report = run(&rest);
        assert_eq!(report.verdict, Verdict::Pass, "{syn}: {} {:?}", report.reason, report.details);
    }
}

#[test]
fn several_connections_follow_one_another_on_one_listening_socket() {
    let rest = "+0 close(4) = 0
+0 > F. 1:1(0) ack 1
+.1 < F. 1:1(0) ack 2 win 65535
+0 > . 2:2(0) ack 2
+1 < S 500:500(0) win 65535 <mss 500>
+0 > S. 0:0(0) ack 501 <...>
+.1 < . 1:1(0) ack 1 win 65535
+0 accept(3, ..., ...) = 4
+0 write(4, ..., 500) = 500
+0 > P. 1:501(500) ack 1
";
    let report = run(rest);
    assert_eq!(report.verdict, Verdict::Pass, "{} {:?}", report.reason, report.details);
}

//! The message about an error in a script has its line, the value that was found and the one expected. A feature
//! that is not modeled is no mistake.

use firstflight_script::{Verdict, run_text};

const MICROSECOND_NS: u64 = 1_000;

const SOCKET: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n";

fn refused(text: &str, verdict: Verdict, line: u32, words: &[&str]) {
    let report = run_text(text, MICROSECOND_NS);
    assert_eq!((report.verdict, report.line), (verdict, line), "{text}\n{}", report.reason);
    for word in words {
        assert!(report.reason.contains(word), "\"{}\" does not say \"{word}\"", report.reason);
    }
}

#[test]
fn mistakes_are_named_with_what_would_be_right() {
    let cases: &[(&str, u32, &[&str])] = &[
        ("", 1, &["no event", "socket(..."]),
        ("// only words\n", 2, &["no event"]),
        ("0 socket(..., SOCK_STREAM IPPROTO_TCP) = 3", 1, &["\"IPPROTO_TCP\"", "\",\""]),
        ("0 socket(..., SOCK_STREAM, IPPROTO_TCP)", 1, &["the end of the script", "\"=\""]),
        ("socket(..., SOCK_STREAM, IPPROTO_TCP) = 3", 1, &["\"socket\"", "time of an event"]),
        ("0 < S 0:0(0) win 65536 <mss 1000>", 1, &["window is 65536", "0 to 65535"]),
        ("0 < S 0:10(0) win 65535", 1, &["0:10(0)", "add up"]),
        ("0 < S 0:0(0) <mss 1000>", 1, &["\"win\""]),
        ("0 < X 0:0(0) win 1", 1, &["\"X\"", "SFRPEW"]),
        ("0 > S. 0:0(0) ack 1 <mss 1460,nopp>", 1, &["\"nopp\"", "sackOK"]),
        ("0 > S. 0:0(0) ack 1 <TS value 1 ecr 2>", 1, &["\"value\"", "\"val\""]),
        ("0 < S 0:0(0) win 1 <...>", 1, &["<...>", "must name its own"]),
        ("0 < [ect2] . 1:1(0) ack 1 win 1", 1, &["\"ect2\"", "ect0, ect1, ect01, ce or noecn"]),
        ("0 < [ect01] . 1:1(0) ack 1 win 1", 1, &["ect01", "expected packet", "write ect0 or ect1"]),
        ("0~0.1 close(3) = 0", 1, &["only an expected packet"]),
        ("+.2~+.1 > . 1:1(0) ack 1", 1, &["ends before it begins"]),
        ("+.2~.3 > . 1:1(0) ack 1", 1, &["\"+\"", "relative"]),
        ("+.2...0.1 read(3, ..., 1) = 1", 1, &["ends before it begins"]),
        ("0 `echo", 1, &["never ends", "`"]),
        ("0 close(3) = 0\n--profile=rfc", 2, &["--profile", "before anything else"]),
        ("--profile=linus\n0 close(3) = 0", 1, &["\"linus\"", "rfc"]),
        ("--profile=rfc\n--set=initial_windo=3\n0 close(3) = 0", 2, &["initial_windo", "initial_window"]),
        ("--set=initial_window\n0 close(3) = 0", 1, &["--set=initial_window=3"]),
        ("--tolerance_usecs=soon\n0 close(3) = 0", 1, &["--tolerance_usecs=soon"]),
        ("--tolerance_usecs\n0 close(3) = 0", 1, &["needs a value"]),
        ("0 < S 0:0(0) win 65535", 1, &["belongs to no connection"]),
        ("1 close(3) = -1 EBADF\n0.5 close(3) = -1 EBADF", 2, &["backwards"]),
        ("0 bind(..., ...) = 0", 1, &["argument 1 of bind()", "descriptor"]),
    ];
    for (text, line, words) in cases {
        refused(text, Verdict::Error, *line, words);
    }
}

#[test]
fn what_is_not_modeled_says_so() {
    let cases: &[(String, u32, &str)] = &[
        ("0 < icmp unreachable frag_needed mtu 1200 [1:1(0)]".to_owned(), 1, "icmp"),
        ("0 < [1:1(0)] icmp unreachable".to_owned(), 1, "icmp"),
        ("0 < S 0:0(0) win 1 <mss 1000,FO abcd1234>".to_owned(), 1, "Fast Open"),
        ("0 > SEWA 0:0(0) <...>".to_owned(), 1, "flag A"),
        ("0 > [tos 0x4] . 1:1(0) ack 1".to_owned(), 1, "tos"),
        (format!("{SOCKET}+0 epoll_create(1) = 4"), 2, "epoll_create()"),
        (format!("{SOCKET}+0 setsockopt(3, SOL_SOCKET, SO_ZEROCOPY, [1], 4) = 0"), 2, "SO_ZEROCOPY"),
        ("0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3".to_owned(), 1, "SOCK_STREAM"),
        ("--nosuch=1\n0 close(3) = 0".to_owned(), 1, "--nosuch"),
        (format!("`../common/defaults.sh\nsysctl -q net.ipv4.tcp_mtu_probing=2`\n{SOCKET}"), 2, "tcp_mtu_probing=2"),
        (format!("`sysctl -q net.ipv4.tcp_nosuch=2`\n{SOCKET}"), 1, "tcp_nosuch"),
        (format!("`reboot now`\n{SOCKET}"), 1, "reboot now"),
        (format!("`\nip route add default via 1.2.3.4 nosuch 3`\n{SOCKET}"), 2, "nosuch"),
    ];
    for (text, line, word) in cases {
        refused(text, Verdict::Unsupported, *line, &[word]);
    }
}

#[test]
fn nesting_has_an_end() {
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(10_000), close.repeat(10_000));
    refused(&format!("0 read({}) = 0", deep("[", "]")), Verdict::Error, 1, &["nest"]);
    refused(&format!("0 read({}) = 0", deep("a(", ")")), Verdict::Error, 1, &["nest"]);
}

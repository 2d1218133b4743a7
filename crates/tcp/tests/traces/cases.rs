//! The connections that are traced.

use firstflight_tcp::Nanos;

const MS: Nanos = 1_000_000;

/// The path from server to client; ACKs are only delayed.
#[derive(Clone, Copy)]
pub struct Network {
    /// One way.
    pub delay: Nanos,
    /// Of the link; 0: without limit.
    pub ns_per_byte: u64,
    /// Its new value, from a time on.
    pub then: Option<(Nanos, u64)>,
    /// Packets of 1500 bytes that the link's queue holds.
    pub queue: u64,
    /// Numbers of data segments, counted from 1 as they are sent, that are lost,
    pub lost: &'static [u32],
    /// are 15 ms late,
    pub late: &'static [u32],
    /// or arrive twice.
    pub twice: &'static [u32],
    /// From and to, in ns: a segment sent then arrives as if it was sent at the end.
    pub stalls: &'static [(Nanos, Nanos)],
}

pub struct Case {
    pub name: &'static str,
    pub what: &'static str,
    /// Names of profiles, and changes to them.
    pub server: (&'static str, &'static str),
    pub client: (&'static str, &'static str),
    pub network: Network,
    /// Bytes that the server writes, with the times in ms.
    pub writes: &'static [(u64, u64)],
    /// Bytes that the client writes.
    pub requests: &'static [(u64, u64)],
    /// The client reads this amount per this number of ms; else all data that arrives.
    pub reads: Option<(u64, u64)>,
    pub ms: u64,
    /// Interval of the rows in ms.
    pub every: u64,
}

const NETWORK: Network =
    Network { delay: 30 * MS, ns_per_byte: 800, then: None, queue: 40, lost: &[], late: &[], twice: &[], stalls: &[] };
const CASE: Case = Case {
    name: "",
    what: "",
    server: ("linux", "{}"),
    client: ("linux", "{}"),
    network: NETWORK,
    writes: &[(0, 4_000_000)],
    requests: &[],
    reads: None,
    ms: 3000,
    every: 100,
};

const BURSTY: &[(u64, u64)] = &[
    (0, 30_000),
    (100, 60_000),
    (250, 1000),
    (300, 1000),
    (350, 200_000),
    (1200, 100),
    (1300, 40_000),
    (3500, 150_000),
    (3800, 2000),
    (9000, 300_000),
];
const LOSSES: &[u32] = &[12, 40, 41, 45, 110, 111, 112, 113, 180, 230, 260, 262, 264, 266, 330];

pub const CASES: &[Case] = &[
    Case { name: "cubic", what: "CUBIC with HyStart until the queue overflows, and after.", ms: 5000, ..CASE },
    Case {
        name: "cubic_without_hystart",
        what: "CUBIC in a small queue.",
        server: ("linux", r#"{"congestion_control": {"algorithm": "cubic", "hystart": "off"}}"#),
        network: Network { queue: 12, ..NETWORK },
        ms: 5000,
        ..CASE
    },
    Case {
        name: "cubic_hystart_plus_plus",
        what: "CUBIC with HyStart++ in a deep queue.",
        server: ("linux", r#"{"congestion_control": {"algorithm": "cubic", "hystart": "hystart_plus_plus"}}"#),
        network: Network { queue: 200, ..NETWORK },
        ..CASE
    },
    Case {
        name: "bbr",
        what: "BBR over a long transfer, with a search for the shortest RTT after ten seconds.",
        server: ("linux", r#"{"congestion_control": {"algorithm": "bbr"}}"#),
        writes: &[(0, 20_000_000)],
        ms: 13_000,
        every: 100,
        ..CASE
    },
    Case {
        name: "bbr_with_losses_and_idle_times",
        what: "BBR with an application that pauses, losses and a small queue.",
        server: ("linux", r#"{"congestion_control": {"algorithm": "bbr"}}"#),
        network: Network { queue: 15, lost: LOSSES, ..NETWORK },
        writes: BURSTY,
        ms: 11_000,
        every: 100,
        ..CASE
    },
    Case {
        name: "vegas",
        what: "Vegas, which keeps a few segments in the queue.",
        server: ("rfc", r#"{"congestion_control": {"algorithm": "vegas"}}"#),
        ms: 5000,
        ..CASE
    },
    Case {
        name: "westwood",
        what: "Westwood+ with losses.",
        server: ("linux", r#"{"congestion_control": {"algorithm": "westwood"}}"#),
        network: Network { lost: LOSSES, ..NETWORK },
        ms: 5000,
        ..CASE
    },
    Case {
        name: "reno_with_losses",
        what: "The linux profile with Reno, losses, late and doubled segments.",
        server: ("linux", r#"{"congestion_control": {"algorithm": "reno"}}"#),
        network: Network { lost: LOSSES, late: &[20, 60, 150, 300], twice: &[30, 205], ..NETWORK },
        ..CASE
    },
    Case {
        name: "without_sack",
        what: "The linux profile with a peer without SACK and timestamps, with losses, late and doubled segments.",
        client: (
            "linux",
            r#"{"sack": false, "dsack": false, "recovery.scoreboard.rack": false, "recovery.scoreboard.tail_loss_probe": null, "recovery.scoreboard.undo_by_dsack": false, "timestamps": false, "undo_spurious_syn": false}"#,
        ),
        network: Network { lost: LOSSES, late: &[20, 60, 150, 300], twice: &[30, 205], ..NETWORK },
        ms: 6000,
        ..CASE
    },
    Case {
        name: "stalls",
        what: "Stalls of 300 ms to 1 s, after which what was retransmitted turns out to have been late: F-RTO, Eifel, DSACK.",
        network: Network { stalls: &[(400 * MS, 700 * MS), (1500 * MS, 2500 * MS)], ..NETWORK },
        ms: 5000,
        ..CASE
    },
    Case {
        name: "stalls_without_timestamps",
        what: "The same without timestamps.",
        client: ("linux", r#"{"timestamps": false, "undo_spurious_syn": false}"#),
        network: Network { stalls: &[(400 * MS, 700 * MS), (1500 * MS, 2500 * MS)], ..NETWORK },
        ms: 5000,
        ..CASE
    },
    Case {
        name: "stalls_without_sack",
        what: "The same without timestamps and SACK.",
        client: (
            "linux",
            r#"{"sack": false, "dsack": false, "recovery.scoreboard.rack": false, "recovery.scoreboard.tail_loss_probe": null, "recovery.scoreboard.undo_by_dsack": false, "timestamps": false, "undo_spurious_syn": false}"#,
        ),
        network: Network { stalls: &[(400 * MS, 700 * MS), (1500 * MS, 2500 * MS)], ..NETWORK },
        ms: 5000,
        ..CASE
    },
    Case {
        name: "ticks",
        what: "Timers on a wheel of 4 ms.",
        server: ("linux", r#"{"timer_tick": {"period_ns": 4000000, "wheel": true}}"#),
        client: ("linux", r#"{"timer_tick": {"period_ns": 4000000, "wheel": true}}"#),
        network: Network { lost: LOSSES, stalls: &[(1500 * MS, 2500 * MS)], ..NETWORK },
        writes: BURSTY,
        ms: 10_000,
        every: 100,
        ..CASE
    },
    Case {
        name: "fq_pacing",
        what: "Windows paced as fq does it.",
        server: ("linux", r#"{"pacing": {"slow_start_percent": 200, "avoidance_percent": 120, "burst_segments": 2}}"#),
        network: Network { lost: LOSSES, ..NETWORK },
        ..CASE
    },
    Case {
        name: "idle_times",
        what: "An application that pauses, under the linux profile.",
        network: Network { lost: &[150], ..NETWORK },
        writes: BURSTY,
        ms: 11_000,
        every: 100,
        ..CASE
    },
    Case {
        name: "restart_window_of_rfc_6928",
        what: "An application that pauses, under the rfc profile.",
        server: ("rfc", r#"{"restart_window": {"policy": "rfc6928"}}"#),
        network: Network { lost: &[5, 150], ..NETWORK },
        writes: BURSTY,
        ms: 11_000,
        every: 100,
        ..CASE
    },
    Case {
        name: "tahoe",
        what: "Tahoe with losses.",
        server: ("rfc", r#"{"recovery": "tahoe"}"#),
        network: Network { lost: LOSSES, ..NETWORK },
        ms: 6000,
        ..CASE
    },
    Case {
        name: "reno",
        what: "Reno that counts duplicates, with losses.",
        server: ("rfc", r#"{"recovery": {"reno": {}}}"#),
        network: Network { lost: LOSSES, ..NETWORK },
        ms: 6000,
        ..CASE
    },
    Case {
        name: "new_reno",
        what: "NewReno with losses, limited transmit and early retransmit.",
        server: (
            "rfc",
            r#"{"recovery.new_reno.ack_heuristic": true, "limited_transmit": true, "early_retransmit": true}"#,
        ),
        network: Network { lost: LOSSES, late: &[20, 60, 150, 300], twice: &[30, 205], ..NETWORK },
        ms: 6000,
        ..CASE
    },
    Case {
        name: "counting_sacks",
        what: "RFC 6675 without RACK, with losses.",
        server: ("rfc", r#"{"recovery": {"scoreboard": {}}, "sack": true, "limited_transmit": true}"#),
        network: Network { lost: LOSSES, late: &[20, 60, 150, 300], twice: &[30, 205], ..NETWORK },
        ms: 6000,
        ..CASE
    },
    Case {
        name: "ns2_full_1998",
        what: "What RFC 2415 ran, with losses.",
        server: ("ns2", "{}"),
        client: ("ns2", "{}"),
        network: Network { lost: LOSSES, ..NETWORK },
        writes: &[(0, 400_000)],
        ms: 20_000,
        every: 200,
        ..CASE
    },
    Case {
        name: "jump_start",
        what: "All at once over the first RTT, into a queue that overflows.",
        server: ("linux", r#"{"startup": {"scheme": "jump_start"}}"#),
        writes: &[(0, 200_000)],
        ..CASE
    },
    Case {
        name: "rapid_start",
        what: "Rapid start until a queue builds.",
        server: ("linux", r#"{"startup": {"scheme": "rapid_start"}}"#),
        ..CASE
    },
    Case {
        name: "suss",
        what: "SUSS until HyStart ends slow start.",
        server: ("linux", r#"{"startup": {"scheme": "suss"}}"#),
        ..CASE
    },
    Case {
        name: "careful_resume",
        what: "A jump to half of a saved window, and a loss once it is validated.",
        server: (
            "linux",
            r#"{"startup": {"scheme": "careful_resume", "saved_window_segments": 400, "saved_rtt_ns": 50000000}}"#,
        ),
        ..CASE
    },
    Case {
        name: "quick_start",
        what: "Quick-Start at 640 kbit/s x 2, granted by all routers.",
        server: ("linux", r#"{"startup": {"scheme": "quick_start", "rate": 7}}"#),
        client: ("linux", r#"{"startup": {"scheme": "quick_start", "rate": 7}}"#),
        network: Network { lost: &[30], ..NETWORK },
        ..CASE
    },
    Case {
        name: "paced_first_flight",
        what: "The initial window paced over an RTT.",
        server: ("rfc", r#"{"startup": {"scheme": "paced", "over_rtt_percent": 70}}"#),
        ms: 1000,
        every: 20,
        ..CASE
    },
    Case {
        name: "slow_reader",
        what: "A client that reads 20 kB each 40 ms.",
        reads: Some((40, 20_000)),
        writes: &[(0, 1_000_000)],
        ..CASE
    },
    Case {
        name: "closed_window",
        what: "A client that reads only after two seconds.",
        reads: Some((2000, 2_000_000)),
        writes: &[(0, 1_000_000)],
        ms: 6000,
        every: 100,
        ..CASE
    },
    Case {
        name: "small_segments",
        what: "Small writes in both directions, to a receiver that adapts its ACKs.",
        writes: &[
            (0, 200),
            (10, 300),
            (20, 900),
            (100, 2000),
            (160, 100),
            (165, 100),
            (300, 5000),
            (420, 700),
            (900, 60_000),
        ],
        requests: &[(5, 100), (30, 500), (110, 3000), (200, 100), (400, 20), (410, 20), (600, 10_000)],
        ms: 1500,
        every: 10,
        ..CASE
    },
    Case {
        name: "delayed_acks",
        what: "A receiver that acknowledges every second segment, at a beat of 100 ms or each of 16 kB.",
        client: (
            "rfc",
            r#"{"ack": {"policy": "heartbeat", "segments": 2, "interval_ns": 100000000, "every_segment_bytes": 16384}}"#,
        ),
        server: ("rfc", "{}"),
        network: Network { lost: LOSSES, ..NETWORK },
        ..CASE
    },
    Case {
        name: "bbr_when_the_rate_falls",
        what: "BBR on a link that becomes slower by half, and application limits.",
        server: ("linux", r#"{"congestion_control": {"algorithm": "bbr"}}"#),
        client: ("rfc", r#"{"sack": true}"#),
        network: Network { then: Some((2500 * MS, 1600)), queue: 100, delay: 11 * MS, ..NETWORK },
        writes: &[(0, 3_200_000), (3000, 100_000), (4000, 2_000_000)],
        ms: 8000,
        ..CASE
    },
    Case {
        name: "vegas_in_a_deep_queue",
        what: "Vegas alone on a link that loses nothing and later becomes slower.",
        server: ("linux", r#"{"congestion_control": {"algorithm": "vegas"}}"#),
        network: Network { then: Some((3000 * MS, 1300)), queue: 400, delay: 17 * MS, ..NETWORK },
        writes: &[(0, 20_000_000)],
        ms: 8000,
        ..CASE
    },
    Case {
        name: "vegas_without_overflow",
        what: "Vegas on a link so fast that no queue builds.",
        server: ("linux", r#"{"congestion_control": {"algorithm": "vegas"}, "initial_ssthresh_segments": 30}"#),
        network: Network { ns_per_byte: 100, queue: 400, ..NETWORK },
        writes: &[(0, 20_000_000)],
        ..CASE
    },
    Case {
        name: "westwood_when_the_rate_falls",
        what: "Westwood+ with losses on a link that becomes slower by half.",
        server: ("rfc", r#"{"congestion_control": {"algorithm": "westwood"}}"#),
        network: Network { then: Some((2000 * MS, 1600)), lost: &[100, 600, 601, 900, 1400, 2000], ..NETWORK },
        ms: 6000,
        ..CASE
    },
    Case {
        name: "hystart_on_a_short_path",
        what: "HyStart where an eighth of the RTT is less than 4 ms.",
        network: Network { delay: 4 * MS, queue: 100, ..NETWORK },
        ms: 1000,
        every: 20,
        ..CASE
    },
    Case {
        name: "hystart_on_a_long_path",
        what: "HyStart where an eighth of the RTT is more than 16 ms.",
        network: Network { delay: 130 * MS, queue: 400, ..NETWORK },
        ms: 6000,
        ..CASE
    },
    Case {
        name: "hystart_by_delay",
        what: "HyStart's rule of delay with an ACK for each segment.",
        server: ("linux", r#"{"congestion_control": {"algorithm": "cubic", "hystart": "delay"}}"#),
        client: ("rfc", r#"{"ack": {"policy": "every_segment"}, "sack": true}"#),
        network: Network { delay: 52 * MS, queue: 400, ..NETWORK },
        ..CASE
    },
    Case {
        name: "rapid_start_undone",
        what: "Rapid start with a first flight that is late.",
        server: ("linux", r#"{"startup": {"scheme": "rapid_start"}}"#),
        network: Network { late: &[4, 5], queue: 400, stalls: &[(130 * MS, 500 * MS)], ..NETWORK },
        ms: 2000,
        every: 50,
        ..CASE
    },
    Case {
        name: "quick_start_undone",
        what: "Quick-Start with a first flight that is late.",
        server: ("linux", r#"{"startup": {"scheme": "quick_start", "rate": 7}}"#),
        client: ("linux", r#"{"startup": {"scheme": "quick_start", "rate": 7}}"#),
        network: Network { late: &[4, 5], queue: 400, stalls: &[(20 * MS, 500 * MS)], ..NETWORK },
        ms: 2000,
        every: 50,
        ..CASE
    },
    Case {
        name: "jump_start_with_losses",
        what: "Jump-Start without SACK, with losses in its flight and segments that are late.",
        server: ("rfc", r#"{"startup": {"scheme": "jump_start"}}"#),
        network: Network { late: &[4, 5, 6, 7], lost: &[20, 21, 22], queue: 400, ..NETWORK },
        writes: &[(0, 100_000), (700, 100_000)],
        ms: 2000,
        every: 50,
        ..CASE
    },
    Case {
        name: "paced_small_segments",
        what: "An initial window of 4380 bytes, which is no whole number of its segments, paced over the RTT.",
        server: (
            "rfc",
            r#"{"startup": {"scheme": "paced", "over_rtt_percent": 100}, "initial_window": {"policy": "rfc3390"}}"#,
        ),
        client: ("rfc", r#"{"mss_bytes": 1000}"#),
        ms: 500,
        every: 10,
        ..CASE
    },
    Case {
        name: "sparse_segments",
        what: "Full and short segments at uneven intervals, to a receiver that adapts its ACKs.",
        writes: &[
            (0, 1448),
            (15, 1448),
            (31, 700),
            (48, 2896),
            (80, 1448),
            (125, 1448),
            (210, 1448),
            (214, 100),
            (300, 30_000),
            (420, 1448),
            (460, 1448),
            (520, 1448),
            (640, 1448),
            (800, 5000),
            (860, 1448),
            (861, 1448),
            (1100, 1448),
            (1110, 500),
            (1250, 500),
            (1260, 500),
        ],
        requests: &[(1000, 200), (1001, 200)],
        reads: Some((7, 3000)),
        ms: 1500,
        every: 10,
        ..CASE
    },
    Case {
        name: "a_receive_window_that_grows",
        what: "A fast path on which the receive window grows with what the application reads, with holes.",
        network: Network { ns_per_byte: 50, queue: 2000, delay: 20 * MS, lost: &[300, 2000], ..NETWORK },
        writes: &[(0, 20_000_000)],
        reads: Some((3, 60_000)),
        ms: 2000,
        every: 50,
        ..CASE
    },
];

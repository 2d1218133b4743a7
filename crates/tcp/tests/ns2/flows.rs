//! The same flow on both sides: one sender, one link each way, the losses of a pattern.

use crate::wire::*;
use firstflight_tcp::{
    AckPolicy, CongestionAvoidance, InitialWindow, Nanos, Profile, RecoveryAlgorithm, RtoEstimator, RtoRules,
    SlowStartGrowth,
};
use std::process::Command;

/// Segments of the transfer.
pub const SEGMENTS: u32 = 60;

const MSS: u32 = 1460;
const DELAY: Nanos = 50 * MS;
/// At 10 Mbit/s.
const NANOS_A_BYTE: Nanos = 800;
/// Of every packet, as ns-2 counts them: no link header, no options but SACK's blocks.
const HEADER_BYTES: u64 = 40;
const SACK_BLOCK_BYTES: u64 = 8;

/// A packet of the sender: when it was handed to the link, and its number. The SYN is 0, the segments are 1, 2, ...
pub type Packet = (Nanos, u32);

/// An agent of ns-2 with the settings that make it comparable, and ours.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    pub name: &'static str,
    pub agent: &'static str,
    pub recovery: RecoveryAlgorithm,
    pub limited_transmit: bool,
    /// ns-2's `bugFix_`, on by default.
    pub bug_fix: bool,
}

impl Sender {
    /// ns-2's defaults as a profile: an ACK for every segment, a window of 20 segments, a clock of 10 ms, an RTO of 3 s
    /// at first and of 0.2 to 60 s then.
    fn profile(&self) -> Profile {
        Profile {
            mss_bytes: MSS,
            initial_window: InitialWindow::Fixed { segments: 4 },
            max_send_window_segments: Some(20),
            // One that no acknowledgment changes, for ns-2 has none.
            receive_window_bytes: 65535,
            window_scaling: false,
            ack: AckPolicy::EverySegment,
            recovery: self.recovery,
            sack: self.recovery.is_scoreboard(),
            limited_transmit: self.limited_transmit,
            slow_start_growth: SlowStartGrowth::PerAck,
            congestion_avoidance: CongestionAvoidance::PerAck,
            rto: RtoRules {
                initial_ns: 3 * SECOND,
                minimum_ns: 200 * MS,
                maximum_ns: 60 * SECOND,
                granularity_ns: 10 * MS,
                estimator: RtoEstimator::Rfc6298 { quantized_rtt: true },
                ..Profile::rfc().rto
            },
            data_on_handshake_ack: true,
            ..Profile::rfc()
        }
    }

    /// The segments of our endpoint.
    pub fn ours(&self, losses: &[u32]) -> Vec<Packet> {
        let mut wire = Wire::new(&self.profile(), DELAY);
        let losses = losses.to_vec();
        let mut packets = 0..;
        let mut line_is_free_at = [0, 0];
        wire.set_fate(Box::new(move |sent| {
            if sent.from == Client && losses.contains(&packets.next().unwrap()) {
                return vec![];
            }
            let blocks = sent.segment.sack.as_slice().len() as u64;
            let bytes = HEADER_BYTES + u64::from(sent.segment.payload_bytes) + SACK_BLOCK_BYTES * blocks;
            let free = &mut line_is_free_at[sent.from as usize];
            *free = (*free).max(sent.at) + bytes * NANOS_A_BYTE;
            vec![*free - sent.at + DELAY]
        }));
        wire.client.connect(0);
        wire.client.write(0, u64::from(SEGMENTS * MSS));
        wire.run();
        assert_eq!(wire.server.received_bytes(), u64::from(SEGMENTS * MSS));
        let packets = wire.log.iter().filter(|sent| sent.from == Client);
        packets.map(|sent| (sent.at, sent.segment.seq.wrapping_sub(CLIENT_ISN).div_ceil(MSS))).collect()
    }

    /// The segments of ns-2's agent, a list for each pattern; none if ns-2 is not installed.
    pub fn theirs(&self, patterns: &[&[u32]]) -> Option<Vec<Vec<Packet>>> {
        let pattern = |losses: &&[u32]| losses.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let settings = [
            format!("agent={}", self.agent),
            format!("singledup={}", u8::from(self.limited_transmit)),
            format!("bugfix={}", self.bug_fix),
            format!("segments={SEGMENTS}"),
            format!("patterns={}", patterns.iter().map(pattern).collect::<Vec<_>>().join(":")),
        ];
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ns2/one_flow.tcl");
        let output = Command::new("ns").arg(script).args(settings).output().ok()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut flows = vec![Vec::new(); patterns.len()];
        for line in String::from_utf8(output.stdout).unwrap().lines().filter(|line| line.starts_with('+')) {
            let fields: Vec<_> = line.split(' ').collect();
            let (time_s, node, number): (f64, usize, u32) =
                (fields[1].parse().unwrap(), fields[2].parse().unwrap(), fields[10].parse().unwrap());
            flows[node / 2].push(((time_s * 1e9).round() as Nanos, number));
        }
        Some(flows)
    }
}

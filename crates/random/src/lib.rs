//! Counter-based randomness: every draw is a function of its purpose, not of earlier draws.
//!
//! Adding a client, a link or a flow therefore never shifts another's draws, and runs that differ in one setting share
//! all other randomness (common random numbers).

/// The purpose of a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// When a client starts.
    Start,
    /// A client's time before its next request.
    Think,
    /// Bytes of a request.
    RequestSize,
    /// Bytes of a response.
    ResponseSize,
    /// In-line objects of a page.
    InlineCount,
    /// The choice of the server.
    Server,
    /// Initial sequence numbers.
    InitialSequence,
    /// A link's queue.
    Queue,
    /// The individual part of a user's path in a population.
    Path,
    /// The common part of the paths of a subnet's users.
    Subnet,
    /// Row of a table for a user.
    Row,
    /// True if a user runs an application.
    Share,
    /// A link's random loss.
    Loss,
    /// Rate, delay and loss of a link of a tree.
    Link,
    /// A server's service time.
    Work,
    /// The arm of a user or of a client's connections.
    Arm,
    /// The handshake of a connection.
    Handshake,
}

/// A stream of draws with one purpose and one owner.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    seed: u64,
    replicate: u32,
    purpose: Purpose,
    /// An application, a group of a tree, or 0 for links and paths.
    group: u32,
    /// A client of the application, a link, one of a group's, a user of a population or a subnet of users.
    member: u32,
}

impl Stream {
    /// The stream of `purpose` for `member` of `group` in a replicate of an experiment.
    pub fn new(seed: u64, replicate: u32, purpose: Purpose, group: u32, member: u32) -> Stream {
        debug_assert!(
            group < 1 << 8,
            "a group is an application or a group of a tree, of which a plan has at most 256 each"
        );
        Stream { seed, replicate, purpose, group, member }
    }

    /// The `index`-th pair of uniform 64-bit draws; `index` counts to 2^48.
    #[inline]
    pub fn bits(&self, index: u64) -> [u64; 2] {
        let counter = [
            index as u32,
            ((index >> 32) as u32 & 0xffff) | (self.group << 24) | ((self.purpose as u32) << 16),
            self.member,
            self.replicate,
        ];
        let [a, b, c, d] = philox4x32_10(counter, [self.seed as u32, (self.seed >> 32) as u32]);
        [u64::from(a) | u64::from(b) << 32, u64::from(c) | u64::from(d) << 32]
    }

    /// The `index`-th pair of draws, uniform in [0, 1).
    #[inline]
    pub fn uniforms(&self, index: u64) -> [f64; 2] {
        self.bits(index).map(unit)
    }
}

/// A stream read from its beginning, for draws that have no natural number.
#[derive(Clone, Copy, Debug)]
pub struct Sequence {
    stream: Stream,
    next: u64,
}

impl Sequence {
    /// Starts at the stream's first draw.
    pub fn new(stream: Stream) -> Sequence {
        Sequence { stream, next: 0 }
    }

    /// The next draw, uniform in [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        let [draw, _] = self.stream.uniforms(self.next);
        self.next += 1;
        draw
    }
}

/// 53 random bits as a number in [0, 1).
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Philox4x32 with ten rounds: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3",
/// SC 2011.
#[inline]
fn philox4x32_10(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = u64::from(counter[0]) * 0xD251_1F53;
        let b = u64::from(counter[2]) * 0xCD9E_8D57;
        counter = [(b >> 32) as u32 ^ counter[1] ^ key[0], b as u32, (a >> 32) as u32 ^ counter[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that the authors' Random123 library ships.
    #[test]
    fn philox_gives_the_known_answers() {
        assert_eq!(philox4x32_10([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox4x32_10([!0; 4], [!0; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox4x32_10([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn streams_of_different_purpose_owner_or_replicate_differ() {
        let base = Stream::new(1, 0, Purpose::Think, 0, 0);
        let others = [
            Stream::new(2, 0, Purpose::Think, 0, 0),
            Stream::new(1, 1, Purpose::Think, 0, 0),
            Stream::new(1, 0, Purpose::Start, 0, 0),
            Stream::new(1, 0, Purpose::Think, 1, 0),
            Stream::new(1, 0, Purpose::Think, 0, 1),
        ];
        for other in others {
            assert_ne!(base.bits(0), other.bits(0));
        }
    }
}

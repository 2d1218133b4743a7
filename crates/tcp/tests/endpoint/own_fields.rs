//! Each rule is a field of its own: setting another field does not change it.

use crate::wire::*;
use firstflight_tcp::{Profile, RecoveryAlgorithm, SsthreshBase, WindowValidation};

/// Slow start threshold in segments after the timeout of a flight of 4 segments under a window of 10.
fn ssthresh_after_timeout(profile: &Profile) -> u32 {
    let mut wire = Wire::connected(profile, 50 * MS);
    wire.lose(50 * MS, |sent| sent.from == Server);
    wire.server.write(wire.now, 4 * 1460);
    while wire.server.stats().timeouts == 0 {
        wire.step();
    }
    wire.server.ssthresh_bytes() / 1460
}

#[test]
fn the_base_of_ssthresh_does_not_follow_from_window_validation_or_recovery() {
    for window_validation in [WindowValidation::Off, WindowValidation::CwndLimited, WindowValidation::Rfc7661] {
        for recovery in [RecoveryAlgorithm::Tahoe, RecoveryAlgorithm::NewReno, RecoveryAlgorithm::Sack] {
            for (ssthresh_base, expected) in [(SsthreshBase::FlightSize, 2), (SsthreshBase::Cwnd, 5)] {
                let profile = Profile { window_validation, recovery, ssthresh_base, ..rfc() };
                assert_eq!(ssthresh_after_timeout(&profile), expected, "{profile:?}");
            }
        }
    }
}

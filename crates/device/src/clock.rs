//! The kernel's clocks.

use crate::Nanos;

/// Nanoseconds since the machine started, without the time it was suspended. Never goes back.
pub fn monotonic_ns() -> Nanos {
    read(libc::CLOCK_MONOTONIC)
}

/// The offset that converts a time of [`monotonic_ns`] to nanoseconds since 1970, by the wall clock as it stands now.
pub fn wall_ahead_ns() -> Nanos {
    realtime_ns().saturating_sub(monotonic_ns())
}

/// Nanoseconds since 1970 by the wall clock, which may be set at any time.
pub(crate) fn realtime_ns() -> Nanos {
    read(libc::CLOCK_REALTIME)
}

fn read(clock: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call, which writes nothing else; these clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    nanos(time)
}

/// A timespec as nanoseconds; the kernel gives none before 1970.
pub(crate) fn nanos(time: libc::timespec) -> Nanos {
    time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_does_not_go_back() {
        let times: Vec<_> = (0..1000).map(|_| monotonic_ns()).collect();
        assert!(times.is_sorted());
    }
}

//! Waiting for descriptors and for a moment, whichever comes first.

use std::{io::Result, os::fd::BorrowedFd, time::Duration};

use nix::{
    errno::Errno,
    sys::{
        epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
        timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags},
    },
};

use crate::{Nanos, clock::monotonic_ns};

/// Descriptors reported per call.
const MOST_EVENTS: usize = 64;

/// The timer's token, which no caller's descriptor may have.
const TIMER: u64 = u64::MAX;

/// Of the time that passes, spinning may take this share: 1 / 4. The real-time class is throttled at 95 % (Linux's
/// sched_rt_runtime_us), for up to 50 ms; a loop at full capacity works for at most 70 % of a core in addition.
const SPIN_SHARE: u64 = 4;

/// Spinning that can be saved up: it lets through a burst at 100 Mbit/s, and is far below the throttling limit.
const MOST_SPIN_SAVED: Nanos = 10_000_000;

/// Why a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// Descriptors are ready, or the moment has come.
    Event,
    /// A signal came.
    Interrupted,
}

/// A set of descriptors to wait for.
#[derive(Debug)]
pub struct Readiness {
    poll: Epoll,
    timer: TimerFd,
    events: [EpollEvent; MOST_EVENTS],
    ready: usize,
    armed: Nanos,
    /// Spinning that may be done yet, and as of when.
    saved: Nanos,
    saved_at: Nanos,
}

impl Readiness {
    /// An empty set.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new() -> Result<Readiness> {
        let poll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        // Edge-triggered, so an expiry is reported once and need not be read from the timer.
        poll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, TIMER))?;
        Ok(Readiness {
            poll,
            timer,
            events: [EpollEvent::empty(); MOST_EVENTS],
            ready: 0,
            armed: 0,
            saved: MOST_SPIN_SAVED,
            saved_at: monotonic_ns(),
        })
    }

    /// Watches a descriptor for something to read; `token` names it in [`Readiness::ready`].
    ///
    /// # Errors
    /// A descriptor that cannot be watched.
    pub fn add(&self, descriptor: BorrowedFd<'_>, token: u64) -> Result<()> {
        Ok(self.poll.add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, token))?)
    }

    /// Watches a descriptor that was added also for room to write, or no longer.
    ///
    /// # Errors
    /// A descriptor that was not added.
    pub fn set_writing(&self, descriptor: BorrowedFd<'_>, token: u64, writing: bool) -> Result<()> {
        let room = if writing { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
        Ok(self.poll.modify(descriptor, &mut EpollEvent::new(EpollFlags::EPOLLIN | room, token))?)
    }

    /// Waits until a descriptor is ready.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn wait(&mut self) -> Result<Wake> {
        self.poll(EpollTimeout::NONE)
    }

    /// Waits until a descriptor is ready or `deadline` has come. The last `spin` nanoseconds before it are not slept but
    /// spent asking, as far as that takes less than a quarter of the time; it may end earlier for no reason.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn wait_until(&mut self, deadline: Nanos, spin: Nanos) -> Result<Wake> {
        let now = monotonic_ns();
        if deadline <= now {
            return self.poll(EpollTimeout::ZERO);
        }
        self.saved = MOST_SPIN_SAVED.min(self.saved + (now - self.saved_at) / SPIN_SHARE);
        self.saved_at = now;
        let spin = spin.min(self.saved);
        if deadline - now > spin {
            self.arm(deadline - spin)?;
            let wake = self.poll(EpollTimeout::NONE)?;
            if self.ready > 0 || wake == Wake::Interrupted {
                return Ok(wake);
            }
        }
        let begin = monotonic_ns();
        let mut now = begin;
        let mut wake = Wake::Event;
        // Asks for packets as well: one that comes now must not wait for the end of the spinning.
        while now < deadline && now - begin <= spin && self.ready == 0 && wake == Wake::Event {
            wake = self.poll(EpollTimeout::ZERO)?;
            now = monotonic_ns();
        }
        self.saved = self.saved.saturating_sub(now - begin);
        Ok(wake)
    }

    /// The tokens of the descriptors that the last wait found ready, at most 64.
    pub fn ready(&self) -> impl Iterator<Item = u64> + use<'_> {
        self.events[..self.ready].iter().map(EpollEvent::data)
    }

    fn arm(&mut self, at: Nanos) -> Result<()> {
        if at == self.armed {
            return Ok(());
        }
        let expiry = Expiration::OneShot(Duration::from_nanos(at).into());
        self.timer.set(expiry, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
        self.armed = at;
        Ok(())
    }

    fn poll(&mut self, timeout: EpollTimeout) -> Result<Wake> {
        self.ready = 0;
        match self.poll.wait(&mut self.events, timeout) {
            Ok(found) => {
                self.ready = found;
                let timer = self.ready().position(|token| token == TIMER);
                if let Some(at) = timer {
                    self.ready -= 1;
                    self.events.swap(at, self.ready);
                    self.armed = 0;
                }
                Ok(Wake::Event)
            }
            Err(Errno::EINTR) => Ok(Wake::Interrupted),
            Err(error) => Err(error.into()),
        }
    }
}

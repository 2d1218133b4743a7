//! Waiting for descriptors and for a moment, whichever comes first.

use std::{
    io::{ErrorKind, Result},
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
};

use crate::{
    Nanos, checked,
    clock::{monotonic_ns, timespec},
};

/// Descriptors reported at once.
const MOST_EVENTS: usize = 64;

/// The timer's token, which no caller's descriptor may have.
const TIMER: u64 = u64::MAX;

/// Of the time that passes, spinning may take this share: 1 / 4. The real-time class is throttled at 95 % (Linux's
/// sched_rt_runtime_us), for up to 50 ms; a loop at full capacity works for at most 70 % of a core beside it.
const SPIN_SHARE: u64 = 4;

/// Spinning that can be saved up: it lets through a burst at 100 Mbit/s, and is far below what is throttled.
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
    poll: OwnedFd,
    timer: OwnedFd,
    events: [libc::epoll_event; MOST_EVENTS],
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
    /// What the kernel refuses.
    pub fn new() -> Result<Readiness> {
        // SAFETY: takes numbers alone.
        let poll = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new, so nobody else owns it.
        let poll = unsafe { OwnedFd::from_raw_fd(poll) };
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: takes numbers alone.
        let timer = checked(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        // SAFETY: the descriptor is new, so nobody else owns it.
        let timer = unsafe { OwnedFd::from_raw_fd(timer) };
        let readiness = Readiness {
            poll,
            timer,
            events: [libc::epoll_event { events: 0, u64: 0 }; MOST_EVENTS],
            ready: 0,
            armed: 0,
            saved: MOST_SPIN_SAVED,
            saved_at: monotonic_ns(),
        };
        // Edge-triggered, so an expiry is told once and need not be read from the timer.
        readiness.control(libc::EPOLL_CTL_ADD, readiness.timer.as_fd(), TIMER, libc::EPOLLIN | libc::EPOLLET)?;
        Ok(readiness)
    }

    /// Watches a descriptor for something to read; `token` names it in [`Readiness::ready`].
    ///
    /// # Errors
    /// A descriptor that cannot be watched.
    pub fn add(&self, descriptor: BorrowedFd<'_>, token: u64) -> Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, token, libc::EPOLLIN)
    }

    /// Watches a descriptor that was added also for room to write, or no longer.
    ///
    /// # Errors
    /// A descriptor that was not added.
    pub fn set_writing(&self, descriptor: BorrowedFd<'_>, token: u64, writing: bool) -> Result<()> {
        let events = libc::EPOLLIN | if writing { libc::EPOLLOUT } else { 0 };
        self.control(libc::EPOLL_CTL_MOD, descriptor, token, events)
    }

    fn control(&self, what: libc::c_int, descriptor: BorrowedFd<'_>, token: u64, events: libc::c_int) -> Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: token };
        // SAFETY: `event` outlives the call, which only reads it.
        checked(unsafe { libc::epoll_ctl(self.poll.as_raw_fd(), what, descriptor.as_raw_fd(), &mut event) }).map(drop)
    }

    /// Waits until a descriptor is ready.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn wait(&mut self) -> Result<Wake> {
        self.poll(-1)
    }

    /// Waits until a descriptor is ready or `deadline` has come. The last `spin` nanoseconds before it are not slept but
    /// spent asking, as far as that takes less than a quarter of the time; it may end earlier for no reason.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn wait_until(&mut self, deadline: Nanos, spin: Nanos) -> Result<Wake> {
        let now = monotonic_ns();
        if deadline <= now {
            return self.poll(0);
        }
        self.saved = MOST_SPIN_SAVED.min(self.saved + (now - self.saved_at) / SPIN_SHARE);
        self.saved_at = now;
        let spin = spin.min(self.saved);
        if deadline - now > spin {
            self.arm(deadline - spin)?;
            let wake = self.poll(-1)?;
            if self.ready > 0 || wake == Wake::Interrupted {
                return Ok(wake);
            }
        }
        let begin = monotonic_ns();
        let mut now = begin;
        let mut wake = Wake::Event;
        // Asks for packets as well: one that comes now must not wait for the end of the spinning.
        while now < deadline && now - begin <= spin && self.ready == 0 && wake == Wake::Event {
            wake = self.poll(0)?;
            now = monotonic_ns();
        }
        self.saved = self.saved.saturating_sub(now - begin);
        Ok(wake)
    }

    /// The tokens of the descriptors that the last wait found ready, at most 64.
    pub fn ready(&self) -> impl Iterator<Item = u64> + use<'_> {
        self.events[..self.ready].iter().map(|event| event.u64)
    }

    fn arm(&mut self, at: Nanos) -> Result<()> {
        if at == self.armed {
            return Ok(());
        }
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = libc::itimerspec { it_interval: never, it_value: timespec(at) };
        let timer = self.timer.as_raw_fd();
        // SAFETY: `setting` outlives the call, which only reads it; the old setting is not asked for.
        checked(unsafe { libc::timerfd_settime(timer, libc::TFD_TIMER_ABSTIME, &setting, ptr::null_mut()) })?;
        self.armed = at;
        Ok(())
    }

    fn poll(&mut self, timeout_ms: libc::c_int) -> Result<Wake> {
        let most = MOST_EVENTS as libc::c_int;
        // SAFETY: `events` has room for that many.
        let found = unsafe { libc::epoll_wait(self.poll.as_raw_fd(), self.events.as_mut_ptr(), most, timeout_ms) };
        self.ready = 0;
        match checked(found) {
            Ok(found) => {
                self.ready = found as usize;
                let timer = self.ready().position(|token| token == TIMER);
                if let Some(at) = timer {
                    self.ready -= 1;
                    self.events.swap(at, self.ready);
                    self.armed = 0;
                }
                Ok(Wake::Event)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Wake::Interrupted),
            Err(error) => Err(error),
        }
    }
}

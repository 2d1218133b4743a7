//! The sender's steps with a start-up scheme: it asks the scheme, and tells it of ACKs, losses and their recovery.

use super::StartupState;
use super::scheme::{FirstSend, Growth, NextPace, SendState};
use crate::Nanos;
use crate::amounts::Bytes;
use crate::connection::handshake::feature;
use crate::connection::shared::Connection;
use crate::segment::TIMESTAMPS_BYTES;
use crate::sender::Sender;
use crate::sender::pacing::{PacedBy, PacedFlight, Pacer};
use crate::sender::recovery::{Edges, Facts, FastRecovery};

/// Headers of a segment without options.
const HEADER_BYTES: u32 = 40;

impl Sender {
    /// Our SYN is acknowledged: a scheme or controller that paces from here on gets a pacer.
    pub(crate) fn prepare_pacing(&mut self, conn: &Connection) {
        let by = if self.controller.is_rate_based() || self.controller.pacing_rate().is_some() {
            PacedBy::Controller
        } else if let Some(rules) = conn.profile.pacing {
            PacedBy::Window(rules)
        } else {
            return;
        };
        self.set_pacer(conn, Pacer::new(by));
        self.pace_window(conn);
    }

    fn set_pacer(&mut self, conn: &Connection, pacer: Pacer) {
        let extra = self.extras.get_or_new(&conn.profile);
        extra.departure.get_or_insert_default().pacer = Some(pacer);
    }

    /// The connection's start-up scheme, made if need be.
    pub(crate) fn startup_scheme(&mut self, conn: &Connection) -> Option<&mut StartupState> {
        if self.extras.startup().is_none() {
            if let Some(state) = StartupState::new(conn.profile.startup) {
                let extra = self.extras.get_or_new(&conn.profile);
                extra.departure.get_or_insert_default().startup = Some(state);
            }
        }
        self.extras.startup_mut()
    }

    /// The connection's start-up scheme, if it has been made and is not over.
    pub(crate) fn startup(&mut self) -> Option<&mut StartupState> {
        self.extras.startup_mut()
    }

    fn send_state(&self, conn: &Connection, now: Nanos) -> SendState {
        SendState {
            now,
            una: self.snd.una,
            nxt: self.snd.nxt,
            flight_bytes: self.snd.flight(),
            queued_bytes: self.snd.wanted_end().saturating_sub(self.snd.nxt),
            mss_bytes: conn.handshake.mss(),
        }
    }

    /// The first data is about to leave: the scheme, if there is one, begins.
    pub(crate) fn begin_startup(&mut self, conn: &Connection) {
        let Some(startup) = self.extras.startup_mut().filter(|startup| !startup.begun) else { return };
        let first = FirstSend {
            position: self.snd.nxt,
            queued_bytes: self.snd.wanted_end() - self.snd.nxt,
            send_window: self.peer_window.limited_bytes,
            mss_bytes: conn.handshake.mss(),
            header_bytes: HEADER_BYTES + if conn.handshake.has(feature::TIMESTAMPS) { TIMESTAMPS_BYTES } else { 0 },
            rtt: self.rtt.smoothed(&conn.profile.rto),
        };
        startup.begun = true;
        let flight = startup.scheme_mut().begin(&first, self.controller.window_mut());
        self.end_startup_if_over();
        if let Some(flight) = flight.filter(|_| self.extras.pacer().is_none()) {
            let end = first.position + flight.bytes;
            self.set_pacer(conn, Pacer::new(PacedBy::Startup { flight, start: first.position, end, began: None }));
        }
    }

    fn end_startup_if_over(&mut self) {
        if self.extras.startup().is_some_and(|startup| startup.begun && startup.scheme().is_over()) {
            self.extras.end_startup();
        }
    }

    /// An ACK gave an RTT.
    #[inline]
    pub(crate) fn tell_startup_rtt(&mut self, conn: &Connection, now: Nanos, rtt: Nanos) {
        if self.extras.startup().is_some() {
            let state = self.send_state(conn, now);
            if let Some(startup) = self.extras.startup_mut() {
                startup.scheme_mut().on_round_trip(rtt, &state, self.controller.window_mut());
            }
        }
    }

    /// The controller is about to answer congestion.
    pub(crate) fn settle_startup(&mut self, conn: &Connection, now: Nanos) {
        let state = self.send_state(conn, now);
        if let Some(startup) = self.extras.startup_mut() {
            startup.scheme_mut().before_reduction(&state, self.controller.window_mut());
        }
    }

    /// New data is acknowledged outside of recovery. False: no scheme has a say in how cwnd grows.
    pub(crate) fn grow_by_startup(&mut self, conn: &Connection, now: Nanos, bytes: u32, allowed: bool) -> bool {
        self.extras.may_hold_back() && self.grow_in_startup(conn, now, bytes, allowed)
    }

    #[inline(never)]
    fn grow_in_startup(&mut self, conn: &Connection, now: Nanos, bytes: u32, allowed: bool) -> bool {
        if let Some(pacer) = self.extras.pacer() {
            if matches!(pacer.by, PacedBy::Startup { flight: PacedFlight { until_ack: true, .. }, .. }) {
                self.extras.end_pacing();
            }
        }
        let state = self.send_state(conn, now);
        let Some(startup) = self.extras.startup_mut().filter(|startup| startup.begun) else { return false };
        let controller = &mut self.controller;
        let mut growth = Growth { now, bytes: Bytes(bytes), allowed, controller, pace: NextPace::Unchanged };
        startup.scheme_mut().grow(&mut growth, &state);
        match growth.pace {
            NextPace::Unchanged => {}
            NextPace::None => self.extras.end_pacing(),
            NextPace::Flight { flight, start, at } => {
                let end = start + flight.bytes;
                self.set_pacer(conn, Pacer::new_at(at, PacedBy::Startup { flight, start, end, began: None }));
            }
        }
        true
    }

    /// The meaning of an ACK or a timeout to the scheme. An ACK that ends one recovery and begins the next is neither
    /// to it.
    #[inline]
    pub(crate) fn apply_to_startup(&mut self, conn: &Connection, now: Nanos, facts: &Facts) {
        if self.extras.may_hold_back() {
            self.apply_edges_to_startup(conn, now, facts);
        }
    }

    #[inline(never)]
    fn apply_edges_to_startup(&mut self, conn: &Connection, now: Nanos, facts: &Facts) {
        let undone = facts.edges.intersects(Edges::UNDONE);
        let marked = facts.edges.intersects(Edges::REDUCED);
        let timed_out = facts.edges.intersects(Edges::RESTARTED | Edges::TIMED_OUT);
        let lost = !timed_out && facts.fast_recovery == FastRecovery::Began;
        if !undone && (timed_out || lost) {
            self.end_paced_flight();
        }
        if !timed_out {
            self.pace_window(conn);
        }
        let state = self.send_state(conn, now);
        let Some(startup) = self.extras.startup_mut() else { return };
        let (scheme, window) = (startup.scheme_mut(), self.controller.window_mut());
        if marked {
            scheme.on_mark(&state, window);
        }
        if undone {
            scheme.on_undone();
        } else if timed_out {
            scheme.on_timeout(&state, window);
        } else {
            match facts.fast_recovery {
                FastRecovery::Off => {}
                FastRecovery::Began => {
                    scheme.on_loss(&state, window);
                    scheme.on_delivery(facts.delivered, facts.lost, window);
                }
                FastRecovery::GoesOn => scheme.on_delivery(facts.delivered, facts.lost, window),
                FastRecovery::Ended => scheme.on_recovered(&state, window),
            }
        }
        self.end_startup_if_over();
    }
}

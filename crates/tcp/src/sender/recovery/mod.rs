//! Loss recovery: when ACKs or silence mean a loss, and which segments are retransmitted. It changes only itself and
//! answers with [`Facts`]; the sender draws the consequences.
//!
//! `counting` counts duplicate ACKs (Tahoe, Reno, NewReno). `scoreboard` keeps a record of every segment in flight. Its
//! states and transitions are Linux's (`net/ipv4/tcp_input.c` unless said otherwise):
//!
//! | here | Linux |
//! |---|---|
//! | [`Recovery::measure`] | `tcp_sacktag_write_queue`, `tcp_clean_rtx_queue` |
//! | [`Recovery::on_ack`] | `tcp_fastretrans_alert`, after it `tcp_cong_control` in `sender/acknowledgement.rs` |
//! | `Scoreboard::alert`, `enter_recovery`, `try_to_open` | `tcp_fastretrans_alert`, `tcp_enter_recovery`, `tcp_try_to_open` |
//! | `Scoreboard::on_timeout` | `tcp_enter_loss` |
//! | `Scoreboard::after_timeout`, `f_rto` | `tcp_process_loss` |
//! | `Scoreboard::undo*`, `Undo` | `tcp_try_undo_recovery`, `_partial`, `_dsack`, `_loss`; `undo_marker`, `undo_retrans` |
//! | `Scoreboard::detect_losses`, `Rack` | `tcp_rack_mark_lost`, `tcp_rack_advance` (`tcp_recovery.c`) |
//! | `Scoreboard::count_losses` | `tcp_update_scoreboard` |
//! | `Scoreboard::duplicates` | `tcp_add_reno_sack`, `tcp_remove_reno_sacks`, `tcp_check_reno_reordering` |
//! | `Scoreboard::note_reordering` | `tcp_check_sack_reordering` |
//! | `Scoreboard::schedule_probe`, `on_probe_acknowledged` | `tcp_schedule_loss_probe` (`tcp_output.c`), `tcp_process_tlp_ack` |
//! | `Scoreboard::next_to_retransmit`, `on_retransmitted` | `tcp_xmit_retransmit_queue` (`tcp_output.c`) |
//! | `Scoreboard::in_flight` | `tcp_packets_in_flight` (`tcp.h`) |
//! | `Reduction` in `sender/reduction.rs` | `tcp_init_cwnd_reduction`, `tcp_cwnd_reduction`, `tcp_end_cwnd_reduction` |

mod counting;
pub(crate) mod facts;
pub(crate) mod scoreboard;

pub(crate) use counting::Counting;
pub(crate) use facts::{Ack, AckSummary, CwndRule, Edges, Facts, FastRecovery, Flight, NextCwnd, RttSample, SetTimer};
pub(crate) use scoreboard::Scoreboard;

use crate::Nanos;
use crate::profile::Profile;
use crate::sequence::SeqNum;

/// Loss recovery of one connection.
#[derive(Clone, Debug)]
pub(crate) enum Recovery {
    Counting(Counting),
    Scoreboard(Box<Scoreboard>),
}

impl Recovery {
    /// For a new connection, in the memory of one that is over if there is any.
    pub fn new_in(old: Option<Box<Scoreboard>>, profile: &Profile, initial: SeqNum) -> Self {
        if profile.recovery.is_scoreboard() {
            Self::Scoreboard(Scoreboard::new_in(old, profile, initial + 1))
        } else {
            Self::Counting(Counting::new(initial))
        }
    }

    /// Gives up the memory that another scoreboard can be built in.
    pub fn take_memory(&mut self) -> Option<Box<Scoreboard>> {
        match std::mem::replace(self, Self::Counting(Counting::new(0))) {
            Self::Counting(_) => None,
            Self::Scoreboard(memory) => Some(memory),
        }
    }

    #[inline]
    pub fn scoreboard(&self) -> Option<&Scoreboard> {
        match self {
            Self::Counting(_) => None,
            Self::Scoreboard(scoreboard) => Some(scoreboard),
        }
    }

    #[inline]
    pub fn scoreboard_mut(&mut self) -> Option<&mut Scoreboard> {
        match self {
            Self::Counting(_) => None,
            Self::Scoreboard(scoreboard) => Some(scoreboard),
        }
    }

    /// An ACK arrived: records the data that it delivers and fills in its meaning, which begins empty: above all an RTT
    /// sample. The RTT estimator takes that before [`on_ack`](Self::on_ack), since RACK's reordering window follows from it.
    #[inline]
    pub fn measure(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, summary: &mut AckSummary) {
        match self {
            Self::Counting(counting) => counting.measure(flight.now, ack, summary),
            Self::Scoreboard(scoreboard) => scoreboard.measure(flight, ack, summary),
        }
    }

    /// Finds losses and the ends of recoveries after that, and fills in the facts, which begin empty.
    // Facts that are returned, and a summary that is handed over, are copied, and the processor cannot read them before all
    // of it is written: bulk transfers took 3% more time.
    #[inline]
    pub fn on_ack(&mut self, flight: &Flight<'_>, ack: &Ack<'_>, summary: &mut AckSummary, facts: &mut Facts) {
        match self {
            Self::Counting(counting) => counting.on_ack(flight, ack, summary, facts),
            Self::Scoreboard(scoreboard) => scoreboard.on_ack(flight, ack, summary, facts),
        }
    }

    /// The timer of outstanding data expired: the retransmission timer or one that runs in its place.
    pub fn on_timer(&mut self, flight: &Flight<'_>) -> Facts {
        match self {
            Self::Counting(counting) => counting.on_timeout(flight),
            Self::Scoreboard(scoreboard) => scoreboard.on_timer(flight),
        }
    }

    /// True if the timer that runs is the retransmission timer.
    pub fn waits_for_timeout(&self) -> bool {
        self.scoreboard().is_none_or(|scoreboard| scoreboard.waits_for_timeout())
    }

    /// A segment is sent, for the first time or not.
    #[inline]
    pub fn on_transmit(&mut self, now: Nanos, start: SeqNum, end: SeqNum, retransmission: bool) {
        if let Self::Counting(counting) = self {
            counting.time_segment(now, start, end, retransmission);
        }
    }

    /// Effective cwnd: the controller's, changed by recovery, and never below one segment.
    #[inline]
    pub fn cwnd(&self, controller_bytes: u32, mss: u32) -> u32 {
        match self {
            Self::Counting(counting) => counting.cwnd(controller_bytes, mss),
            Self::Scoreboard(_) => controller_bytes,
        }
    }

    /// Data is outstanding that was so at a loss, a CE mark or a timeout.
    pub fn is_recovering(&self, una: SeqNum) -> bool {
        match self {
            Self::Counting(counting) => counting.is_recovering(una),
            Self::Scoreboard(scoreboard) => scoreboard.is_reduced(),
        }
    }

    /// A tail loss probe is due, independent of cwnd.
    pub fn is_probing(&self) -> bool {
        self.scoreboard().is_some_and(|scoreboard| scoreboard.is_probing())
    }

    /// New data must not wait for more of it.
    pub fn pushes(&self) -> bool {
        self.scoreboard().is_some_and(|scoreboard| scoreboard.pushes())
    }

    /// The state is normal, so unused window may be given up.
    pub fn is_open(&self) -> bool {
        self.scoreboard().is_none_or(|scoreboard| scoreboard.is_open())
    }
}

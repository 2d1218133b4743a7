//! The sender: which segments may be sent and when, and the effect of acknowledgments and silence.

mod acknowledgement;
pub(crate) mod congestion;
pub(crate) mod initial_window;
pub(crate) mod nagle;
pub(crate) mod pacing;
mod path_option;
pub(crate) mod peer_window;
pub(crate) mod recovery;
pub(crate) mod reduction;
pub(crate) mod rtt;
pub(crate) mod sequence;
pub(crate) mod starting_point;
pub(crate) mod startup;
pub(crate) mod trains;
mod transmit;
pub(crate) mod window_validation;
pub(crate) mod write_queue;

//! Behaviour of the endpoint, by theme, over an in-memory wire.

mod acknowledgements;
mod bbr;
mod closing;
mod ecn;
mod flow_control;
mod growth;
mod handshake;
mod idle;
mod initial_window;
mod musts;
mod own_fields;
mod profile;
mod properties;
mod quick_ack;
mod receive_window;
mod recovery;
mod sack_receiver;
mod startup_jump_start;
mod startup_paced;
mod startup_quick_start;
mod startup_rapid_start;
mod timers;
mod timestamps;
mod wire;

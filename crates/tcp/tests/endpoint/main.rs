//! Behaviour of the endpoint, by theme, over an in-memory wire.

mod acknowledgements;
mod closing;
mod flow_control;
mod growth;
mod handshake;
mod idle;
mod initial_window;
mod musts;
mod profile;
mod properties;
mod recovery;
mod timers;
mod wire;

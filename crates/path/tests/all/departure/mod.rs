//! Queues that decide on departure, against the pseudo-code of their RFCs, written out plainly.

mod codel;
mod fq_codel;
mod line;
mod priority;

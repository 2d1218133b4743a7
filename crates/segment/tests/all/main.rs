//! The tests of segments on the wire: one program, since each links all of them.

mod changes;
mod packets;
mod reading;

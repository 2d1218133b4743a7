//! The tables of the records, which have one schema whichever engine fills them: rows in, named columns out.

mod rows;
mod sight;
pub mod table;

pub use rows::*;
pub use sight::{DROPPED, LOST, RECEIVED, SENT, Sight};

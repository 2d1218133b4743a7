//! The tests of links, queues and losses: one program, since each links them all.

mod books;
mod departure;
mod every_part;
mod impaired;
mod link;
mod ns3;
mod pie;
mod rates;
mod red;
mod simple;

//! The simulator's tests: one program, since each links the whole simulator.

mod arms;
mod browsers;
mod capture;
mod datagrams;
mod departure;
mod failures;
mod handshakes;
mod impairments;
mod laws;
mod learning;
mod limits;
mod meters;
mod network;
mod options;
mod page_names;
mod population_aggregates;
mod population_paths;
mod populations;
mod quick_start;
mod random_loss;
mod scheduler;
mod single_transfer;
mod tap;
mod topologies;
mod trees;
mod world;

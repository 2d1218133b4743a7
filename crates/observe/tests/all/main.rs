//! The tests of the reader of captures: one program, since each links all of it.

mod connections;
mod damage;
mod link_layers;
mod made;
mod tls;

//! The integration tests, in one binary.

mod channels;
mod chunks;
mod endpoint;
mod fuzz;
mod hostile_peer;
mod interop;
mod layers;
mod loss_bounds;
mod memory;
mod netcode;
mod pair;
mod reliable_links;
mod reliable_ordered;
mod statistics;
mod vectors;
mod virtual_connection;

//! The integration tests, in one binary.

mod between;
mod block_times;
mod bulk;
#[allow(dead_code)] // Some of it is for benches/links.rs.
mod bulk_line;
mod channels;
mod chunks;
mod endpoint;
mod fuzz;
mod hostile_chunks;
mod hostile_peer;
mod interop;
mod layers;
#[allow(dead_code)]
mod link_table;
mod links;
mod loss_bounds;
mod memory;
mod netcode;
mod pair;
mod proxy;
mod reliable_links;
mod reliable_ordered;
mod slices;
mod statistics;
mod steady_state;
mod vectors;
mod virtual_connection;

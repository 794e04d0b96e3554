//! The integration tests, in one binary.

mod attacks;
mod between;
mod block_times;
mod bulk;
#[allow(dead_code)] // Some of it is for benches/links.rs.
mod bulk_line;
mod bulk_scenes;
mod channels;
mod chunks;
mod endpoint;
mod explore;
mod fuzz;
mod fuzz_seeds;
#[allow(unreachable_pub)] // A crate of its own, for the fuzzer.
#[path = "../fuzz/src/lib.rs"]
mod fuzz_targets;
mod hostile_chunks;
mod hostile_peer;
mod interop;
mod layers;
#[allow(dead_code)]
mod link_table;
mod links;
mod loss_bounds;
mod memory;
mod mutations;
mod netcode;
mod pair;
mod proxy;
mod reliable_links;
mod reliable_ordered;
#[allow(dead_code)]
mod scenes;
mod slices;
mod statistics;
mod steady_state;
#[allow(dead_code)]
mod tcp;
mod threaded;
mod vectors;
mod virtual_connection;
mod virtual_internet;
mod yojimbo;

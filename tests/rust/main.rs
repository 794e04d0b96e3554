//! The integration tests, in one binary.

mod admission;
mod atomic;
mod attacks;
mod beside_chunks;
mod between;
mod block_times;
mod bulk;
#[allow(dead_code)] // Some of it is for benches/links.rs.
mod bulk_line;
mod bulk_scenes;
mod byte_windows;
mod channels;
mod chunks;
mod congestion_table;
mod endpoint;
mod explore;
mod external;
mod fragments;
mod fuzz;
mod fuzz_seeds;
#[allow(unreachable_pub)] // A crate of its own, for the fuzzer.
#[path = "../fuzz/src/lib.rs"]
mod fuzz_targets;
mod ghost_scenes;
mod ghost_session;
mod ghosts;
mod hostile_chunks;
mod hostile_fragments;
mod hostile_peer;
mod hosting;
mod hosts;
mod interop;
mod last_words;
mod layers;
#[allow(dead_code)]
mod link_table;
mod links;
mod lockstep;
mod lockstep_attacks;
mod lockstep_joining;
mod loss_bounds;
mod memory;
mod mesh;
mod mutations;
mod netcode;
mod numbers;
mod pair;
mod peer_sessions;
mod properties;
mod proxy;
mod reliable_links;
mod reliable_ordered;
mod rendezvous;
mod rollback;
#[allow(dead_code)]
mod scenes;
mod session;
mod sizes;
mod slices;
mod slow_line;
mod small_packets;
mod stalled;
mod statistics;
mod steady_state;
mod system_messages;
#[allow(dead_code)]
mod tcp;
mod threaded;
mod time_session;
mod vectors;
mod virtual_connection;
mod virtual_internet;
mod words;
mod yojimbo;

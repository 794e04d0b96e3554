//! The integration tests, in one binary.

mod endpoint;
mod hostile_peer;
mod interop;
mod layers;
mod netcode;
mod pair;
mod reliable_links;
mod reliable_ordered;
mod vectors;

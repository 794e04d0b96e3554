//! The integration tests, in one binary.

mod layers;
mod native_framing;
mod pair;
mod reliable_links;
mod reliable_ordered;
mod vectors;

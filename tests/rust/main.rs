//! The integration tests, in one binary.

mod reliable_links;
mod vectors;

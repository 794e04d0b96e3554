//! The integration tests, in one binary.

mod netcode;
mod vectors;

//! Time between two sides: which tick of the server a client shows.

pub mod playout;

pub use playout::{Playout, PlayoutConfig};

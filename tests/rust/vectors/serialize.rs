//! Vectors of serialize.

//! Vectors of netcode.

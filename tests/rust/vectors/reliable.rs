//! Vectors of reliable.

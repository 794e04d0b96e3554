//! A fixed rate.

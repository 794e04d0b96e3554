//! Secure connections: netcode 1.02.

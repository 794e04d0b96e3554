//! One conversation: reliable 1.0 packets and acks, channels, framing.

pub mod ack_config;
pub mod ack_endpoint;
pub mod acks;
pub mod estimate;
pub mod fragment;
pub mod header;

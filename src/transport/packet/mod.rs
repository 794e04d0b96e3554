//! Packets of reliable 1.0: header, fragments and their settings.

pub mod config;
pub mod fragment;
pub mod header;

pub use config::{AckEndpointConfig, AcksConfig, Estimation, LossBound};
pub use fragment::{FRAGMENT_HEADER_SIZE, MAX_FRAGMENTS, ReassemblyConfig};
pub use header::Header;

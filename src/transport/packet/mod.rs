//! Packets of reliable 1.0 and of our own framing: header, fragments and their settings.

pub mod config;
pub mod fragment;
pub mod header;
pub mod numbered;

pub use config::{AckEndpointConfig, AcksConfig, HeaderKind, LossBound};
pub use fragment::{FRAGMENT_HEADER_SIZE, MAX_FRAGMENTS, ReassemblyConfig};
pub use header::Header;

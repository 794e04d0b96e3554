//! The only place with sockets and clocks.
//!
//! A [`Driver`] carries the datagrams of one endpoint, over a UDP socket in real time or over a
//! [`VirtualNetwork`] in virtual time. It is polled: it works when it is called, for a bounded time.

mod entropy;
pub mod files;
mod polled;
mod simulated;
pub mod udp;

pub use entropy::OsEntropy;
pub use polled::{Driver, DriverCounters, unix_now};
pub use simulated::VirtualNetwork;

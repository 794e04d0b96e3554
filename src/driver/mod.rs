//! The only place with sockets, clocks and the operating system's randomness. It moves datagrams between the
//! network and the sans-IO endpoints, on the caller's thread, in bounded time.

pub mod polled;
pub mod port;
pub mod simulated;
pub mod udp;

pub use polled::{PolledClient, PolledServer};
pub use port::{OsEntropy, Port};
pub use simulated::SimulatedNetwork;

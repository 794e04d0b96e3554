//! The only place with sockets and clocks.
//!
//! A [`Driver`] carries the datagrams of one endpoint, over a UDP socket in real time or over a [`VirtualNetwork`] in
//! virtual time. A [`Carrier`] is a session with its driver. A driver is polled: it works when it is called, for a
//! bounded time. A thread ([`Shared`]) calls it when a datagram arrives or something is due, even while the game is
//! busy. A [`capture`] writes the datagrams to a file. A [`meeting`] is a rendezvous server or a relay. A [`proxy`]
//! carries the datagrams of other programs, over bad links.

pub mod bind;
pub mod capture;
mod carrier;
mod clock;
mod entropy;
pub mod files;
mod gathering;
pub mod hosted;
mod local;
pub mod meeting;
#[cfg(target_os = "linux")]
mod moderation;
mod polled;
mod port;
pub mod proxy;
pub mod reports;
mod simulated;
mod threaded;
pub mod udp;
mod used_tokens;
#[cfg(target_os = "linux")]
mod wakes;

pub use carrier::{AFTER_ERROR, Carrier};
pub use clock::unix_now;
pub use entropy::{OsEntropy, Recorded, Replayed};
pub use polled::{Driver, DriverCounters};
pub use simulated::{VirtualNetwork, entropy};
pub use threaded::{BETWEEN_TURNS, Next, Poller, Service, Shared};
pub use used_tokens::{ClaimedToken, UsedTokens, claim_token};

//! Links that misbehave on purpose, in virtual time.
//!
//! Promises: the same seed and the same calls give the same deliveries, on every platform; time only moves by calls;
//! memory is bounded, and drops for it are counted. Refuses: conditions that can't be met (a probability above 1,
//! more jitter than latency).

mod bottleneck;
mod bursts;
pub mod conditions;
mod in_flight;
pub mod link;
pub mod nat;
pub mod network;
mod outages;
mod path;
pub mod presets;
mod random_walk;
pub mod topology;
mod transcript;

pub use conditions::{Bursts, Conditions};
pub use link::Link;
pub use nat::NatKind;
pub use network::Network;

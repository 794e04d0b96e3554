//! Links that misbehave on purpose, in virtual time.
//!
//! Promises: the same seed and the same calls give the same deliveries; time moves only when told; bounded
//! memory, whatever is dropped for it counted.
//! Refuses: conditions that can't be met (a probability above 1, more jitter than latency).

pub mod conditions;
pub mod link;
pub mod network;

pub use conditions::Conditions;
pub use link::Link;
pub use network::Network;

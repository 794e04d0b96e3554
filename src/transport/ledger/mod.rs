//! The known packets: sent ones with their outcome, and received ones.

mod ack_ranges;
pub mod acks;
pub mod estimate;
mod laps;
mod notifications;
mod received;
mod reordering;
mod sent;
pub(super) mod skips;

pub(super) use ack_ranges::{AckRange, AckRanges, Reported};
pub(super) use laps::Laps;
pub use notifications::Notification;
pub(super) use notifications::Notifications;

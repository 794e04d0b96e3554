//! Everything that calls need besides the messages they travel in: rate limits by peer, calls that wait to be run, and requests that
//! wait for replies.
//!
//! Promises: bounded memory per peer, whatever it sends, and only the caller's clock. Refuses to know which function
//! is called or what it returns: both are numbers here.

mod counts;
mod desk;
mod rate;
mod requests;

pub use counts::{CallCounters, CallCounts, CallOutcome};
pub use desk::{Admission, Arrived, Awaited, CallRules, Desk, MAX_WAIT, MAX_WAITING};
pub use rate::{Rate, RateError};
pub use requests::{MAX_REQUESTS, Requests};

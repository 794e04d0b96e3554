//! What calls need besides the messages they ride in: how many a peer may make, and which requests wait for their reply.
//!
//! Promises: bounded memory a peer, whatever it sends, and the clock of whoever asks. Refuses to know what is called or
//! answered: that is told by number.

mod bucket;
mod requests;

pub use bucket::{Bucket, Rate, RateError};
pub use requests::{MAX_REQUESTS, Requests};

//! Parts of the articles about game networking that games don't need, for protocols of one's own: the chunks of
//! "Sending Large Blocks of Data", the plain connection of "Virtual Connection over UDP", the binary congestion
//! avoidance of "Reliability, Ordering and Congestion Avoidance over UDP", and reliable 1.0's own estimates. No other module
//! uses them.

pub mod good_bad;
pub mod slices;
mod standard_estimate;
mod virtual_connection;

pub use standard_estimate::StandardEstimate;
pub use virtual_connection::{
    VirtualConfig, VirtualConnection, VirtualCounters, VirtualDrop, VirtualEvent, VirtualSendError,
    VirtualState,
};

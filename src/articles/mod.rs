//! Parts of the articles about game networking that games don't need, for protocols of one's own: the chunks of
//! "Sending Large Blocks of Data", and the plain connection of "Virtual Connection over UDP". No other module uses
//! them. The binary mode of "Reliability, Ordering and Congestion Avoidance over UDP" is in
//! [`transport::good_bad`](crate::transport::good_bad), because connections can be set to use it.

pub mod slices;
mod virtual_connection;

pub use virtual_connection::{
    VirtualConfig, VirtualConnection, VirtualCounters, VirtualDrop, VirtualEvent, VirtualSendError,
    VirtualState,
};

//! The only place with sockets and clocks.

pub mod udp;

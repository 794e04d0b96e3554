//! The only place with sockets and clocks.

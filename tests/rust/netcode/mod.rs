//! Netcode clients and servers against each other and against attackers, in virtual time.

mod attacks;
mod connecting;
mod ending;
mod explaining;
mod floods;
mod tokens;
mod world;

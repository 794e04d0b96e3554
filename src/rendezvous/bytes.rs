//! Parts that all packets here share.

use core::net::SocketAddr;

use crate::wire::packet::Part;
use crate::wire::{BitReader, BitSink, ReadError};

/// The first byte of every datagram here. Netcode's has a kind up to 6 in its low half.
pub const MAGIC: u8 = 0xF7;

/// Bytes of an address, at most: its family, 16 of IP, 2 of port.
pub(super) const ADDRESS_BYTES: usize = 1 + 16 + 2;

/// An address to which one can send.
pub struct Sendable;

impl Part for Sendable {
    type Value = SocketAddr;

    fn write<S: BitSink>(value: &SocketAddr, sink: &mut S) {
        SocketAddr::write(&SocketAddr::new(value.ip().to_canonical(), value.port()), sink);
    }

    fn read(reader: &mut BitReader<'_>) -> Result<SocketAddr, ReadError> {
        let address = <SocketAddr as Part>::read(reader)?;
        let (ip, port) = (address.ip().to_canonical(), address.port());
        if port == 0 || ip.is_unspecified() || ip.is_multicast() {
            return Err(ReadError::Invalid { part: "address" });
        }
        Ok(SocketAddr::new(ip, port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::packet::{from_bytes, to_bytes};

    #[test]
    fn addresses_come_back_and_those_nobody_can_send_to_are_refused() {
        let back = |text: &str| from_bytes::<Sendable>(&to_bytes::<Sendable>(&text.parse().unwrap()));
        for text in ["1.2.3.4:5", "[2001:db8::1]:65535"] {
            assert_eq!(back(text), Ok(text.parse().unwrap()));
        }
        assert_eq!(back("[::ffff:1.2.3.4]:5"), Ok("1.2.3.4:5".parse().unwrap()));
        for text in ["0.0.0.0:5", "[::]:5", "1.2.3.4:0", "224.0.0.1:5", "[ff02::1]:5"] {
            assert!(back(text).is_err(), "{text}");
        }
        for text in ["[::ffff:0.0.0.0]:5", "[::ffff:224.0.0.1]:5"] {
            let bytes = to_bytes::<SocketAddr>(&text.parse().unwrap());
            assert!(from_bytes::<Sendable>(&bytes).is_err(), "{text}");
        }
    }
}

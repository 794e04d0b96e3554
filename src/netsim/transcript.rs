//! A hash of everything sent: two runs with the same hash sent the same bytes at the same times.

use core::fmt;
use core::net::SocketAddr;

use sha2::{Digest, Sha256};

use crate::time::Instant;

/// SHA-256 over every datagram as it leaves its host: nanoseconds since the start (u64), sender, receiver, length
/// (u32), bytes. Addresses are 16 bytes (IPv4 mapped into IPv6) and a port (u16); all numbers are little-endian.
#[derive(Clone)]
pub(super) struct Transcript(Sha256);

impl Transcript {
    pub(super) fn new() -> Self {
        Transcript(Sha256::new())
    }

    pub(super) fn record(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let mut head = [0; 8 + 2 * 18 + 4];
        head[..8].copy_from_slice(&now.as_nanos().to_le_bytes());
        for (at, address) in [(8, from), (26, to)] {
            let ip = match address {
                SocketAddr::V4(address) => address.ip().to_ipv6_mapped(),
                SocketAddr::V6(address) => *address.ip(),
            };
            head[at..at + 16].copy_from_slice(&ip.octets());
            head[at + 16..at + 18].copy_from_slice(&address.port().to_le_bytes());
        }
        head[44..].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.0.update(head);
        self.0.update(bytes);
    }

    pub(super) fn hash(&self) -> [u8; 32] {
        self.0.clone().finalize().into()
    }
}

impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hash().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_layout_as_it_is_described() {
        let mut transcript = Transcript::new();
        let [from, to] = ["10.0.0.1:7", "[2001:db8::1]:258"].map(|text| text.parse().unwrap());
        transcript.record(Instant::from_nanos(0x0102), from, to, b"hi");
        let layout = "0201000000000000\
                      00000000000000000000ffff0a0000010700\
                      20010db80000000000000000000000010201\
                      020000006869";
        let expected: [u8; 32] = Sha256::digest(hex::decode(layout).unwrap()).into();
        assert_eq!(transcript.hash(), expected);
    }
}

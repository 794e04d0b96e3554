//! Fixed fields in bytes for all packets here: little-endian, addresses of one length for both families.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The first byte of every datagram here. Netcode's has a kind up to 6 in its low half.
pub const MAGIC: u8 = 0xF7;

/// Bytes of an address, present or not: the family, 16 of IP, 2 of port.
pub(super) const ADDRESS_BYTES: usize = 1 + 16 + 2;

/// The rest of a datagram; every read gives None at an early end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// An address, or none if none was written. Refuses addresses that can't be sent to.
    pub(super) fn maybe_address(&mut self) -> Option<Option<SocketAddr>> {
        let (family, ip, port) = (self.u8()?, self.array::<16>()?, self.u16()?);
        let ip: IpAddr = match family {
            0 => return Some(None),
            4 => Ipv4Addr::new(ip[0], ip[1], ip[2], ip[3]).into(),
            6 => Ipv6Addr::from(ip).into(),
            _ => return None,
        };
        let sendable = port != 0 && !ip.is_unspecified() && !ip.is_multicast();
        sendable.then_some(Some(SocketAddr::new(ip.to_canonical(), port)))
    }

    pub(super) fn address(&mut self) -> Option<SocketAddr> {
        self.maybe_address()?
    }

    /// A count of at most `bound`, then that many addresses.
    pub(super) fn addresses(&mut self, bound: usize) -> Option<Vec<SocketAddr>> {
        let count = usize::from(self.u8()?);
        if count > bound {
            return None;
        }
        (0..count).map(|_| self.address()).collect()
    }
}

pub(super) fn write_address(address: Option<SocketAddr>, out: &mut Vec<u8>) {
    let mut ip = [0; 16];
    let family = match address.map(|address| address.ip().to_canonical()) {
        None => 0,
        Some(IpAddr::V4(v4)) => {
            ip[..4].copy_from_slice(&v4.octets());
            4
        }
        Some(IpAddr::V6(v6)) => {
            ip = v6.octets();
            6
        }
    };
    out.push(family);
    out.extend_from_slice(&ip);
    out.extend_from_slice(&address.map_or(0, |address| address.port()).to_le_bytes());
}

pub(super) fn write_addresses(addresses: &[SocketAddr], out: &mut Vec<u8>) {
    out.push(addresses.len() as u8);
    addresses.iter().for_each(|address| write_address(Some(*address), out));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_and_those_nobody_can_send_to_are_refused() {
        for text in ["1.2.3.4:5", "[2001:db8::1]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            let mut bytes = Vec::new();
            write_address(Some(address), &mut bytes);
            assert_eq!(bytes.len(), ADDRESS_BYTES);
            assert_eq!(Fields(&bytes).address(), Some(address));
            (0..bytes.len()).for_each(|cut| assert_eq!(Fields(&bytes[..cut]).address(), None));
        }
        for text in ["0.0.0.0:5", "[::]:5", "1.2.3.4:0", "224.0.0.1:5", "[ff02::1]:5"] {
            let mut bytes = Vec::new();
            write_address(Some(text.parse().unwrap()), &mut bytes);
            assert_eq!(Fields(&bytes).maybe_address(), None, "{text}");
        }
        let mut none = Vec::new();
        write_address(None, &mut none);
        assert_eq!(Fields(&none).maybe_address(), Some(None));
    }

    #[test]
    fn lists_have_their_bound() {
        let mut bytes = Vec::new();
        write_addresses(&["1.2.3.4:5".parse().unwrap(); 3], &mut bytes);
        assert_eq!(Fields(&bytes).addresses(3).unwrap().len(), 3);
        assert_eq!(Fields(&bytes).addresses(2), None);
    }
}

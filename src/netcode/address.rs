//! Addresses as in connect tokens, which can't carry IPv6 scope ids.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::cursor::Cursor;

/// Most addresses in one connect token.
pub(crate) const MAX_SERVERS_PER_TOKEN: usize = 32;

const TYPE_IPV4: u8 = 1;
const TYPE_IPV6: u8 = 2;

/// Whether two addresses are the same endpoint for a token (IP and port; no scope id). An IPv4 address is the same in
/// either form.
pub(crate) fn same_endpoint(a: SocketAddr, b: SocketAddr) -> bool {
    a.ip().to_canonical() == b.ip().to_canonical() && a.port() == b.port()
}

/// Writes a token's list: the count, then type, IP and port of each. IPv6 groups are little-endian, as all
/// of netcode is, not in network order.
pub(crate) fn write_list(addresses: &[SocketAddr], out: &mut Vec<u8>) {
    debug_assert!((1..=MAX_SERVERS_PER_TOKEN).contains(&addresses.len()));
    out.extend_from_slice(&(addresses.len() as u32).to_le_bytes());
    for address in addresses {
        match address.ip() {
            IpAddr::V4(ip) => {
                out.push(TYPE_IPV4);
                out.extend_from_slice(&ip.octets());
            }
            IpAddr::V6(ip) => {
                out.push(TYPE_IPV6);
                out.extend(ip.segments().iter().flat_map(|group| group.to_le_bytes()));
            }
        }
        out.extend_from_slice(&address.port().to_le_bytes());
    }
}

/// Reads what [`write_list`] writes; `None` for a count outside 1..=32, an unknown type or an early end.
pub(crate) fn read_list(cursor: &mut Cursor<'_>) -> Option<Vec<SocketAddr>> {
    let count = usize::try_from(cursor.u32()?).ok()?;
    if !(1..=MAX_SERVERS_PER_TOKEN).contains(&count) {
        return None;
    }
    (0..count).map(|_| read(cursor)).collect()
}

fn read(cursor: &mut Cursor<'_>) -> Option<SocketAddr> {
    let ip = match cursor.u8()? {
        TYPE_IPV4 => Ipv4Addr::from(cursor.array::<4>()?).into(),
        TYPE_IPV6 => {
            let mut groups = [0; 8];
            for group in &mut groups {
                *group = cursor.u16()?;
            }
            Ipv6Addr::from(groups).into()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, cursor.u16()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_with_a_wrong_count_type_or_end_are_refused() {
        let mut bytes = Vec::new();
        write_list(&["1.2.3.4:5".parse().unwrap(), "[::1]:6".parse().unwrap()], &mut bytes);
        assert_eq!(bytes.len(), 4 + 7 + 19);
        assert_eq!(read_list(&mut Cursor(&bytes)).unwrap().len(), 2);
        for cut in 0..bytes.len() {
            assert_eq!(read_list(&mut Cursor(&bytes[..cut])), None, "cut at {cut}");
        }
        for (at, value) in [(0, 0), (0, 33), (3, 1), (4, 0), (4, 3), (11, 255)] {
            let mut wrong = bytes.clone();
            wrong[at] = value;
            assert_eq!(read_list(&mut Cursor(&wrong)), None, "byte {at} = {value}");
        }
    }
}

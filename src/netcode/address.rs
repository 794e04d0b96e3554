//! Addresses as text (`a.b.c.d:port`, `[v6]:port`) and as in connect tokens.
//!
//! Promises: printed addresses parse to the same address. Refuses: names (resolving is the driver's), ports beyond
//! 65,535, an empty port, and IPv6 scope ids, which a token can't carry.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::cursor::Cursor;

/// Most addresses in one connect token.
pub const MAX_SERVERS_PER_TOKEN: usize = 32;

const TYPE_IPV4: u8 = 1;
const TYPE_IPV6: u8 = 2;

/// Why a text is not an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError {
    text: String,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not an address: write a.b.c.d:port or [v6]:port with a port of 0 to 65535.",
            self.text
        )
    }
}

impl core::error::Error for AddressError {}

/// Parses `a.b.c.d`, `a.b.c.d:port`, `v6` or `[v6]:port`. Without a port, the port is 0.
///
/// # Errors
/// When `text` is none of these.
pub fn parse_address(text: &str) -> Result<SocketAddr, AddressError> {
    let with_port = text.parse::<SocketAddr>().ok();
    let address = with_port.or_else(|| text.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 0)));
    match address {
        Some(SocketAddr::V6(v6)) if v6.scope_id() != 0 => None,
        other => other,
    }
    .ok_or_else(|| AddressError { text: text.chars().take(80).collect() })
}

/// Prints an address as [`parse_address`] reads it: without a port when the port is 0.
pub fn format_address(address: SocketAddr) -> String {
    if address.port() == 0 { address.ip().to_string() } else { address.to_string() }
}

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
    fn printed_addresses_parse_back() {
        for text in ["10.0.0.1", "10.0.0.1:7777", "fe80::1", "[fe80::1]:1", "::ffff:1.2.3.4"] {
            assert_eq!(format_address(parse_address(text).unwrap()), text);
        }
    }

    #[test]
    fn refuses_what_is_no_address() {
        for text in
            ["localhost:1", "[::1", "1.2.3:4", "1.2.3.4:-1", "[fe80::1%3]:80", "1.2.3.4:65536", " ::1"]
        {
            assert!(parse_address(text).is_err(), "{text}");
        }
        let message = parse_address("host:1").unwrap_err().to_string();
        assert!(message.starts_with("\"host:1\" is not an address"), "{message}");
    }

    #[test]
    fn lists_with_a_wrong_count_type_or_end_are_refused() {
        let mut bytes = Vec::new();
        write_list(&[parse_address("1.2.3.4:5").unwrap(), parse_address("[::1]:6").unwrap()], &mut bytes);
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

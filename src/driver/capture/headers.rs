//! The headers that a datagram would have on the wire, made up from its addresses, because sockets don't show them.
//!
//! Pure functions: addresses and bytes in, bytes out.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The direction of a datagram, as seen by the endpoint that captures it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    In,
    Out,
}

const IPV4_BYTES: usize = 20;
#[cfg(test)]
const IPV6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;
const UDP: u8 = 17;
const HOP_LIMIT: u8 = 64;

/// The maximum length of the headers: eight tags, three with 16 bytes, three with 4, the last with none; IP and UDP
/// are shorter.
pub(super) const MAX_HEADER_BYTES: usize = 7 * 4 + 3 * 16 + 3 * 4;

/// The dissector that exported packets name.
const DISSECTOR: &[u8] = b"tickwire_opened";
const TAG_DISSECTOR: u16 = 12;
const TAG_IPV4_FROM: u16 = 20;
const TAG_IPV4_TO: u16 = 21;
const TAG_IPV6_FROM: u16 = 22;
const TAG_IPV6_TO: u16 = 23;
const TAG_PORT_TYPE: u16 = 24;
const TAG_PORT_FROM: u16 = 25;
const TAG_PORT_TO: u16 = 26;
const TAG_END: u16 = 0;
/// The number for UDP in Wireshark's tags.
const PORT_TYPE_UDP: u32 = 3;

/// Appends the datagram as an IPv4 or IPv6 packet, checksums filled in.
pub(super) fn ip_datagram(from: SocketAddr, to: SocketAddr, datagram: &[u8], out: &mut Vec<u8>) {
    let udp_length = UDP_BYTES + datagram.len();
    let pseudo_header = match one_family(from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let start = out.len();
            out.extend_from_slice(&[0x45, 0]);
            out.extend_from_slice(&((IPV4_BYTES + udp_length) as u16).to_be_bytes());
            // No identification, don't fragment.
            out.extend_from_slice(&[0, 0, 0x40, 0, HOP_LIMIT, UDP, 0, 0]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
            let checksum = folded(sum(&out[start..]));
            out[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
            sum(&from.octets()) + sum(&to.octets())
        }
        (from, to) => {
            let (from, to) = (v6(from).octets(), v6(to).octets());
            out.extend_from_slice(&[0x60, 0, 0, 0]);
            out.extend_from_slice(&(udp_length as u16).to_be_bytes());
            out.extend_from_slice(&[UDP, HOP_LIMIT]);
            out.extend_from_slice(&from);
            out.extend_from_slice(&to);
            sum(&from) + sum(&to)
        }
    };
    let start = out.len();
    out.extend_from_slice(&from.port().to_be_bytes());
    out.extend_from_slice(&to.port().to_be_bytes());
    out.extend_from_slice(&(udp_length as u16).to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(datagram);
    let checksum = folded(pseudo_header + u64::from(UDP) + udp_length as u64 + sum(&out[start..]));
    // 0 would mean that there is no checksum.
    let checksum = if checksum == 0 { 0xFFFF } else { checksum };
    out[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
}

/// Appends bytes for our own dissector, after the tags with its name and the addresses.
pub(super) fn exported(from: SocketAddr, to: SocketAddr, bytes: &[u8], out: &mut Vec<u8>) {
    tag(out, TAG_DISSECTOR, DISSECTOR);
    match one_family(from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            tag(out, TAG_IPV4_FROM, &from.octets());
            tag(out, TAG_IPV4_TO, &to.octets());
        }
        (from, to) => {
            tag(out, TAG_IPV6_FROM, &v6(from).octets());
            tag(out, TAG_IPV6_TO, &v6(to).octets());
        }
    }
    tag(out, TAG_PORT_TYPE, &PORT_TYPE_UDP.to_be_bytes());
    tag(out, TAG_PORT_FROM, &u32::from(from.port()).to_be_bytes());
    tag(out, TAG_PORT_TO, &u32::from(to.port()).to_be_bytes());
    tag(out, TAG_END, &[]);
    out.extend_from_slice(bytes);
}

/// Big-endian, filled up to a multiple of four.
fn tag(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let filled = value.len().next_multiple_of(4);
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(filled as u16).to_be_bytes());
    out.extend_from_slice(value);
    out.resize(out.len() + filled - value.len(), 0);
}

/// A socket bound to all addresses doesn't know which one it used: the peer's family decides.
fn one_family(from: IpAddr, to: IpAddr) -> (IpAddr, IpAddr) {
    match (from.is_ipv4(), to.is_ipv4()) {
        (true, false) if from.is_unspecified() => (Ipv6Addr::UNSPECIFIED.into(), to),
        (false, true) if from.is_unspecified() => (Ipv4Addr::UNSPECIFIED.into(), to),
        (true, false) if to.is_unspecified() => (from, Ipv4Addr::UNSPECIFIED.into()),
        (false, true) if to.is_unspecified() => (from, Ipv6Addr::UNSPECIFIED.into()),
        _ => (from, to),
    }
}

fn v6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

/// The sum of the big-endian words, a last odd byte being the high one.
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    words.map(u64::from).sum()
}

/// The Internet checksum of a sum.
fn folded(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(from: &str, to: &str, datagram: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        ip_datagram(from.parse().unwrap(), to.parse().unwrap(), datagram, &mut out);
        assert!(out.len() - datagram.len() <= IPV6_BYTES + UDP_BYTES);
        out
    }

    #[test]
    fn an_ipv4_packet_has_the_checksums_that_its_receiver_computes() {
        // By hand, after RFC 1071: all words with the checksum fold to 0.
        for datagram in [&b""[..], b"x", b"four", b"an odd one!"] {
            let packet = made("10.1.2.3:40000", "192.0.2.200:53", datagram);
            assert_eq!(&packet[..10], [0x45, 0, 0, 28 + datagram.len() as u8, 0, 0, 0x40, 0, 64, 17]);
            assert_eq!(folded(sum(&packet[..20])), 0);
            let length = 8 + datagram.len() as u64;
            assert_eq!(folded(sum(&packet[12..20]) + 17 + length + sum(&packet[20..])), 0);
            assert_eq!(&packet[28..], datagram);
        }
        let known = made("127.0.0.1:1", "127.0.0.1:2", b"");
        assert_eq!(&known[10..12], [0x3c, 0xcf]);
    }

    #[test]
    fn an_ipv6_packet_too() {
        let packet = made("[2001:db8::1]:40000", "[::1]:53", b"hello");
        assert_eq!(&packet[..8], [0x60, 0, 0, 0, 0, 13, 17, 64]);
        assert_eq!(folded(sum(&packet[8..40]) + 17 + 13 + sum(&packet[40..])), 0);
        assert_eq!(&packet[48..], b"hello");
    }

    #[test]
    fn both_ends_are_of_one_family() {
        assert_eq!(made("0.0.0.0:1", "[::1]:2", b"")[0], 0x60);
        assert_eq!(made("[::]:1", "127.0.0.1:2", b"")[0], 0x45);
        assert_eq!(made("127.0.0.1:2", "[::]:1", b"")[0], 0x45);
        assert_eq!(made("127.0.0.1:2", "[::1]:1", b"")[0], 0x60);
    }

    #[test]
    fn exported_bytes_lie_behind_filled_up_tags() {
        let mut out = Vec::new();
        exported("[::1]:7".parse().unwrap(), "[::1]:9".parse().unwrap(), b"", &mut out);
        assert_eq!(out.len(), MAX_HEADER_BYTES);
        out.clear();
        exported("127.0.0.1:7".parse().unwrap(), "127.0.0.1:9".parse().unwrap(), b"inside", &mut out);
        assert_eq!(&out[..20], b"\x00\x0c\x00\x10tickwire_opened\x00");
        assert_eq!(&out[20..28], [0, 20, 0, 4, 127, 0, 0, 1]);
        assert_eq!(&out[out.len() - 10..], b"\x00\x00\x00\x00inside");
    }
}

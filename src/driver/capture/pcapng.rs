//! The blocks of a pcapng file (draft-ietf-opsawg-pcapng): bytes from values, nothing else.
//!
//! All numbers are little-endian, as the byte-order magic declares; each block and option is padded to a multiple of
//! four.

use super::headers::Way;

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
/// The length of a section that is still growing.
const UNKNOWN_LENGTH: u64 = u64::MAX;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_TIME_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;

/// Times are in units of 10^-9 seconds.
const NANOSECONDS: u8 = 9;

/// Raw IPv4 and IPv6 packets (LINKTYPE_RAW).
pub(super) const RAW_IP: u16 = 101;
/// Wireshark's own: tags that name a dissector and addresses, then what is to be dissected
/// (LINKTYPE_WIRESHARK_UPPER_PDU).
pub(super) const UPPER_PDU: u16 = 252;

pub(super) fn section(application: &str, comment: &str, out: &mut Vec<u8>) {
    block(out, SECTION, |out| {
        out.extend_from_slice(&BYTE_ORDER.to_le_bytes());
        out.extend_from_slice(&1u16.to_le_bytes());
        out.extend_from_slice(&0u16.to_le_bytes());
        out.extend_from_slice(&UNKNOWN_LENGTH.to_le_bytes());
        option(out, SECTION_APPLICATION, application.as_bytes());
        option(out, COMMENT, comment.as_bytes());
        option(out, END_OF_OPTIONS, &[]);
    });
}

/// Describes an interface; interfaces are numbered in the order of their descriptions.
pub(super) fn interface(name: &str, link_type: u16, out: &mut Vec<u8>) {
    block(out, INTERFACE, |out| {
        out.extend_from_slice(&link_type.to_le_bytes());
        out.extend_from_slice(&0u16.to_le_bytes());
        // No packet is truncated.
        out.extend_from_slice(&0u32.to_le_bytes());
        option(out, INTERFACE_NAME, name.as_bytes());
        option(out, INTERFACE_TIME_RESOLUTION, &[NANOSECONDS]);
        option(out, END_OF_OPTIONS, &[]);
    });
}

/// A packet, seen at `nanos` since 1970.
pub(super) fn packet(interface: u32, nanos: u64, way: Way, bytes: &[u8], out: &mut Vec<u8>) {
    block(out, ENHANCED_PACKET, |out| {
        out.extend_from_slice(&interface.to_le_bytes());
        out.extend_from_slice(&((nanos >> 32) as u32).to_le_bytes());
        out.extend_from_slice(&(nanos as u32).to_le_bytes());
        // A datagram and its headers are far below 4 GiB.
        let length = (bytes.len() as u32).to_le_bytes();
        out.extend_from_slice(&length);
        out.extend_from_slice(&length);
        padded(out, bytes);
        let flags: u32 = match way {
            Way::In => 1,
            Way::Out => 2,
        };
        option(out, PACKET_FLAGS, &flags.to_le_bytes());
        option(out, END_OF_OPTIONS, &[]);
    });
}

/// A block's type, and its length before and after its body.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = ((out.len() - start + 4) as u32).to_le_bytes();
    out[start + 4..start + 8].copy_from_slice(&length);
    out.extend_from_slice(&length);
}

/// Longer texts than an option has room for are cut.
fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX) - 3)];
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&(value.len() as u16).to_le_bytes());
    padded(out, value);
}

fn padded(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
    out.resize(out.len() + (4 - bytes.len() % 4) % 4, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn blocks_say_their_length_twice_and_are_filled_up() {
        for length in 0..9 {
            let mut out = vec![0xEE; 3];
            packet(1, 0x0123_4567_89AB_CDEF, Way::Out, &vec![7; length], &mut out);
            let block = &out[3..];
            assert_eq!(block.len() % 4, 0);
            assert_eq!(word(block, 0), 6);
            assert_eq!(word(block, 4) as usize, block.len());
            assert_eq!(word(block, block.len() - 4) as usize, block.len());
            assert_eq!([word(block, 8), word(block, 12), word(block, 16)], [1, 0x0123_4567, 0x89AB_CDEF]);
            assert_eq!([word(block, 20) as usize, word(block, 24) as usize], [length, length]);
            let behind = 28 + length.next_multiple_of(4);
            assert_eq!(&block[28..28 + length], vec![7; length]);
            assert_eq!(
                [word(block, behind), word(block, behind + 4), word(block, behind + 8)],
                [0x4_0002, 2, 0]
            );
        }
    }

    #[test]
    fn a_text_too_long_for_an_option_is_cut() {
        let mut out = Vec::new();
        section("tickwire", &"x".repeat(100_000), &mut out);
        assert_eq!(word(&out, 4) as usize, out.len());
        assert!(out.len() < 66_000);
    }
}

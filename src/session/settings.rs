//! Compares the settings that must be the same on all sides of a peers' game, in its first packets. If they differ, the
//! game would desync or stall without saying why.
//!
//! A core's packet begins with a bit. If it is 1, a hash of the kind of game follows, and one of each setting, 16 bits
//! each; then comes the core's part.

use crate::wire::{BitReader, BitSink, BitWriter};

/// How many packets to a player carry the settings, as any of them may be lost.
pub(super) const SAYINGS: u8 = 64;

/// Bits of a hash.
const MARK_BITS: u32 = 16;

/// The hash that matches any other.
const ANY: u16 = 0;

/// A setting's name, and a hash of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting(pub &'static str, pub u16);

impl Setting {
    /// The setting with this value.
    pub fn of(name: &'static str, value: u64) -> Self {
        Setting(name, mark(&value.to_le_bytes()))
    }

    /// The setting that matches every value.
    pub fn any(name: &'static str) -> Self {
        Setting(name, ANY)
    }
}

/// FNV-1a, folded; never the hash that matches any.
fn mark(bytes: &[u8]) -> u16 {
    let hash =
        bytes.iter().fold(0x811C_9DC5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    ((hash >> 16) as u16 ^ hash as u16).max(1)
}

/// How many bits precede a core's packet.
pub(super) fn bits_of(settings: &[Setting], said: u8) -> usize {
    if said < SAYINGS { 1 + MARK_BITS as usize * (1 + settings.len()) } else { 1 }
}

/// Writes the part in front of a core's packet.
pub(super) fn write(kind: &str, settings: &[Setting], said: u8, writer: &mut BitWriter) {
    writer.bits(u64::from(said < SAYINGS), 1);
    if said < SAYINGS {
        writer.bits(mark(kind.as_bytes()).into(), MARK_BITS);
        settings.iter().for_each(|setting| writer.bits(setting.1.into(), MARK_BITS));
    }
}

/// Reads the part in front of a core's packet.
///
/// # Errors
/// The settings that differ.
pub(super) fn read(kind: &str, settings: &[Setting], reader: &mut BitReader<'_>) -> Result<(), String> {
    let mut next = |bits| reader.bits(bits).map_err(|_| "a payload that ends too soon".to_owned());
    if next(1)? == 0 {
        return Ok(());
    }
    if next(MARK_BITS)? != u64::from(mark(kind.as_bytes())) {
        return Err(format!(
            "it plays another kind of game than {kind}, or with another version of Tickwire"
        ));
    }
    let mut others = Vec::new();
    for Setting(name, here) in settings {
        let there = next(MARK_BITS)?;
        if *here != ANY && there != u64::from(ANY) && there != u64::from(*here) {
            others.push(*name);
        }
    }
    if others.is_empty() {
        return Ok(());
    }
    Err(format!("its {kind} has other settings than the one here: {}", others.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(settings: &[Setting], here: &[Setting]) -> Result<(), String> {
        let mut writer = BitWriter::new();
        write("lockstep", settings, 0, &mut writer);
        assert_eq!(writer.bit_len(), bits_of(settings, 0));
        let bits = writer.bit_len();
        read("lockstep", here, &mut BitReader::with_range(writer.as_bytes(), 0, bits))
    }

    #[test]
    fn other_settings_are_named() {
        let here = [Setting::of("delay", 2), Setting::of("step", 33), Setting::any("objects")];
        assert_eq!(said(&here, &here), Ok(()));
        let there = [Setting::of("delay", 3), Setting::of("step", 50), Setting::of("objects", 7)];
        let told = "its lockstep has other settings than the one here: delay, step";
        assert_eq!(said(&there, &here), Err(told.into()));
        let mut writer = BitWriter::new();
        write("rollback", &there, 0, &mut writer);
        let bits = writer.bit_len();
        let mut reader = BitReader::with_range(writer.as_bytes(), 0, bits);
        assert!(read("lockstep", &here, &mut reader).unwrap_err().starts_with("it plays another kind"));
        // Truncated anywhere it is refused, and once all packets with settings were sent it is one bit.
        for bits in 0..bits {
            assert!(
                read("rollback", &there, &mut BitReader::with_range(writer.as_bytes(), 0, bits)).is_err()
            );
        }
        writer.clear();
        write("rollback", &there, SAYINGS, &mut writer);
        assert_eq!(writer.bit_len(), 1);
        assert_eq!(read("rollback", &here, &mut BitReader::with_range(writer.as_bytes(), 0, 1)), Ok(()));
    }
}

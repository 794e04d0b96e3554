//! Lobby codes: six letters that people read to each other.
//!
//! Promises: no vowels, so that no code is a word, and no two letters that look or sound alike.
//!
//! Six of 19 letters give 47 million codes. A server tells a wrong code from a right one, but answers a source that guesses
//! only 10 times at once and then once in 2 seconds; a source is an IPv4 address or an IPv6 /64. One source finds a certain
//! game after 1.5 years on average, and any of 10,000 games after 2.6 hours. A code keeps nobody out: for that, a game has a
//! key.

use core::fmt;
use core::str::FromStr;

use crate::wire::packet::Part;
use crate::wire::{BitReader, BitSink, ReadError};

/// The letters of codes: no vowels, and none that is easily taken for another.
const LETTERS: &[u8; 19] = b"BCDFGHJKLMNPQRSTVWX";

/// Letters of a code.
pub const CODE_LETTERS: usize = 6;

/// A valid lobby code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LobbyCode([u8; CODE_LETTERS]);

/// The text that isn't a lobby code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeError {
    text: String,
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = core::str::from_utf8(LETTERS).unwrap_or_default();
        write!(f, "code must be {CODE_LETTERS} letters of {letters}, not {:?}", self.text)
    }
}

impl core::error::Error for CodeError {}

impl LobbyCode {
    /// Makes a code of random bits.
    pub(super) fn random(mut bits: u64) -> Self {
        let mut letters = [0; CODE_LETTERS];
        for letter in &mut letters {
            *letter = LETTERS[(bits % LETTERS.len() as u64) as usize];
            bits /= LETTERS.len() as u64;
        }
        LobbyCode(letters)
    }

    pub(super) fn bytes(&self) -> &[u8; CODE_LETTERS] {
        &self.0
    }

    /// The code that these bytes from the network spell.
    pub(super) fn from_bytes(bytes: [u8; CODE_LETTERS]) -> Option<Self> {
        bytes.iter().all(|letter| LETTERS.contains(letter)).then_some(LobbyCode(bytes))
    }
}

impl Part for LobbyCode {
    type Value = LobbyCode;

    fn write<S: BitSink>(value: &LobbyCode, sink: &mut S) {
        sink.packed(&value.0);
    }

    fn read(reader: &mut BitReader<'_>) -> Result<LobbyCode, ReadError> {
        Self::from_bytes(<[u8; CODE_LETTERS]>::read(reader)?).ok_or(ReadError::Invalid { part: "lobby code" })
    }
}

impl fmt::Display for LobbyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(core::str::from_utf8(&self.0).unwrap_or_default())
    }
}

impl FromStr for LobbyCode {
    type Err = CodeError;

    /// Reads a code as people type it: in any case, with spaces and hyphens anywhere.
    fn from_str(text: &str) -> Result<Self, CodeError> {
        let error = || CodeError { text: text.chars().take(40).collect() };
        let typed = text.chars().filter(|letter| !matches!(letter, ' ' | '-'));
        let letters: Vec<u8> =
            typed.take(CODE_LETTERS + 1).map(|letter| letter.to_ascii_uppercase() as u32 as u8).collect();
        let bytes: [u8; CODE_LETTERS] = letters.try_into().map_err(|_| error())?;
        Self::from_bytes(bytes).filter(|_| text.is_ascii()).ok_or_else(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_people_type_them() {
        let code = LobbyCode::random(0x1234_5678_9ABC_DEF0);
        let text = code.to_string();
        assert_eq!(text.len(), CODE_LETTERS);
        let typed = format!(" {}-{} ", text[..3].to_lowercase(), &text[3..]);
        assert_eq!(typed.parse(), Ok(code));
        for wrong in ["", "BCDFG", "BCDFGHJ", "BCDFGA", "BCDFG1", "BCDFGé", "ŁCDFGH"] {
            let error = wrong.parse::<LobbyCode>().unwrap_err().to_string();
            assert!(error.starts_with("code must be 6 letters of"), "{error}");
        }
    }

    #[test]
    fn all_letters_are_drawn() {
        let mut drawn = std::collections::BTreeSet::new();
        (0..1000u64).for_each(|n| drawn.extend(LobbyCode::random(n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).0));
        assert_eq!(drawn.len(), LETTERS.len());
    }
}

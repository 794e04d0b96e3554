//! The only file that knows the AEAD crates. Everything is sealed and opened in place.
//!
//! Two crates: `ring` for packets, because it needs a third of the time for 200 bytes, and `chacha20poly1305` for the
//! long nonce of tokens, which `ring` doesn't have.
//!
//! Promises: the comparison of tags (inside the AEAD) is the only place where a secret meets bytes from outside. If
//! opening fails, the buffer's contents are meaningless.

use chacha20poly1305::{AeadInOut, KeyInit, XChaCha20Poly1305};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

pub type Key = [u8; 32];

/// Bytes of the authentication tag after every ciphertext.
pub(crate) const TAG_BYTES: usize = 16;

/// Bytes of the nonce of a connect token.
pub(crate) const TOKEN_NONCE_BYTES: usize = 24;

pub(crate) type Tag = [u8; TAG_BYTES];

/// Encrypts `text` in place with ChaCha20-Poly1305. A sequence must never be used twice under one key.
pub(crate) fn seal(key: &Key, sequence: u64, associated: &[u8], text: &mut [u8]) -> Tag {
    let tag = packet_key(key)
        .seal_in_place_separate_tag(packet_nonce(sequence), Aad::from(associated), text)
        .expect("a datagram is far below the cipher's limit of 256 GiB");
    let mut bytes = [0; TAG_BYTES];
    bytes.copy_from_slice(tag.as_ref());
    bytes
}

/// Authenticates and decrypts `sealed` (ciphertext, then tag) in place and returns the plaintext.
pub(crate) fn open<'a>(
    key: &Key,
    sequence: u64,
    associated: &[u8],
    sealed: &'a mut [u8],
) -> Option<&'a mut [u8]> {
    packet_key(key).open_in_place(packet_nonce(sequence), Aad::from(associated), sealed).ok()
}

/// [`seal`] for the private part of a connect token: XChaCha20-Poly1305, whose nonce is long enough to be random.
pub(crate) fn seal_token(
    key: &Key,
    nonce: &[u8; TOKEN_NONCE_BYTES],
    associated: &[u8],
    text: &mut [u8],
) -> Tag {
    XChaCha20Poly1305::new(key.into())
        .encrypt_inout_detached(nonce.into(), associated, text.into())
        .expect("a token is far below the cipher's limit of 256 GiB")
        .into()
}

/// [`open`] for the private part of a connect token.
pub(crate) fn open_token<'a>(
    key: &Key,
    nonce: &[u8; TOKEN_NONCE_BYTES],
    associated: &[u8],
    sealed: &'a mut [u8],
) -> Option<&'a mut [u8]> {
    let (text, tag) = sealed.split_last_chunk_mut::<TAG_BYTES>()?;
    XChaCha20Poly1305::new(key.into())
        .decrypt_inout_detached(nonce.into(), associated, (&mut *text).into(), (&*tag).into())
        .ok()?;
    Some(text)
}

/// Created for each packet: that takes a tenth of the time, and storing it would take half a kilobyte a connection.
fn packet_key(key: &Key) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).expect("a key has the cipher's length"))
}

fn packet_nonce(sequence: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&sequence.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_opens() {
        let key = [7; 32];
        let mut sealed = *b"hello...................";
        let tag = seal(&key, 3, b"context", &mut sealed[..8]);
        sealed[8..].copy_from_slice(&tag);
        let refused =
            |key: &Key, sequence, context: &[u8]| open(key, sequence, context, &mut { sealed }).is_none();
        assert!(refused(&key, 4, b"context"), "another sequence");
        assert!(refused(&key, 3, b"contexT"), "another context");
        assert!(refused(&[8; 32], 3, b"context"), "another key");
        for byte in 0..sealed.len() {
            let mut altered = sealed;
            altered[byte] ^= 1;
            assert!(open(&key, 3, b"context", &mut altered).is_none(), "byte {byte} altered");
        }
        assert_eq!(open(&key, 3, b"context", &mut sealed).as_deref(), Some(&b"hello..."[..]));
        assert!(open(&key, 3, b"", &mut [0; 15]).is_none(), "shorter than a tag");
    }
}

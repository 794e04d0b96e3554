//! The only file that knows the AEAD crate. Everything is sealed and opened in place.
//!
//! Promises: a buffer that fails to open is left as it was, and the comparison of tags (inside the AEAD) is the
//! only place where a secret meets bytes from outside.

use chacha20poly1305::{AeadInOut, ChaCha20Poly1305, KeyInit, XChaCha20Poly1305};

/// A symmetric key.
pub type Key = [u8; 32];

/// Bytes of the authentication tag behind every ciphertext.
pub(crate) const TAG_BYTES: usize = 16;

/// Bytes of the nonce of a connect token.
pub(crate) const TOKEN_NONCE_BYTES: usize = 24;

/// The tag itself.
pub(crate) type Tag = [u8; TAG_BYTES];

/// Encrypts `text` in place with ChaCha20-Poly1305. A sequence must never be used twice under one key.
pub(crate) fn seal(key: &Key, sequence: u64, associated: &[u8], text: &mut [u8]) -> Tag {
    ChaCha20Poly1305::new(key.into())
        .encrypt_inout_detached(&packet_nonce(sequence).into(), associated, text.into())
        .expect("a datagram is far below the cipher's limit of 256 GiB")
        .into()
}

/// Authenticates and decrypts `sealed` (ciphertext, then tag) in place and gives the plaintext.
pub(crate) fn open<'a>(
    key: &Key,
    sequence: u64,
    associated: &[u8],
    sealed: &'a mut [u8],
) -> Option<&'a mut [u8]> {
    let (text, tag) = sealed.split_last_chunk_mut::<TAG_BYTES>()?;
    ChaCha20Poly1305::new(key.into())
        .decrypt_inout_detached(
            &packet_nonce(sequence).into(),
            associated,
            (&mut *text).into(),
            (&*tag).into(),
        )
        .ok()?;
    Some(text)
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

fn packet_nonce(sequence: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&sequence.to_le_bytes());
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_to_open_is_left_as_it_was() {
        let key = [7; 32];
        let mut sealed = *b"hello...................";
        let tag = seal(&key, 3, b"context", &mut sealed[..8]);
        sealed[8..].copy_from_slice(&tag);
        let before = sealed;
        assert!(open(&key, 4, b"context", &mut sealed).is_none(), "another sequence");
        assert!(open(&key, 3, b"contexT", &mut sealed).is_none(), "another context");
        assert!(open(&[8; 32], 3, b"context", &mut sealed).is_none(), "another key");
        assert_eq!(sealed, before);
        assert_eq!(open(&key, 3, b"context", &mut sealed).as_deref(), Some(&b"hello..."[..]));
        assert!(open(&key, 3, b"", &mut [0; 15]).is_none(), "shorter than a tag");
    }
}

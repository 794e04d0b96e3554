//! Bytes and bits: the serialize 1.0 bitstream and message schemas.

//! Bytes made by the reference implementations and our own pinned bytes: written and read.

mod netcode;
mod reliable;
mod serialize;
mod words;

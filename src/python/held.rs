//! Packets that the core holds because only the game's code can read the messages in them: yojimbo's framing doesn't say how
//! long those are.
//!
//! Promises: no lock is held while `serialize` runs. A peer whose bytes make it raise is disconnected, also when what it
//! raises ends the program: nobody can say where the message ends, and its packet was acked.

use pyo3::prelude::*;

use super::endpoint::Endpoint;
use crate::endpoint::PeerHandle;
use crate::transport::{Read, Unread};

impl Endpoint {
    /// Reads the packets of each peer; with the first error that ends the program.
    pub(super) fn read_held(
        &self,
        py: Python<'_>,
        unread: Vec<(PeerHandle, Unread)>,
    ) -> (Vec<(PeerHandle, Read)>, PyResult<()>) {
        let protocol = self.protocol.get();
        let mut failed = Ok(());
        let mut extent = |number, bytes: &[u8], start| {
            protocol.extent(py, number, bytes, start).map_err(|error| {
                self.judge(py, protocol.class_of(number).name(), error).unwrap_or_else(|error| {
                    let why = error.to_string();
                    if failed.is_ok() {
                        failed = Err(error);
                    }
                    why
                })
            })
        };
        let read = unread.into_iter().map(|(client, unread)| (client, unread.read(&mut extent))).collect();
        (read, failed)
    }
}

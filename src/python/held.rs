//! Packets that the core holds until the game's code has read their messages: yojimbo's framing doesn't say
//! how long messages are.
//!
//! Promises: no lock is held while `serialize` runs. A peer whose bytes make it raise is disconnected, even
//! if the exception ends the program: the message's end is unknown, and its packet was acked.

use crate::python::prelude::*;

use crate::transport::{ReadPackets, UnreadPackets};

impl Endpoint {
    /// Reads the held packets of each peer; returns the first error that ends the program.
    pub(super) fn read_held(
        &self,
        py: Python<'_>,
        unread: Vec<(PeerHandle, UnreadPackets)>,
    ) -> (Vec<(PeerHandle, ReadPackets)>, PyResult<()>) {
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

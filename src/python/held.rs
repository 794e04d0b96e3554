//! Packets that the core holds because only the game's code can read the messages in them: yojimbo's framing doesn't say how
//! long those are.
//!
//! Promises: no lock is held while `serialize` runs. A peer whose bytes it refuses is disconnected; when it raises something
//! else, that is the game's mistake and is raised, but the peer is disconnected too: nobody can say where the message ends,
//! and its packet was acked.

use pyo3::prelude::*;

use super::errors::StreamError;
use super::protocol::Protocol;
use crate::netcode::ClientHandle;
use crate::transport::{Read, Unread};

/// Reads the packets of each peer; with the first error that is the game's.
pub(super) fn read_held(
    py: Python<'_>,
    protocol: &Protocol,
    unread: Vec<(ClientHandle, Unread)>,
) -> (Vec<(ClientHandle, Read)>, PyResult<()>) {
    let mut failed = Ok(());
    let read = unread.into_iter().map(|(client, unread)| {
        let mut raised = None;
        let read = unread.read(|number, bytes, start| protocol.extent(py, number, bytes, start, &mut raised));
        if let Some(error) = raised
            && !error.is_instance_of::<StreamError>(py)
            && failed.is_ok()
        {
            failed = Err(error);
        }
        (client, read)
    });
    (read.collect(), failed)
}

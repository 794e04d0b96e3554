//! Worlds of a lockstep game, which players send each other as chunks: no game sees them.

use crate::python::prelude::*;

use crate::driver::files;
use crate::transport::chunks::ChunkEvent;

impl Peer {
    /// Takes worlds out of what came.
    pub(super) fn keep_states(&self, chunks: &mut Vec<(PeerHandle, ChunkEvent)>) -> PyResult<()> {
        let unread = self.part(|part, _| part.take_lockstep_worlds(chunks))?;
        unread.iter().for_each(files::discard);
        Ok(())
    }

    /// The next world that came, and from whom. One in a file that can't be read is left out.
    pub(in crate::python) fn take_state(&self) -> Option<(u8, Vec<u8>)> {
        loop {
            let (player, stored) = self.part(|part, _| part.poll_lockstep_world()).ok()??;
            if let Some(bytes) = files::take(stored) {
                return Some((player, bytes));
            }
        }
    }
}

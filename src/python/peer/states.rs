//! Worlds of a lockstep game, which players send each other as chunks: they are the library's, and no game sees them.

use crate::python::prelude::*;

use super::States;

use crate::driver::files;
use crate::session::SharedLockstep;
use crate::transport::chunks::ChunkEvent;

/// Labels of such chunks begin with it.
const LABEL: &str = "tickwire.lockstep ";

impl Peer {
    /// Takes worlds out of what came.
    pub(super) fn keep_states(&self, chunks: &mut Vec<(PeerHandle, ChunkEvent)>) -> PyResult<()> {
        let is_state = |event: &ChunkEvent| match event {
            ChunkEvent::Received { offer, .. } | ChunkEvent::NotReceived { offer, .. } => {
                offer.label.starts_with(LABEL)
            }
            _ => false,
        };
        if !chunks.iter().any(|(_, event)| is_state(event))
            || !self.part(|part, _| part.core::<SharedLockstep>().is_some())?
        {
            return Ok(());
        }
        for (peer, event) in chunks.extract_if(.., |(_, event)| is_state(event)) {
            let player = lock(&self.players).by_handle.get(&peer).map(|player| player.get().number);
            let (ChunkEvent::Received { stored, .. }, Some(player)) = (event, player) else { continue };
            let mut states = lock(&self.states);
            // The newest of each player's counts.
            let (older, others): (States, States) =
                std::mem::take(&mut *states).into_iter().partition(|(of, _)| *of == player);
            *states = others;
            older.iter().for_each(|(_, stored)| files::discard(stored));
            states.push_back((player, stored));
        }
        Ok(())
    }

    /// The next world that came, and from whom. One in a file that can't be read is left out.
    pub(in crate::python) fn take_state(&self) -> Option<(u8, Vec<u8>)> {
        loop {
            let (player, stored) = lock(&self.states).pop_front()?;
            if let Some(bytes) = files::take(stored) {
                return Some((player, bytes));
            }
        }
    }
}

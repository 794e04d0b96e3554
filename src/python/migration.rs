//! What the players of a game whose host may change tell each other, as `tickwire._migration` uses it.

use crate::python::prelude::*;

use super::peer::Peer;
use crate::session::SharedMigration;
use crate::session::hosting::{MAX_NOTE_BYTES, Notes};

#[pyclass(frozen, module = "tickwire._core")]
#[derive(Debug)]
pub(crate) struct MigrationCore {
    notes: SharedMigration,
}

#[pymethods]
impl MigrationCore {
    #[new]
    fn new(peer: &Bound<'_, Peer>, #[within(1, u32::MAX)] max_bytes: u32) -> PyResult<Self> {
        let (notes, before) = peer.get().part(|part, now| {
            if part.has_core() {
                return (None, None);
            }
            let _ = max_bytes;
            let notes = Arc::new(Mutex::new(Notes::new(part.timeout())));
            let notes = SharedMigration(notes);
            let before = part.set_core(now, Some(Box::new(notes.clone())));
            (Some(notes), before)
        })?;
        drop(before);
        let taken = || value_error("peer must have no other game: a Lockstep, Rollback or Migrating has it");
        Ok(MigrationCore { notes: notes.ok_or_else(taken)? })
    }

    fn set_epoch(&self, epoch: u32) {
        self.notes.with(|notes| notes.set_epoch(epoch));
    }

    fn epoch(&self, peer: &Bound<'_, Peer>) -> PyResult<u32> {
        peer.get().part(|part, _| part.mesh().epoch())
    }

    fn joined<'py>(&self, py: Python<'py>, peer: &Bound<'_, Peer>) -> PyResult<Bound<'py, PyDict>> {
        let members = peer.get().part(|part, _| {
            let members = part.mesh().roster().members.iter();
            members.map(|member| (member.player, member.joined)).collect::<Vec<_>>()
        })?;
        let joined = PyDict::new(py);
        members.into_iter().try_for_each(|(player, order)| joined.set_item(player, order))?;
        Ok(joined)
    }

    fn say(&self, player: u8, note: &[u8]) -> PyResult<()> {
        let said = self.notes.with(|notes| notes.say(player, note));
        let too_long = || format!("note must be at most {MAX_NOTE_BYTES} bytes, not {}", note.len());
        said.then_some(()).ok_or_else(|| value_error(too_long()))
    }

    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let notes = self.notes.with(Notes::take);
        let list = PyList::empty(py);
        for note in notes {
            list.append((
                note.player,
                note.sent_ms,
                note.came_at.as_secs_f64(),
                PyBytes::new(py, &note.bytes),
            ))?;
        }
        Ok(list)
    }

    fn leads(&self, peer: &Bound<'_, Peer>) -> PyResult<bool> {
        peer.get().part(|part, now| part.is_quorum(self.notes.with(|notes| notes.leases(now))))
    }

    properties! {
        dropped: (u64, u64) = self.notes.with(|notes| notes.dropped());
    }
}

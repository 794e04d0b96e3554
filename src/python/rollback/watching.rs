//! Spectators of rollback games, for Python.

use super::*;

use crate::rollback::{self as core, Config, Status};
use crate::session::SharedRollback;

#[pyclass(frozen, generic, module = "tickwire.rollback")]
pub(crate) struct Spectator {
    acts: Acts,
    players: Vec<usize>,
    game: SharedRollback<core::Spectator>,
}

#[pymethods]
impl Spectator {
    #[new]
    fn new(
        peer: Option<Py<Peer>>,
        inputs: &Bound<'_, PyAny>,
        players: &Bound<'_, PyAny>,
        #[within(0, u32::MAX / 2)] frame: u32,
        #[within(0, 60)] buffer: u32,
        #[within(1, 1_000)] rate: u32,
    ) -> PyResult<Self> {
        let kind = InputKind::new(inputs)?;
        let mask = players_of(players)?;
        let mut config = Config::new(1, 0, kind.shape());
        config.players = mask;
        config.rate = rate;
        let spectator = SharedRollback::new(core::Spectator::new(config, frame, buffer));
        if let Some(peer) = peer {
            peer.get().set_core(Box::new(spectator.clone()))?;
        }
        let players = (0..MAX_PLAYERS).filter(|player| mask >> player & 1 == 1).collect();
        let acts = Acts::new(kind, StateKind::Requests, 1, MAX_PLAYERS);
        Ok(Spectator { acts, players, game: spectator })
    }

    fn advance<'py>(&self, py: Python<'py>, #[within(1, 64)] limit: u32) -> PyResult<Bound<'py, PyList>> {
        let frames = self.game.lock().advance(limit);
        let list = PyList::empty(py);
        let mask_of = |mask, player: &usize| mask | 1 << *player;
        for frame in frames {
            let (row, left) = {
                let game = self.game.lock();
                let has_left = |player: &&usize| game.input(**player, frame).1 == Status::Left;
                let left = self.players.iter().filter(has_left).fold(0, mask_of);
                (self.acts.find(py, self.players.iter().map(|player| game.input(*player, frame).0)), left)
            };
            let players = self.players.iter().fold(0, mask_of);
            list.append(self.acts.advance(py, frame, row, [players, 0, left])?)?;
        }
        Ok(list)
    }

    fn read(
        &self,
        #[within(0, MAX_PLAYERS as u8 - 1)] player: u8,
        payload: &[u8],
        now: Option<f64>,
    ) -> PyResult<Option<String>> {
        let read = self.game.lock().read(moment(now), player, payload);
        Ok(read.err().map(|fault| fault.to_string()))
    }

    fn fill<'py>(
        &self,
        py: Python<'py>,
        #[within(0, MAX_PLAYERS as u8 - 1)] player: u8,
        now: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut writer = BitWriter::new();
        let is_filled = self.game.lock().fill(moment(now), player, 64, &mut writer);
        Ok(is_filled.then(|| PyBytes::new(py, writer.as_bytes())))
    }

    fn note_left(&self, #[within(0, MAX_PLAYERS as u8 - 1)] player: u8, now: Option<f64>) {
        self.game.lock().note_left(moment(now), player);
    }

    properties! {
        frame(), behind(): u32 of self.game.lock();
        lost: bool = self.game.lock().is_lost();
        __repr__: String = format!("<Spectator at frame {}>", self.frame());
    }
}

//! Spectators of rollback games, for Python.

use super::*;

use crate::rollback::{self as core, Config, Status};
use crate::session::SharedRollback;

#[pyclass(frozen, generic, module = "tickwire.rollback")]
pub(crate) struct Spectator {
    frames: Frames,
    players: u16,
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
        let frames = Frames::new(inputs)?;
        let (players, _) = seats(None, Some(players), Some(0))?;
        let mut config = Config::new(1, 0, frames.kind.shape.clone());
        config.players = players;
        config.rate = rate;
        let spectator = SharedRollback::new(core::Spectator::new(config, frame, buffer));
        if let Some(peer) = peer {
            peer.get().set_core(Box::new(spectator.clone()))?;
        }
        Ok(Spectator { frames, players, game: spectator })
    }

    fn advance<'py>(&self, py: Python<'py>, #[within(1, 64)] limit: u32) -> PyResult<Bound<'py, PyList>> {
        let frames = self.game.lock().advance(limit);
        let list = PyList::empty(py);
        for frame in frames {
            let (mut inputs, mut left) = (Vec::new(), 0);
            for player in members(self.players) {
                let game = self.game.lock();
                let (input, status) = game.input(player, frame);
                inputs.push(copied(input));
                left |= u16::from(status == Status::Left) << player;
            }
            list.append(self.frames.advance(py, frame, &inputs, [self.players, 0, left])?)?;
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

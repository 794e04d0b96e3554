//! Spectators of rollback games, for Python.

use super::*;

use crate::rollback::{self as core, Config, Status};
use crate::session::SharedRollback;

#[pyclass(frozen, generic, module = "tickwire.rollback")]
pub(crate) struct Spectator {
    frames: Frames,
    players: u16,
    pub(super) game: SharedRollback<core::Spectator>,
}

#[pymethods]
impl Spectator {
    #[new]
    fn new(
        peer: Option<Py<Peer>>,
        inputs: &Object<'_>,
        players: &Object<'_>,
        #[within(0, u32::MAX / 2)] frame: u32,
        #[within(0, 60)] buffer: u32,
        #[within(1, 1_000)] rate: u32,
    ) -> PyResult<Self> {
        let frames = Frames::new(inputs)?;
        let players = mask_of(players)?;
        let mut config = Config::new(1, 0, frames.kind.shape.clone());
        config.players = players;
        config.rate = rate;
        let spectator = SharedRollback::new(core::Spectator::new(config, frame, buffer));
        if let Some(peer) = peer {
            peer.get().set_core(Box::new(spectator.clone()))?;
        }
        Ok(Spectator { frames, players, game: spectator })
    }

    fn advance(&self, py: Python<'_>, #[within(1, 64)] limit: u32) -> PyResult<Vec<Py<PyAny>>> {
        let frames = self.game.lock().advance(limit);
        let advance = |frame| {
            let (mut inputs, mut left) = (Vec::new(), 0);
            for player in members(self.players) {
                let game = self.game.lock();
                let (input, status) = game.input(player, frame);
                inputs.push(copied(input));
                left |= u16::from(status == Status::Left) << player;
            }
            self.frames.advance(py, frame, &inputs, [self.players, 0, left])
        };
        frames.into_iter().map(advance).collect()
    }

    fn fill(
        &self,
        #[within(0, MAX_PLAYERS as u8 - 1)] player: u8,
        #[instant] now: Option<Instant>,
    ) -> Option<Vec<u8>> {
        filled(|writer| self.game.lock().fill(moment(now), player, 64, writer))
    }

    properties! {
        frame(), behind(): u32 of self.game.lock();
        lost: bool = self.game.lock().is_lost();
        __repr__: String = format!("<Spectator at frame {}>", self.frame());
    }
}

exchanges!(Spectator);

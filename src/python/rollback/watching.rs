//! Spectators of rollback games, for Python.

use crate::python::prelude::*;

use super::inputs::{InputKind, InputObjects};
use super::moment;
use super::requests::Advance;
use super::session::seats;
use crate::python::peer::Peer;
use crate::rollback::{self as core, Config, MAX_PLAYERS, Status};
use crate::session::SharedRollback;
use crate::wire::BitWriter;

#[pyclass(frozen, generic, module = "tickwire.rollback")]
pub(crate) struct Spectator {
    kind: InputKind,
    players: Vec<usize>,
    inner: Mutex<(SharedRollback<core::Spectator>, InputObjects)>,
}

#[pymethods]
impl Spectator {
    #[new]
    #[pyo3(signature = (peer, inputs, *, players, frame = 0, buffer = 2, rate = 60))]
    fn new(
        peer: Option<Py<Peer>>,
        inputs: &Bound<'_, PyAny>,
        players: &Bound<'_, PyAny>,
        #[within(0, u32::MAX / 2)] frame: u32,
        #[within(0, 60)] buffer: u32,
        #[within(1, 1_000)] rate: u32,
    ) -> PyResult<Self> {
        let kind = InputKind::new(inputs)?;
        let (mask, _) = seats(None, Some(players), Some(0))?;
        let mut config = Config::new(1, 0, kind.shape());
        config.players = mask;
        config.rate = rate;
        let spectator = SharedRollback::new(core::Spectator::new(config, frame, buffer));
        if let Some(peer) = peer {
            peer.get().part(|part, now| part.set_core(now, Some(Box::new(spectator.clone()))))?;
        }
        let inner = Mutex::new((spectator, InputObjects::new(MAX_PLAYERS)));
        let players = (0..MAX_PLAYERS).filter(|player| mask >> player & 1 == 1).collect();
        Ok(Spectator { kind, players, inner })
    }

    fn advance<'py>(&self, py: Python<'py>, #[within(1, 64)] limit: u32) -> PyResult<Bound<'py, PyList>> {
        let frames = lock(&self.inner).0.lock().advance(limit);
        let list = PyList::empty(py);
        for frame in frames {
            let (mut row, left) = {
                let guard = lock(&self.inner);
                let spectator = guard.0.lock();
                let has_left = |player: &usize| spectator.input(*player, frame).1 == Status::Left;
                let left =
                    self.players.iter().copied().filter(has_left).fold(0, |mask, player| mask | 1 << player);
                let inputs = self.players.iter().map(|player| spectator.input(*player, frame).0);
                (guard.1.find(py, inputs), left)
            };
            // Their class may call back in here.
            let inputs = row.make(py, &self.kind)?;
            let dropped = lock(&self.inner).1.keep(py, row);
            drop(dropped);
            let players = self.players.iter().fold(0, |mask, player| mask | 1 << player);
            list.append(Py::new(py, Advance { frame, inputs, again: false, players, guessed: 0, left })?)?;
        }
        Ok(list)
    }

    fn read(
        &self,
        #[within(0, MAX_PLAYERS as u8 - 1)] player: u8,
        payload: &[u8],
        now: Option<f64>,
    ) -> PyResult<Option<String>> {
        let read = lock(&self.inner).0.lock().read(moment(now), player, payload);
        Ok(read.err().map(|fault| fault.to_string()))
    }

    fn fill<'py>(
        &self,
        py: Python<'py>,
        #[within(0, MAX_PLAYERS as u8 - 1)] player: u8,
        now: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut writer = BitWriter::new();
        let is_filled = lock(&self.inner).0.lock().fill(moment(now), player, 64, &mut writer);
        Ok(is_filled.then(|| PyBytes::new(py, writer.as_bytes())))
    }

    fn note_left(&self, #[within(0, MAX_PLAYERS as u8 - 1)] player: u8, now: Option<f64>) -> PyResult<()> {
        lock(&self.inner).0.lock().note_left(moment(now), player);
        Ok(())
    }

    properties! {
        frame: u32 = lock(&self.inner).0.lock().frame();
        behind: u32 = lock(&self.inner).0.lock().behind();
        lost: bool = lock(&self.inner).0.lock().is_lost();
        __repr__: String = format!("<Spectator at frame {}>", self.frame());
    }
}

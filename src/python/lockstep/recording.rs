//! Recordings to bytes and back.

use crate::python::prelude::*;

use super::core::{TurnTuple, started, turn_tuple};
use crate::lockstep::TurnCheck;
use crate::lockstep::recording::{MAGIC, MAX_RECORD, MatchRecord, MatchSettings, RecordingReader, write};

/// Writes a record after these bytes.
fn written(mut bytes: Vec<u8>, record: &MatchRecord) -> PyResult<Vec<u8>> {
    write(record, &mut bytes).map(|()| bytes).map_err(|error| match record {
        MatchRecord::Snapshot { .. } => {
            value_error(format!("save must return at most {} bytes: {error}", MAX_RECORD - 36))
        }
        _ => value_error(error),
    })
}

#[pyfunction]
pub(crate) fn recording_settings(
    seed: u64,
    hash: u64,
    step_us: u32,
    players: u16,
    names: Vec<u8>,
    about: Vec<u8>,
) -> PyResult<Vec<u8>> {
    let settings = MatchSettings { seed, hash, step_us, players, names, about };
    written(MAGIC.to_vec(), &MatchRecord::Settings(settings))
}

#[pyfunction]
pub(crate) fn recording_turn(turn: TurnTuple, check: Option<(u32, u16)>) -> PyResult<Vec<u8>> {
    let check = check.map(|(crc, draw)| TurnCheck { crc, draw });
    written(Vec::new(), &MatchRecord::Turn(started(turn), check))
}

#[pyfunction]
pub(crate) fn recording_snapshot(turn: i32, random: [u8; 32], state: Vec<u8>) -> PyResult<Vec<u8>> {
    written(Vec::new(), &MatchRecord::Snapshot { turn, random, state })
}

#[pyfunction]
pub(crate) fn read_recording(
    py: Python<'_>,
    data: &Bound<'_, PyBytes>,
) -> PyResult<(Vec<Py<PyAny>>, Option<String>)> {
    let reader = RecordingReader::new(data.as_bytes()).map_err(value_error)?;
    let (mut records, mut error) = (Vec::new(), None);
    for record in reader {
        records.push(match record {
            Err(refusal) => {
                error = Some(refusal.to_string());
                continue;
            }
            Ok(MatchRecord::Settings(it)) => {
                let settings = (it.seed, it.hash, it.step_us, it.players, it.names, it.about);
                ("settings", settings).into_py_any(py)?
            }
            Ok(MatchRecord::Turn(turn, check)) => {
                let check = check.map(|check| (check.crc, check.draw));
                ("turn", (turn_tuple(turn), check)).into_py_any(py)?
            }
            Ok(MatchRecord::Snapshot { turn, random, state }) => {
                ("snapshot", (turn, random, state)).into_py_any(py)?
            }
        });
    }
    Ok((records, error))
}

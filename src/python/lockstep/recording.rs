//! Recordings to bytes and back.

use crate::python::prelude::*;

use super::core::{TurnTuple, started, turn_tuple};
use crate::lockstep::TurnCheck;
use crate::lockstep::recording::{MAGIC, MAX_RECORD, MatchRecord, MatchSettings, RecordingReader, write};

#[pyfunction]
pub(crate) fn recording_settings<'py>(
    py: Python<'py>,
    seed: u64,
    hash: u64,
    step_us: u32,
    players: u16,
    names: Vec<u8>,
    about: Vec<u8>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut bytes = MAGIC.to_vec();
    let settings = MatchSettings { seed, hash, step_us, players, names, about };
    write(&MatchRecord::Settings(settings), &mut bytes).map_err(value_error)?;
    Ok(PyBytes::new(py, &bytes))
}

#[pyfunction]
pub(crate) fn recording_turn<'py>(
    py: Python<'py>,
    turn: TurnTuple,
    check: Option<(u32, u16)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut bytes = Vec::new();
    let check = check.map(|(crc, draw)| TurnCheck { crc, draw });
    write(&MatchRecord::Turn(started(turn), check), &mut bytes).map_err(value_error)?;
    Ok(PyBytes::new(py, &bytes))
}

#[pyfunction]
pub(crate) fn recording_snapshot<'py>(
    py: Python<'py>,
    turn: i32,
    random: Vec<u8>,
    state: Vec<u8>,
) -> PyResult<Bound<'py, PyBytes>> {
    let random = random.try_into().map_err(|_| PyValueError::new_err("random must be 32 bytes"))?;
    let mut bytes = Vec::new();
    write(&MatchRecord::Snapshot { turn, random, state }, &mut bytes).map_err(|error| {
        PyValueError::new_err(format!("save must return at most {} bytes: {error}", MAX_RECORD - 36))
    })?;
    Ok(PyBytes::new(py, &bytes))
}

#[pyfunction]
pub(crate) fn read_recording<'py>(
    data: &Bound<'py, PyBytes>,
) -> PyResult<(Bound<'py, PyList>, Option<String>)> {
    let py = data.py();
    let reader = RecordingReader::new(data.as_bytes()).map_err(value_error)?;
    let (records, mut error) = (PyList::empty(py), None);
    for record in reader {
        match record {
            Err(refusal) => error = Some(refusal.to_string()),
            Ok(MatchRecord::Settings(it)) => {
                let (names, about) = (PyBytes::new(py, &it.names), PyBytes::new(py, &it.about));
                records.append(("settings", (it.seed, it.hash, it.step_us, it.players, names, about)))?;
            }
            Ok(MatchRecord::Turn(turn, check)) => {
                let turn: Bound<'_, PyTuple> = turn_tuple(py, &turn)?;
                records.append(("turn", (turn, check.map(|check| (check.crc, check.draw)))))?;
            }
            Ok(MatchRecord::Snapshot { turn, random, state }) => {
                records.append(("snapshot", (turn, PyBytes::new(py, &random), PyBytes::new(py, &state))))?;
            }
        }
    }
    Ok((records, error))
}

//! Arguments that games, their spectators and the sync test share.

use crate::python::prelude::*;
use crate::rollback::MAX_PLAYERS;

/// A bit for each of `players`: their count, or their numbers.
pub(super) fn mask_of(players: &Object<'_>) -> PyResult<u16> {
    let most = MAX_PLAYERS as u8;
    if players.is_instance_of::<PyInt>() {
        return Ok(u16::MAX >> (most - bounded("players", players, 1, most)?));
    }
    let numbers: Vec<Object<'_>> = argument("players", players, "an int or numbers of players")?;
    let mut mask = 0u16;
    for number in &numbers {
        let number = bounded("players[]", number, 0, most - 1)?;
        if mask >> number & 1 == 1 {
            refuse!(PyValueError, "players must contain each number once, not {number} twice");
        }
        mask |= 1 << number;
    }
    if mask == 0 {
        refuse!(PyValueError, "players must contain 1 to {most} numbers, not 0");
    }
    Ok(mask)
}

/// The caller's time, or the clock's.
pub(super) fn moment(now: Option<Instant>) -> Instant {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    let elapsed = || ORIGIN.get_or_init(std::time::Instant::now).elapsed();
    now.unwrap_or_else(|| Instant::from_nanos(elapsed().as_nanos() as u64))
}

/// The players of a mask.
pub(super) fn members(mask: u16) -> impl Iterator<Item = usize> {
    (0..MAX_PLAYERS).filter(move |player| mask >> player & 1 == 1)
}

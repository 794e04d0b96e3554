//! Arguments and methods that games, their spectators and the sync test share.

use super::*;

use crate::rollback::{MAX_DELAY, MAX_WINDOW};

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

#[record(eq, module = "tickwire.rollback")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    #[within(0, MAX_DELAY)]
    pub(super) delay: u32,
    #[within(1, MAX_WINDOW)]
    pub(super) window: u32,
    #[within(1, 1_000)]
    pub(super) rate: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Timing { delay: 2, window: 8, rate: 60 }
    }
}

/// Makes the methods by which a game of one's own connections exchanges packets.
macro_rules! exchanges {
    ($Class:ident) => {
        #[pymethods]
        impl $Class {
            fn read(
                &self,
                #[within(0, MAX_PLAYERS as u8 - 1)] player: u8,
                payload: &[u8],
                #[instant] now: Option<Instant>,
            ) -> Option<String> {
                let read = self.game.lock().read(moment(now), player, payload);
                read.err().map(|fault| fault.to_string())
            }

            fn note_left(
                &self,
                #[within(0, MAX_PLAYERS as u8 - 1)] player: u8,
                #[instant] now: Option<Instant>,
            ) {
                self.game.lock().note_left(moment(now), player);
            }
        }
    };
}

pub(super) use exchanges;

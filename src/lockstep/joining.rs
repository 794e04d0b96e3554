//! What is said between a newcomer, or a player whose world is to be healed, and the player who gives it the world.
//!
//! Layout: `STANDARD.md` of the framing, under "Lockstep".

use super::config::{MAX_PLAYERS, TurnNumber};
use super::entry::TurnEntry;
use super::fault::Fault;
use crate::wire::{BitReader, BitSink, BitWriter};

/// Turns of a word, at most.
const MAX_GROUPS: usize = 31;
/// Bits of a word without its turns.
const HEAD_BITS: usize = 2 + 16 + 16 + 16 + 32 + 16 + 1 + 32 + 5 + 5;
/// Bits of a turn without its entries.
const GROUP_BITS: usize = 16 + 5;

/// Why someone isn't let into a running game, or gets no world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinRefusal {
    /// The game lets nobody in once it runs.
    Closed = 0,
    /// The world can't be sent: the protocol has no chunks, the newcomer takes none so large, or saving it failed.
    Unsent = 1,
    /// It took too long to load the world or to catch up.
    TooSlow = 2,
    /// It asked for the world again and again.
    TooOften = 3,
    /// The world that came isn't the others' world.
    OtherWorld = 4,
    /// The world that came can't be loaded.
    Unloadable = 5,
}

impl JoinRefusal {
    pub const ALL: [JoinRefusal; 6] = {
        use JoinRefusal::*;
        [Closed, Unsent, TooSlow, TooOften, OtherWorld, Unloadable]
    };

    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// A place in the turns that are sent: all turns up to this one, and this many entries of the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TurnPlace {
    pub turn: TurnNumber,
    pub entries: u8,
}

/// Some entries of a turn, of the players of a mask in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RanTurn {
    pub players: u16,
    pub entries: Vec<TurnEntry>,
}

impl RanTurn {
    /// Whether the entries of all its players are there.
    pub fn is_whole(&self) -> bool {
        self.entries.len() == self.players.count_ones() as usize
    }
}

/// How far a newcomer has come with the world that it loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadState {
    /// The place up to which turns came.
    pub place: TurnPlace,
    /// The newest turn that ran.
    pub ran: TurnNumber,
    /// Whether a check of its world agreed with its helper's.
    pub agreed: bool,
}

/// What is said of a joining or a healing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinWord {
    Ask { attempt: u16, clock: u16, heals: bool, have: Option<LoadState> },
    Refuse { attempt: u16, reason: JoinRefusal },
    Serve(ServedTurns),
}

/// Turns that ran, for a newcomer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedTurns {
    pub attempt: u16,
    pub clock: u16,
    pub held_ms: u16,
    pub newest: TurnNumber,
    pub due_ms: i16,
    /// From which place on, and the turns; the first one's entries begin there.
    pub turns: Option<(TurnPlace, Vec<RanTurn>)>,
}

impl ServedTurns {
    /// Takes what fits of turns, from a place on. Gives the place behind what was taken.
    pub(super) fn take<'a>(
        &mut self,
        from: TurnPlace,
        turns: impl Iterator<Item = &'a RanTurn>,
        room: usize,
    ) -> TurnPlace {
        let mut room = room.saturating_sub(HEAD_BITS);
        let (mut at, mut groups) = (from, Vec::new());
        for turn in turns {
            if groups.len() == MAX_GROUPS || room < GROUP_BITS {
                break;
            }
            room -= GROUP_BITS;
            let mut group = RanTurn { players: turn.players, entries: Vec::new() };
            for entry in turn.entries.iter().skip(at.entries.into()) {
                if entry.bits() > room {
                    break;
                }
                room -= entry.bits();
                group.entries.push(entry.clone());
                at.entries += 1;
            }
            let is_whole = usize::from(at.entries) == turn.entries.len();
            if !group.entries.is_empty() {
                groups.push(group);
            }
            if !is_whole {
                break;
            }
            at = TurnPlace { turn: at.turn + 1, entries: 0 };
        }
        self.turns = (!groups.is_empty()).then_some((from, groups));
        at
    }
}

fn write_turn(turn: TurnNumber, writer: &mut BitWriter) {
    writer.bits(u64::from(turn as u32), 32);
}

fn read_turn(r: &mut BitReader<'_>) -> Result<TurnNumber, Fault> {
    let turn = r.bits(32)? as u32 as TurnNumber;
    // None is near the ends: nothing that is reckoned with them wraps.
    if turn.unsigned_abs() > 1 << 30 {
        return Err(Fault::Ahead { turn });
    }
    Ok(turn)
}

fn read_place(r: &mut BitReader<'_>) -> Result<TurnPlace, Fault> {
    Ok(TurnPlace { turn: read_turn(r)?, entries: r.bits(5)? as u8 })
}

impl JoinWord {
    /// Bits that it takes, at most.
    pub(super) fn bits(&self) -> usize {
        let JoinWord::Serve(ServedTurns { turns: Some((_, groups)), .. }) = self else { return HEAD_BITS };
        let of = |group: &RanTurn| GROUP_BITS + group.entries.iter().map(TurnEntry::bits).sum::<usize>();
        HEAD_BITS + groups.iter().map(of).sum::<usize>()
    }

    pub(super) fn write(&self, writer: &mut BitWriter) {
        match self {
            JoinWord::Ask { attempt, clock, heals, have } => {
                writer.bits(0, 2);
                writer.bits(u64::from(*attempt), 16);
                writer.bits(u64::from(*clock), 16);
                writer.bool(*heals);
                writer.bool(have.is_some());
                if let Some(LoadState { place, ran, agreed }) = have {
                    write_turn(place.turn, writer);
                    writer.bits(u64::from(place.entries), 5);
                    write_turn(*ran, writer);
                    writer.bool(*agreed);
                }
            }
            JoinWord::Refuse { attempt, reason } => {
                writer.bits(1, 2);
                writer.bits(u64::from(*attempt), 16);
                writer.bits(*reason as u64, 3);
            }
            JoinWord::Serve(served) => {
                writer.bits(2, 2);
                writer.bits(u64::from(served.attempt), 16);
                writer.bits(u64::from(served.clock), 16);
                writer.bits(u64::from(served.held_ms), 16);
                write_turn(served.newest, writer);
                writer.bits(u64::from(served.due_ms as u16), 16);
                writer.bool(served.turns.is_some());
                let Some((place, groups)) = &served.turns else { return };
                write_turn(place.turn, writer);
                writer.bits(u64::from(place.entries), 5);
                writer.bits(groups.len() as u64, 5);
                for group in groups {
                    writer.bits(u64::from(group.players), 16);
                    writer.bits(group.entries.len() as u64, 5);
                    group.entries.iter().for_each(|entry| entry.write(writer));
                }
            }
        }
    }

    pub(super) fn read(r: &mut BitReader<'_>) -> Result<Self, Fault> {
        let (kind, attempt) = (r.bits(2)?, r.bits(16)? as u16);
        match kind {
            0 => {
                let (clock, heals) = (r.bits(16)? as u16, r.bool()?);
                let mut have = None;
                if r.bool()? {
                    have = Some(LoadState { place: read_place(r)?, ran: read_turn(r)?, agreed: r.bool()? });
                }
                Ok(JoinWord::Ask { attempt, clock, heals, have })
            }
            1 => {
                let reason = JoinRefusal::from_number(r.bits(3)? as u8).ok_or(Fault::Control)?;
                Ok(JoinWord::Refuse { attempt, reason })
            }
            2 => {
                let (clock, held_ms) = (r.bits(16)? as u16, r.bits(16)? as u16);
                let (newest, due_ms) = (read_turn(r)?, r.bits(16)? as u16 as i16);
                let mut served =
                    ServedTurns { attempt, clock, held_ms, newest, due_ms, ..ServedTurns::default() };
                if r.bool()? {
                    let place = read_place(r)?;
                    let mut groups = Vec::new();
                    for _ in 0..r.bits(5)? {
                        let players = r.bits(16)? as u16;
                        let count = r.bits(5)? as usize;
                        // Entries of nobody would fill no turn, and be kept forever.
                        if count > players.count_ones() as usize {
                            return Err(Fault::Control);
                        }
                        let entries: Result<Vec<TurnEntry>, Fault> =
                            (0..count).map(|_| TurnEntry::read(r)).collect();
                        groups.push(RanTurn { players, entries: entries? });
                    }
                    served.turns = Some((place, groups));
                }
                Ok(JoinWord::Serve(served))
            }
            _ => Err(Fault::Control),
        }
    }
}

/// What every state begins with; the last byte is the version.
const STATE_MAGIC: [u8; 5] = *b"TWST\x01";
/// Bytes of what stands in front of the game's own in a state that is sent.
pub const STATE_HEAD: usize = 5 + 2 + 4 + 4 + 1 + 1 + 1 + 1 + 1 + 2 + MAX_PLAYERS * 8;

/// What goes with a world: where it stands in the turns, and who takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateHead {
    pub attempt: u16,
    /// The world is the one after this turn.
    pub turn: TurnNumber,
    /// Of that turn; 0 where it wasn't checked.
    pub crc: u32,
    pub decider: u8,
    pub steps: u8,
    pub delay: u8,
    pub speed: u8,
    pub paused: bool,
    /// All that ever took part, or will.
    pub players: u16,
    /// From which turn on each is out and counts.
    pub out: [Option<TurnNumber>; MAX_PLAYERS],
    pub joined: [TurnNumber; MAX_PLAYERS],
}

impl StateHead {
    /// What is sent in front of the world.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(STATE_HEAD);
        bytes.extend_from_slice(&STATE_MAGIC);
        bytes.extend_from_slice(&self.attempt.to_le_bytes());
        bytes.extend_from_slice(&self.turn.to_le_bytes());
        bytes.extend_from_slice(&self.crc.to_le_bytes());
        bytes.extend_from_slice(&[self.decider, self.steps, self.delay, self.speed, u8::from(self.paused)]);
        bytes.extend_from_slice(&self.players.to_le_bytes());
        for (out, joined) in self.out.iter().zip(&self.joined) {
            bytes.extend_from_slice(&out.unwrap_or(TurnNumber::MAX).to_le_bytes());
            bytes.extend_from_slice(&joined.to_le_bytes());
        }
        bytes
    }

    /// Reads what [`StateHead::write`] wrote; None for anything else.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..STATE_HEAD)?.strip_prefix(&STATE_MAGIC)?;
        let u16_at = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let i32_at = |at: usize| Some(i32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let near = |turn: &TurnNumber| turn.unsigned_abs() < 1 << 30;
        let (turn, rest) = (i32_at(2).filter(near)?, bytes.get(10..15)?);
        let (mut out, mut joined) = ([None; MAX_PLAYERS], [0; MAX_PLAYERS]);
        for player in 0..MAX_PLAYERS {
            out[player] = i32_at(17 + player * 8).filter(|out| *out != TurnNumber::MAX);
            joined[player] = i32_at(17 + player * 8 + 4)?;
        }
        let head = StateHead {
            attempt: u16_at(0)?,
            turn,
            crc: i32_at(6)? as u32,
            decider: rest[0],
            steps: rest[1],
            delay: rest[2],
            speed: rest[3],
            paused: rest[4] == 1,
            players: u16_at(15)?,
            out,
            joined,
        };
        let fits = head.players != 0
            && (1..=super::config::MAX_STEPS).contains(&head.steps)
            && (1..=super::config::MAX_DELAY).contains(&head.delay)
            && (1..=super::config::MAX_SPEED).contains(&head.speed)
            && usize::from(head.decider) < MAX_PLAYERS
            && head.players >> head.decider & 1 == 1
            && head.out.iter().flatten().chain(&head.joined).all(near);
        fits.then_some(head)
    }
}

const _: () = assert!(MAX_PLAYERS < 32, "counts fit their bits");

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<JoinWord, Fault> {
        JoinWord::read(&mut BitReader::new(bytes))
    }

    #[test]
    fn words_come_back_and_garbage_is_a_fault_or_a_word() {
        let entry = TurnEntry { commands: vec![b"go"[..].into()], ..TurnEntry::default() };
        let turns = [
            RanTurn { players: 0b11, entries: vec![entry.clone(), entry.clone()] },
            RanTurn { players: 0b1, entries: vec![entry] },
        ];
        let mut served =
            ServedTurns { attempt: 9, clock: 8, newest: 70_000, due_ms: -5, ..ServedTurns::default() };
        let from = TurnPlace { turn: 69_997, entries: 1 };
        assert_eq!(served.take(from, turns.iter(), 8000), TurnPlace { turn: 69_999, entries: 0 });
        let have = Some(LoadState { place: from, ran: 4, agreed: true });
        let words = [
            JoinWord::Serve(served),
            JoinWord::Ask { attempt: 3, clock: 2, heals: true, have },
            JoinWord::Refuse { attempt: 3, reason: JoinRefusal::TooSlow },
        ];
        for word in words {
            let mut writer = BitWriter::new();
            word.write(&mut writer);
            assert_eq!(read(writer.as_bytes()), Ok(word));
            for end in 0..writer.as_bytes().len() - 1 {
                assert!(read(&writer.as_bytes()[..end]).is_err(), "cut at {end}");
            }
        }
        let mut random = crate::lockstep::SharedRandom::seeded(1);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.below(90)).map(|_| random.next_u64() as u8).collect();
            let _ = read(&bytes);
            assert!(StateHead::read(&bytes).is_none());
        }
    }

    #[test]
    fn entries_of_nobody_are_a_fault() {
        for (players, count) in [(0, 1), (0b100, 2), (0, 16)] {
            let turn = RanTurn { players, entries: vec![TurnEntry::default(); count] };
            let turns = Some((TurnPlace { turn: 3, entries: 0 }, vec![turn; 31]));
            let mut writer = BitWriter::new();
            JoinWord::Serve(ServedTurns { turns, ..ServedTurns::default() }).write(&mut writer);
            assert_eq!(read(writer.as_bytes()), Err(Fault::Control));
        }
    }

    #[test]
    fn what_fits_is_taken_entry_by_entry() {
        let entry = |byte: u8| TurnEntry { commands: vec![vec![byte; 60].into()], ..TurnEntry::default() };
        let turns: Vec<RanTurn> = (0..4)
            .map(|turn| RanTurn { players: 0b111, entries: (0..3).map(|it| entry(turn * 3 + it)).collect() })
            .collect();
        let (mut place, mut found) = (TurnPlace { turn: -1, entries: 0 }, Vec::new());
        while place.turn < 3 {
            let mut served = ServedTurns::default();
            let after = served.take(place, turns[(place.turn + 1) as usize..].iter(), 1500);
            let (_, groups) = served.turns.unwrap();
            found.extend(groups.into_iter().flat_map(|group| group.entries));
            assert!(after > place);
            place = after;
        }
        assert_eq!(found, (0..12).map(entry).collect::<Vec<_>>());
    }

    #[test]
    fn heads_of_states_come_back_and_forged_ones_do_not() {
        let mut head = StateHead {
            attempt: 7,
            turn: 900,
            crc: 5,
            decider: 1,
            steps: 3,
            delay: 2,
            speed: 10,
            paused: true,
            players: 0b110,
            out: [None; MAX_PLAYERS],
            joined: [0; MAX_PLAYERS],
        };
        (head.out[2], head.joined[1]) = (Some(44), 800);
        let bytes = head.write();
        assert_eq!(bytes.len(), STATE_HEAD);
        assert_eq!(StateHead::read(&bytes).as_ref(), Some(&head));
        let changes: [fn(&mut StateHead); 4] = [
            |it: &mut StateHead| it.decider = 0,
            |it| it.steps = 0,
            |it| it.turn = 1 << 30,
            |it| it.speed = 65,
        ];
        for change in changes {
            let mut forged = head.clone();
            change(&mut forged);
            assert_eq!(StateHead::read(&forged.write()), None);
        }
        assert_eq!(StateHead::read(&bytes[..STATE_HEAD - 1]), None);
    }
}

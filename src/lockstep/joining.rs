//! What is said between a newcomer, or a player whose world is to be healed, and the player who gives it the world.
//!
//! Layout: `STANDARD.md` of the framing, under "Lockstep".

use super::config::{MAX_PLAYERS, TurnNumber};
use super::entry::TurnEntry;
use crate::wire::packet::{Array, Counted, Low, Part, at_most, packet, to_bytes};
use crate::wire::{BitReader, BitSink, ReadError};

/// Turns of a word, at most.
const MAX_GROUPS: usize = 31;
/// Bits of a word without its turns.
const HEAD_BITS: usize = 2 + 16 + 16 + 16 + 32 + 16 + 1 + 32 + 5 + 5;
/// Bits of a turn without its entries.
const GROUP_BITS: usize = 16 + 5;

packet! {
    /// Why someone isn't let into a running game, or gets no world.
    pub enum JoinRefusal: Low<u8, 3> {
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
}

/// A turn: none is near the ends, so nothing that is reckoned with it wraps.
pub struct Turn;

impl Part for Turn {
    type Value = TurnNumber;

    fn write<S: BitSink>(value: &TurnNumber, sink: &mut S) {
        i32::write(value, sink);
    }

    fn read(reader: &mut BitReader<'_>) -> Result<TurnNumber, ReadError> {
        let turn = i32::read(reader)?;
        at_most(turn.unsigned_abs().into(), (1 << 30) - 1).map(|_| turn)
    }
}

packet! {
    /// A place in the turns that are sent: all turns up to this one, and this many entries of the next.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub struct TurnPlace {
        pub turn: Turn,
        pub entries: Low<u8, 5>,
    }
}

packet! {
    /// Some entries of a turn, of the players of a mask in order.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct RanTurn {
        pub players: u16,
        pub entries: Counted<TurnEntry, 5, MAX_PLAYERS>,
    }
}

impl RanTurn {
    /// Whether the entries of all its players are there.
    pub fn is_whole(&self) -> bool {
        self.entries.len() == self.players.count_ones() as usize
    }
}

packet! {
    /// How far a newcomer has come with the world that it loaded.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LoadState {
        /// The place up to which turns came.
        pub place: TurnPlace,
        /// The newest turn that ran.
        pub ran: Turn,
        /// Whether a check of its world agreed with its helper's.
        pub agreed: bool,
    }
}

packet! {
    /// What is said of a joining or a healing.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum JoinWord as Low<u8, 2> {
        0 => Ask { attempt: u16, clock: u16, heals: bool, have: Option<LoadState> },
        1 => Refuse { attempt: u16, reason: JoinRefusal },
        2 => Serve(served: ServedTurns),
    }
}

packet! {
    /// Turns that ran, for a newcomer.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct ServedTurns {
        pub attempt: u16,
        pub clock: u16,
        pub held_ms: u16,
        pub newest: Turn,
        pub due_ms: i16,
        /// From which place on, and the turns; the first one's entries begin there.
        pub turns: Option<(TurnPlace, Counted<RanTurn, 5, MAX_GROUPS>)>,
    }
}

impl ServedTurns {
    /// Whether all entries are of somebody: others would fill no turn, and be kept forever.
    pub(super) fn is_fillable(&self) -> bool {
        let mut groups = self.turns.iter().flat_map(|(_, groups)| groups);
        groups.all(|group| group.entries.len() <= group.players.count_ones() as usize)
    }

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

impl JoinWord {
    /// Bits that it takes.
    pub(super) fn bits(&self) -> usize {
        <Self as Part>::bits(self)
    }
}

/// What every state begins with; the last byte is the version.
const STATE_MAGIC: [u8; 5] = *b"TWST\x02";
/// Bytes of what stands in front of the game's own in a state that is sent.
pub const STATE_HEAD: usize = 5 + (16 + 32 + 32 + 4 * 8 + 1 + 16 + MAX_PLAYERS * 65_usize).div_ceil(8);

packet! {
    /// What goes with a world: where it stands in the turns, and who takes part.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct StateHead {
        pub attempt: u16,
        /// The world is the one after this turn.
        pub turn: Turn,
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
        pub out: Array<Option<Turn>, MAX_PLAYERS>,
        pub joined: Array<Turn, MAX_PLAYERS>,
    }
}

impl StateHead {
    /// What is sent in front of the world.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = STATE_MAGIC.to_vec();
        bytes.extend(to_bytes::<StateHead>(self));
        bytes.resize(STATE_HEAD, 0);
        bytes
    }

    /// Reads what [`StateHead::write`] wrote; None for anything else.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..STATE_HEAD)?.strip_prefix(&STATE_MAGIC)?;
        let head = <StateHead as Part>::read(&mut BitReader::new(bytes)).ok()?;
        let fits = head.players != 0
            && (1..=super::config::MAX_STEPS).contains(&head.steps)
            && (1..=super::config::MAX_DELAY).contains(&head.delay)
            && (1..=super::config::MAX_SPEED).contains(&head.speed)
            && usize::from(head.decider) < MAX_PLAYERS
            && head.players >> head.decider & 1 == 1;
        fits.then_some(head)
    }
}

const _: () = assert!(MAX_PLAYERS < 32, "counts fit their bits");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lockstep::fault::Fault;
    use crate::lockstep::packet::{More, Payload};
    use crate::wire::packet::from_bytes;

    fn read(bytes: &[u8]) -> Result<JoinWord, ReadError> {
        from_bytes::<JoinWord>(bytes)
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
            let bytes = to_bytes::<JoinWord>(&word);
            assert_eq!(read(&bytes), Ok(word));
            for end in 0..bytes.len() {
                assert!(read(&bytes[..end]).is_err(), "cut at {end}");
            }
        }
        let mut random = crate::lockstep::SharedRandom::seeded(1);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.below(90)).map(|_| random.next_u64() as u8).collect();
            let _ = read(&bytes);
            let mut head = STATE_MAGIC.to_vec();
            head.extend(bytes.iter().cycle().take(if bytes.is_empty() { 0 } else { STATE_HEAD }));
            let head = StateHead::read(&head);
            assert!(head.is_none_or(|head| head.players >> head.decider & 1 == 1 && head.steps > 0));
        }
    }

    #[test]
    fn entries_of_nobody_are_a_fault() {
        for (players, count) in [(0, 1), (0b100, 2), (0, 16)] {
            let turn = RanTurn { players, entries: vec![TurnEntry::default(); count] };
            let turns = Some((TurnPlace { turn: 3, entries: 0 }, vec![turn; 31]));
            let joining = Some(JoinWord::Serve(ServedTurns { turns, ..ServedTurns::default() }));
            let payload = Payload::of(More { joining, ..More::default() });
            assert_eq!(Payload::parse(&to_bytes::<Payload>(&payload)), Err(Fault::Unfillable));
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

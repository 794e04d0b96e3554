//! What the players of a hosted game tell each other about its hosts: notes, and who still hears the host.
//!
//! Of a note the newest counts: it is sent until the other side has acked it, and a newer one takes its place. Notes are of an
//! epoch, which counts hosts: those of another are dropped and counted, and so is what is said of them. Each packet also has a
//! stamp of its sender's clock, and the newest stamp that came from the other side. From these a host knows until when the
//! others can't have given it up: they wait for a timeout of silence first, counted from a packet that it sent no earlier.

use crate::mesh::{MAX_PLAYERS, Players, bit};
use crate::time::{Duration, Instant};
use crate::wire::{BitSink, BitWriter};

/// Bytes of a note.
pub const MAX_NOTE_BYTES: usize = 512;

/// How often something is said where nothing is new: often enough for a timeout of a second.
const SAY_INTERVAL: Duration = Duration::from_millis(100);

/// Bytes in front of a note: epoch, stamp, echo, acked number, number.
const HEAD_BYTES: usize = 4 + 4 + 4 + 2 + 2;

/// Milliseconds that a stamp may be old: what is older, or to come, was never sent here.
const MAX_ECHO_AGE: u32 = 120_000;

/// A note that came: who says it, the sender's clock when it was sent, ours when it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub player: u8,
    pub sent_ms: u32,
    pub came_at: Instant,
    pub bytes: Vec<u8>,
}

/// What is between this player and another one.
#[derive(Clone, Debug, Default)]
struct Other {
    /// The note to send, the number of it, and whether the other side has it.
    note: Vec<u8>,
    number: u16,
    is_acked: bool,
    /// The number of the newest note that came; 0: none did in this epoch.
    came: u16,
    /// The newest stamp that came, and the newest of ours that the other side says it has.
    stamp: Option<u32>,
    heard: Option<Instant>,
    due: Instant,
}

/// The notes of one player to all others and back.
#[derive(Clone, Debug)]
pub struct Notes {
    /// The silence after which players are gone.
    timeout: Duration,
    epoch: u32,
    others: [Other; MAX_PLAYERS],
    fresh: Vec<Note>,
    stale: u64,
    early: u64,
}

/// Milliseconds of a clock, never 0: that stands for none.
fn milliseconds(now: Instant) -> u32 {
    // Wraps after 49 days.
    ((now.as_nanos() / 1_000_000) as u32).max(1)
}

impl Notes {
    /// Of a player whose links end after this silence.
    pub fn new(timeout: Duration) -> Self {
        Notes { timeout, epoch: 0, others: Default::default(), fresh: Vec::new(), stale: 0, early: 0 }
    }

    /// Another host: all notes are over.
    pub fn set_epoch(&mut self, epoch: u32) {
        if epoch == self.epoch {
            return;
        }
        self.epoch = epoch;
        self.fresh.clear();
        for other in &mut self.others {
            (other.note, other.is_acked, other.came) = (Vec::new(), true, 0);
            other.due = Instant::ZERO;
        }
    }

    /// Has a player be told this, in place of what was said before. False: it is too long.
    pub fn say(&mut self, player: u8, note: &[u8]) -> bool {
        let Some(other) = self.others.get_mut(usize::from(player)) else { return false };
        if note.len() > MAX_NOTE_BYTES {
            return false;
        }
        if other.number == 0 || other.note != note {
            other.note = note.to_vec();
            other.number = other.number.checked_add(1).unwrap_or(1);
            (other.is_acked, other.due) = (false, Instant::ZERO);
        }
        true
    }

    /// Whether these players have what was said to them last.
    pub fn are_acked(&self, players: Players) -> bool {
        let asked = self.others.iter().zip(0_u8..).filter(|(_, player)| players & bit(*player) != 0);
        asked.fold(true, |all, (other, _)| all && other.is_acked)
    }

    /// The notes that came since the last time: of each player the newest.
    pub fn take(&mut self) -> Vec<Note> {
        core::mem::take(&mut self.fresh)
    }

    /// The players who can't have given this one up yet, as they can't have been without a word of it for long enough.
    pub fn leases(&self, now: Instant) -> Players {
        // Clocks differ a little in how fast they go.
        let lease = self.timeout - self.timeout / 20;
        let others = self.others.iter().zip(0_u8..);
        let held = others.filter(|(other, _)| other.heard.is_some_and(|heard| now < heard + lease));
        held.fold(0, |all, (_, player)| all | bit(player))
    }

    /// Notes of hosts of earlier and of later epochs, which were dropped.
    pub fn dropped(&self) -> (u64, u64) {
        (self.stale, self.early)
    }

    /// Reads a player's packet. None if it is none.
    pub fn read(&mut self, now: Instant, player: u8, payload: &[u8]) -> Option<()> {
        let (head, note) = payload.split_at_checked(HEAD_BYTES)?;
        let word = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
        let half = |at: usize| Some(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?));
        let (epoch, stamp, echo) = (word(0)?, word(4)?, word(8)?);
        let (acked, number) = (half(12)?, half(14)?);
        if note.len() > MAX_NOTE_BYTES || stamp == 0 || number == 0 && !note.is_empty() {
            return None;
        }
        let other = self.others.get_mut(usize::from(player))?;
        let age = milliseconds(now).wrapping_sub(echo);
        if echo != 0 && age < MAX_ECHO_AGE {
            let nanos = now.as_nanos().saturating_sub(u64::from(age) * 1_000_000);
            other.heard = other.heard.max(Some(Instant::from_nanos(nanos)));
        }
        if other.stamp.is_none_or(|known| stamp.wrapping_sub(known) < 1 << 31) {
            other.stamp = Some(stamp);
        }
        if epoch != self.epoch {
            *if epoch < self.epoch { &mut self.stale } else { &mut self.early } += 1;
            return Some(());
        }
        other.is_acked |= acked == other.number;
        if number == 0 || other.came != 0 && number.wrapping_sub(other.came) as i16 <= 0 {
            if number != 0 {
                // The ack of it was lost.
                other.due = Instant::ZERO;
            }
            return Some(());
        }
        (other.came, other.due) = (number, Instant::ZERO);
        self.fresh.retain(|note| note.player != player);
        self.fresh.push(Note { player, sent_ms: stamp, came_at: now, bytes: note.to_vec() });
        Some(())
    }

    /// Writes a packet for a player, if one is due.
    pub fn fill(&mut self, now: Instant, player: u8, bits: usize, writer: &mut BitWriter) -> bool {
        let Some(other) = self.others.get_mut(usize::from(player)) else { return false };
        if now < other.due {
            return false;
        }
        let is_known = other.is_acked || other.number == 0 || other.note.is_empty();
        let note: &[u8] = if is_known { &[] } else { &other.note };
        if bits < 8 * (HEAD_BYTES + note.len()) {
            return false;
        }
        other.due = now + SAY_INTERVAL;
        let number = if is_known { 0 } else { other.number };
        writer.bits(self.epoch.into(), 32);
        writer.bits(milliseconds(now).into(), 32);
        writer.bits(other.stamp.unwrap_or(0).into(), 32);
        writer.bits(other.came.into(), 16);
        writer.bits(number.into(), 16);
        note.iter().for_each(|byte| writer.bits(u64::from(*byte), 8));
        true
    }

    pub fn note_left(&mut self, player: u8) {
        if let Some(other) = self.others.get_mut(usize::from(player)) {
            *other = Other::default();
        }
        self.fresh.retain(|note| note.player != player);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn notes() -> Notes {
        let mut notes = Notes::new(Duration::from_secs(1));
        notes.set_epoch(1);
        notes
    }

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn pass(now: Instant, from: (&mut Notes, u8), to: (&mut Notes, u8)) -> bool {
        let mut writer = BitWriter::new();
        let said = from.0.fill(now, to.1, 8000, &mut writer);
        if said {
            assert!(to.0.read(now, from.1, &writer.into_bytes()).is_some());
        }
        said
    }

    #[test]
    fn the_newest_note_is_said_until_it_is_acked() {
        let (mut ann, mut bob) = (notes(), notes());
        assert!(ann.say(1, b"old") && ann.say(1, b"new"));
        let mut lost = BitWriter::new();
        assert!(ann.fill(at(10), 1, 8000, &mut lost));
        assert!(!ann.fill(at(20), 1, 8000, &mut lost), "it waits before it says so again");
        assert!(pass(at(120), (&mut ann, 0), (&mut bob, 1)));
        assert_eq!(bob.take().iter().map(|note| &note.bytes[..]).collect::<Vec<_>>(), [b"new"]);
        // The ack comes at once; then each is silent for a while.
        assert!(pass(at(121), (&mut bob, 1), (&mut ann, 0)));
        assert!(!pass(at(122), (&mut ann, 0), (&mut bob, 1)));
        let mut next = BitWriter::new();
        assert!(ann.fill(at(230), 1, 8000, &mut next));
        assert_eq!(next.into_bytes().len(), HEAD_BYTES, "it was acked");
    }

    #[test]
    fn what_is_of_another_epoch_is_dropped_and_counted() {
        let (mut ann, mut bob) = (notes(), notes());
        assert!(ann.say(1, b"old"));
        bob.set_epoch(2);
        assert!(pass(at(10), (&mut ann, 0), (&mut bob, 1)));
        assert!(bob.say(0, b"new"));
        assert!(pass(at(10), (&mut bob, 1), (&mut ann, 0)));
        assert_eq!((bob.take(), bob.dropped(), ann.take(), ann.dropped()), (vec![], (1, 0), vec![], (0, 1)));
        // What is new there is said until we are there, too.
        ann.set_epoch(2);
        assert!(pass(at(200), (&mut bob, 1), (&mut ann, 0)));
        assert_eq!(ann.take().len(), 1);
    }

    #[test]
    fn a_lease_lasts_from_what_was_heard_and_no_longer() {
        let (mut ann, mut bob) = (notes(), notes());
        assert!(pass(at(100), (&mut ann, 0), (&mut bob, 1)));
        assert_eq!(ann.leases(at(100)), 0, "nobody has said that it hears");
        // The answer comes late: what it answers is what counts.
        assert!(pass(at(600), (&mut bob, 1), (&mut ann, 0)));
        assert_eq!((ann.leases(at(1049)), ann.leases(at(1050))), (2, 0));
        // Stamps that were never sent give none.
        for echo in [milliseconds(at(900)), 5000_u32.wrapping_sub(200_000)] {
            let mut packet = [0_u8; HEAD_BYTES];
            packet[4] = 1;
            packet[8..12].copy_from_slice(&echo.to_le_bytes());
            assert!(ann.read(at(700), 2, &packet).is_some());
        }
        assert_eq!(ann.leases(at(700)), 2);
        ann.note_left(1);
        assert_eq!(ann.leases(at(700)), 0);
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut rng = Rng::seeded(8);
        let mut notes = notes();
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..rng.below(700)).map(|_| rng.next_u64() as u8).collect();
            let player = rng.below(20) as u8;
            let _ = notes.read(at(rng.below(1 << 40)), player, &bytes);
            assert!(notes.fresh.len() <= MAX_PLAYERS);
        }
    }
}

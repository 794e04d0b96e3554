//! Writes payloads: what each player lacks, and when it is due.

use super::Lockstep;
use crate::lockstep::config::{MAX_PLAYERS, TurnNumber, mask_of, members};
use crate::lockstep::joining::JoinWord;
use crate::lockstep::packet::{
    CopiedRun, DepartureWord, HEADER_BITS, LogQuery, LogReply, MAX_ENTRIES, MAX_FIELDS, MAX_ROWS, More,
    Payload, Run, near,
};
use crate::lockstep::remote::coded;
use crate::time::{Duration, Instant};
use crate::wire::BitWriter;
use crate::wire::packet::Part;

/// Bits reserved for the parts after the entries.
const MORE_BITS: usize = 64;

/// Margins are sent once in this many turns.
const MARGIN_TURNS: TurnNumber = 4;

/// The maximum time that the connections' acks may wait: other traffic on them detects its losses by them.
const MAX_ACK_PATIENCE: Duration = Duration::from_millis(250);
/// Bits of a report on a departing player.
const WORD_BITS: usize = 4 + 8 + 1 + 8;

impl Lockstep {
    /// Writes what a player lacks, in at most `bits` bits. False if there is nothing to send.
    pub fn fill(&mut self, now: Instant, player: u8, bits: usize, writer: &mut BitWriter) -> bool {
        let at = usize::from(player);
        if at >= MAX_PLAYERS || player == self.config.me {
            return false;
        }
        let is_fresh = self.newcomers.fresh >> player & 1 == 1;
        if self.newcomer.is_some() || is_fresh && self.departures.live() >> player & 1 == 0 {
            let room = bits.saturating_sub(HEADER_BITS + MORE_BITS);
            let payload = match self.newcomer {
                Some(_) => self.ask(now, player),
                None => self.guest_payload(now, player, room),
            };
            return payload.is_some_and(|payload| self.send(payload, at, writer));
        }
        if self.config.players >> player & 1 == 0 {
            return false;
        }
        if self.departures.frozen >> player & 1 == 1 {
            let has_room = bits >= HEADER_BITS + MORE_BITS + MAX_PLAYERS * WORD_BITS;
            if !has_room || core::mem::take(&mut self.owed[at]) == 0 {
                return false;
            }
            let departures = self.departures.words(player, self.turn, &self.remotes, u16::MAX);
            let more = More { departures, ..More::default() };
            return self.send(Payload { more, ..self.header(player) }, at, writer);
        }
        let leavers = self.departures.frozen.count_ones() as usize * WORD_BITS;
        let room = bits.checked_sub(HEADER_BITS + MORE_BITS + leavers);
        let payload = room.and_then(|room| self.payload(now, player, room));
        payload.is_some_and(|payload| self.send(payload, at, writer))
    }

    /// What a player who takes part lacks, in at most `room` bits besides header and departures. None if there is
    /// nothing to send.
    fn payload(&mut self, now: Instant, player: u8, mut room: usize) -> Option<Payload> {
        let at = usize::from(player);
        let mut payload = self.header(player);
        payload.more.joining = self.healing_word(now, player).or_else(|| self.guest_word(now, player, room));
        let remote = &self.remotes[at];
        if now < remote.next_send && payload.more.joining.is_none() {
            return None;
        }
        room = room.saturating_sub(payload.more.joining.as_ref().map_or(0, JoinWord::bits));
        // Resent until all have long gone on without the player.
        let is_new = |it: &u8| self.departures.out(*it).is_none_or(|out| out > self.turn - 100);
        payload.more.against = mask_of(members(self.departures.against()).filter(is_new));
        payload.more.departures =
            self.departures.words(player, self.turn, &self.remotes, core::mem::take(&mut self.owed[at]));
        let newest = self.remotes[usize::from(self.config.me)].have;
        let lacking = newest - remote.acked;
        let from = remote.rest.filter(|turn| *turn > remote.acked).unwrap_or(remote.acked + 1);
        // One that still loads takes nothing but the turns that it is served.
        let newest = if self.departures.loading >> player & 1 == 1 { from - 1 } else { newest };
        payload.own = self.run(self.config.me, from, newest, &mut room);
        let next = from + payload.own.entries.len() as TurnNumber;
        let rest = (next <= newest).then_some(next);
        payload.more.copies = self.copies(player, &payload.more.departures, &mut room);
        payload.more.question = self.checks.question(player).filter(|_| room > 60);
        room = room.saturating_sub(60);
        if let Some((turn, query)) = self.remotes[at].question.take_if(|_| room > 200) {
            payload.more.answer = Some((turn, self.reply(turn, query, room)));
        }
        let more = &payload.more;
        let has_news = lacking > 0 || self.last_ack[at] != self.remotes[at].have || payload.waiting;
        let has_news = has_news || *more != More::default();
        let fast =
            payload.waiting || rest.is_some() || more.question.is_some() || !more.departures.is_empty();
        let again = if fast { self.config.step } else { self.config.resend.unwrap_or(self.length) };
        (self.remotes[at].next_send, self.remotes[at].rest) = (now + again, rest);
        has_news.then_some(payload)
    }

    /// The data of departing players that a player lacks, by its reports on them.
    fn copies(&self, player: u8, words: &[DepartureWord], room: &mut usize) -> Vec<CopiedRun> {
        let mut copies = Vec::new();
        for &DepartureWord { player: leaver, .. } in words {
            let Some(theirs) = self.remotes[usize::from(player)].departures[usize::from(leaver)] else {
                continue;
            };
            *room = room.saturating_sub(16);
            let (from, newest) = (near(theirs.have, self.turn) + 1, self.remotes[usize::from(leaver)].have);
            let run = self.run(leaver, from, newest, room);
            if !run.entries.is_empty() && copies.len() < MAX_ENTRIES {
                copies.push(CopiedRun { player: leaver, run });
            }
        }
        copies
    }

    /// How long the connections' acks may wait for the next payload, one of which goes each turn.
    pub fn ack_patience(&self) -> Duration {
        (self.length + self.length / 4).min(MAX_ACK_PATIENCE)
    }

    fn reply(&self, turn: u16, query: LogQuery, room: usize) -> LogReply {
        let max_rows = ((room - 64) / 72).min(MAX_ROWS);
        self.checks.reply(turn, query, max_rows, ((room - 64) / 64).min(MAX_FIELDS))
    }

    fn header(&self, player: u8) -> Payload {
        let remote = &self.remotes[usize::from(player)];
        Payload {
            waiting: self.waiting.is_some_and(|waiting| waiting.players >> player & 1 == 1),
            ack: remote.have as u8,
            margins: self.says_margins(player).then(|| (coded(remote.margin()), coded(self.adapter.worst()))),
            ..Payload::default()
        }
    }

    /// Whether a player is sent margins in this turn: they change slowly.
    fn says_margins(&self, player: u8) -> bool {
        (self.turn + TurnNumber::from(player)).rem_euclid(MARGIN_TURNS) == 0
    }

    /// A player's entries from a turn on, as many as fit.
    fn run(&self, of: u8, from: TurnNumber, newest: TurnNumber, room: &mut usize) -> Run {
        let remote = &self.remotes[usize::from(of)];
        let mut entries = Vec::new();
        let mut turn = from;
        while entries.len() < MAX_ENTRIES && turn <= newest {
            let Some(entry) = remote.entry(turn).filter(|entry| entry.bits() <= *room) else { break };
            *room -= entry.bits();
            entries.push(entry.clone());
            turn += 1;
        }
        let first = if entries.is_empty() { 0 } else { from as u8 };
        Run { first, entries }
    }

    fn send(&mut self, payload: Payload, at: usize, writer: &mut BitWriter) -> bool {
        let before = writer.bit_len();
        <Payload as Part>::write(&payload, writer);
        self.last_ack[at] = self.remotes[at].have;
        self.counters.payloads_sent += 1;
        self.counters.bytes_sent += (writer.bit_len() - before).div_ceil(8) as u64;
        true
    }
}

//! Which player hosts a game, and with which world: the host saves its world, sends it to the next hosts, and one of them
//! goes on with it.
//!
//! A sans-IO machine, beside the mesh that elects the master: it takes time, what the mesh agreed on, notes and worlds, and
//! [`Hosting::poll_transfer`] and [`Hosting::poll_news`] say what to do.
//!
//! Promises: a master hosts only while more than half of the players can't have given it up, so there are never two hosts
//! (of two players that lose each other, each hosts). A new host goes on with the newest world that its former host, or
//! more than half of the players, vouch for. A player who offers another world, or offers one and doesn't send it, delays
//! the game by a bounded time. State is bounded by the number of players.

mod note;
mod notes;
mod saves;
mod worlds;

use std::collections::VecDeque;

use self::note::{HostNote, Note};
pub use self::notes::{MAX_NOTE_BYTES, Note as SentNote, Notes};
use self::saves::{Saves, cost_of};
pub use self::worlds::{MAX_WORLD_BYTES, Transfer, WorldBytes, WorldId};
use self::worlds::{WorldInfo, Worlds};
use super::{Carried, Setting};
use crate::mesh::{MAX_PLAYERS, Players, bit};
use crate::store::counters::counters;
use crate::time::{Duration, Instant};
use crate::wire::BitWriter;

/// How many players get the world: the next hosts, by their numbers.
const SUCCESSORS: usize = 3;

/// How long a new master waits for the others to say which worlds they have, and again for a world that it asks for,
/// beside the time that its bytes take.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(400);

/// How long a world that was asked for may take at most: a player may claim one and not send it.
const MAX_FETCH: Duration = Duration::from_secs(4);

/// What the mesh has agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    pub epoch: u32,
    /// This player, once it is in the game.
    pub me: Option<u8>,
    /// None while the players elect another one.
    pub master: Option<u8>,
    /// The other players that are connected.
    pub others: Players,
}

/// What the application has to do, or to know.
#[derive(Clone, Debug)]
pub enum News {
    /// Make a server, with this world if there is one, and answer with [`Hosting::note_begun`].
    Begin { world: Option<WorldBytes> },
    /// Another player hosts the game, or this one does: with a world of this age.
    Changed { host: u8, age: Option<Duration> },
}

/// How far a master, or the likely next one, is in hosting the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It asks the others for their worlds, and waits for the answers until then.
    Asking { until: Instant },
    /// It waits for a world from a player.
    Fetching { id: WorldId, player: u8, until: Instant },
    /// The layer above makes a server of a world, which was saved then.
    Beginning { base: Option<(WorldId, Instant)> },
    /// It hosts the game.
    Running { base: Option<(WorldId, Instant)> },
}

/// A player's part in hosting: see the module.
#[derive(Debug)]
pub struct Hosting {
    timeout: Duration,
    notes: Notes,
    agreed: Agreed,
    /// This peer is the master or the likely next one, and how far it is with that.
    phase: Option<Phase>,
    worlds: Worlds,
    /// The newest notes of the other players, in this epoch or the vote before it.
    told: [Option<Note>; MAX_PLAYERS],
    /// Players that didn't send what they claimed to have.
    failed: Players,
    saves: Saves,
    /// The player who hosts, and the one before it.
    host: Option<u8>,
    former: Option<u8>,
    /// There was a host before.
    had_host: bool,
    /// The world that was handed to a new host.
    handed: Option<(u8, WorldId)>,
    transfers: VecDeque<Transfer>,
    news: VecDeque<News>,
    malformed: u64,
    refused: u64,
}

counters! {
    /// Counters of what the other players sent in vain.
    pub struct HostingCounters {
        /// Notes that can't be read.
        malformed_notes,
        /// Notes about an earlier host.
        stale_notes,
        /// Notes about a host that isn't known here yet.
        early_notes,
        /// Worlds that no trusted hash names, that are too large, or that can't be loaded.
        refused_worlds,
    }
}

impl Hosting {
    /// Of a player whose links end after this silence.
    pub fn new(timeout: Duration) -> Self {
        Hosting {
            timeout,
            notes: Notes::new(timeout),
            agreed: Agreed::default(),
            phase: None,
            worlds: Worlds::default(),
            told: Default::default(),
            failed: 0,
            saves: Saves::default(),
            host: None,
            former: None,
            had_host: false,
            handed: None,
            transfers: VecDeque::new(),
            news: VecDeque::new(),
            malformed: 0,
            refused: 0,
        }
    }

    /// The players who can't have given this one up yet.
    pub fn leases(&self, now: Instant) -> Players {
        self.notes.leases(now)
    }

    /// Whether this peer is the master and has the game's world; it hosts while its [`leases`](Self::leases) are a quorum.
    pub fn is_running(&self) -> bool {
        let is_master = self.agreed.me.is_some() && self.agreed.me == self.agreed.master;
        is_master && matches!(self.phase, Some(Phase::Running { .. }))
    }

    pub fn counters(&self) -> HostingCounters {
        let (stale_notes, early_notes) = self.notes.dropped();
        let (malformed_notes, refused_worlds) = (self.malformed, self.refused);
        HostingCounters { malformed_notes, stale_notes, early_notes, refused_worlds }
    }

    /// The next world to send.
    pub fn poll_transfer(&mut self) -> Option<Transfer> {
        self.transfers.pop_front()
    }

    /// The next news for the application.
    pub fn poll_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    /// Does what is due, by what the mesh has agreed on. `is_host`: the leases are a quorum.
    pub fn update(&mut self, now: Instant, agreed: Agreed, is_host: bool) {
        let before = core::mem::replace(&mut self.agreed, agreed);
        if before.epoch != agreed.epoch {
            self.begin_epoch(agreed);
        }
        let is_elected = agreed.me.is_some() && agreed.master == agreed.me && before.master != agreed.me;
        if let (true, Some(Phase::Asking { until })) = (is_elected, &mut self.phase) {
            // Others may have begun to vote later, and answer now.
            *until = now + ANSWER_TIMEOUT;
        }
        for note in self.notes.take() {
            let read = Note::read(&note.bytes, note.sent_ms, note.came_at);
            self.malformed += u64::from(read.is_none());
            // While a host runs, nobody asks for worlds.
            let is_late =
                agreed.master.is_some() && self.host.is_some() && matches!(read, Some(Note::Member(_)));
            let told = self.told.get_mut(usize::from(note.player)).filter(|_| !is_late);
            if let (Some(told), Some(read)) = (told, read) {
                *told = Some(read);
            }
        }
        let Some(me) = agreed.me.filter(|_| agreed.master.is_some() || self.had_host) else { return };
        if agreed.master.is_none() {
            self.phase = self.phase.filter(|phase| !matches!(phase, Phase::Running { .. }));
        }
        // While the players vote, the likely winner already asks for the newest world.
        let likely = || self.others().next().map_or(me, |lowest| lowest.min(me));
        let leader = agreed.master.unwrap_or_else(likely);
        if leader == me {
            self.lead(now, me, is_host);
        } else {
            self.phase = None;
            self.follow(now, leader);
        }
    }

    fn begin_epoch(&mut self, agreed: Agreed) {
        self.notes.set_epoch(agreed.epoch);
        // A master that is voted for once more goes on as it is.
        let stays = agreed.me.is_some() && agreed.me == agreed.master;
        self.phase = self.phase.filter(|phase| match phase {
            Phase::Asking { .. } | Phase::Fetching { .. } => true,
            Phase::Beginning { .. } => false,
            Phase::Running { .. } => stays,
        });
        self.former = self.host.take().or(self.former);
        self.worlds.begin_epoch();
        // The answers during the vote still hold.
        for note in &mut self.told {
            *note = note.take().filter(|note| matches!(note, Note::Member(_)));
        }
        self.saves = self.saves.begin_epoch();
    }

    // --- the other players --------------------------------------------------------------------------------

    /// Follows the master, or the likely next one.
    fn follow(&mut self, now: Instant, leader: u8) {
        let Some(Note::Host(note)) = self.told[usize::from(leader)].clone() else {
            return self.answer(leader);
        };
        if self.agreed.master.is_some() {
            for (id, known) in note.saved.iter().filter(|(id, _)| id.0 == self.agreed.epoch) {
                if !self.worlds.has_heard(*id) {
                    self.worlds.hear(*id, *known);
                }
            }
            if note.is_running {
                let age = note.base.map(|(_, saved)| now - saved);
                return self.note_host(leader, age);
            }
        }
        self.answer(leader);
        // Who asks once more, after it stopped asking, gets the world once more.
        self.handed = self.handed.filter(|(to, id)| *to == leader && note.wanted == Some(*id));
        let wanted = note.wanted.filter(|_| self.handed.is_none());
        if let Some((id, world)) = wanted.and_then(|id| Some((id, self.worlds.held(id)?.clone()))) {
            self.handed = Some((leader, id));
            self.transfers.push_back(Transfer { player: leader, id, world });
        }
    }

    /// Reports to the next host which worlds this player has, or has heard of.
    fn answer(&mut self, leader: u8) {
        if self.had_host {
            let note = Note::Member(self.worlds.named()).write();
            self.notes.say(leader, &note);
        }
    }

    fn note_host(&mut self, host: u8, age: Option<Duration>) {
        if self.host.replace(host) == Some(host) {
            return;
        }
        for note in &mut self.told {
            *note = note.take().filter(|note| matches!(note, Note::Host(_)));
        }
        self.failed = 0;
        // The same as before never stopped.
        if self.former.take() != Some(host) && self.had_host {
            self.news.push_back(News::Changed { host, age });
        }
        self.had_host = true;
    }

    // --- the master ---------------------------------------------------------------------------------------

    fn lead(&mut self, now: Instant, me: u8, is_host: bool) {
        let first = Phase::Asking { until: now + ANSWER_TIMEOUT };
        match *self.phase.get_or_insert(first) {
            // The first host has nobody to ask.
            Phase::Asking { .. } if !self.had_host && self.agreed.epoch <= 1 => self.begin(now, None, None),
            Phase::Asking { until } => {
                let asked = self.others().all(|player| self.told[usize::from(player)].is_some());
                if asked || now >= until {
                    self.choose(now);
                }
            }
            Phase::Fetching { id, player, until } => {
                let gone = self.agreed.others & bit(player) == 0;
                if self.worlds.held(id).is_some() {
                    self.choose(now);
                } else if gone || now >= until {
                    self.failed |= bit(player);
                    self.choose(now);
                }
            }
            Phase::Beginning { .. } => {}
            Phase::Running { base } => {
                self.note_host(me, base.map(|(_, saved)| now - saved));
                if is_host {
                    let transfers = self.saves.send(now, self.successors());
                    self.transfers.extend(transfers);
                }
            }
        }
        self.say();
    }

    fn others(&self) -> impl Iterator<Item = u8> + use<> {
        let others = self.agreed.others;
        (0..MAX_PLAYERS as u8).filter(move |player| others & bit(*player) != 0)
    }

    /// The players that get the world: the next hosts.
    fn successors(&self) -> impl Iterator<Item = u8> + use<> {
        self.others().take(SUCCESSORS)
    }

    fn say(&mut self) {
        let (wanted, is_running, base) = match self.phase {
            Some(Phase::Running { base }) => (None, true, base),
            Some(Phase::Fetching { id, .. }) => (Some(id), false, None),
            _ => (None, false, None),
        };
        let saved = self.saves.announced().clone();
        let note = Note::Host(HostNote { is_running, base, wanted, saved }).write();
        for player in self.others() {
            self.notes.say(player, &note);
        }
    }

    /// Goes on with the newest world, or fetches it.
    fn choose(&mut self, now: Instant) {
        for (id, known) in self.trusted() {
            if let Some(world) = self.worlds.held(id).cloned() {
                return self.begin(now, Some((id, known.saved)), Some(world));
            }
            let has = |player: &u8| match &self.told[usize::from(*player)] {
                Some(Note::Member(worlds)) => {
                    worlds.get(&id).is_some_and(|(world, is_held)| *is_held && world.hash == known.hash)
                }
                _ => false,
            };
            let from = self.others().filter(has).find(|player| self.failed & bit(*player) == 0);
            if let Some(player) = from.filter(|_| known.size as usize <= MAX_WORLD_BYTES) {
                let until = now + ANSWER_TIMEOUT + cost_of(known.size as usize).min(MAX_FETCH);
                self.phase = Some(Phase::Fetching { id, player, until });
                return;
            }
        }
        self.begin(now, None, None);
    }

    /// Makes a server with this world, once this player is the master.
    fn begin(&mut self, now: Instant, base: Option<(WorldId, Instant)>, world: Option<WorldBytes>) {
        if self.agreed.master.is_none() {
            self.phase = Some(Phase::Asking { until: now });
            return;
        }
        self.phase = Some(Phase::Beginning { base });
        self.news.push_back(News::Begin { world });
    }

    /// The layer above hosts the game, or can't load the world: an older one follows then.
    pub fn note_begun(&mut self, now: Instant, is_fine: bool) {
        let Some(Phase::Beginning { base }) = self.phase else { return };
        match base {
            Some((id, _)) if !is_fine => {
                self.refused += 1;
                self.worlds.refuse(id);
                self.choose(now);
            }
            _ => {
                self.phase = Some(Phase::Running { base });
                self.saves = Saves::beginning_at(now);
            }
        }
    }

    /// Whether the host should save its world now.
    pub fn is_save_due(&self, now: Instant) -> bool {
        self.is_running() && self.saves.is_due(now, self.successors())
    }

    /// The host has saved its world; false if it is too large.
    pub fn keep(&mut self, now: Instant, world: WorldBytes) -> bool {
        self.saves.keep(now, self.agreed.epoch, world)
    }

    /// Whether the next hosts have the newest world, and all players know of it.
    pub fn has_handed_over(&self) -> bool {
        self.saves.has_arrived(self.successors()) && self.notes.are_acked(self.agreed.others)
    }

    /// A world that was to be sent is at a player, or isn't going to be.
    pub fn note_sent(&mut self, player: u8, is_there: bool) {
        self.saves.note_sent(player, is_there);
    }

    /// A world came from a player.
    pub fn handle_world(&mut self, player: u8, id: WorldId, world: WorldBytes) {
        let is_asked = matches!(self.phase, Some(Phase::Fetching { id: asked, .. }) if asked == id);
        let trusted = if is_asked { self.trusted() } else { Vec::new() };
        let known = trusted.into_iter().find(|(other, _)| *other == id).map(|(_, known)| known);
        let is_from_host = id.0 == self.agreed.epoch && self.agreed.master == Some(player);
        let is_fine =
            world.bytes.len() <= MAX_WORLD_BYTES && self.worlds.take(id, world, known, is_from_host);
        self.refused += u64::from(!is_fine);
    }

    /// The worlds that may be continued, the newest first: those of all hosts that are gone.
    fn trusted(&self) -> Vec<(WorldId, WorldInfo)> {
        let told = self.told.iter().zip(0_u8..);
        let reports = told.filter_map(|(note, player)| match note {
            Some(Note::Member(worlds)) => Some((player, worlds)),
            _ => None,
        });
        let players = self.agreed.others.count_ones() + 1;
        let next_epoch = self.agreed.epoch.saturating_add(u32::from(self.agreed.master.is_none()));
        self.worlds.trusted(next_epoch, reports, players)
    }
}

impl Carried for Hosting {
    fn settings(&self) -> (&'static str, Vec<Setting>) {
        ("hosting", vec![Setting::of("timeout", self.timeout.as_secs())])
    }

    fn read(&mut self, now: Instant, player: u8, payload: &[u8]) -> Result<(), String> {
        self.notes
            .read(now, player, payload)
            .ok_or_else(|| "bytes that aren't a message of a hosted game".to_owned())
    }

    fn fill(&mut self, now: Instant, player: u8, bits: usize, writer: &mut BitWriter) -> bool {
        self.notes.fill(now, player, bits, writer)
    }

    fn note_left(&mut self, _: Instant, player: u8) {
        self.notes.note_left(player);
        let place = usize::from(player);
        if place < MAX_PLAYERS {
            self.told[place] = None;
            self.failed &= !bit(player);
            self.handed = self.handed.filter(|(to, _)| *to != player);
            self.saves.note_left(player);
        }
        if self.host == Some(player) {
            self.host = None;
        }
    }
}

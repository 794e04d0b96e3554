//! How all players agree on the last turn of a departing player, though each may have got another part of its data.
//!
//! The proposer (the master, or the lowest other player if the master itself departs) stops accepting that player's
//! data, and so does everyone who hears of the proposal; each reports the newest turn for which it has that data. Once
//! all have reported, the player is out from the turn after the newest of these: nobody can have run a turn without its
//! commands that another ran with them. (A newcomer that loads isn't asked: it has no turn that its helper didn't run.) Players copy to each other the data that some lack. A new proposer can decide
//! again safely: data that nobody has was run by nobody.

use super::config::{MAX_PLAYERS, TurnNumber, mask_of, members};
use super::packet::{DepartureWord, near};
use super::remote::RemotePlayer;

/// After this many turns all have gone on without a player, as nobody runs further ahead. Also a bound for the reports'
/// 8 bits of a turn, which would mean another turn further on.
const SETTLED: TurnNumber = 60;

/// The players that are departing or out.
#[derive(Clone, Debug)]
pub struct Departures {
    players: u16,
    me: u8,
    /// The master, as reported by the caller.
    pub master: u8,
    /// Players that can't be reached from here.
    pub gone: u16,
    /// Players that this player votes out.
    pub votes: u16,
    /// Players whose own data isn't accepted any more.
    pub frozen: u16,
    out: [Option<TurnNumber>; MAX_PLAYERS],
    /// From which turn on each counts.
    joined: [TurnNumber; MAX_PLAYERS],
    /// Players that were let in and haven't sent anything as players yet. They have no data of others that their helper
    /// lacks, and get none before they are heard, so no decision waits for their reports or votes.
    pub loading: u16,
    /// Isn't reachable, whether it is a player or not.
    pub absent: u16,
}

/// The result of an evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DepartureNews {
    /// Players newly decided to be out.
    pub decided: u16,
    /// The others go on without this player.
    pub me: bool,
    /// A peer's decision is impossible.
    pub odd: bool,
}

impl Departures {
    pub(super) fn new(players: u16, me: u8, master: u8) -> Self {
        Departures {
            players,
            me,
            master,
            gone: 0,
            votes: 0,
            frozen: 0,
            out: [None; MAX_PLAYERS],
            joined: [TurnNumber::MIN; MAX_PLAYERS],
            loading: 0,
            absent: 0,
        }
    }

    /// The first turn without a player, if decided.
    pub fn out(&self, player: u8) -> Option<TurnNumber> {
        self.out.get(usize::from(player)).copied().flatten()
    }

    /// Whether a player has been out so long that nothing more needs to be reported about it.
    pub fn is_settled(&self, player: u8, turn: TurnNumber) -> bool {
        self.out(player).is_some_and(|out| out.saturating_add(SETTLED) < turn)
    }

    /// The players of a turn.
    pub fn needed(&self, turn: TurnNumber) -> u16 {
        let takes_part = |player: &u8| {
            self.out(*player).is_none_or(|out| out > turn) && self.joined[usize::from(*player)] <= turn
        };
        mask_of(members(self.players).filter(takes_part))
    }

    /// The turn from which on a player counts.
    pub fn joined(&self, player: u8) -> TurnNumber {
        self.joined[usize::from(player)]
    }

    /// Whether a newcomer may have this number from a turn on that now runs: the same for all. What was said of the one who
    /// had it before is of no use to anybody any more.
    pub fn may_admit(&self, player: u8, turn: TurnNumber) -> bool {
        self.players >> player & 1 == 0
            || self.out(player).is_some_and(|out| out.saturating_add(2 * SETTLED) < turn)
    }

    /// A newcomer counts from this turn on.
    pub(super) fn admit(&mut self, player: u8, from: TurnNumber) {
        let (at, bit) = (usize::from(player), 1 << player);
        self.players |= bit;
        (self.out[at], self.joined[at]) = (None, from);
        self.loading = (self.loading | bit) & !(1 << self.me);
        self.frozen &= !bit;
        self.votes &= !bit;
        self.gone = self.gone & !bit | self.absent & bit;
    }

    /// Takes over who is in and who is out, as the one knows it who gave the world after this turn.
    pub(super) fn take_over(
        &mut self,
        turn: TurnNumber,
        players: u16,
        out: [Option<TurnNumber>; MAX_PLAYERS],
        joined: [TurnNumber; MAX_PLAYERS],
    ) {
        let left = members(players).filter(|it| out[usize::from(*it)].is_some());
        self.frozen = mask_of(left);
        let new = members(players & !(1 << self.me)).filter(|it| joined[usize::from(*it)] > turn);
        self.loading = mask_of(new);
        (self.players, self.out, self.joined) = (players, out, joined);
        self.gone = self.absent & players;
        self.votes = 0;
    }

    /// A newcomer hears that a player is out from a turn on.
    pub(super) fn note_out(&mut self, player: u8, turn: TurnNumber) {
        self.frozen |= 1 << player;
        self.out[usize::from(player)].get_or_insert(turn);
    }

    /// From which turn on each is out and counts.
    pub fn spans(&self) -> ([Option<TurnNumber>; MAX_PLAYERS], [TurnNumber; MAX_PLAYERS]) {
        (self.out, self.joined)
    }

    /// The players that withhold a leaver's data of a turn: those that claim to have it or, if none does, the player that
    /// decided that it is needed.
    pub fn withholders(&self, player: u8, turn: TurnNumber, remotes: &[RemotePlayer]) -> u16 {
        if self.frozen >> player & 1 == 0 || self.out(player).is_none_or(|out| out <= turn) {
            return 0;
        }
        let others = self.live() & !(1 << self.me);
        let claims = |it: &u8| {
            let word = remotes[usize::from(*it)].departures[usize::from(player)];
            word.is_some_and(|word| near(word.have, turn) >= turn)
        };
        let found = mask_of(members(others).filter(claims));
        if found != 0 { found } else { 1 << self.proposer(remotes) & others }
    }

    /// The players who stay, as far as known.
    pub fn live(&self) -> u16 {
        self.players & !self.frozen
    }

    /// The players who stay and whose reports and votes count.
    fn playing(&self) -> u16 {
        self.live() & !self.loading
    }

    /// The players that this one can't reach or votes out.
    pub fn against(&self) -> u16 {
        (self.gone | self.votes) & self.players
    }

    /// Whether more than half of the others vote a player out.
    fn is_voted_out(&self, player: u8, remotes: &[RemotePlayer]) -> bool {
        let others = self.playing() & !(1 << player);
        let against = |it: &u8| {
            let mask = if *it == self.me { self.against() } else { remotes[usize::from(*it)].against };
            mask >> player & 1 == 1
        };
        members(others).filter(against).count() * 2 > others.count_ones() as usize
    }

    /// The proposer, as this player sees it.
    pub fn proposer(&self, remotes: &[RemotePlayer]) -> u8 {
        let fits = |it: &u8| {
            self.playing() >> it & 1 == 1
                && self.against() >> it & 1 == 0
                && !(*it != self.me && self.is_voted_out(*it, remotes))
        };
        Some(self.master).filter(fits).or_else(|| members(self.playing()).find(fits)).unwrap_or(self.me)
    }

    /// Decides whether someone departs, and on which turn once all have reported.
    pub(super) fn evaluate(&mut self, turn: TurnNumber, remotes: &mut [RemotePlayer]) -> DepartureNews {
        let mut news = DepartureNews::default();
        let others = self.playing() & !(1 << self.me);
        let me = usize::from(self.me);
        let knows = |it: &u8| remotes[usize::from(*it)].departures[me].is_some_and(|word| word.out.is_some());
        news.me = members(others).filter(knows).count() * 2 > others.count_ones() as usize;
        let proposer = self.proposer(remotes);
        if proposer != self.me {
            let words = remotes[usize::from(proposer)].departures;
            for word in words.into_iter().flatten() {
                if word.player == self.me {
                    news.me = true;
                    return news;
                }
                if self.is_settled(word.player, turn) {
                    continue;
                }
                self.frozen |= 1 << word.player & self.players;
                let Some(out) = word.out.map(|out| near(out, turn)) else { continue };
                // Once turns ran without the player, no other decision is accepted: the 8 bits of an old report would
                // come to mean a later turn.
                if self.out(word.player).is_some_and(|known| known == out || known <= turn) {
                    continue;
                }
                if out <= turn {
                    news.odd = true;
                    continue;
                }
                // A player that has just begun to play wasn't asked, and may have more of the leaver's data.
                let remote = &mut remotes[usize::from(word.player)];
                remote.have = remote.have.min(out - 1);
                self.out[usize::from(word.player)] = Some(out);
                news.decided |= 1 << word.player;
            }
            return news;
        }
        news.decided = self.decide(turn, remotes);
        news
    }

    /// Freezes whom this player can't reach or who is voted out, and decides from which turn on they are out, once all
    /// others have reported. Returns for whom that is new.
    fn decide(&mut self, turn: TurnNumber, remotes: &[RemotePlayer]) -> u16 {
        for player in members(self.live() & !(1 << self.me)) {
            if self.gone >> player & 1 == 1 || self.is_voted_out(player, remotes) {
                self.frozen |= 1 << player;
            }
        }
        // Reports about all departing players count: one about the first may be older than the freezing of the second,
        // which may have copied data to others meanwhile.
        let said = |it: u8, of: u8| remotes[usize::from(it)].departures[usize::from(of)];
        let others = self.playing() & !(1 << self.me);
        let open = mask_of(members(self.frozen).filter(|it| !self.is_settled(*it, turn)));
        if !members(others).all(|it| members(open).all(|of| said(it, of).is_some())) {
            return 0;
        }
        let mut decided = 0;
        for player in members(open) {
            let words = members(others).filter_map(|it| said(it, player));
            let newest = words.map(|word| near(word.have, turn)).chain([remotes[usize::from(player)].have]);
            let newest = newest.max().unwrap_or(-1);
            if self.out(player).is_none_or(|out| out != newest + 1 && out > turn) {
                self.out[usize::from(player)] = Some(newest + 1);
                decided |= 1 << player;
            }
        }
        decided
    }

    fn is_complete(&self, player: u8, have: TurnNumber) -> bool {
        self.out(player).is_some_and(|out| have >= out - 1)
    }

    /// The reports about departing players that are due to a player.
    pub(super) fn words(
        &self,
        to: u8,
        turn: TurnNumber,
        remotes: &[RemotePlayer],
        answers: u16,
    ) -> Vec<DepartureWord> {
        let mut words = Vec::new();
        // A player that is itself out has to hear so.
        let is_open = |player: &u8| self.frozen >> to & 1 == 1 || !self.is_settled(*player, turn);
        for player in members(self.frozen).filter(is_open) {
            let have = remotes[usize::from(player)].have;
            let theirs = remotes[usize::from(to)].departures[usize::from(player)];
            let is_theirs_complete =
                theirs.is_some_and(|word| word.out.is_some_and(|out| word.have == out.wrapping_sub(1)));
            let silent = self.is_complete(player, have) && is_theirs_complete && answers >> player & 1 == 0;
            if !silent {
                words.push(DepartureWord {
                    player,
                    have: have as u8,
                    out: self.out(player).map(|out| out as u8),
                });
            }
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_out_before_all_have_reported_on_all_who_leave() {
        let mut departures = Departures::new(0b11111, 1, 0);
        let mut remotes = vec![RemotePlayer::new(); MAX_PLAYERS];
        remotes.iter_mut().for_each(|remote| remote.have = 20);
        departures.gone = 0b01001;
        let word = |player, have| Some(DepartureWord { player, have, out: None });
        // What they said of 3 may be from before 0 left, who may have copied more of it to them since.
        (remotes[2].departures[3], remotes[4].departures[3]) = (word(3, 20), word(3, 22));
        assert_eq!(departures.evaluate(18, &mut remotes).decided, 0);
        assert_eq!((departures.frozen, departures.out(3)), (0b01001, None));
        remotes[2].departures[0] = word(0, 21);
        assert_eq!(departures.evaluate(18, &mut remotes).decided, 0);
        remotes[4].departures[0] = word(0, 19);
        assert_eq!(departures.evaluate(18, &mut remotes).decided, 0b01001);
        assert_eq!((departures.out(0), departures.out(3)), (Some(22), Some(23)));
    }
}

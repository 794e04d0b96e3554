//! A server's games, by code and by their host's secret.
//!
//! Promises: bounded in all and by source; a game that isn't registered again expires.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use crate::rendezvous::code::LobbyCode;
use crate::rendezvous::messages::{GameInfo, ListedGame, Sighting};
use crate::store::source_limit::source;
use crate::time::{Duration, Instant};

/// A game that isn't registered again for this long expires: three times a host's interval.
pub const GAME_LIFETIME: Duration = Duration::from_secs(30);

/// How often expired games are removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(super) struct Game {
    pub(super) secret: [u8; 16],
    pub(super) host: SocketAddr,
    pub(super) sighting: Sighting,
    pub(super) info: GameInfo,
    expires: Instant,
}

pub(super) struct Games {
    by_code: BTreeMap<LobbyCode, Game>,
    codes: BTreeMap<[u8; 16], LobbyCode>,
    /// How many games each source has.
    sources: BTreeMap<u64, usize>,
    max: usize,
    max_of_a_source: usize,
    sweep_at: Instant,
}

/// Why a game is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    Server,
    Source,
}

impl Games {
    pub(super) fn new(max: usize, max_of_a_source: usize) -> Self {
        Games {
            by_code: BTreeMap::new(),
            codes: BTreeMap::new(),
            sources: BTreeMap::new(),
            max,
            max_of_a_source,
            sweep_at: Instant::ZERO,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_code.len()
    }

    pub(super) fn get(&self, code: LobbyCode) -> Option<&Game> {
        self.by_code.get(&code)
    }

    /// Registers a game, or updates its description.
    pub(super) fn put(
        &mut self,
        now: Instant,
        host: SocketAddr,
        secret: [u8; 16],
        info: GameInfo,
        sighting: Sighting,
        mut draw: impl FnMut() -> u64,
    ) -> Result<LobbyCode, NoPlace> {
        let game = Game { secret, host, sighting, info, expires: now + GAME_LIFETIME };
        let known = self.codes.get(&secret).copied();
        let moved = known.and_then(|code| self.by_code.get(&code)).map(|old| source(old.host));
        if moved != Some(source(host)) {
            if known.is_none() && self.len() >= self.max {
                return Err(NoPlace::Server);
            }
            let count = self.sources.entry(source(host)).or_default();
            if *count >= self.max_of_a_source {
                return Err(NoPlace::Source);
            }
            *count += 1;
            moved.into_iter().for_each(|before| self.leave(before));
        }
        let code = known.unwrap_or_else(|| {
            loop {
                let code = LobbyCode::random(draw());
                if !self.by_code.contains_key(&code) {
                    break code;
                }
            }
        });
        self.codes.insert(secret, code);
        self.by_code.insert(code, game);
        Ok(code)
    }

    pub(super) fn remove(&mut self, secret: &[u8; 16]) {
        let game = self.codes.remove(secret).and_then(|code| self.by_code.remove(&code));
        game.into_iter().for_each(|game| self.leave(source(game.host)));
    }

    /// The listed games of a protocol (0 for any) from an index on, and how many there are.
    pub(super) fn listed(&self, protocol_id: u64, first: usize, count: usize) -> (usize, Vec<ListedGame>) {
        let is_meant =
            |game: &Game| game.info.listed && (protocol_id == 0 || game.info.protocol_id == protocol_id);
        let meant = self.by_code.iter().filter(|(_, game)| is_meant(game));
        let games = meant.clone().skip(first).take(count);
        let listed = |(code, game): (&LobbyCode, &Game)| ListedGame { code: *code, info: game.info.clone() };
        (meant.count(), games.map(listed).collect())
    }

    /// Removes expired games; returns how many.
    pub(super) fn sweep(&mut self, now: Instant) -> u64 {
        if now < self.sweep_at {
            return 0;
        }
        self.sweep_at = now + SWEEP_INTERVAL;
        let gone = self.by_code.values().filter(|game| game.expires <= now).map(|game| game.secret);
        let gone: Vec<_> = gone.collect();
        gone.iter().for_each(|secret| self.remove(secret));
        gone.len() as u64
    }

    fn leave(&mut self, source: u64) {
        if let Some(count) = self.sources.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.sources.remove(&source);
            }
        }
    }
}

//! The meeting point: keeps games by code, and introduces peers to each other. It sees none of a game's data.
//!
//! Promises: an address that hasn't proven that it receives there gets nothing but a cookie, and nothing is kept for
//! it; a question never causes more bytes than it has, those to a host included. Memory is bounded by the number of
//! games. Introductions need no memory: a repeated question brings everything they need.
//!
//! | datagram | checks, in this order | bounds |
//! |---|---|---|
//! | any request | the length of its kind, its cookie | an answer of 35 bytes |
//! | the same, with a cookie | its source's rate, then every field | 64 at once, 16 a second and source |
//! | a wrong code | its source's rate of wrong codes | 10 at once, one in 2 seconds and source |

mod games;

use core::net::SocketAddr;

pub use games::GAME_LIFETIME;

use super::messages::{Answer, Asked, GAMES_A_PAGE, GameInfo, Introduction, LobbyRefusal, Request, Sighting};
use super::relay::{RelayKey, RelayTerms, RelayToken};
use super::secrets::Secrets;
use crate::rng::Entropy;
use crate::store::Datagrams;
use crate::store::counters::counters;
use crate::store::keyed_hash::KeyedHash;
use crate::store::source_limit::SourceLimit;
use crate::time::{Duration, Instant, UnixSeconds};
use games::{Game, Games, NoPlace};

/// The default maximum of games.
pub const DEFAULT_MAX_GAMES: usize = 10_000;

/// The default maximum of games from one source: players behind one NAT.
pub const DEFAULT_MAX_GAMES_OF_A_SOURCE: usize = 64;

/// How long a relay token is valid: a match that lasts an evening rebinds again and again.
const RELAY_TOKEN_LIFETIME: u64 = 12 * 3600;

/// A relay that peers are given.
#[derive(Clone, Copy, Debug)]
pub struct RelayOffer {
    pub address: SocketAddr,
    pub key: RelayKey,
    /// The rate of each pair in bytes a second, both directions together.
    pub bytes_per_second: u32,
}

/// Settings of a [`RendezvousServer`].
#[derive(Clone, Copy, Debug)]
pub struct RendezvousServerConfig {
    /// A second port at the server's address, by which peers learn how their NAT assigns ports; 0 for none.
    pub second_port: u16,
    pub relay: Option<RelayOffer>,
    pub max_games: usize,
    pub max_games_of_a_source: usize,
}

impl Default for RendezvousServerConfig {
    fn default() -> Self {
        RendezvousServerConfig {
            second_port: 0,
            relay: None,
            max_games: DEFAULT_MAX_GAMES,
            max_games_of_a_source: DEFAULT_MAX_GAMES_OF_A_SOURCE,
        }
    }
}

counters! {
    /// Counters of a rendezvous server.
    pub struct RendezvousCounters {
        /// Games registered at present.
        games,
        /// Registrations of new games.
        registered,
        /// Registrations of known games.
        refreshed,
        unregistered,
        /// Games forgotten because their host fell silent.
        forgotten,
        /// Pairs of peers that were introduced, including repeats.
        introduced,
        /// Questions for the list.
        listed,
        /// Questions about the address that a port sees.
        observed,
        /// Requests answered with a cookie.
        challenged,
        /// Datagrams that are no request.
        malformed,
        /// Requests beyond their source's rate.
        over_rate,
        unknown_code,
        /// Questions of sources with too many wrong codes, not looked up.
        guessing,
        /// Lookups of a game with another protocol.
        other_protocol,
        /// Lookups of a game that is full.
        game_full,
        /// Registrations refused because the server has its maximum of games.
        server_full,
        /// Registrations refused because their source has its maximum of games.
        source_full,
    }
}

/// A rendezvous server's first port.
pub struct RendezvousServer {
    config: RendezvousServerConfig,
    secrets: Secrets,
    games: Games,
    asks: SourceLimit,
    guesses: SourceLimit,
    counters: RendezvousCounters,
}

impl RendezvousServer {
    /// A server without games.
    pub fn new(config: RendezvousServerConfig, entropy: &mut dyn Entropy) -> Self {
        let mut secrets = Secrets::new(entropy);
        let mut limit = |cost, burst| SourceLimit::new(KeyedHash::of(&secrets.draw_key()), cost, burst);
        RendezvousServer {
            // Only proven addresses are charged, so nobody drains another's bucket by forging its address.
            asks: limit(Duration::from_micros(62_500), 64),
            guesses: limit(Duration::from_secs(2), 10),
            games: Games::new(config.max_games, config.max_games_of_a_source),
            secrets,
            config,
            counters: RendezvousCounters::default(),
        }
    }

    pub fn counters(&self) -> RendezvousCounters {
        RendezvousCounters { games: self.games.len() as u64, ..self.counters }
    }

    /// Removes expired games; call it now and then even if no datagram comes.
    pub fn sweep(&mut self, now: Instant) {
        self.counters.forgotten += self.games.sweep(now);
    }

    /// Handles a datagram of the first port, and answers it.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        unix: UnixSeconds,
        from: SocketAddr,
        datagram: &[u8],
        out: &mut Datagrams,
    ) {
        self.sweep(now);
        if let Some((number, cookie)) = Asked::head(datagram)
            && !self.secrets.proves(now, from, &cookie)
        {
            self.counters.challenged += 1;
            let cookie = self.secrets.cookie(now, from);
            let answer = Answer::Challenge { cookie, second_port: self.config.second_port, seen: from };
            return out.push_with(from, |out| answer.write(number, &[], out));
        }
        let Some(Asked { number, request, .. }) = Asked::read(datagram) else {
            return self.counters.malformed += 1;
        };
        if request == Request::Observe {
            say_seen(from, number, out);
            return self.counters.observed += 1;
        }
        if !self.asks.charge(now, from) {
            return self.counters.over_rate += 1;
        }
        let answer = match request {
            Request::Register { secret, info, sighting } => {
                Some(self.register(now, from, secret, info, sighting.plausible(from)))
            }
            Request::Unregister { secret } => {
                let before = self.games.len();
                self.games.remove(&secret);
                self.counters.unregistered += (before - self.games.len()) as u64;
                None
            }
            Request::List { protocol_id, first } => {
                self.counters.listed += 1;
                let (total, games) = self.games.listed(protocol_id, usize::from(first), GAMES_A_PAGE);
                Some(Answer::Games { total: u16::try_from(total).unwrap_or(u16::MAX), first, games })
            }
            Request::Join { .. } if !self.guesses.has_room(now, from) => {
                self.counters.guessing += 1;
                None
            }
            Request::Join { code, protocol_id, nonce, sighting } => {
                match self.look_up(now, from, code, protocol_id) {
                    Ok(game) => {
                        let game = game.clone();
                        self.introduce(number, &game, from, sighting.plausible(from), &nonce, unix, out);
                        None
                    }
                    Err(why) => Some(Answer::Refused { why }),
                }
            }
            Request::Observe => None,
        };
        answer.into_iter().for_each(|answer| out.push_with(from, |out| answer.write(number, &[], out)));
    }

    fn register(
        &mut self,
        now: Instant,
        from: SocketAddr,
        secret: [u8; 16],
        info: GameInfo,
        sighting: Sighting,
    ) -> Answer {
        let before = self.games.len();
        let Self { games, secrets, .. } = self;
        match games.put(now, from, secret, info, sighting, || secrets.draw_u64()) {
            Ok(code) => {
                let is_new = u64::from(self.games.len() > before);
                self.counters.registered += is_new;
                self.counters.refreshed += 1 - is_new;
                Answer::Registered { code, seen: from }
            }
            Err(no_place) => {
                self.counters.server_full += u64::from(no_place == NoPlace::Server);
                self.counters.source_full += u64::from(no_place == NoPlace::Source);
                Answer::Refused { why: LobbyRefusal::ServerFull }
            }
        }
    }

    fn look_up(
        &mut self,
        now: Instant,
        from: SocketAddr,
        code: super::LobbyCode,
        protocol_id: u64,
    ) -> Result<&Game, LobbyRefusal> {
        let Some(game) = self.games.get(code) else {
            self.counters.unknown_code += 1;
            self.guesses.charge(now, from);
            return Err(LobbyRefusal::UnknownCode);
        };
        if game.info.protocol_id != protocol_id {
            self.counters.other_protocol += 1;
            return Err(LobbyRefusal::Protocol);
        }
        if game.info.max_players != 0 && game.info.players >= game.info.max_players {
            self.counters.game_full += 1;
            return Err(LobbyRefusal::GameFull);
        }
        Ok(game)
    }

    /// Introduces two peers. A repeated question gives the same session.
    #[expect(clippy::too_many_arguments, reason = "what both sides are told, each once")]
    fn introduce(
        &mut self,
        number: u32,
        game: &Game,
        joiner: SocketAddr,
        sighting: Sighting,
        nonce: &[u8; 16],
        unix: UnixSeconds,
        out: &mut Datagrams,
    ) {
        self.counters.introduced += 1;
        let bytes = self.secrets.derive(&[b"session", &game.secret, nonce]);
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let (session, channel) = (word(0), word(24));
        let mut key = [0; 16];
        key.copy_from_slice(&bytes[8..24]);
        let expires = UnixSeconds(unix.0.saturating_add(RELAY_TOKEN_LIFETIME));
        let relay = |side| {
            self.config.relay.map(|offer| {
                let bytes_per_second = offer.bytes_per_second;
                let terms = RelayTerms { channel, side, expires, bytes_per_second };
                (offer.address, RelayToken::new(&offer.key, terms))
            })
        };
        let for_joiner = Introduction {
            session,
            key,
            leads: true,
            outside: game.host,
            sighting: game.sighting.clone(),
            relay: relay(true),
        };
        let for_host =
            Introduction { session, key, leads: false, outside: joiner, sighting, relay: relay(false) };
        out.push_with(game.host, |out| Answer::Introduction { peer: for_host }.write(0, &game.secret, out));
        out.push_with(joiner, |out| Answer::Introduction { peer: for_joiner }.write(number, nonce, out));
    }
}

/// Tells a peer the address that this port sees; false if the datagram isn't that question. A second port does nothing
/// else.
pub fn observe(from: SocketAddr, datagram: &[u8], out: &mut Datagrams) -> bool {
    let Some(Asked { number, request: Request::Observe, .. }) = Asked::read(datagram) else { return false };
    say_seen(from, number, out);
    true
}

fn say_seen(to: SocketAddr, number: u32, out: &mut Datagrams) {
    out.push_with(to, |out| Answer::Observed { seen: to }.write(number, &[], out));
}

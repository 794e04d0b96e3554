//! The admission to client slots: requests, challenges, responses.
//!
//! Promises: only the holder of a valid, unexpired, unconsumed token for this server who has proven its address is
//! admitted; anyone else gets at most one datagram in answer, smaller than its own. The cost of half-open
//! connections, tokens and sources is bounded by the configuration. Cheap tests come first: whatever can be refused
//! without decrypting is.
//!
//! Trusted: the contents of a token that opens with the private key, which the backend wrote, and the contents of a
//! challenge that opens with the key of this start, which we wrote. Not trusted: everything in clear. A request's
//! expiry is judged before it is proven, but only to refuse. A challenge is bound to its token and to the address it
//! was sent to: only the receiver at that address can answer it, and user data stays with its own token.

use core::net::SocketAddr;

use super::USER_DATA_BYTES;
use super::address::same_endpoint;
use super::challenge::{ChallengeToken, binding};
use super::config::ServerConfig;
use super::crypto::{Key, Tag};
use super::drops::DropReason;
use super::explanation::{Refusal, hash_in, nonce_of};
use super::half_open::{HalfOpen, HalfOpenTable};
use super::packet::{self, Body, Header, Kind, Request};
use super::private_token::{PrivateToken, token_tag};
use super::sealer::ADMISSION_SEQUENCES;
use super::slots::{ClientHandle, Slots};
use super::token_error::TokenError;
use super::token_history::TokenHistory;
use crate::rng::Entropy;
use crate::store::Datagrams;
use crate::store::keyed_hash::KeyedHash;
use crate::store::source_limit::SourceLimit;
use crate::time::{Duration, Instant, UnixSeconds};

/// How far beyond [`ADMISSION_SEQUENCES`] a server starts: at random, because all servers of a token, and all starts of one
/// while the token lives, use its keys. The odds that two of them meet are the packets they send to 2^62.
const GLOBAL_SEQUENCE_SPREAD: u64 = 1 << 62;

/// A token that expired longer ago than these seconds didn't do so because two clocks differ.
const PLAUSIBLE_CLOCK_DIFFERENCE: u64 = 5 * 60;

/// The price of a request that this server decrypts: a source regains 32 a second, which are three clients with bad tokens,
/// sending ten a second each.
///
/// A source that sends valid tokens is never slowed, because its charge is refunded, however many clients share its IP.
/// A source can be forged: somebody who sends garbage in a client's name drains that client's bucket. Then only 32 requests
/// a second of either get through, which delays the client and may keep it out. Connected clients are not affected.
const REQUEST_COST: Duration = Duration::from_nanos(1_000_000_000 / 32);

/// Requests of a source that may come at once.
const REQUESTS_AT_ONCE: u32 = 64;

/// Requests of one client closer than this are not refunded by the [`SourceLimit`]: honest clients leave 100 ms.
const MIN_REQUEST_INTERVAL: Duration = Duration::from_millis(50);

/// An admitted client, with its token's contents.
pub(crate) struct Admitted {
    /// A client with the same id, to be ended first.
    pub(crate) replaces: Option<ClientHandle>,
    pub(crate) client_id: u64,
    pub(crate) send_key: Key,
    pub(crate) receive_key: Key,
    pub(crate) timeout: Option<Duration>,
    pub(crate) user_data: Box<[u8; USER_DATA_BYTES]>,
}

pub(crate) struct Admission {
    pub(super) config: ServerConfig,
    started: UnixSeconds,
    /// Drawn at each start.
    challenge_key: Key,
    challenge_sequence: u64,
    /// The sequence of challenge and denied packets, shared by all clients.
    global_sequence: u64,
    pub(super) half_open: HalfOpenTable,
    history: TokenHistory,
    source_limit: SourceLimit,
}

impl Admission {
    pub(crate) fn new(
        config: ServerConfig,
        entropy: &mut dyn Entropy,
        hash: KeyedHash,
        unix: UnixSeconds,
    ) -> Self {
        let mut challenge_key = [0; 32];
        entropy.fill(&mut challenge_key);
        let mut spread = [0; 8];
        entropy.fill(&mut spread);
        Admission {
            started: unix,
            challenge_key,
            challenge_sequence: 0,
            global_sequence: ADMISSION_SEQUENCES + u64::from_le_bytes(spread) % GLOBAL_SEQUENCE_SPREAD,
            half_open: HalfOpenTable::new(config.half_open_capacity, hash.clone()),
            history: TokenHistory::new(config.token_history_capacity, hash.clone()),
            source_limit: SourceLimit::new(hash, REQUEST_COST, REQUESTS_AT_ONCE),
            config,
        }
    }

    /// Answers a valid request with a challenge, or denies it.
    pub(crate) fn handle_request(
        &mut self,
        now: Instant,
        unix: UnixSeconds,
        from: SocketAddr,
        datagram: &mut [u8],
        slots: &Slots,
        out: &mut Datagrams,
    ) -> Result<(), DropReason> {
        let request = Request::read(datagram)?;
        if request.protocol_id != self.config.protocol_id {
            return Err(DropReason::WrongProtocol);
        }
        let (tag, expires) = (token_tag(request.sealed), request.expires);
        self.check_lifetime(expires, unix)?;
        let refused_until = UnixSeconds(expires.0.saturating_add(self.config.clock_skew.as_secs()));
        self.history.check(&tag, from, refused_until)?;
        if !self.source_limit.charge(now, from) {
            return Err(DropReason::SourceLimit);
        }
        let private = self.open_token(request)?;
        if !private.addresses.iter().any(|&a| self.is_ours(a)) {
            return Err(DropReason::TokenForOtherServer);
        }
        if private.addresses.iter().any(|&a| self.is_of_another_protocol(a)) {
            return Err(DropReason::ProtocolDiffers);
        }
        self.check_creation(private.created, expires)?;
        let replaced = self.replaced(private.client_id, from, slots)?;
        self.history.remember(tag, from, refused_until, unix)?;
        if replaced.is_none() && slots.is_full() {
            self.deny(from, &private.server_to_client, out);
            return Err(DropReason::ServerFull);
        }
        self.challenge(now, from, &private, tag, out)
    }

    /// Whether the address shows another protocol, which the client may be told.
    fn is_of_another_protocol(&self, address: SocketAddr) -> bool {
        let upper_protocol = self.config.upper_protocol.as_ref().filter(|_| self.config.explains);
        upper_protocol
            .is_some_and(|upper_protocol| hash_in(address).is_some_and(|hash| hash != upper_protocol.hash))
    }

    /// Judges a token's claimed expiry against the clock.
    fn check_lifetime(&self, expires: UnixSeconds, unix: UnixSeconds) -> Result<(), DropReason> {
        let skew = self.config.clock_skew.as_secs();
        if let Some(late) = unix.0.checked_sub(expires.0.saturating_add(skew)) {
            let clocks = late < PLAUSIBLE_CLOCK_DIFFERENCE;
            return Err(if clocks { DropReason::TokenJustExpired } else { DropReason::TokenExpired });
        }
        let longest = self.config.max_token_lifetime.map_or(u64::MAX, |longest| longest.as_secs());
        if expires.0 > unix.0.saturating_add(longest).saturating_add(skew) {
            return Err(DropReason::TokenLifetime);
        }
        Ok(())
    }

    /// Judges an opened token against this server's start, because a token from before it may have been used. An
    /// undated token may be as old as tokens can live.
    fn check_creation(&self, created: Option<UnixSeconds>, expires: UnixSeconds) -> Result<(), DropReason> {
        let skew = self.config.clock_skew.as_secs();
        let is_from_before = match (created, self.config.max_token_lifetime) {
            (Some(created), _) => created.0.saturating_add(skew) < self.started.0,
            (None, Some(longest)) => {
                expires.0 < self.started.0.saturating_add(longest.as_secs()).saturating_add(skew)
            }
            (None, None) => false,
        };
        if is_from_before { Err(DropReason::TokenBeforeStart) } else { Ok(()) }
    }

    /// The client whose place this one would take, coming from this address. No other client may be connected there.
    fn replaced(
        &self,
        client_id: u64,
        from: SocketAddr,
        slots: &Slots,
    ) -> Result<Option<ClientHandle>, DropReason> {
        let replaced = slots.by_client_id(client_id);
        if replaced.is_some() && !self.config.replace_duplicates {
            return Err(DropReason::ClientIdConnected);
        }
        match slots.by_address(from) {
            neighbour if neighbour.is_none() || neighbour == replaced => Ok(replaced),
            _ => Err(DropReason::AddressConnected),
        }
    }

    fn open_token(&self, request: Request<'_>) -> Result<PrivateToken, DropReason> {
        let Request { protocol_id, expires, nonce, sealed } = request;
        if let Some(second) = &self.config.second_key {
            // It is opened in place, which a wrong key spoils.
            let mut copy = *sealed;
            if let Ok(private) = PrivateToken::open(&mut copy, second, protocol_id, expires, &nonce) {
                return Ok(private);
            }
        }
        match PrivateToken::open(sealed, &self.config.private_key, protocol_id, expires, &nonce) {
            Ok(private) => Ok(private),
            Err(TokenError::NotAuthentic) => Err(DropReason::TokenNotAuthentic),
            Err(_) => Err(DropReason::TokenMalformed),
        }
    }

    fn is_ours(&self, address: SocketAddr) -> bool {
        self.config.public_addresses.iter().any(|&ours| same_endpoint(ours, address))
    }

    fn challenge(
        &mut self,
        now: Instant,
        from: SocketAddr,
        private: &PrivateToken,
        tag: Tag,
        out: &mut Datagrams,
    ) -> Result<(), DropReason> {
        let known = self.half_open.find(now, from);
        // Whatever its token: else a client with two would be refunded for both in turn, at any rate.
        let hurried = known.is_some_and(|entry| now - entry.challenged < MIN_REQUEST_INTERVAL);
        let entry = HalfOpen {
            send_key: private.server_to_client,
            receive_key: private.client_to_server,
            timeout: private.timeout(),
            tag,
            challenged: now,
        };
        self.half_open.insert(now, from, entry)?;
        if !hurried {
            self.source_limit.refund(from);
        }
        let token = ChallengeToken {
            client_id: private.client_id,
            user_data: private.user_data,
            binding: binding(&tag, from),
        };
        let sealed = token.seal(&self.challenge_key, self.challenge_sequence);
        let body = packet::challenge_body(self.challenge_sequence, &sealed);
        self.challenge_sequence += 1;
        self.send_global(from, &private.server_to_client, Kind::Challenge, &body, out);
        Ok(())
    }

    /// Lets a client in that answers its challenge, or denies it. `slots` then has a place for it, and neither its
    /// address nor its client id, once the client that it replaces is gone.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &mut [u8],
        slots: &Slots,
        out: &mut Datagrams,
    ) -> Result<Admitted, DropReason> {
        let half_open = self.half_open.find(now, from).ok_or(DropReason::UnknownSource)?;
        let header = Header::read(datagram)?;
        if header.kind != Kind::Response {
            return Err(DropReason::UnexpectedType);
        }
        let body = header.open(datagram, self.config.protocol_id, &half_open.receive_key)?;
        let Body::Challenge { sequence, token } = body else { return Err(DropReason::UnexpectedType) };
        let token = ChallengeToken::open(token, &self.challenge_key, sequence)
            .ok_or(DropReason::ChallengeNotAuthentic)?;
        if token.binding != binding(&half_open.tag, from) {
            return Err(DropReason::ChallengeForOtherRequest);
        }
        if self.history.is_consumed(&half_open.tag) {
            return Err(DropReason::TokenConsumed);
        }
        let replaces = self.replaced(token.client_id, from, slots)?;
        let half_open = half_open.clone();
        if replaces.is_none() && slots.is_full() {
            self.deny(from, &half_open.send_key, out);
            return Err(DropReason::ServerFull);
        }
        self.half_open.remove(from);
        self.history.consume(&half_open.tag);
        Ok(Admitted {
            replaces,
            client_id: token.client_id,
            send_key: half_open.send_key,
            receive_key: half_open.receive_key,
            timeout: half_open.timeout,
            user_data: Box::new(token.user_data),
        })
    }

    /// Tells a client that the server is full. Always smaller than its request; and as the source limit refunds
    /// nothing for it, each source gets only as many of these answers as its limit allows.
    fn deny(&mut self, to: SocketAddr, key: &Key, out: &mut Datagrams) {
        self.send_global(to, key, Kind::Denied, &[], out);
    }

    /// Explains a final refusal, if the reason is no secret: at most as often as the source limit admits requests,
    /// and always much smaller than the request.
    pub(crate) fn explain(
        &mut self,
        now: Instant,
        to: SocketAddr,
        reason: DropReason,
        datagram: &mut [u8],
        out: &mut Datagrams,
    ) {
        if !self.config.explains {
            return;
        }
        let Some(refusal) = Refusal::of(reason, self.config.protocol_id) else { return };
        // The others were charged before they were opened.
        let charged = reason != DropReason::WrongProtocol || self.source_limit.charge(now, to);
        if let Some(nonce) = nonce_of(datagram).filter(|_| charged) {
            let note =
                self.config.upper_protocol.as_ref().map_or(&[][..], |upper_protocol| &upper_protocol.note);
            out.push_with(to, |arena| refusal.write(&nonce, note, arena));
        }
    }

    fn send_global(&mut self, to: SocketAddr, key: &Key, kind: Kind, body: &[u8], out: &mut Datagrams) {
        let (protocol_id, sequence) = (self.config.protocol_id, self.global_sequence);
        self.global_sequence += 1;
        out.push_with(to, |arena| packet::seal(arena, protocol_id, key, sequence, kind, body));
    }
}

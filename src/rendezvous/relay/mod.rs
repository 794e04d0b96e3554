//! The last resort: a server that carries datagrams between two peers that can't reach each other.
//!
//! Promises: it carries for a peer that shows a token of its rendezvous server from a proven address, to the other side
//! of that channel and nowhere else; at the token's rate; nothing longer than it received. Memory is bounded by the
//! number of channels, and none is used before an address is proven. Netcode sealed the datagrams, so the relay can't
//! read them.

mod packets;
pub mod token;

use core::net::SocketAddr;
use std::collections::BTreeMap;

pub use packets::RELAY_HEADER_BYTES;
pub(super) use packets::RelayPacket;
pub use token::{RelayKey, RelayTerms, RelayToken};

use super::secrets::Secrets;
use crate::limits::MAX_DATAGRAM;
use crate::rng::Entropy;
use crate::store::counters::counters;
use crate::store::source_limit::source;
use crate::store::{Bucket, Datagrams};
use crate::time::{Duration, Instant, UnixSeconds};

/// The default maximum of channels.
pub const DEFAULT_MAX_CHANNELS: usize = 4096;

/// The silence after which a channel is forgotten: three times a peer's rebind interval.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// How often idle channels are forgotten.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Sides of channels that one source may hold: players behind one NAT.
const MAX_OF_A_SOURCE: u32 = 256;

/// Settings of a [`RelayServer`].
#[derive(Clone, Copy, Debug)]
pub struct RelayServerConfig {
    pub key: RelayKey,
    pub max_channels: usize,
    /// The rate in bytes a second for all channels together, UDP payloads only.
    pub max_bytes_per_second: u64,
}

counters! {
    /// Counters of a relay.
    pub struct RelayCounters {
        /// Channels with at least one bound side.
        channels,
        /// Times a peer bound its side of a channel, first or again from another address.
        bound,
        /// Channels forgotten after a silence.
        forgotten,
        /// Datagrams answered with a cookie.
        challenged,
        forwarded,
        forwarded_bytes,
        /// Datagrams that aren't a relay's packet.
        malformed,
        /// Tokens not written by the rendezvous server.
        forged_token,
        expired_token,
        /// Binds refused because the relay has its maximum of channels.
        full,
        /// Binds refused because their source has its maximum of channels.
        source_full,
        /// Datagrams from a sender that isn't bound to their channel.
        unbound,
        /// Datagrams whose receiver isn't bound, or not any more.
        other_side_missing,
        /// Datagrams beyond their channel's rate.
        over_rate,
        /// Datagrams beyond the rate of all channels together.
        over_total_rate,
    }
}

/// A byte rate, with bursts of half a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByteBucket {
    per_second: u64,
    bucket: Bucket,
}

impl ByteBucket {
    pub(super) fn new(per_second: u64) -> Self {
        ByteBucket { per_second, bucket: Bucket::default() }
    }

    pub(super) fn take(&mut self, now: Instant, bytes: usize) -> bool {
        let nanos = (bytes as u128 * 1_000_000_000 / u128::from(self.per_second.max(1))) as u64;
        self.bucket.take(now, Duration::from_nanos(nanos), Duration::from_millis(500))
    }
}

#[derive(Clone, Copy, Debug)]
struct Channel {
    sides: [Option<SocketAddr>; 2],
    bucket: ByteBucket,
    used: Instant,
}

/// A relay with its channels.
pub struct RelayServer {
    config: RelayServerConfig,
    secrets: Secrets,
    channels: BTreeMap<u64, Channel>,
    /// How many sides each source holds.
    sources: BTreeMap<u64, u32>,
    total: ByteBucket,
    sweep_at: Instant,
    counters: RelayCounters,
}

impl RelayServer {
    /// A relay without channels.
    pub fn new(config: RelayServerConfig, entropy: &mut dyn Entropy) -> Self {
        RelayServer {
            secrets: Secrets::new(entropy),
            total: ByteBucket::new(config.max_bytes_per_second),
            config,
            channels: BTreeMap::new(),
            sources: BTreeMap::new(),
            sweep_at: Instant::ZERO,
            counters: RelayCounters::default(),
        }
    }

    pub fn counters(&self) -> RelayCounters {
        RelayCounters { channels: self.channels.len() as u64, ..self.counters }
    }

    /// Handles a datagram: answers or forwards it.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        unix: UnixSeconds,
        from: SocketAddr,
        datagram: &[u8],
        out: &mut Datagrams,
    ) {
        self.sweep(now);
        match RelayPacket::read(datagram).map(|(packet, _)| packet) {
            Some(RelayPacket::Data { channel }) => self.forward(now, from, channel, datagram, out),
            Some(RelayPacket::Bind { cookie, token }) if self.secrets.proves(now, from, &cookie) => {
                self.bind(now, unix, from, token, out);
            }
            Some(RelayPacket::Bind { token, .. }) => {
                let (channel, cookie) = (token.channel(), self.secrets.cookie(now, from));
                self.counters.challenged += 1;
                out.push_with(from, |out| RelayPacket::Challenge { channel, cookie }.write(out));
            }
            _ => self.counters.malformed += 1,
        }
    }

    fn bind(
        &mut self,
        now: Instant,
        unix: UnixSeconds,
        from: SocketAddr,
        token: RelayToken,
        out: &mut Datagrams,
    ) {
        let Some(terms) = token.open(&self.config.key) else { return self.counters.forged_token += 1 };
        if terms.expires < unix {
            return self.counters.expired_token += 1;
        }
        if !self.channels.contains_key(&terms.channel) && self.channels.len() >= self.config.max_channels {
            return self.counters.full += 1;
        }
        let bucket = ByteBucket::new(terms.bytes_per_second.into());
        let new = Channel { sides: [None; 2], bucket, used: now };
        let before = self.channels.get(&terms.channel).and_then(|it| it.sides[usize::from(terms.side)]);
        if before.map(source) != Some(source(from)) {
            let count = self.sources.entry(source(from)).or_default();
            if *count >= MAX_OF_A_SOURCE {
                return self.counters.source_full += 1;
            }
            *count += 1;
            before.into_iter().for_each(|before| leave(&mut self.sources, before));
        }
        let channel = self.channels.entry(terms.channel).or_insert(new);
        channel.sides[usize::from(terms.side)] = Some(from);
        channel.used = now;
        self.counters.bound += u64::from(before != Some(from));
        out.push_with(from, |out| RelayPacket::Bound { channel: terms.channel }.write(out));
    }

    fn forward(&mut self, now: Instant, from: SocketAddr, number: u64, datagram: &[u8], out: &mut Datagrams) {
        let side = |channel: &Channel| channel.sides.iter().position(|side| *side == Some(from));
        let Some((channel, side)) =
            self.channels.get_mut(&number).and_then(|it| side(it).map(|side| (it, side)))
        else {
            return self.counters.unbound += 1;
        };
        if datagram.len() > MAX_DATAGRAM {
            return self.counters.malformed += 1;
        }
        channel.used = now;
        let Some(to) = channel.sides[1 - side] else { return self.counters.other_side_missing += 1 };
        if !channel.bucket.take(now, datagram.len()) {
            return self.counters.over_rate += 1;
        }
        if !self.total.take(now, datagram.len()) {
            return self.counters.over_total_rate += 1;
        }
        self.counters.forwarded += 1;
        self.counters.forwarded_bytes += datagram.len() as u64;
        out.push(to, datagram);
    }

    /// Forgets idle channels; call it now and then even if no datagram comes.
    pub fn sweep(&mut self, now: Instant) {
        if now < self.sweep_at {
            return;
        }
        self.sweep_at = now + SWEEP_INTERVAL;
        let RelayServer { channels, sources, counters, .. } = self;
        channels.retain(|_, channel| {
            let stays = now - channel.used < IDLE_TIMEOUT;
            if !stays {
                counters.forgotten += 1;
                channel.sides.into_iter().flatten().for_each(|side| leave(sources, side));
            }
            stays
        });
    }
}

fn leave(sources: &mut BTreeMap<u64, u32>, side: SocketAddr) {
    if let Some(count) = sources.get_mut(&source(side)) {
        *count -= 1;
        if *count == 0 {
            sources.remove(&source(side));
        }
    }
}

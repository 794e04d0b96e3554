//! What an endpoint counts, and what of it is worth a line in a log.
//!
//! Promises: a line about the same thing at most once a second; texts are made only by who logs them.

mod drops;
mod hooks;

use std::time::{Duration, Instant};

pub use drops::{DropReport, Dropped};
pub use hooks::{HookClock, HookCounters, Slow};

use super::DriverCounters;
use crate::calls::CallCounters;
use crate::endpoint::ConnectionCounters;
use crate::netcode::Counters;
use crate::session::hosting::HostingCounters;
use crate::transport::PacketCounters;
use crate::transport::chunks::ChunkCounters;

/// How often the same thing is reported.
const PERIOD: Duration = Duration::from_secs(1);

/// Lets a line through at most once a second.
#[derive(Debug, Default)]
pub struct LogPace(Option<std::time::Instant>);

impl LogPace {
    /// Whether a line is let through now.
    pub fn is_due(&mut self, now: std::time::Instant) -> bool {
        let is_due = self.0.is_none_or(|logged_at| now - logged_at >= PERIOD);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

/// Messages that the application's code refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct RefusalCounters {
    refused: u64,
    raised: u64,
}

impl RefusalCounters {
    /// Each count under its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [("refused", self.refused), ("raised", self.raised)].into_iter()
    }
}

/// Counts refused messages, and limits logging by the computer's clock: a simulated network's doesn't advance.
#[derive(Debug, Default)]
pub struct Refusals {
    /// The counts so far.
    pub counters: RefusalCounters,
    pace: LogPace,
}

impl Refusals {
    /// Counts a message, and returns whether the line about it should be logged.
    pub fn count(&mut self, is_refusal: bool, now: Instant) -> bool {
        if is_refusal {
            self.counters.refused += 1;
            return false;
        }
        self.counters.raised += 1;
        self.pace.is_due(now)
    }
}

/// All counters of an endpoint.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Counts of the socket and of what carries datagrams.
    pub driver: DriverCounters,
    /// Counts of connecting and of sealed packets.
    pub netcode: Counters,
    /// Counts of packets inside connections.
    pub packets: PacketCounters,
    /// Counts of chunks and slices.
    pub chunks: ChunkCounters,
    /// Counts of messages that the application refused.
    pub refusals: RefusalCounters,
    /// Counts of the application's hooks.
    pub hooks: HookCounters,
    /// Counts of connections and refusals.
    pub connections: ConnectionCounters,
    /// Counts of a game that peers host.
    pub hosting: Option<HostingCounters>,
    /// Counts of calls and requests.
    pub calls: CallCounters,
}

impl Counted {
    /// Layer, name and count.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let of = |layer| move |(name, count)| (layer, name, count);
        let driver =
            self.driver.udp.iter().map(of("socket")).chain(self.driver.link.iter().map(of("simulator")));
        let core = self.netcode.iter().map(of("netcode")).chain(self.packets.iter().map(of("packets")));
        let chunks = self.chunks.iter().map(of("chunks"));
        let refusals = self.refusals.iter().map(of("messages"));
        let connections = self.connections.iter().map(of("connections"));
        let carry = self.driver.carry.iter().flat_map(|carry| carry.iter()).map(of("carrying"));
        let local = self.driver.local.iter().flat_map(|local| local.iter()).map(of("local"));
        let hosted = self.driver.hosted.iter().flat_map(|hosted| hosted.iter()).map(of("hosted"));
        let hosting = self.hosting.iter().flat_map(|hosting| hosting.iter()).map(of("hosting"));
        let driver = driver.chain(carry).chain(local).chain(hosted).chain(hosting);
        let core = driver.chain(core).chain(chunks).chain(connections);
        let above = refusals.chain(self.hooks.iter().map(of("hooks")));
        core.chain(above).chain(self.calls.iter().map(of("calls")))
    }
}

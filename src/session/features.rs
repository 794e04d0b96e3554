//! The packet features of a session, in order.

use core::ops::Range;

use super::feature::{Feature, Moment};
use super::ghosts::{GhostPart, Ghosts};
use super::peers::PeerPart;
use super::protocol::{GHOSTS, PEERS, TIME};
use super::timing::Timing;
use crate::endpoint::{self, Event, Host, PeerHandle};
use crate::store::Datagrams;
use crate::time::Instant;
use crate::transport::{Notification, Protocol, Received};
use crate::wire::BitWriter;

/// The features of a session. Only this type knows all of them.
pub(super) struct Features {
    pub(super) ghosts: GhostPart,
    pub(super) timing: Timing,
    pub(super) peers: Option<Box<PeerPart>>,
    /// The channels of each, in the order of [`Features::all`].
    channels: [Range<usize>; 3],
    /// The tick for which packets are composed.
    moment: Moment,
}

impl Features {
    pub(super) fn new(protocol: &Protocol, ghosts: Ghosts, timing: Timing) -> Self {
        let channels = [GHOSTS, TIME, PEERS].map(|name| protocol.channels_of(name).unwrap_or_default());
        let moment = Moment { now: Instant::ZERO, tick: 0 };
        Features { ghosts: GhostPart::new(ghosts), timing, peers: None, channels, moment }
    }

    /// The features, in the order in which they fill packets.
    fn all(&mut self) -> [Option<&mut dyn Feature>; 3] {
        let peers = self.peers.as_deref_mut().map(|peers| peers as &mut dyn Feature);
        [Some(&mut self.ghosts), Some(&mut self.timing), peers]
    }

    /// The place of the feature that has this channel; None for a channel of the game.
    fn place(&self, channel: usize) -> Option<usize> {
        self.channels.iter().position(|channels| channels.contains(&channel))
    }

    /// A server's tick: the last one flushed, with the number that ghosts' packets carry.
    pub(super) fn tick(&mut self) -> u32 {
        match (self.ghosts.role.publisher(), &self.timing) {
            (Some(publisher), _) => publisher.tick(),
            (None, Timing::Server(timing)) => timing.flushes(),
            _ => 0,
        }
    }

    /// Hands a payload to the feature that has the channel, and the server's tick in the payload to the others.
    ///
    /// # Errors
    /// The feature, and how the peer broke its protocol.
    pub(super) fn read(
        &mut self,
        now: Instant,
        host: &Host,
        peer: PeerHandle,
        channel: usize,
        received: Received,
    ) -> Result<(), (&'static str, String)> {
        let moment = Moment { now, tick: self.tick() };
        let arrived = (received.received_at, received.packet_sequence);
        let Some(place) = self.place(channel) else { return Ok(()) };
        let mut all = self.all();
        let Some(feature) = &mut all[place] else { return Ok(()) };
        let read = feature.read(moment, host, peer, channel, received);
        let tick = read.map_err(|why| (feature.name(), why))?;
        if let Some(tick) = tick {
            let others = all.iter_mut().enumerate().filter(|(other, _)| *other != place);
            others
                .filter_map(|(_, other)| other.as_mut())
                .for_each(|other| other.note_tick(host, peer, arrived, tick));
        }
        Ok(())
    }

    /// Takes the notifications of the features' own packets out of the application's.
    pub(super) fn take_notifications(&mut self, notifications: &mut Vec<(PeerHandle, Notification)>) {
        notifications.retain(|(peer, fate)| {
            let Some(place) = self.place(fate.channel.into()) else { return true };
            if let Some(feature) = &mut self.all()[place] {
                feature.note_fate(*peer, fate);
            }
            false
        });
    }

    pub(super) fn note_events(&mut self, now: Instant, host: &Host, events: &[Event]) {
        let moment = Moment { now, tick: self.tick() };
        self.all().into_iter().flatten().for_each(|feature| feature.note_events(moment, host, events));
    }

    /// Sends everything that is due, and asks the features to fill packets.
    pub(super) fn transmit(&mut self, now: Instant, host: &mut Host, out: &mut Datagrams) {
        self.timing.begin_flush(self.ghosts.role.publisher());
        let channels = self.channels.clone();
        for (feature, channels) in self.all().into_iter().zip(channels) {
            if let Some(feature) = feature.filter(|_| !channels.is_empty()) {
                feature.want(now, host, channels.start);
            }
        }
        let has_time = !matches!(self.timing, Timing::None);
        if self.ghosts.role.publisher().is_none() && !has_time && self.peers.is_none() {
            return host.transmit(now, out);
        }
        self.moment = Moment { now, tick: self.tick() };
        host.transmit_with(now, out, self);
    }
}

impl endpoint::Feature for Features {
    fn fill(&mut self, peer: PeerHandle, channel: usize, bits: usize, writer: &mut BitWriter) -> Option<u32> {
        let (moment, place) = (self.moment, self.place(channel)?);
        self.all()[place].as_mut()?.fill(moment, peer, channel, bits, writer)
    }
}

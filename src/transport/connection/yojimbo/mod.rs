//! A conversation in yojimbo's framing: the same channels and packets, composed and read in another way.
//!
//! Promises: one packet a tick, even an empty one, because only packets' headers carry acks; more packets if there is
//! more, as many as the peer can ack. Messages that the application doesn't take in time are not acked, so that the
//! peer sends them again: there is no credit on this wire, and nobody is disconnected for reading slowly. Refuses
//! what `YOJIMBO.md` lists, which ends the connection.
//!
//! Messages that only their own code can read have no length here. So packets of a protocol with such messages are
//! held, acked but unread, until the layer that can run that code takes them ([`Connection::take_unread`]) and gives
//! back their contents.

mod send;

use super::conversation::Conversation;
use super::framing::{Framing, GRAIN};
use super::held_packets::HeldPacket;
use super::{Connection, End};
use crate::time::{Duration, Instant};
use crate::transport::ack_endpoint::Incoming;
use crate::transport::congestion::RoundTrip;
use crate::transport::direct_tables::DirectTables;
use crate::transport::framing::Fault;
use crate::transport::framing::native::ReadContext;
use crate::transport::framing::yojimbo::{self, Item};
use crate::transport::ledger::acks::RttSampling;
use crate::transport::message::Prefix;
use crate::transport::outlet::Outlet;
use crate::transport::protocol::Protocol;
use crate::transport::stream::Fill;
use std::sync::Arc;

/// An empty packet: no entries.
const EMPTY: [u8; 1] = [0];

/// Packets for each of the peer's: each is acked by four headers.
const PACKETS_PER_PACKET: u32 = 8;

/// Packets at once: a header that acks them all has room for some more.
const MAX_PACKETS_AT_ONCE: u32 = 24;

/// The framing of `YOJIMBO.md`.
#[derive(Debug, Default)]
pub(super) struct Yojimbo {
    /// How many packets may go out beyond one a tick. The peer acks 32 at a time, in the packets that it sends, so each of
    /// these allows some more.
    allowed: u32,
    items: Vec<Item>,
}

/// Packets that were acked and not read.
#[derive(Debug)]
pub struct UnreadPackets {
    protocol: Arc<Protocol>,
    packets: Vec<HeldPacket>,
}

/// The contents of packets in order, until one that is refused.
#[derive(Debug)]
pub struct ReadPackets {
    packets: Vec<Vec<Item>>,
    fault: Option<Fault>,
}

impl UnreadPackets {
    /// Reads them. `extent` finds the end of a body that only its own code can read: of this message type, in these
    /// bytes, from this bit on; or why it is refused.
    pub fn read(self, mut extent: impl FnMut(u16, &[u8], usize) -> Result<usize, String>) -> ReadPackets {
        let mut read = ReadPackets { packets: Vec::new(), fault: None };
        for HeldPacket { context, payload } in self.packets {
            let mut items = Vec::new();
            match yojimbo::read(&payload, &self.protocol, context, &mut extent, &mut items) {
                Ok(()) => read.packets.push(items),
                Err(fault) => {
                    read.fault = Some(fault);
                    break;
                }
            }
        }
        read
    }
}

impl Framing for Yojimbo {
    fn transmit(
        &mut self,
        parts: &mut Conversation,
        now: Instant,
        out: &mut dyn Outlet,
        _: Option<&mut (dyn Fill + '_)>,
    ) {
        self.transmit_tick(parts, now, out);
    }

    fn transmit_between(&mut self, parts: &mut Conversation, now: Instant, out: &mut dyn Outlet) {
        if parts.outbound.keep_alive_at(Duration::ZERO).is_none_or(|at| at <= now) {
            self.transmit_tick(parts, now, out);
        }
    }

    /// Each tick has a packet.
    fn next_tick(&self, _: &mut Conversation) -> Instant {
        Instant::ZERO
    }

    fn next_between(&self, parts: &mut Conversation, now: Instant) -> Instant {
        let keep_alive = parts.outbound.keep_alive_at(Duration::ZERO).unwrap_or(now);
        keep_alive.max(now + GRAIN)
    }

    fn handle(
        &mut self,
        parts: &mut Conversation,
        now: Instant,
        incoming: Incoming<'_>,
        _: Option<&mut dyn DirectTables>,
    ) -> Result<bool, End> {
        let header = incoming.header;
        let context = ReadContext { now, sequence: header.sequence, ack: header.ack, hello_received: true };
        if parts.protocol.holds_packets() && !incoming.payload().is_empty() {
            if incoming.payload() != EMPTY && !parts.inbound.held.push(context, incoming.payload()) {
                parts.ledger.endpoint.refuse(incoming);
                return Ok(false);
            }
            self.accept(parts, now, incoming);
            return Ok(true);
        }
        let mut unreadable = |_: u16, _: &[u8], _: usize| Err(String::new());
        self.items.clear();
        let payload = incoming.payload();
        let read = yojimbo::read(payload, &parts.protocol, context, &mut unreadable, &mut self.items);
        if let Err(fault) = read {
            parts.ledger.endpoint.refuse(incoming);
            return Err(fault.into());
        }
        if !self.items.iter().all(|item| has_room(parts, item)) {
            // As if it had been lost.
            parts.ledger.endpoint.refuse(incoming);
            return Ok(false);
        }
        self.accept(parts, now, incoming);
        apply(parts, &mut self.items).map(|()| true)
    }
}

impl Yojimbo {
    /// Accepts a packet, and applies its acks.
    fn accept(&mut self, parts: &mut Conversation, now: Instant, incoming: Incoming<'_>) {
        let header = incoming.header;
        let acked = &mut parts.scratch.get().acked;
        acked.clear();
        // The peer's wait for its tick is part of the round trip: this wire doesn't carry it.
        let sampling = RttSampling::NewestAck { delay: Duration::ZERO };
        parts.ledger.endpoint.accept(now, incoming, sampling, acked);
        let newest = acked.iter().find(|acked| acked.sequence == header.ack);
        let round_trip = newest.map(|newest| now - newest.sent_at);
        self.allowed = (self.allowed + PACKETS_PER_PACKET).min(MAX_PACKETS_AT_ONCE);
        parts.apply_acks(now, round_trip.map(|time| RoundTrip { time, received_at: None }));
    }
}

fn has_room(parts: &Conversation, item: &Item) -> bool {
    let (channel, prefix) = match item {
        Item::Message(message) => (message.channel, message.prefix),
        Item::Fragment { channel, fragment } => (*channel, Prefix::Id(fragment.id)),
    };
    parts.streams.has_room(channel.into(), prefix)
}

/// Hands a packet's items over; no message of it when a window forbids one.
fn apply(parts: &mut Conversation, items: &mut Vec<Item>) -> Result<(), End> {
    for item in &*items {
        let Item::Message(message) = item else { continue };
        // Without credit there is no bound of bytes.
        let (place, bytes) = ((message.prefix, 0), message.received.window_bytes);
        let checked = parts.streams.check(message.channel.into(), place, bytes, &mut 0);
        checked.map_err(|fault| Fault::desync(message.channel, fault))?;
    }
    for item in items.drain(..) {
        let (channel, applied) = match item {
            Item::Message(message) => {
                let applied = parts.streams.receive(message.channel.into(), |receiving| {
                    receiving.handle(message.prefix, 0, message.received)
                });
                let Some(applied) = applied else { continue };
                let spares = &mut parts.scratch.get().bodies.spares;
                let applied =
                    applied.map(|dropped| dropped.into_iter().for_each(|it| spares.reclaim(it.body)));
                (message.channel, applied)
            }
            Item::Fragment { channel, fragment } => {
                let limits = parts.protocol.yojimbo_channel(channel.into());
                (channel, parts.streams.handle_block_fragment(channel.into(), fragment, &limits))
            }
        };
        applied.map_err(|fault| Fault::desync(channel, fault))?;
    }
    Ok(())
}

impl Connection {
    /// Takes the packets that the core can't read, if there are any; call [`Connection::handle_read`] afterwards.
    pub fn take_unread(&mut self) -> Option<UnreadPackets> {
        let held = Some(&mut self.parts.inbound.held).filter(|held| !held.packets.is_empty())?;
        let packets = core::mem::take(held).packets;
        held.is_being_read = true;
        Some(UnreadPackets { protocol: self.parts.protocol.clone(), packets })
    }

    /// Whether there are such packets, or their contents are still to come.
    pub(crate) fn has_unread(&self) -> bool {
        let held = &self.parts.inbound.held;
        held.is_being_read || !held.packets.is_empty()
    }

    /// Takes their contents. `take` is called after each packet, to take its messages before the next one's need
    /// their room.
    ///
    /// # Errors
    ///
    /// The conversation is over, and why.
    pub fn handle_read(&mut self, read: ReadPackets, mut take: impl FnMut(&mut Self)) -> Result<(), End> {
        self.parts.inbound.held.is_being_read = false;
        for mut items in read.packets {
            apply(&mut self.parts, &mut items)?;
            take(self);
        }
        read.fault.map_or(Ok(()), |fault| Err(fault.into()))
    }
}

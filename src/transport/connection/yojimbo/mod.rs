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

use super::{Connection, End};
use crate::time::{Duration, Instant};
use crate::transport::ack_endpoint::Incoming;
use crate::transport::congestion::RoundTrip;
use crate::transport::error::SendError;
use crate::transport::framing::Fault;
use crate::transport::framing::native::ReadContext;
use crate::transport::framing::yojimbo::{self, Item};
use crate::transport::ledger::acks::RttSampling;
use crate::transport::message::{Message, Prefix};
use crate::transport::parts::{Desync, Fragment};
use crate::transport::peer_pace::PeerPace;
use crate::transport::protocol::{ChannelKind, Protocol};
use crate::transport::stream::WindowViolation;
use std::sync::Arc;

/// Bytes of packets that are held unread; beyond them they are dropped, and not acked.
const MAX_HELD_BYTES: usize = 1 << 20;

/// The cost of a held packet besides its bytes.
const HELD_OVERHEAD_BYTES: usize = 64;

/// An empty packet: no entries.
const EMPTY: [u8; 1] = [0];

/// A connection's state for this framing.
#[derive(Debug, Default)]
pub(super) struct YojimboState {
    pace: PeerPace,
    /// Fragments of the packet being composed, by channel.
    fragments: Vec<(usize, Fragment)>,
    items: Vec<Item>,
    held: Vec<HeldPacket>,
    held_bytes: usize,
    /// Someone reads packets that were held.
    being_read: bool,
}

#[derive(Debug)]
struct HeldPacket {
    context: ReadContext,
    payload: Box<[u8]>,
}

/// Packets that were acked and not read.
#[derive(Debug)]
pub struct Unread {
    protocol: Arc<Protocol>,
    packets: Vec<HeldPacket>,
}

/// The contents of packets in order, until one that is refused.
#[derive(Debug)]
pub struct Read {
    packets: Vec<Vec<Item>>,
    fault: Option<Fault>,
}

impl Unread {
    /// Reads them. `extent` finds the end of a body that only its own code can read: of this message type, in these
    /// bytes, from this bit on; or why it is refused.
    pub fn read(self, mut extent: impl FnMut(u16, &[u8], usize) -> Result<usize, String>) -> Read {
        let mut read = Read { packets: Vec::new(), fault: None };
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

impl Connection {
    /// Checks what this framing asks of a message.
    pub(super) fn check_yojimbo(&self, channel: usize, message: &Message) -> Result<(), SendError> {
        let Some(config) = self.protocol.yojimbo() else { return Ok(()) };
        let settings = self.protocol.yojimbo_channel(channel);
        if config.is_block(message.message_type) {
            let (bytes, max_bytes) =
                (message.block.as_ref().map_or(0, |block| block.len()), settings.max_block_bytes);
            if !settings.blocks {
                return Err(SendError::BlocksDisabled);
            }
            if bytes == 0 || bytes > max_bytes {
                return Err(SendError::Block { bytes, max_bytes });
            }
            let kind = self.protocol.channels()[channel].kind;
            let reliable = matches!(kind, ChannelKind::Reliable { .. });
            let beside = if reliable { bytes.min(settings.block_fragment_bytes) } else { bytes };
            let bytes = message.encoded.max_bits().div_ceil(8) + beside;
            let (max_bytes, max_packet_bytes) = (config.max_message_bytes(), config.max_packet_bytes);
            if bytes > max_bytes {
                return Err(SendError::Packet { bytes, max_bytes, max_packet_bytes });
            }
        }
        Ok(())
    }

    /// Takes a packet of the peer.
    pub(super) fn handle_yojimbo(&mut self, now: Instant, incoming: Incoming<'_>) -> Result<(), End> {
        let header = incoming.header();
        let context = ReadContext { now, sequence: header.sequence, ack: header.ack, hello_received: true };
        let hold = self.protocol.holds_packets() && !incoming.payload().is_empty();
        if hold {
            let bytes = incoming.payload().len() + HELD_OVERHEAD_BYTES;
            let empty = incoming.payload() == EMPTY;
            if !empty && self.yojimbo.get_or_insert_default().held_bytes + bytes > MAX_HELD_BYTES {
                self.endpoint.refuse(incoming);
                return Ok(());
            }
            if !empty {
                self.yojimbo.get_or_insert_default().held_bytes += bytes;
                self.yojimbo
                    .get_or_insert_default()
                    .held
                    .push(HeldPacket { context, payload: incoming.payload().into() });
            }
            self.accept_yojimbo(now, incoming);
            return Ok(());
        }
        let mut items = core::mem::take(&mut self.yojimbo.get_or_insert_default().items);
        let read = yojimbo::read(
            incoming.payload(),
            &self.protocol,
            context,
            &mut |_, _, _| Err(String::new()),
            &mut items,
        );
        if let Err(fault) = read {
            self.endpoint.refuse(incoming);
            return Err(fault.into());
        }
        if !items.iter().all(|item| self.has_room(item)) {
            // As if it had been lost.
            self.endpoint.refuse(incoming);
            return Ok(());
        }
        self.accept_yojimbo(now, incoming);
        let applied = self.apply_items(&mut items);
        items.clear();
        self.yojimbo.get_or_insert_default().items = items;
        applied
    }

    fn accept_yojimbo(&mut self, now: Instant, incoming: Incoming<'_>) {
        let header = incoming.header();
        let acked = &mut self.scratch.get().acked;
        acked.clear();
        // The peer's wait for its tick is part of the round trip: this wire doesn't carry it.
        let sampling = RttSampling::NewestAck { delay: Duration::ZERO };
        self.endpoint.accept(now, incoming, sampling, acked);
        let newest = acked.iter().find(|acked| acked.sequence == header.ack);
        let round_trip = newest.map(|newest| now - newest.sent_at);
        self.yojimbo.get_or_insert_default().pace.handle_packet(now, round_trip);
        self.apply_acks(now, round_trip.map(|time| RoundTrip { time, received_at: None }));
    }

    fn has_room(&self, item: &Item) -> bool {
        let (channel, prefix) = match item {
            Item::Message(message) => (message.channel, message.prefix),
            Item::Fragment { channel, fragment } => (*channel, Prefix::Id(fragment.id)),
        };
        self.streams.has_room(channel.into(), prefix)
    }

    /// Hands a packet's items over; no message of it when a window forbids one.
    fn apply_items(&mut self, items: &mut Vec<Item>) -> Result<(), End> {
        for item in &*items {
            let Item::Message(message) = item else { continue };
            // Without credit there is no bound of bytes.
            let (place, bytes) = ((message.prefix, 0), message.received.window_bytes);
            let checked = self.streams.check(message.channel.into(), place, bytes, &mut 0);
            let desync = |_| Fault::Desync { channel: message.channel, desync: Desync::Window };
            checked.map_err(desync)?;
        }
        for item in items.drain(..) {
            let (channel, applied) = match item {
                Item::Message(message) => {
                    let applied = self.streams.receive(message.channel.into(), |receiving| {
                        receiving.handle(message.prefix, 0, message.received)
                    });
                    let Some(applied) = applied else { continue };
                    let applied =
                        applied.map(|dropped| dropped.into_iter().for_each(|it| self.reclaim(it.body)));
                    (message.channel, applied.map_err(|WindowViolation| Desync::Window))
                }
                Item::Fragment { channel, fragment } => {
                    let limits = yojimbo::block_limits(&self.protocol, channel.into());
                    (channel, self.streams.handle_block(channel.into(), fragment, limits))
                }
            };
            applied.map_err(|desync| Fault::Desync { channel, desync })?;
        }
        Ok(())
    }

    /// Takes the packets that the core can't read, if there are any; call [`Connection::handle_read`] afterwards.
    pub fn take_unread(&mut self) -> Option<Unread> {
        let state = self.yojimbo.as_mut().filter(|state| !state.held.is_empty())?;
        (state.held_bytes, state.being_read) = (0, true);
        Some(Unread { protocol: self.protocol.clone(), packets: core::mem::take(&mut state.held) })
    }

    /// Drops them and their contents, which nobody will read.
    pub(super) fn discard_unread(&mut self) {
        if let Some(state) = &mut self.yojimbo {
            state.held.clear();
            (state.held_bytes, state.being_read) = (0, false);
        }
    }

    /// Whether there are such packets, or their contents are still to come.
    pub(crate) fn has_unread(&self) -> bool {
        self.yojimbo.as_ref().is_some_and(|state| state.being_read || !state.held.is_empty())
    }

    /// Takes their contents. `take` is called after each packet, to take its messages before the next one's need
    /// their room.
    ///
    /// # Errors
    ///
    /// The conversation is over, and why.
    pub fn handle_read(&mut self, read: Read, mut take: impl FnMut(&mut Self)) -> Result<(), End> {
        let Some(state) = &mut self.yojimbo else { return Ok(()) };
        state.being_read = false;
        for mut items in read.packets {
            self.apply_items(&mut items)?;
            take(self);
        }
        read.fault.map_or(Ok(()), |fault| Err(fault.into()))
    }
}

impl YojimboState {
    /// A packet with a fragment was acked or lost.
    pub(super) fn pace_blocks(&mut self, now: Instant, acked: bool) {
        if acked { self.pace.handle_ack() } else { self.pace.handle_lost(now) }
    }
}

//! A conversation in yojimbo's framing: the same channels and packets, another way to compose and read them.
//!
//! Promises: one packet a tick, also when there is nothing to say, because acks ride in packets' headers only; more packets
//! when there is more, as many as the peer can ack. What the application doesn't take in time is not acked, so that the
//! peer sends it again: there is no credit on this wire, and nobody is disconnected for reading slowly.
//! Refuses: what `YOJIMBO.md` lists, which ends the connection.
//!
//! Messages that only their own code can read have no length here. So packets of a protocol that has such are held, acked but
//! unread, until someone who can run that code takes them ([`Connection::take_unread`]) and gives back what they say.

use super::{Carried, Connection, End, KEEP_ALIVE, Launched, Violation, runs};
use crate::store::{List, Packets};
use crate::time::{Duration, Instant};
use crate::transport::ack_endpoint::Incoming;
use crate::transport::ack_ranges::Reported;
use crate::transport::acks::RttSampling;
use crate::transport::channel::{Desync, Fragment, Moment, Prefix, SendError, WindowViolation};
use crate::transport::congestion::RoundTrip;
use crate::transport::framing::native::ReadContext;
use crate::transport::framing::yojimbo::{self, Entry, Item};
use crate::transport::framing::{Fault, cost};
use crate::transport::message::Message;
use crate::transport::peer_pace::PeerPace;
use crate::transport::protocol::{ChannelKind, Protocol};
use std::sync::Arc;

/// Bytes of packets that are held unread; beyond them they are dropped, and not acked.
const MOST_HELD_BYTES: usize = 1 << 20;

/// What a held packet counts besides its bytes.
const HELD_OVERHEAD_BYTES: usize = 64;

/// What one packet says: no entries.
const EMPTY: [u8; 1] = [0];

/// What a connection has for this framing.
#[derive(Debug, Default)]
pub(super) struct State {
    pace: PeerPace,
    /// Of the packet being composed, by channel.
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

/// What packets say, in their order, until one that is refused.
#[derive(Debug)]
pub struct Read {
    packets: Vec<Vec<Item>>,
    fault: Option<Fault>,
}

impl Unread {
    /// Reads them. `extent` says where a body ends that only its own code can read: of this message type, in these bytes, from
    /// this bit on; or why it is refused.
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

    // --- receiving ---------------------------------------------------------------------------------------

    /// Takes a packet of the peer.
    pub(super) fn handle_yojimbo(&mut self, now: Instant, incoming: Incoming<'_>) -> Result<(), End> {
        let header = incoming.header();
        let context = ReadContext { now, sequence: header.sequence, ack: header.ack, greeted: true };
        let hold = self.protocol.holds_packets() && !incoming.payload().is_empty();
        if hold {
            let bytes = incoming.payload().len() + HELD_OVERHEAD_BYTES;
            let empty = incoming.payload() == EMPTY;
            if !empty && self.yojimbo.held_bytes + bytes > MOST_HELD_BYTES {
                self.endpoint.refuse(incoming);
                return Ok(());
            }
            if !empty {
                self.yojimbo.held_bytes += bytes;
                self.yojimbo.held.push(HeldPacket { context, payload: incoming.payload().into() });
            }
            self.accept_yojimbo(now, incoming);
            return Ok(());
        }
        let mut items = core::mem::take(&mut self.yojimbo.items);
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
        self.yojimbo.items = items;
        applied
    }

    fn accept_yojimbo(&mut self, now: Instant, incoming: Incoming<'_>) {
        let header = incoming.header();
        let acked = &mut self.scratch.acked;
        acked.clear();
        // The peer's wait for its tick is part of the round trip: this wire doesn't tell it.
        let sampling = RttSampling::NewestAck { delay: Duration::ZERO };
        self.endpoint.accept(now, incoming, sampling, acked);
        let newest = acked.iter().find(|acked| acked.sequence == header.ack);
        let round_trip = newest.map(|newest| now - newest.sent_at);
        self.yojimbo.pace.handle_packet(now, round_trip);
        self.apply_acks(now, round_trip.map(|time| RoundTrip { time, received_at: None }));
    }

    fn has_room(&self, item: &Item) -> bool {
        let (channel, prefix) = match item {
            Item::Message(message) => (message.channel, message.prefix),
            Item::Fragment { channel, fragment } => (*channel, Prefix::Id(fragment.id)),
        };
        self.lanes[usize::from(channel)].channel().has_room(prefix)
    }

    fn apply_items(&mut self, items: &mut Vec<Item>) -> Result<(), End> {
        for item in items.drain(..) {
            let (channel, applied) = match item {
                Item::Message(message) => {
                    let lane = &mut self.lanes[usize::from(message.channel)];
                    let applied = lane.touch().handle(message.prefix, 0, message.received);
                    let applied =
                        applied.map(|dropped| dropped.into_iter().for_each(|it| self.reclaim(it.body)));
                    (message.channel, applied.map_err(|WindowViolation| Desync::Window))
                }
                Item::Fragment { channel, fragment } => {
                    let limits = yojimbo::block_limits(&self.protocol, channel.into());
                    let lane = &mut self.lanes[usize::from(channel)];
                    (channel, lane.touch().handle_fragment(fragment, limits))
                }
            };
            applied.map_err(|desync| Fault::Desync { channel, desync })?;
        }
        Ok(())
    }

    /// Takes the packets that the core can't read, if there are any: [`Connection::handle_read`] is to come.
    pub fn take_unread(&mut self) -> Option<Unread> {
        if self.yojimbo.held.is_empty() {
            return None;
        }
        (self.yojimbo.held_bytes, self.yojimbo.being_read) = (0, true);
        Some(Unread { protocol: self.protocol.clone(), packets: core::mem::take(&mut self.yojimbo.held) })
    }

    /// Drops them, and what they say: nobody will read it.
    pub(super) fn discard_unread(&mut self) {
        self.yojimbo.held.clear();
        (self.yojimbo.held_bytes, self.yojimbo.being_read) = (0, false);
    }

    /// Whether there are such packets, or what they say is still to come.
    pub(crate) fn has_unread(&self) -> bool {
        self.yojimbo.being_read || !self.yojimbo.held.is_empty()
    }

    /// Takes what they say. `take` is called after each, to take its messages before the next one's need their room.
    ///
    /// # Errors
    /// The conversation is over, and why.
    pub fn handle_read(&mut self, read: Read, mut take: impl FnMut(&mut Self)) -> Result<(), End> {
        self.yojimbo.being_read = false;
        for mut items in read.packets {
            self.apply_items(&mut items)?;
            take(self);
        }
        read.fault.map_or(Ok(()), |fault| Err(fault.into()))
    }

    // --- sending -----------------------------------------------------------------------------------------

    /// Appends the packets of a tick to `out`.
    pub(super) fn transmit_yojimbo(&mut self, now: Instant, out: &mut Packets) {
        self.begin_transmit(now);
        self.tick_open = None;
        if self.next_number_at() > now {
            return;
        }
        self.compose_yojimbo(now, false);
        self.send_yojimbo(now, out);
        self.last_sent = Some(now);
        // Messages and blocks take turns at coming first, so that neither starves.
        let mut blocks_first = true;
        while self.budget.allows()
            && self.yojimbo.pace.allows()
            && self.next_number_at() <= now
            && self.compose_yojimbo(now, blocks_first)
        {
            self.yojimbo.pace.spend();
            self.send_yojimbo(now, out);
            blocks_first = !blocks_first;
        }
    }

    /// Appends what must go out between ticks, and returns when to call again.
    pub(super) fn transmit_yojimbo_between(&mut self, now: Instant, out: &mut Packets) -> Instant {
        if self.last_sent.is_none_or(|sent| sent + KEEP_ALIVE <= now) {
            self.transmit_yojimbo(now, out);
        }
        self.last_sent.map_or(now, |sent| sent + KEEP_ALIVE).max(self.next_number_at())
    }

    /// Decides what the next packet carries; false when that is nothing.
    fn compose_yojimbo(&mut self, now: Instant, blocks_first: bool) -> bool {
        self.lanes.iter_mut().for_each(|lane| lane.selected.clear());
        self.yojimbo.fragments.clear();
        if !self.budget.allows() {
            return false;
        }
        let moment = Moment { now, tick: true, resend: self.resend_timer() };
        let mut room = self.datagram_bits.saturating_sub(yojimbo::header_bits(&self.protocol));
        if blocks_first {
            room = room.saturating_sub(self.select_fragments(&moment, room));
        }
        if !self.yojimbo.fragments.is_empty() {
            // A message larger than what is left has a packet of its own.
            self.fill_rest(&moment, room);
            return true;
        }
        let filled = self.fill(&moment, room);
        if !blocks_first {
            let used = self.selected_bits();
            self.select_fragments(&moment, room.saturating_sub(used));
        }
        filled || !self.yojimbo.fragments.is_empty()
    }

    /// Takes a fragment of each channel whose next message is a block; the bits that they take. Alone in its packet, a fragment
    /// may be larger than a datagram.
    fn select_fragments(&mut self, moment: &Moment, room: usize) -> usize {
        let empty = room + yojimbo::header_bits(&self.protocol) == self.datagram_bits;
        let mut used = 0;
        for (channel, lane) in self.lanes.iter_mut().enumerate() {
            let cost = cost(&self.protocol, channel);
            let room = if empty && used == 0 { usize::MAX } else { room.saturating_sub(used) };
            if let Some(fragment) = lane.touch().select_fragment(moment, &cost, room) {
                used += cost.fragment(&fragment);
                self.yojimbo.fragments.push((channel, fragment));
            }
        }
        used
    }

    /// An upper bound of the bits that the selected messages take.
    fn selected_bits(&self) -> usize {
        let lanes = self.lanes.iter().enumerate().filter(|(_, lane)| !lane.selected.is_empty());
        let bits = lanes.map(|(channel, lane)| {
            let cost = cost(&self.protocol, channel);
            let ids = if self.protocol.channels()[channel].kind.has_ids() { 23 } else { 0 };
            lane.selected.iter().map(|s| cost.message(&s.message) + ids).sum::<usize>() + cost.entry
        });
        bits.sum()
    }

    /// Writes the packet that was composed.
    fn send_yojimbo(&mut self, now: Instant, out: &mut Packets) {
        let mut entries = Vec::new();
        let mut carried = List::default();
        let mut carry = |what| self.carried.push(&mut carried, what);
        for (index, lane) in self.lanes.iter().enumerate() {
            let channel = index as u8;
            let fragment = self.yojimbo.fragments.iter().find(|(channel, _)| *channel == index);
            if let Some((_, fragment)) = fragment {
                entries.push((index, Entry::Fragment(fragment)));
                let (mark, index) = (fragment.mark, fragment.index as u16);
                carry(Carried::Fragment { channel, mark, index });
            } else if !lane.selected.is_empty() {
                entries.push((index, Entry::Messages(&lane.selected)));
                runs(channel, &lane.selected).for_each(&mut carry);
            }
        }
        let writer = &mut self.scratch.writer;
        writer.clear();
        yojimbo::write(writer, &self.protocol, &entries);
        let messages = !carried.is_empty();
        self.launch(now, out, Launched { hello: false, messages, reported: Reported::default(), carried });
    }
}

impl State {
    /// A packet with a fragment has met its fate.
    pub(super) fn pace_blocks(&mut self, now: Instant, acked: bool) {
        if acked { self.pace.handle_ack() } else { self.pace.handle_lost(now) }
    }
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        End::Violation(Violation::Yojimbo(fault))
    }
}

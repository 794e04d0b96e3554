//! reliable 1.0, whole: one end of a conversation of packets that are acked and, when large, fragmented.
//!
//! Promises: byte for byte the packets of reliable 1.0; a packet is acked only when the application accepted it;
//! bounded memory whatever arrives; every datagram refused is counted under its reason. Refuses: nothing is resent,
//! ordered, authenticated or encrypted here. Put a layer below that keeps strangers out: anyone who can send to an
//! endpoint can move its windows.
//!
//! Facing strangers: nothing in a datagram is trusted, and none makes an endpoint send. A datagram takes memory only
//! as a fragment, within the bound of partial packets. A stranger can only jump ahead, so that the rightful peer's
//! packets are stale, and ack packets that were lost.

use super::ledger::acks::{Acked, Acks, FullHeader, NotNew, PacketCounters, RttSampling};
pub use super::packet::AckEndpointConfig;
use super::packet::HeaderKind;
use super::packet::fragment::{FRAGMENT_HEADER_SIZE, Fragment, FragmentError, Reassembly, split};
use super::packet::header::{Header, HeaderError};
use crate::limits::ConfigError;
use crate::time::Instant;
use core::fmt;

/// A payload above the largest packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadTooLarge {
    /// The bytes of the payload.
    pub bytes: usize,
    /// The most it may have.
    pub bound: usize,
}

impl fmt::Display for PayloadTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the payload must be at most {} bytes, not {}", self.bound, self.bytes)
    }
}

impl std::error::Error for PayloadTooLarge {}

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The datagram, or the payload in it, is longer than any the peer may send.
    TooLarge,
    // Not a packet.
    Header(HeaderError),
    /// A fragment without a place.
    Fragment(FragmentError),
    /// A packet that is not new.
    NotNew(NotNew),
}

impl PacketCounters {
    fn count(&mut self, reason: DropReason) {
        *match reason {
            DropReason::TooLarge => &mut self.too_large_to_receive,
            DropReason::Header(_) => &mut self.invalid,
            DropReason::NotNew(NotNew::Stale) | DropReason::Fragment(FragmentError::Stale) => &mut self.stale,
            DropReason::NotNew(NotNew::Duplicate) => &mut self.duplicates,
            DropReason::NotNew(NotNew::OutOfOrder) => &mut self.out_of_order,
            DropReason::Fragment(FragmentError::Duplicate) => &mut self.fragment_duplicates,
            DropReason::Fragment(FragmentError::Memory) => &mut self.fragments_without_memory,
            DropReason::Fragment(_) => &mut self.fragments_invalid,
        } += 1;
    }
}

/// A datagram to send: a whole packet or one of its fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'p> {
    /// A whole packet: its header and payload.
    Packet(FullHeader, &'p [u8]),
    /// A fragment of a packet.
    Fragment(Fragment<'p>),
}

impl Piece<'_> {
    /// Appends the datagram to `out`, as in reliable 1.0.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_as(HeaderKind::Standard, out);
    }

    /// Appends the datagram to `out`, with this header.
    pub(super) fn write_as(&self, kind: HeaderKind, out: &mut Vec<u8>) {
        match self {
            Piece::Packet(header, payload) => {
                kind.write(header, out);
                out.extend_from_slice(payload);
            }
            Piece::Fragment(fragment) => kind.write_fragment(fragment, out),
        }
    }
}

/// A packet that was sent: its number and the datagrams to transmit, back to back.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingPacket<'p> {
    /// Its number, by which acks and losses name it, and its acks.
    pub header: FullHeader,
    payload: &'p [u8],
    /// `None` if the packet goes whole.
    fragment_size: Option<usize>,
}

impl<'p> OutgoingPacket<'p> {
    /// How many fragments it goes in; 0 if it goes whole.
    pub(super) fn fragments(&self) -> usize {
        self.fragment_size.map_or(0, |size| self.payload.len().div_ceil(size))
    }

    /// The datagrams, in order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'p>> + use<'p> {
        let (header, payload) = (self.header, self.payload);
        let whole = self.fragment_size.is_none().then_some(Piece::Packet(header, payload));
        let fragments = self.fragment_size.map(|size| split(header, payload, size).map(Piece::Fragment));
        whole.into_iter().chain(fragments.into_iter().flatten())
    }
}

/// A packet of the peer for the application to judge: accept it, or refuse it and it is not acked.
#[derive(Debug)]
#[must_use = "a packet neither accepted nor refused is not acked, and its buffer is not used again"]
pub struct Incoming<'d> {
    pub header: FullHeader,
    payload: Payload<'d>,
}

#[derive(Debug)]
enum Payload<'d> {
    Datagram(&'d [u8]),
    Reassembled(Vec<u8>),
}

impl Incoming<'_> {
    /// The payload of the peer.
    pub fn payload(&self) -> &[u8] {
        match &self.payload {
            Payload::Datagram(bytes) => bytes,
            Payload::Reassembled(bytes) => bytes,
        }
    }
}

/// One end of a conversation.
#[derive(Debug)]
pub struct AckEndpoint<T = ()> {
    pub(super) config: AckEndpointConfig,
    /// The windows of packets sent and received.
    pub acks: Acks<T>,
    pub(super) reassembly: Reassembly,
}

impl AckEndpoint {
    /// An end at which nothing was sent or received.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub fn new(config: AckEndpointConfig) -> Result<Self, ConfigError> {
        AckEndpoint::with_notes(config)
    }

    /// Sends a packet: records it as sent and returns the datagrams to transmit.
    ///
    /// # Errors
    ///
    /// When the payload is above the largest packet. Nothing was sent then.
    pub fn send<'p>(
        &mut self,
        now: Instant,
        payload: &'p [u8],
    ) -> Result<OutgoingPacket<'p>, PayloadTooLarge> {
        let packet = self.pack(self.acks.header(), payload)?;
        let fragments = packet.fragments();
        let headers = fragments * FRAGMENT_HEADER_SIZE + Header::from(packet.header).size();
        let wire_bytes = self.on_the_wire(fragments.max(1), headers + payload.len());
        self.note_sent(now, wire_bytes, fragments, ());
        Ok(packet)
    }
}

impl<T: Default> AckEndpoint<T> {
    /// Like [`AckEndpoint::new`], with a note for each packet sent.
    pub(super) fn with_notes(config: AckEndpointConfig) -> Result<Self, ConfigError> {
        let acks = Acks::new(&config.acks)?;
        let reassembly = Reassembly::new(config.reassembly.clone())?;
        config.check()?;
        Ok(AckEndpoint { config, acks, reassembly })
    }

    /// The packet of this payload, whole or in fragments.
    ///
    /// # Errors
    /// When the payload is above the largest packet.
    pub(super) fn pack<'p>(
        &mut self,
        header: FullHeader,
        payload: &'p [u8],
    ) -> Result<OutgoingPacket<'p>, PayloadTooLarge> {
        let (bytes, bound) = (payload.len(), self.config.max_packet_size);
        if bytes > bound {
            self.acks.counters.too_large_to_send += 1;
            return Err(PayloadTooLarge { bytes, bound });
        }
        let fragment_size =
            (bytes > self.config.fragment_above).then_some(self.config.reassembly.fragment_size);
        Ok(OutgoingPacket { header, payload, fragment_size })
    }

    /// Records that the next packet was sent in these bytes, those of the layers below included, with its note; returns
    /// the note of the packet that is forgotten for it.
    pub(super) fn note_sent(
        &mut self,
        now: Instant,
        wire_bytes: u32,
        fragments: usize,
        note: T,
    ) -> Option<T> {
        self.acks.counters.fragments_sent += fragments as u64;
        self.acks.track_sent(now, wire_bytes, note)
    }

    /// Opens a datagram of the peer: returns a packet to accept or refuse, or `None` if it was a fragment and others
    /// are missing. Nothing is acked yet. Accept or refuse a packet before opening the next datagram: until then its
    /// duplicate counts as new.
    ///
    /// # Errors
    ///
    /// Why the datagram was dropped. It is counted.
    pub fn open<'d>(&mut self, datagram: &'d [u8]) -> Result<Option<Incoming<'d>>, DropReason> {
        self.open_numbered(0, datagram)
    }

    /// The same for a datagram that came under this number, which counts if packets are numbered. The layer below hands
    /// over each number once; a second packet of one number, which only lying fragments make, is dropped.
    ///
    /// # Errors
    ///
    /// Those of [`AckEndpoint::open`].
    pub(super) fn open_numbered<'d>(
        &mut self,
        number: u64,
        datagram: &'d [u8],
    ) -> Result<Option<Incoming<'d>>, DropReason> {
        self.acks.record_arrival(self.on_the_wire(1, datagram.len()));
        let opened = self.parse(number, datagram);
        if let Err(reason) = opened {
            self.acks.counters.count(reason);
        }
        opened
    }

    /// Accepts a packet: it will be acked, and the packets it newly acks are appended to `acked`, newest first.
    /// reliable 1.0 samples RTT by [`RttSampling::EveryAck`].
    pub fn accept(
        &mut self,
        now: Instant,
        incoming: Incoming<'_>,
        sampling: RttSampling,
        acked: &mut Vec<Acked>,
    ) {
        let header = incoming.header;
        self.acks.record_received(header.sequence);
        if header.skipped > 0 {
            self.acks.record_skipped(header.sequence.wrapping_sub(header.skipped.into())..header.sequence);
        }
        self.reassembly.advance(header.sequence);
        self.acks.process(now, &header, sampling, acked);
        self.recycle(incoming);
    }

    /// Refuses a packet: it is not acked, and its own acks are ignored.
    pub fn refuse(&mut self, incoming: Incoming<'_>) {
        self.acks.counters.refused += 1;
        self.recycle(incoming);
    }

    /// Drops a packet for which there is no memory now: it is not acked, so its sender takes it for lost.
    pub fn drop_without_memory(&mut self, incoming: Incoming<'_>) {
        self.acks.counters.without_memory += 1;
        self.recycle(incoming);
    }

    fn parse<'d>(&mut self, number: u64, datagram: &'d [u8]) -> Result<Option<Incoming<'d>>, DropReason> {
        if datagram.len() > self.config.max_datagram() {
            return Err(DropReason::TooLarge);
        }
        if Fragment::is_fragment(datagram) {
            return self.parse_fragment(number, datagram);
        }
        let newest = (self.acks.ack(), self.acks.newest_sent());
        let (header, payload) =
            self.config.header.read(number, datagram, newest).map_err(DropReason::Header)?;
        self.check(header, payload.len())?;
        Ok(Some(Incoming { header, payload: Payload::Datagram(payload) }))
    }

    fn parse_fragment(
        &mut self,
        number: u64,
        datagram: &[u8],
    ) -> Result<Option<Incoming<'static>>, DropReason> {
        let newest = (self.acks.ack(), self.acks.newest_sent());
        let fragment = self.config.header.read_fragment(number, datagram, &self.config.reassembly, newest);
        let fragment = fragment.map_err(DropReason::Fragment)?;
        self.acks.is_new(fragment.packet).map_err(DropReason::NotNew)?;
        let complete = self.reassembly.insert(&fragment).map_err(DropReason::Fragment)?;
        self.acks.counters.fragments_received += 1;
        // The newest packet reported to the peer is the newest seen, received whole or not.
        self.acks.received.advance(fragment.packet);
        let Some(complete) = complete else { return Ok(None) };
        let (header, bytes) = (complete.header, complete.payload.len());
        if let Err(reason) = self.check(header, bytes) {
            self.reassembly.recycle(complete.payload);
            return Err(reason);
        }
        Ok(Some(Incoming { header, payload: Payload::Reassembled(complete.payload) }))
    }

    fn check(&self, header: FullHeader, payload_bytes: usize) -> Result<(), DropReason> {
        if payload_bytes > self.config.max_packet_size {
            return Err(DropReason::TooLarge);
        }
        self.acks.is_new(header.sequence).map_err(DropReason::NotNew)
    }

    /// The bytes that bandwidth counts for datagrams of `bytes` bytes together.
    fn on_the_wire(&self, datagrams: usize, bytes: usize) -> u32 {
        let overhead = datagrams.saturating_mul(self.config.overhead as usize);
        u32::try_from(bytes.saturating_add(overhead)).unwrap_or(u32::MAX)
    }

    /// Takes back the memory of a packet. A packet that neither call above took is never acked.
    pub(super) fn recycle(&mut self, incoming: Incoming<'_>) {
        if let Payload::Reassembled(bytes) = incoming.payload {
            self.reassembly.recycle(bytes);
        }
    }
}

#[cfg(test)]
mod tests;

//! The plain virtual connection of the article "Virtual Connection over UDP": two peers, no handshake, no
//! secrets. For LANs, for teaching, and as the ground of one's own protocols.
//!
//! Promises: payloads arrive intact (a CRC-32 stands above UDP's weak checksum) and at most once; every packet
//! sent is reported as acked or lost while the connection lives; a packet goes out at least each 100 ms; a
//! silent peer is given up after 10 seconds, and a listener then listens again. A listener sends at most one
//! datagram for each it got, never a larger one, until the peer has acked a packet: who merely writes somebody
//! else's address on datagrams gets no more sent there. For that its packet numbers begin where nobody who doesn't see
//! them can guess (see [`VirtualConfig::secret`]; a guess is right once in 16,384 times), and until an ack has come,
//! packets that ack what was never sent are dropped.
//! Refuses: other protocol ids, wrong checksums, strangers while a peer is connected, what reliable 1.0
//! refuses. Each drop is counted under a name.
//!
//! **Nothing here is secret.** Anyone who knows the protocol id can connect, and anyone on the path can forge all there
//! is. Over the internet use the encrypted connections of servers and clients.
//!
//! | bytes | field |
//! |---|---|
//! | 4 | protocol id, little-endian |
//! | 4 | CRC-32 (the one of Ethernet and zlib) of all bytes behind it, little-endian |
//! | rest | a packet or fragment of reliable 1.0: header, payload |
//!
//! A packet with an empty payload keeps the connection alive; it is acked, and brings nothing.
//! There is no packet that says goodbye: a peer is gone when it has been silent long enough. One that comes back
//! before that should come from another port: from the same it is taken for the old one, whose packet numbers it
//! repeats.

mod outcome;

pub use outcome::{VirtualCounters, VirtualDrop, VirtualEvent, VirtualSendError, VirtualState};

use core::net::SocketAddr;
use std::collections::VecDeque;

use crate::limits::{ConfigError, MAX_PAYLOAD};
use crate::rng::Rng;
use crate::store::Datagrams;
use crate::time::{Duration, Instant};
use crate::transport::ack_endpoint::{AckEndpoint, AckEndpointConfig, Piece};
use crate::transport::acks::{Acked, FullHeader, RttSampling};
use crate::transport::header::Header;
use crate::transport::{PacketCounters, PacketStats};

/// Protocol id and checksum.
const PREFIX_SIZE: usize = 4 + 4;

/// The range in which a listener's packet numbers begin: any peer accepts these as a first one.
const FIRST_NUMBERS: u64 = 16_384;

/// The header of a packet without acks: prefix, sequence, an ack in one byte, four bytes of ack bits.
const ACKLESS_HEADER_SIZE: usize = 1 + 2 + 1 + 4;

/// Acked and lost packets kept for an application that never polls: half of the sequence numbers, above which they
/// could be mistaken for newer ones.
const MAX_UNREPORTED: usize = 32_768;

/// Settings of a [`VirtualConnection`].
#[derive(Clone, Debug, PartialEq)]
pub struct VirtualConfig {
    /// Names the application's protocol: packets with another id are dropped. Both ends need the same.
    pub protocol_id: u32,
    /// How long a peer may be silent.
    pub timeout: Duration,
    /// The maximum interval between our packets.
    pub keep_alive: Duration,
    /// Acks and fragments. Both ends need the same fragment size and count.
    pub packets: AckEndpointConfig,
    /// The listener's randomness: its packet numbers begin where nobody can guess who doesn't see them, so an ack
    /// proves an address. None: they begin at 0, for trusted networks.
    pub secret: Option<u64>,
}

impl VirtualConfig {
    /// The article's numbers: a timeout of 10 seconds, a packet at least each 100 milliseconds. Datagrams have
    /// at most 1,200 bytes; larger payloads, up to 256 KiB, go in fragments.
    pub fn new(protocol_id: u32) -> Self {
        let large = AckEndpointConfig::large();
        VirtualConfig {
            protocol_id,
            timeout: Duration::from_secs(10),
            keep_alive: Duration::from_millis(100),
            secret: None,
            packets: AckEndpointConfig {
                fragment_above: MAX_PAYLOAD - PREFIX_SIZE - Header::MAX_SIZE,
                overhead: large.overhead + PREFIX_SIZE as u32,
                ..large
            },
        }
    }
}

/// How much may be sent to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// We chose the address, or the peer has acked a packet, so the address is its own.
    Proven,
    /// The address may be forged. One datagram of up to this size may go, if any.
    Unproven { allowance: Option<usize> },
}

#[derive(Clone, Copy, Debug)]
struct OtherSide {
    address: SocketAddr,
    trust: Trust,
    /// When it was last heard, or else when we began to send.
    heard_at: Instant,
    last_sent: Option<Instant>,
}

/// One end of a plain virtual connection.
#[derive(Debug)]
pub struct VirtualConnection {
    config: VirtualConfig,
    /// The generator of a listener's first packet numbers.
    numbers: Option<Rng>,
    listener: bool,
    state: VirtualState,
    peer: Option<OtherSide>,
    endpoint: AckEndpoint,
    updated_at: Option<Instant>,
    events: VecDeque<VirtualEvent>,
    acked: Vec<u64>,
    lost: Vec<u64>,
    counters: VirtualCounters,
    /// Packet counts of earlier peers.
    ended: PacketCounters,
    payload: Vec<u8>,
    newly_acked: Vec<Acked>,
}

impl VirtualConnection {
    /// A listener that waits for a peer.
    ///
    /// # Errors
    ///
    /// When a setting is out of its bounds.
    pub fn listen(config: VirtualConfig) -> Result<Self, ConfigError> {
        Self::new(config, None)
    }

    /// An end that connects to the listener at `address`: it sends from its first
    /// [`update`](VirtualConnection::update) on.
    ///
    /// # Errors
    ///
    /// When a setting is out of its bounds.
    pub fn connect(now: Instant, config: VirtualConfig, address: SocketAddr) -> Result<Self, ConfigError> {
        Self::new(config, Some(OtherSide { address, trust: Trust::Proven, heard_at: now, last_sent: None }))
    }

    fn new(config: VirtualConfig, peer: Option<OtherSide>) -> Result<Self, ConfigError> {
        let mut numbers = config.secret.filter(|_| peer.is_none()).map(Rng::seeded);
        Ok(VirtualConnection {
            endpoint: begin(&config, &mut numbers)?,
            numbers,
            config,
            listener: peer.is_none(),
            state: if peer.is_none() { VirtualState::Listening } else { VirtualState::Connecting },
            peer,
            updated_at: None,
            events: VecDeque::new(),
            acked: Vec::new(),
            lost: Vec::new(),
            counters: VirtualCounters::default(),
            ended: PacketCounters::default(),
            payload: Vec::new(),
            newly_acked: Vec::new(),
        })
    }

    /// Takes a datagram, and returns its payload: None if it only keeps the connection alive, or is a fragment and
    /// others are missing.
    ///
    /// # Errors
    ///
    /// Why it was dropped. It is counted.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Result<Option<&[u8]>, VirtualDrop> {
        self.payload.clear();
        match self.receive(now, from, datagram) {
            Ok(()) => self.counters.accepted += 1,
            Err(reason) => {
                self.counters.count(reason);
                return Err(reason);
            }
        }
        Ok((!self.payload.is_empty()).then_some(&self.payload))
    }

    /// Sends a payload to the peer in a packet of its own, and returns the packet's number.
    ///
    /// # Errors
    ///
    /// Why it can't be sent. Nothing was sent then.
    pub fn send(
        &mut self,
        now: Instant,
        payload: &[u8],
        out: &mut Datagrams,
    ) -> Result<u16, VirtualSendError> {
        let peer = self.peer.as_mut().ok_or(VirtualSendError::NoPeer)?;
        let allowance = match peer.trust {
            Trust::Proven => usize::MAX,
            Trust::Unproven { allowance } => {
                let bound = allowance.and_then(|bytes| bytes.checked_sub(PREFIX_SIZE + ACKLESS_HEADER_SIZE));
                let bound = bound.map(|bound| bound.min(self.config.packets.fragment_above));
                let bytes = payload.len();
                if bound.is_none_or(|bound| bytes > bound) {
                    self.counters.unproven += 1;
                    return Err(VirtualSendError::Unproven { bytes, bound });
                }
                peer.trust = Trust::Unproven { allowance: None };
                allowance.unwrap_or(0)
            }
        };
        let outgoing = self.endpoint.send(now, payload).map_err(VirtualSendError::TooLarge)?;
        for piece in outgoing.pieces() {
            let piece = within(allowance, piece);
            out.push_with(peer.address, |arena| write(self.config.protocol_id, &piece, arena));
        }
        peer.last_sent = Some(now);
        Ok(outgoing.header.sequence as u16)
    }

    /// Once a tick: keeps the connection alive, notices a timeout, and updates the statistics.
    pub fn update(&mut self, now: Instant, out: &mut Datagrams) {
        let tick = now - self.updated_at.replace(now).unwrap_or(now);
        let Some(peer) = self.peer else { return };
        if now - peer.heard_at >= self.config.timeout {
            return self.time_out(peer.address);
        }
        self.endpoint.acks.poll_lost(now, &mut self.lost);
        keep_newest(&mut self.lost);
        self.endpoint.acks.update(now);
        let due = match peer.trust {
            // The next tick might be too late.
            Trust::Proven => peer.last_sent.is_none_or(|sent| now - sent + tick > self.config.keep_alive),
            // The sooner the peer has something to ack, the sooner its address is proven.
            Trust::Unproven { allowance } => allowance.is_some(),
        };
        if due {
            // If it can't go now, it goes in answer to a later datagram.
            let _ = self.send(now, &[], out);
        }
    }

    /// The next event, if any.
    pub fn poll_event(&mut self) -> Option<VirtualEvent> {
        self.events.pop_front()
    }

    /// Moves the numbers of newly acked packets to the end of `acked`. A packet reported lost is not reported
    /// again.
    pub fn poll_acked(&mut self, acked: &mut Vec<u16>) {
        // The low bits, which the wire has.
        acked.extend(self.acked.drain(..).map(|sequence| sequence as u16));
    }

    /// Moves the numbers of packets newly given up to the end of `lost`.
    pub fn poll_lost(&mut self, lost: &mut Vec<u16>) {
        lost.extend(self.lost.drain(..).map(|sequence| sequence as u16));
    }

    /// The state of the connection.
    pub fn state(&self) -> VirtualState {
        self.state
    }

    /// Whether payloads of any size may be sent: there is a peer, and its address is proven.
    pub fn is_ready(&self) -> bool {
        self.peer.is_some_and(|peer| peer.trust == Trust::Proven)
    }

    /// The other end, if there is one.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer.map(|peer| peer.address)
    }

    /// RTT, jitter, packet loss and bandwidth of the connection to the present peer.
    pub fn stats(&self) -> PacketStats {
        self.endpoint.acks.stats()
    }

    /// Counts, with drops by name.
    pub fn counters(&self) -> VirtualCounters {
        self.counters
    }

    /// Packet counts, earlier peers included.
    pub fn packet_counters(&self) -> PacketCounters {
        self.ended + self.endpoint.acks.counters
    }

    fn receive(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Result<(), VirtualDrop> {
        let packet = self.open(from, datagram)?;
        let opened = self.endpoint.open(packet).map_err(VirtualDrop::Packet)?;
        if let Some(incoming) = opened.as_ref().filter(|_| !self.is_ready())
            && !acks_only_what_was_sent(&incoming.header, &self.endpoint)
        {
            opened.into_iter().for_each(|incoming| self.endpoint.refuse(incoming));
            return Err(VirtualDrop::ForgedAck);
        }
        self.hear(now, from, datagram.len());
        let Some(incoming) = opened else { return Ok(()) };
        self.payload.extend_from_slice(incoming.payload());
        self.newly_acked.clear();
        self.endpoint.accept(now, incoming, RttSampling::EveryAck, &mut self.newly_acked);
        if let (false, Some(peer)) = (self.newly_acked.is_empty(), &mut self.peer) {
            peer.trust = Trust::Proven;
        }
        let in_time = self.newly_acked.iter().filter(|acked| !acked.late);
        self.acked.extend(in_time.map(|acked| acked.sequence));
        keep_newest(&mut self.acked);
        Ok(())
    }

    /// The packet in a datagram that is meant for us.
    fn open<'d>(&self, from: SocketAddr, datagram: &'d [u8]) -> Result<&'d [u8], VirtualDrop> {
        let (id, rest) = datagram.split_first_chunk().ok_or(VirtualDrop::TooShort)?;
        let (checksum, packet) = rest.split_first_chunk().ok_or(VirtualDrop::TooShort)?;
        if u32::from_le_bytes(*id) != self.config.protocol_id {
            return Err(VirtualDrop::ProtocolId);
        }
        if self.state == VirtualState::Ended {
            return Err(VirtualDrop::Ended);
        }
        if self.peer.is_some_and(|peer| peer.address != from) {
            return Err(VirtualDrop::Stranger);
        }
        if u32::from_le_bytes(*checksum) != crc32fast::hash(packet) {
            return Err(VirtualDrop::Checksum);
        }
        Ok(packet)
    }

    /// Notes a good datagram: the first one connects.
    fn hear(&mut self, now: Instant, from: SocketAddr, bytes: usize) {
        let unproven = Trust::Unproven { allowance: None };
        let new = OtherSide { address: from, trust: unproven, heard_at: now, last_sent: None };
        let peer = self.peer.get_or_insert(new);
        peer.heard_at = now;
        if let Trust::Unproven { allowance } = &mut peer.trust {
            *allowance = Some(bytes);
        }
        if self.state != VirtualState::Connected {
            self.state = VirtualState::Connected;
            self.counters.connected += 1;
            self.events.push_back(VirtualEvent::Connected { peer: from });
        }
    }

    /// Gives up the peer. A listener starts afresh.
    fn time_out(&mut self, peer: SocketAddr) {
        self.counters.timed_out += 1;
        let heard = self.state == VirtualState::Connected;
        let event = if heard { VirtualEvent::TimedOut { peer } } else { VirtualEvent::NoAnswer { peer } };
        self.events.push_back(event);
        self.peer = None;
        self.state = VirtualState::Ended;
        // The settings were valid before.
        if let (true, Ok(endpoint)) = (self.listener, begin(&self.config, &mut self.numbers)) {
            self.ended = self.packet_counters();
            self.endpoint = endpoint;
            self.acked.clear();
            self.lost.clear();
            self.state = VirtualState::Listening;
        }
    }
}

/// Whether a header acks nothing that was never sent: only a forger guesses.
fn acks_only_what_was_sent(header: &FullHeader, endpoint: &AckEndpoint) -> bool {
    let acked = (0..32u64).filter(|n| header.ack_bits >> n & 1 == 1);
    acked.map(|n| header.ack.wrapping_sub(n)).all(|sequence| endpoint.acks.was_sent(sequence))
}

/// An endpoint for the next peer.
fn begin(config: &VirtualConfig, numbers: &mut Option<Rng>) -> Result<AckEndpoint, ConfigError> {
    let mut endpoint = AckEndpoint::new(config.packets.clone())?;
    if let Some(numbers) = numbers {
        // Below 16,384.
        endpoint.acks.begin_at(numbers.below(FIRST_NUMBERS));
    }
    Ok(endpoint)
}

/// The piece itself if its datagram has at most `allowance` bytes; otherwise with a header without acks. Those acks
/// go with a later packet: every packet acks 32.
fn within(allowance: usize, piece: Piece<'_>) -> Piece<'_> {
    match piece {
        Piece::Packet(header, payload)
            if PREFIX_SIZE + Header::from(header).size() + payload.len() > allowance =>
        {
            let ack = header.sequence.wrapping_sub(1);
            Piece::Packet(FullHeader { ack, ack_bits: 0, ..header }, payload)
        }
        piece => piece,
    }
}

/// Appends the datagram of a piece.
fn write(protocol_id: u32, piece: &Piece<'_>, arena: &mut Vec<u8>) {
    arena.extend_from_slice(&protocol_id.to_le_bytes());
    let checksum_at = arena.len();
    arena.extend_from_slice(&[0; 4]);
    let packet_at = arena.len();
    piece.write(arena);
    let checksum = crc32fast::hash(&arena[packet_at..]);
    arena[checksum_at..packet_at].copy_from_slice(&checksum.to_le_bytes());
}

fn keep_newest(sequences: &mut Vec<u64>) {
    let excess = sequences.len().saturating_sub(MAX_UNREPORTED);
    sequences.drain(..excess);
}

//! A packet of a peer is applied whole or not at all: a valid one with messages on every kind of channel, altered. Where it
//! is refused or dropped, the connection has what one has that never got it: not a row more, none less, no fate told. With
//! tables lent, into which it is read, the same comes of it, and they are as they were.

use std::sync::{Arc, LazyLock};

use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::{
    Body, ChannelConfig, ChannelKind, Connection, ConnectionConfig, DirectTables, End, MessageType,
    Notification, Protocol, Received, Resend, SendOptions, VERSION, numbered,
};
use tickwire::wire::{BitReader, Kind, ReadError, Schema};

use super::input::Input;
use super::world::{blob, number};

const KEYS: usize = 64;
const PAYLOAD: usize = 6;
const PAYLOAD_BYTES: usize = 100;
const BLOB_BYTES: u32 = 300;
const WINDOW: usize = 8;
const NOW: Instant = Instant::from_millis(32);

static SCENE: LazyLock<Scene> = LazyLock::new(Scene::record);

/// What two connections said to each other before the packet, and that.
struct Scene {
    protocol: Arc<Protocol>,
    /// Delivered to the connection that gets the packet.
    before: Vec<(u64, Vec<u8>)>,
    /// The packet's number.
    number: u64,
    packet: Vec<u8>,
    /// Where its payload begins.
    payload: usize,
}

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was applied, with this many messages.
    Applied(u64),
    /// It was not acked, and comes again.
    Dropped,
    /// It ended the connection.
    Refused,
    /// It ended the connection, by what breaks a window.
    BeyondWindow,
}

/// Channels whose messages can be refused follow ones that accept any.
fn protocol() -> Arc<Protocol> {
    let reliable = |ordered| ChannelKind::Reliable {
        ordered,
        receive_window: WINDOW,
        receive_bytes: 2048,
        resend: Resend::default(),
    };
    let kinds = [
        ChannelKind::Unreliable { receive_queue: 4 },
        ChannelKind::Latest { keys: KEYS },
        ChannelKind::Redundant { copies: 2, receive_queue: 8 },
        reliable(true),
        ChannelKind::Sequenced { receive_queue: 4 },
        reliable(false),
        ChannelKind::Payload { receive_queue: 4 },
    ];
    let channel = |kind: ChannelKind| {
        let max_message_bytes = if kind.is_payload() { PAYLOAD_BYTES } else { 500 };
        ChannelConfig { max_message_bytes, ..ChannelConfig::new(kind) }
    };
    let declared = Body::Declared(Schema::new([("number", Kind::Bits { bits: 32 })]).unwrap());
    let types = vec![
        MessageType { name: "Number".into(), body: declared },
        MessageType { name: "Blob".into(), body: Body::Opaque { max_bytes: BLOB_BYTES } },
    ];
    Arc::new(Protocol::new(types, kinds.map(channel).into()).unwrap())
}

fn connection(protocol: &Arc<Protocol>) -> Connection {
    Connection::new(&ConnectionConfig::default(), protocol.clone()).unwrap()
}

/// Sends messages on every channel; the fate of each is asked for.
fn send(ends: &mut Connection, now: Instant, first: u32) {
    for channel in 0..PAYLOAD {
        for n in 0..2 {
            let options = SendOptions { key: 5 + n * 40, tag: first + n, notify: true };
            let message = if n == 0 { number(first) } else { blob(first, 3) };
            ends.send(now, channel, message, options).unwrap();
        }
    }
    ends.send_payload(now, PAYLOAD, number(first).encoded, first).unwrap();
}

fn transmit(ends: &mut Connection, now: Instant) -> Vec<(u64, Vec<u8>)> {
    let mut out = Packets::new();
    ends.transmit(now, &mut out);
    out.iter().map(|(number, datagram)| (number, datagram.to_vec())).collect()
}

/// Hands datagrams over.
fn receive(ends: &mut Connection, now: Instant, datagrams: &[(u64, Vec<u8>)]) {
    datagrams.iter().for_each(|(number, datagram)| ends.handle_datagram(now, *number, datagram).unwrap());
}

impl Scene {
    fn record() -> Scene {
        let protocol = protocol();
        let mut peer = connection(&protocol);
        send(&mut peer, Instant::ZERO, 10);
        let before = transmit(&mut peer, Instant::ZERO);
        let (_, ours) = prepared(&protocol, &before);
        // The peer reads, so that it has acks, credit and an ack delay to send.
        receive(&mut peer, Instant::from_millis(16), &ours);
        (0..PAYLOAD).for_each(|channel| while peer.poll_received(channel).is_some() {});
        send(&mut peer, NOW, 20);
        let [(number, packet)] = &transmit(&mut peer, NOW)[..] else { panic!("one packet") };
        let payload = packet.len() - numbered::read(*number, packet, 0).unwrap().1.len();
        Scene { protocol, before, number: *number, packet: packet.clone(), payload }
    }
}

/// A connection that has received everything before the packet, and the packet it sent.
fn prepared(protocol: &Arc<Protocol>, before: &[(u64, Vec<u8>)]) -> (Connection, Vec<(u64, Vec<u8>)>) {
    let mut ours = connection(protocol);
    receive(&mut ours, Instant::ZERO, before);
    send(&mut ours, Instant::ZERO, 30);
    let out = transmit(&mut ours, Instant::ZERO);
    (ours, out)
}

/// All that an application can take of a connection.
fn taken(ours: &mut Connection) -> (Vec<(usize, Received)>, Vec<Notification>) {
    let mut rows = Vec::new();
    for channel in 0..=PAYLOAD {
        rows.extend(std::iter::from_fn(|| ours.poll_received(channel)).map(|row| (channel, row)));
    }
    (rows, std::iter::from_fn(|| ours.poll_notification()).collect())
}

fn handled(ours: &Connection) -> u64 {
    let stats = (0..=PAYLOAD).map(|channel| ours.channel_stats(channel));
    stats.map(|stats| stats.received + stats.duplicates).sum()
}

/// The packet's bits after its header.
pub fn bits() -> usize {
    (SCENE.packet.len() - SCENE.payload) * 8
}

/// Hands the packet over, after `alter` had its way with what stands behind its header.
pub fn judge(alter: impl FnOnce(&mut Vec<u8>)) -> Outcome {
    let Scene { protocol, before, number, packet, payload } = &*SCENE;
    let mut altered = packet[*payload..].to_vec();
    alter(&mut altered);
    let datagram = [&packet[..*payload], &altered].concat();
    let (mut ours, mut without) = (prepared(protocol, before).0, prepared(protocol, before).0);
    let handled_before = handled(&ours);
    let ended = ours.handle_datagram(NOW, *number, &datagram);
    judge_landing(protocol, before, &datagram);
    let count = handled(&ours) - handled_before;
    let applied = ended.is_ok() && {
        let answer = transmit(&mut ours, NOW);
        without.transmit(NOW, &mut Packets::new());
        answer.iter().any(|(_, datagram)| numbered::read(0, datagram, 0).unwrap().0.ack == *number)
    };
    if applied {
        if let Ok(said) = messages(&altered, protocol) {
            assert_eq!(count, said, "the packet is acked, and not all that it says was taken");
        }
        return Outcome::Applied(count);
    }
    assert_eq!(count, 0, "{ended:?}, and some of it was taken");
    let told = |(rows, fates): (Vec<(usize, Received)>, Vec<Notification>)| {
        let rows = rows.into_iter().map(|(channel, row)| {
            (channel, row.message_type, row.key, row.missed, row.packet_sequence, row.body.to_vec())
        });
        (rows.collect::<Vec<_>>(), fates)
    };
    assert_eq!(told(taken(&mut ours)), told(taken(&mut without)), "{ended:?}");
    match ended {
        Ok(()) => Outcome::Dropped,
        Err(End::Violation(tickwire::transport::Violation::Window)) => Outcome::BeyondWindow,
        Err(_) => Outcome::Refused,
    }
}

/// Tables of a tick: a channel, a type and a body each.
#[derive(Default)]
struct Tables {
    rows: Vec<(usize, u16, Vec<u8>)>,
    before: usize,
    settled: usize,
}

impl DirectTables for Tables {
    fn begin(&mut self, _: Instant) -> u64 {
        self.before = self.rows.len();
        1
    }

    fn place(&mut self, _: u64, channel: u8, message_type: u16) -> Option<&mut Vec<u8>> {
        assert_eq!(self.rows.len(), self.settled, "a row is whole before the next one");
        self.rows.push((channel.into(), message_type, vec![7; 3]));
        self.rows.last_mut().map(|row| &mut row.2)
    }

    fn settle(&mut self) {
        self.settled += 1;
        self.rows.last_mut().unwrap().2.drain(..3);
    }

    fn cut(&mut self) {
        self.rows.truncate(self.before);
        self.settled = self.rows.len();
    }

    fn push_out(&mut self, channel: u8) {
        let oldest = self.rows.iter().position(|row| row.0 == usize::from(channel));
        self.rows.remove(oldest.expect("one of this channel is here"));
        self.settled -= 1;
    }
}

/// Hands a datagram to two connections whose applications read what came before, one of which lends it tables.
fn judge_landing(protocol: &Arc<Protocol>, before: &[(u64, Vec<u8>)], datagram: &[u8]) {
    let read = || {
        let mut ours = prepared(protocol, before).0;
        taken(&mut ours);
        ours
    };
    let (mut waiting, mut direct, mut tables) = (read(), read(), Tables::default());
    tables.rows.push((0, 0, b"of an earlier packet".to_vec()));
    tables.settled = 1;
    let ended = format!("{:?}", waiting.handle_datagram(NOW, SCENE.number, datagram));
    assert_eq!(format!("{:?}", direct.handle_into(NOW, SCENE.number, datagram, &mut tables)), ended);
    assert_eq!(tables.settled, tables.rows.len(), "{ended}");
    assert_eq!(tables.rows.remove(0).2, b"of an earlier packet", "{ended}");
    let (rows, fates) = taken(&mut waiting);
    let mut rows: Vec<_> =
        rows.into_iter().map(|(channel, row)| (channel, row.message_type, row.body.to_vec())).collect();
    let (rest, rest_fates) = taken(&mut direct);
    let rest = rest.into_iter().map(|(channel, row)| (channel, row.message_type, row.body.to_vec()));
    let mut placed: Vec<_> = tables.rows.into_iter().chain(rest).collect();
    // In order within each channel.
    placed.sort_by_key(|row| row.0);
    rows.sort_by_key(|row| row.0);
    assert_eq!((placed, rest_fates), (rows, fates), "{ended}");
    for channel in 0..=PAYLOAD {
        assert_eq!(
            direct.channel_stats(channel),
            waiting.channel_stats(channel),
            "{ended}, channel {channel}"
        );
    }
}

/// How many messages a payload has: read as the framing's standard has it, by nobody who applies it.
fn messages(payload: &[u8], protocol: &Protocol) -> Result<u64, ReadError> {
    let mut r = BitReader::new(payload);
    if r.bool()? {
        assert_eq!(r.bits(8)?, u64::from(VERSION));
        r.bits(64)?;
    }
    if r.bool()? {
        return Ok(0);
    }
    if r.bool()? {
        r.bits(14)?;
        if r.bool()? {
            r.bits(18)?;
        }
    }
    if r.bool()? {
        while {
            r.int_relative(0)?;
            r.int_relative(0)?;
            r.bool()?
        } {}
    }
    if r.bool()? {
        while {
            r.bits(3 + 16)?;
            r.bool()?
        } {}
    }
    let mut count = 0;
    while r.bool()? {
        let kind = protocol.channels()[r.bits(3)? as usize].kind;
        let mut first = true;
        while {
            match kind {
                ChannelKind::Reliable { .. } | ChannelKind::Redundant { .. } if first => r.bits(16)?,
                ChannelKind::Reliable { .. } | ChannelKind::Redundant { .. } => r.int_relative(0)?.into(),
                ChannelKind::Latest { .. } => r.bits(6)?,
                _ => 0,
            };
            first = false;
            let length = |bytes: u32| u32::BITS - (bytes * 8).leading_zeros();
            if kind.is_payload() {
                let bits = r.bits(length(PAYLOAD_BYTES as u32))?;
                r.cut(bits as usize)?;
            } else if r.bool()? {
                let bits = r.bits(length(BLOB_BYTES))?;
                r.cut(bits as usize)?;
            } else {
                r.bits(32)?;
            }
            count += 1;
            r.bool()?
        } {}
    }
    // Fragments come next, if there are any: what they complete counts too, but of one no packet completes another.
    Ok(count)
}

/// Alters the packet as the bytes say.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let outcome = judge(|payload| {
        while !input.is_empty() && !payload.is_empty() {
            let at = usize::from(input.u16()) % (payload.len() * 8);
            match input.below(8) {
                0 => payload.truncate(at / 8),
                1 => payload[at / 8] = input.u8(),
                2 => payload.insert(at / 8, input.u8()),
                3 => drop(payload.remove(at / 8)),
                _ => payload[at / 8] ^= 1 << (at % 8),
            }
        }
    });
    assert!(!data.is_empty() || outcome == Outcome::Applied(13));
    // The time between packets has no part in this.
    assert!(NOW > Instant::ZERO + Duration::from_millis(16));
}

//! Messages placed on arrival where the application will find them: as rows in the tables of their types, with
//! records beside them. At the end of a tick they are handed over as a whole.
//!
//! Promises: a refused datagram leaves nothing; each channel's bound holds, wherever its messages wait. Refuses more
//! than [`MAX_BYTES`] in all, and everything that arrives before the application has said which tables it wants.
//! Those messages wait in their channels, within their bounds.

use std::collections::HashMap;

use super::PeerHandle;
use super::inbox::{Inbox, Layout, Messages, Seat};
use super::table::{HEAD_BYTES, Head, Table};
use crate::time::Instant;
use crate::transport::{DirectTables, Protocol};

/// Above this many bytes, messages wait in their channels: what a server with a thousand players receives in half a
/// second.
const MAX_BYTES: usize = 32 << 20;

pub(super) struct Arriving {
    /// The application's tables, as of its last tick.
    layout: Option<Layout>,
    tables: Vec<Table>,
    /// Messages of types without a table.
    records: Messages,
    /// Messages of types with a table whose rows reference the tail: they are split when they are handed over.
    pointing: Messages,
    /// The destination of each message, in order of arrival.
    log: Vec<Seat>,
    bytes: usize,
    tick: u64,
    /// How many messages of a channel must make room for newer ones.
    pushed_out: HashMap<(PeerHandle, u8), usize>,
    current: Current,
}

/// The datagram being read.
#[derive(Default)]
struct Current {
    peer: Option<PeerHandle>,
    now: Instant,
    /// The head of its rows, except for the channel.
    head: Option<[u8; HEAD_BYTES]>,
    /// The lengths of the log and the records before it, and the bytes of the records.
    log: usize,
    records: (usize, usize),
    pointing: (usize, usize),
    bytes: usize,
    /// The message being read: its record, if it has one, and the start of its body.
    record: Option<(Head, u16)>,
    body: usize,
}

impl Arriving {
    pub(super) fn new() -> Self {
        Arriving {
            layout: None,
            tables: Vec::new(),
            records: Messages::default(),
            pointing: Messages::default(),
            log: Vec::new(),
            bytes: 0,
            tick: 0,
            pushed_out: HashMap::new(),
            current: Current::default(),
        }
    }

    /// Sets the sender of the next datagram.
    pub(super) fn of(&mut self, peer: PeerHandle) -> &mut Self {
        self.current.peer = Some(peer);
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// Moves everything into the application's inbox, after its contents.
    pub(super) fn take_into(&mut self, inbox: &mut Inbox, protocol: &Protocol) {
        if !self.pushed_out.is_empty() {
            let mut pushed_out = core::mem::take(&mut self.pushed_out);
            self.retain(|peer, channel| match pushed_out.get_mut(&(peer, channel)) {
                Some(left @ 1..) => {
                    *left -= 1;
                    false
                }
                _ => true,
            });
        }
        if !self.log.is_empty() {
            self.hand_over(inbox);
        }
        self.reset();
        self.tick += 1;
        if self.layout.as_ref().is_none_or(|layout| !inbox.has_layout(layout)) {
            let layout = inbox.layout(protocol);
            self.tables = layout.tables();
            self.layout = Some(layout);
        }
    }

    fn hand_over(&mut self, inbox: &mut Inbox) {
        let Some(layout) = &self.layout else { return };
        if inbox.has_layout(layout) {
            inbox.absorb(&mut self.records, &mut self.tables);
            inbox.route(&mut self.pointing);
            return;
        }
        // The application's inbox has other tables now: route one by one, in order of arrival.
        let (mut rows, mut records, mut pointing) = (vec![0..; self.tables.len()], 0.., 0..);
        for seat in &self.log {
            let message = match *seat {
                Seat::Table(table) => layout.rows_of(table).and_then(|(size, message_type)| {
                    let place = usize::from(table);
                    let (head, body) = self.tables[place].get(rows[place].next()?, size)?;
                    Some((head, message_type, body))
                }),
                Seat::Record => records.next().and_then(|index| self.records.get(index)),
                Seat::Pointing => pointing.next().and_then(|index| self.pointing.get(index)),
                Seat::Waits => None,
            };
            message.into_iter().for_each(|message| inbox.route_one(message));
        }
        self.records.clear();
        self.pointing.clear();
        self.tables.clear();
    }

    /// Drops a peer's messages.
    pub(super) fn drop_peer(&mut self, gone: PeerHandle) {
        self.retain(|peer, _| peer != gone);
        self.pushed_out.retain(|(peer, _), _| *peer != gone);
        if self.log.is_empty() {
            self.reset();
        }
    }

    /// Empties everything, including the bytes of dropped messages.
    fn reset(&mut self) {
        self.log.clear();
        self.records.clear();
        self.pointing.clear();
        self.bytes = 0;
    }

    /// Keeps the messages for which `keep` returns true; it is called in order of arrival.
    fn retain(&mut self, mut keep: impl FnMut(PeerHandle, u8) -> bool) {
        // For each table, and for the records.
        let mut kept: Vec<Vec<bool>> = vec![Vec::new(); self.tables.len()];
        let (mut records, mut pointing) = (Vec::new(), Vec::new());
        self.log.retain(|seat| {
            let (whose, marks) = match *seat {
                Seat::Table(table) => {
                    let marks = &mut kept[usize::from(table)];
                    (self.tables[usize::from(table)].sender(marks.len()), marks)
                }
                Seat::Record => (self.records.sender(records.len()), &mut records),
                Seat::Pointing => (self.pointing.sender(pointing.len()), &mut pointing),
                Seat::Waits => return false,
            };
            let keeps = whose.is_none_or(|(peer, channel)| keep(peer, channel));
            marks.push(keeps);
            keeps
        });
        self.tables.iter_mut().zip(&kept).for_each(|(table, kept)| table.keep(kept));
        self.records.keep(&records);
        self.pointing.keep(&pointing);
    }
}

impl DirectTables for Arriving {
    fn tick(&self) -> u64 {
        self.tick
    }

    fn begin(&mut self, now: Instant) {
        self.current = Current {
            peer: self.current.peer,
            now,
            log: self.log.len(),
            records: self.records.lengths(),
            pointing: self.pointing.lengths(),
            bytes: self.bytes,
            ..Current::default()
        };
    }

    fn place(&mut self, packet_sequence: u64, channel: u8, message_type: u16) -> Option<&mut Vec<u8>> {
        let seat = self.layout.as_ref()?.seat(message_type);
        let peer = self.current.peer?;
        if self.bytes > MAX_BYTES {
            return None;
        }
        let received_at = self.current.now;
        // The game sees the low bits.
        let packet_sequence = packet_sequence as u16;
        let head = || Head { peer, received_at, key: 0, packet_sequence, missed: 0, channel };
        let messages = match seat {
            Seat::Table(table) => {
                let bytes = self.current.head.get_or_insert_with(|| head().bytes());
                Head::set_channel(bytes, channel);
                let rows = self.tables.get_mut(usize::from(table))?.begin(bytes);
                self.log.push(seat);
                return Some(rows);
            }
            Seat::Record => &mut self.records,
            Seat::Pointing => &mut self.pointing,
            Seat::Waits => return None,
        };
        self.log.push(seat);
        self.current.record = Some((head(), message_type));
        self.current.body = messages.lengths().1;
        Some(messages.begin())
    }

    fn settle(&mut self) {
        let Current { record, body, .. } = &mut self.current;
        self.bytes += match self.log.last() {
            Some(Seat::Table(table)) => self.tables[usize::from(*table)].settle(),
            Some(seat @ (Seat::Record | Seat::Pointing)) => {
                let messages = if *seat == Seat::Record { &mut self.records } else { &mut self.pointing };
                record.take().map_or(0, |(head, message_type)| messages.settle(&head, message_type, *body))
            }
            _ => 0,
        };
    }

    fn cut(&mut self) {
        let Current { log, records, pointing, bytes, .. } = self.current;
        for seat in self.log.drain(log.min(self.log.len())..) {
            if let Seat::Table(table) = seat {
                self.tables[usize::from(table)].cut_last();
            }
        }
        self.records.cut(records);
        self.pointing.cut(pointing);
        self.bytes = bytes;
    }

    fn push_out(&mut self, channel: u8) {
        if let Some(peer) = self.current.peer {
            *self.pushed_out.entry((peer, channel)).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::rng::Rng;
    use crate::store::Packets;
    use crate::time::Duration;
    use crate::transport::{
        Body, ChannelConfig, ChannelKind, Connection, ConnectionConfig, Message, MessageType, Resend,
        SendOptions,
    };
    use crate::wire::{BitSink, BitWriter, Kind, Schema};

    const PEER: PeerHandle = PeerHandle { slot: 3, generation: 1 };
    const OTHER: PeerHandle = PeerHandle { slot: 4, generation: 0 };
    const CHANNELS: usize = 4;
    const ORDERED: usize = 3;

    /// Numbers, texts, and a type without a table.
    fn protocol() -> Arc<Protocol> {
        let number = || ("number", Kind::Bits { bits: 32 });
        let text = ("text", Kind::Text { max_bytes: 20 });
        let schemas = [Schema::new([number()]), Schema::new([number(), text]), Schema::new([number()])];
        let types = schemas
            .into_iter()
            .enumerate()
            .map(|(n, schema)| MessageType { name: format!("M{n}"), body: Body::Declared(schema.unwrap()) });
        let kinds = [
            ChannelKind::Unreliable { receive_queue: 8 },
            ChannelKind::Sequenced { receive_queue: 8 },
            ChannelKind::Redundant { copies: 2, receive_queue: 8 },
            // So small that credit comes often.
            ChannelKind::Reliable {
                ordered: true,
                receive_window: 12,
                receive_bytes: 1 << 20,
                resend: Resend::default(),
            },
        ];
        Arc::new(Protocol::new(types.collect(), kinds.map(ChannelConfig::new).into()).unwrap())
    }

    fn message(message_type: u16, number: u32) -> Message {
        let mut writer = BitWriter::new();
        writer.bits(number.into(), 32);
        if message_type == 1 {
            writer.string(&"é".repeat(number as usize % 9), 20);
        }
        Message::new(message_type, writer.encoded())
    }

    fn connection(protocol: &Arc<Protocol>) -> Connection {
        Connection::new(&ConnectionConfig::default(), protocol.clone()).unwrap()
    }

    /// The contents of an inbox, by channel: a table's messages by type, and the records.
    fn told(inbox: &mut Inbox) -> Vec<(usize, u8, Vec<u8>)> {
        let mut all = Vec::new();
        let (tables, arena) = inbox.take_tables();
        for (number, table) in tables.iter().enumerate() {
            for row in table.rows().chunks(table.stride()) {
                let body = &row[HEAD_BYTES..];
                // With what its cells reference.
                let mut body = body.to_vec();
                if number == 1 {
                    let cell = |at: usize| {
                        u32::from_le_bytes(row[HEAD_BYTES + at..][..4].try_into().unwrap()) as usize
                    };
                    body = [&row[HEAD_BYTES..][..4], &arena[cell(4)..][..cell(8)]].concat();
                }
                all.push((number, row[28], body));
            }
        }
        let records = inbox.records().iter().map(|record| (9, record.channel, inbox.body(record).to_vec()));
        all.extend(records);
        inbox.clear();
        all.sort_by_key(|(table, channel, _)| (*table, *channel));
        all
    }

    #[test]
    fn what_is_placed_and_what_waits_is_the_same_and_refused_packets_leave_nothing() {
        let protocol = protocol();
        let (mut ended, mut placed, mut in_order, mut pushed_out) = (0, 0, 0, 0);
        for seed in 0..200 {
            let rng = &mut Rng::seeded(seed);
            let [mut peer, mut waiting, mut direct] = [(); 3].map(|()| connection(&protocol));
            let mut arriving = Arriving::new();
            let mut inboxes = [(); 2].map(|()| Inbox::with_tables(protocol.clone(), &[0, 1]));
            arriving.take_into(&mut inboxes[1], &protocol);
            let (mut now, mut number, mut overtaken) = (Instant::ZERO, 0, Vec::new());
            'ticks: for _ in 0..12 {
                for _ in 0..1 + rng.below(3) {
                    now += Duration::from_millis(16);
                    for _ in 0..rng.below(12) {
                        number += 1;
                        let channel = rng.below(CHANNELS as u64) as usize;
                        let message = message(rng.below(3) as u16, number);
                        peer.send(now, channel, message, SendOptions::default()).unwrap();
                    }
                    let mut out = Packets::new();
                    peer.transmit(now, &mut out);
                    let late = std::mem::take(&mut overtaken);
                    let mut sent: Vec<_> =
                        out.iter().map(|(number, datagram)| (number, datagram.to_vec())).collect();
                    sent.retain(|_| !rng.chance(0.1));
                    overtaken.extend(sent.pop_if(|_| rng.chance(0.1)));
                    for (number, mut datagram) in sent.into_iter().chain(late) {
                        if rng.chance(0.05) {
                            let bit = rng.below(datagram.len() as u64 * 8) as usize;
                            datagram[bit / 8] ^= 1 << (bit % 8);
                        }
                        let rows = |arriving: &Arriving| {
                            let tables: Vec<_> =
                                arriving.tables.iter().map(|table| table.rows().to_vec()).collect();
                            (
                                tables,
                                arriving.records.lengths(),
                                arriving.pointing.lengths(),
                                arriving.log.clone(),
                            )
                        };
                        let before = rows(&arriving);
                        let result = format!("{:?}", waiting.handle_datagram(now, number, &datagram));
                        let into = direct.handle_into(now, number, &datagram, arriving.of(PEER));
                        assert_eq!(format!("{into:?}"), result, "seed {seed}");
                        if into.is_err() {
                            ended += 1;
                            assert_eq!(rows(&arriving), before, "seed {seed}");
                            break 'ticks;
                        }
                    }
                }
                placed += arriving.log.len();
                let of = |row| arriving.records.sender(row).map(|(_, channel)| usize::from(channel));
                in_order += (0..arriving.records.lengths().0).filter(|row| of(*row) == Some(ORDERED)).count();
                pushed_out += arriving.pushed_out.values().sum::<usize>();
                arriving.take_into(&mut inboxes[1], &protocol);
                for (inbox, connection) in inboxes.iter_mut().zip([&mut waiting, &mut direct]) {
                    inbox.take_from(PEER, connection, CHANNELS);
                }
                assert_eq!(told(&mut inboxes[1]), told(&mut inboxes[0]), "seed {seed}");
                // The replies to the peer must be the same too.
                let [mut ours, mut theirs] = [Packets::new(), Packets::new()];
                waiting.transmit(now, &mut ours);
                direct.transmit(now, &mut theirs);
                assert!(ours.iter().eq(theirs.iter()), "seed {seed}");
                ours.iter().for_each(|(number, datagram)| drop(peer.handle_datagram(now, number, datagram)));
            }
        }
        assert!(ended > 20 && placed > 1000 && pushed_out > 20, "{ended} {placed} {pushed_out}");
        assert!(in_order > 100, "{in_order} reliable messages of a type without a table");
    }

    /// One message of each type from each of two peers, alternating.
    fn arrived(protocol: &Protocol, inbox: &mut Inbox) -> Arriving {
        let mut arriving = Arriving::new();
        arriving.take_into(inbox, protocol);
        for n in 0..6u8 {
            arriving.of(if n % 2 == 0 { PEER } else { OTHER }).begin(Instant::from_millis(500));
            let body = arriving.place(n.into(), 0, (n / 2).into()).unwrap();
            body.extend_from_slice(&[n, 0, 0, 0]);
            if n / 2 == 1 {
                body.extend_from_slice(&[12, 0, 0, 0, 1, 0, 0, 0, b'x']);
            }
            arriving.settle();
        }
        arriving
    }

    #[test]
    fn an_inbox_of_another_kind_gets_the_same_messages() {
        let protocol = protocol();
        let with_tables = || Inbox::with_tables(protocol.clone(), &[0, 1]);
        for (mut first, mut second) in [(Inbox::new(), with_tables()), (with_tables(), Inbox::new())] {
            let mut expected = Inbox::clone(&second);
            arrived(&protocol, &mut first).take_into(&mut second, &protocol);
            arrived(&protocol, &mut expected).take_into(&mut expected, &protocol);
            assert_eq!(second.records(), expected.records());
            assert_eq!(told(&mut second), told(&mut expected));
        }
    }

    #[test]
    fn messages_go_behind_those_that_were_not_taken() {
        let protocol = protocol();
        let mut inbox = Inbox::with_tables(protocol.clone(), &[0, 1]);
        let mut arriving = arrived(&protocol, &mut inbox);
        arriving.take_into(&mut inbox, &protocol);
        assert!(arriving.is_empty());
        arrived(&protocol, &mut inbox).take_into(&mut inbox, &protocol);
        let all = told(&mut inbox);
        let numbers: Vec<u8> = all.iter().map(|(_, _, body)| body[0]).collect();
        assert_eq!(numbers, [0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5]);
        assert_eq!(all[6].2, [2, 0, 0, 0, b'x']);
    }

    #[test]
    fn messages_are_sorted_by_peer_and_channel_and_stay_in_order_within() {
        for seed in 0..100 {
            let rng = &mut Rng::seeded(seed);
            let mut inbox = Inbox::new();
            let mut expected = Vec::new();
            for n in 0..rng.below(40) as u16 {
                let peer = PeerHandle { slot: rng.below(4) as u32, generation: rng.below(2) as u32 };
                let channel = rng.below(3) as u8;
                let head =
                    Head { peer, received_at: Instant::ZERO, key: 0, packet_sequence: n, missed: 0, channel };
                inbox.route_one((head, 0, &[]));
                expected.push((peer, channel, n));
            }
            let first = rng.below(5) as usize;
            inbox.sort(first);
            expected.get_mut(first..).unwrap_or_default().sort_by_key(|it| (it.0, it.1));
            let sorted = inbox.records().iter().map(|it| (it.peer, it.channel, it.packet_sequence));
            assert!(sorted.eq(expected), "seed {seed}");
        }
    }

    #[test]
    fn when_all_that_came_is_dropped_its_bytes_are_free() {
        let protocol = protocol();
        let mut inbox = Inbox::with_tables(protocol.clone(), &[0, 1]);
        let is_free = |arriving: &Arriving| {
            let lengths = [arriving.records.lengths(), arriving.pointing.lengths()];
            arriving.bytes == 0 && lengths == [(0, 0); 2]
        };
        let mut arriving = arrived(&protocol, &mut inbox);
        arriving.drop_peer(PEER);
        assert!(!is_free(&arriving));
        arriving.drop_peer(OTHER);
        assert!(is_free(&arriving));

        let mut arriving = arrived(&protocol, &mut inbox);
        for peer in [PEER, OTHER] {
            (0..3).for_each(|_| arriving.of(peer).push_out(0));
        }
        arriving.take_into(&mut inbox, &protocol);
        assert!(is_free(&arriving) && told(&mut inbox).is_empty());
    }

    #[test]
    fn what_a_dropped_peer_said_is_gone() {
        let protocol = protocol();
        let mut inbox = Inbox::with_tables(protocol.clone(), &[0, 1]);
        let mut arriving = arrived(&protocol, &mut inbox);
        arriving.drop_peer(PEER);
        arriving.take_into(&mut inbox, &protocol);
        let numbers: Vec<u8> = told(&mut inbox).iter().map(|(_, _, body)| body[0]).collect();
        assert_eq!(numbers, [1, 3, 5]);
    }

    #[test]
    fn what_a_flood_sends_between_two_takes_needs_no_channel() {
        let schema = Schema::new([("number", Kind::Bits { bits: 32 })]).unwrap();
        let types = vec![MessageType { name: "Number".into(), body: Body::Declared(schema) }];
        let channel = ChannelConfig::new(ChannelKind::Unreliable { receive_queue: 4096 });
        let protocol = Arc::new(Protocol::new(types, vec![channel]).unwrap());
        let (mut peer, mut direct) = (connection(&protocol), connection(&protocol));
        let (mut arriving, mut inbox) = (Arriving::new(), Inbox::with_tables(protocol.clone(), &[0]));
        arriving.take_into(&mut inbox, &protocol);
        for tick in 0..25 {
            let now = Instant::from_millis(16 * tick);
            for number in 0..100 {
                peer.send(now, 0, message(0, number), SendOptions::default()).unwrap();
            }
            let mut out = Packets::new();
            peer.transmit(now, &mut out);
            for (number, datagram) in out.iter() {
                direct.handle_into(now, number, datagram, arriving.of(PEER)).unwrap();
            }
        }
        assert_eq!(arriving.tables[0].count(), 2500);
        assert!(!direct.has_received());
    }
}

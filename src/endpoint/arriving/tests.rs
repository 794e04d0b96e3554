use std::sync::Arc;

use super::*;
use crate::rng::Rng;
use crate::store::Packets;
use crate::time::Duration;
use crate::transport::{
    Body, ChannelConfig, ChannelKind, Connection, ConnectionConfig, Message, MessageType, Resend, SendOptions,
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
                let cell =
                    |at: usize| u32::from_le_bytes(row[HEAD_BYTES + at..][..4].try_into().unwrap()) as usize;
                body = [&row[HEAD_BYTES..][..4], &arena[cell(4)..][..cell(8)]].concat();
            }
            all.push((number, row[28], body));
        }
    }
    let records =
        inbox.game.records.iter().map(|record| (9, record.head.channel, inbox.game.body(record).to_vec()));
    all.extend(records);
    inbox.game.clear();
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
                        (tables, arriving.records.lengths(), arriving.log.clone())
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
fn arrived(protocol: &Arc<Protocol>, inbox: &mut Inbox) -> Arriving {
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
        assert_eq!(second.game.records, expected.game.records);
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
            inbox.push(&head, 0, &[], None);
            expected.push((peer, channel, n));
        }
        let first = rng.below(5) as usize;
        inbox.sort(first);
        expected.get_mut(first..).unwrap_or_default().sort_by_key(|it| (it.0, it.1));
        let sorted =
            inbox.game.records.iter().map(|it| (it.head.peer, it.head.channel, it.head.packet_sequence));
        assert!(sorted.eq(expected), "seed {seed}");
    }
}

#[test]
fn when_all_that_came_is_dropped_its_bytes_are_free() {
    let protocol = protocol();
    let mut inbox = Inbox::with_tables(protocol.clone(), &[0, 1]);
    let is_free = |arriving: &Arriving| arriving.bytes == 0 && arriving.records.lengths() == (0, 0);
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

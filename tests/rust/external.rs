//! A feature from outside of the transport fills a channel while packets are composed.

use std::collections::VecDeque;
use std::sync::Arc;

use tickwire::endpoint::{Feature, Inbox, PeerHandle};
use tickwire::rng::Rng;
use tickwire::store::{Datagrams, Packets};
use tickwire::time::{Duration, Instant};
use tickwire::transport::{
    Body, BudgetConfig, ChannelConfig, ChannelKind, Connection, ConnectionConfig, Fill, Message, MessageType,
    Notification, OpaqueBody, Protocol, SendError, SendOptions, Share,
};
use tickwire::wire::{BitSink, BitWriter};

use crate::fuzz_targets::native::{handle, labelled};
use crate::fuzz_targets::world;

const TOY: usize = 0;
const GAME: usize = 1;
const RELIABLE: usize = 2;

/// Sends numbers, each until the peer has it: 32 bits each, as many as fit.
#[derive(Default)]
struct Toy {
    due: VecDeque<u32>,
    /// What each record carried.
    records: Vec<Vec<u32>>,
    offers: Vec<usize>,
    raises: bool,
}

impl Fill for Toy {
    fn fill(&mut self, channel: usize, bits: usize, writer: &mut BitWriter) -> Option<u32> {
        assert_eq!(channel, TOY);
        self.offers.push(bits);
        if self.raises {
            // Half a number is written when it happens.
            writer.bits(7, 16);
            return None;
        }
        let count = (bits / 32).min(self.due.len());
        let said: Vec<u32> = self.due.drain(..count).collect();
        said.iter().for_each(|number| writer.bits(u64::from(*number), 32));
        (count > 0).then(|| {
            self.records.push(said);
            self.records.len() as u32 - 1
        })
    }
}

fn protocol(toy: Share, game: Share) -> Arc<Protocol> {
    let opaque = MessageType { name: "Blob".into(), body: Body::Opaque { max_bytes: 1000 } };
    let payload = ChannelKind::Payload { receive_queue: 4096 };
    let channels = vec![
        ChannelConfig { share: toy, ..ChannelConfig::new(payload) },
        ChannelConfig { share: game, ..ChannelConfig::unreliable() },
        ChannelConfig::reliable_ordered(),
    ];
    Arc::new(Protocol::new(vec![opaque], channels).unwrap())
}

fn connection(protocol: &Arc<Protocol>) -> Connection {
    Connection::new(&ConnectionConfig::default(), protocol.clone()).unwrap()
}

fn blob(bytes: usize) -> Message {
    let mut writer = BitWriter::new();
    (0..bytes).for_each(|_| writer.bits(1, 8));
    Message::new(0, writer.encoded())
}

fn numbers(body: &[u8]) -> Vec<u32> {
    let body = OpaqueBody::read(body);
    let mut reader = body.reader();
    (0..body.bits / 32).map(|_| reader.bits(32).unwrap() as u32).collect()
}

#[test]
fn records_are_told_once_in_packet_order_and_nothing_is_lost_for_good() {
    for seed in 0..6 {
        let mut rng = Rng::seeded(seed);
        let protocol = protocol(Share::default(), Share::default());
        let mut ends = [connection(&protocol), connection(&protocol)];
        let (mut toy, mut out) = (Toy::default(), Packets::new());
        let mut under_way: [Vec<(Instant, Vec<u8>)>; 2] = Default::default();
        let (mut told, mut heard) = (Vec::new(), vec![0u32; 3000]);
        for tick in 0..1200u64 {
            let now = Instant::from_millis(tick * 16);
            if tick < 300 {
                toy.due.extend(tick as u32 * 10..tick as u32 * 10 + 10);
                ends[0].send(now, RELIABLE, blob(20), SendOptions::default()).unwrap();
            }
            if !toy.due.is_empty() {
                ends[0].want(TOY, 64).unwrap();
            }
            for end in 0..2 {
                let (arrived, later): (Vec<_>, Vec<_>) =
                    under_way[end].drain(..).partition(|(at, _)| *at <= now);
                under_way[end] = later;
                for (_, packet) in arrived {
                    handle(&mut ends[end], now, &packet).unwrap();
                }
                ends[end].transmit_filled(now, &mut out, &mut toy);
                for packet in out.iter() {
                    if rng.chance(0.2) {
                        continue;
                    }
                    let delay = Duration::from_millis(30 + rng.below(40));
                    under_way[1 - end].push((now + delay, labelled(packet)));
                }
                out.clear();
            }
            while let Some(notification) = ends[0].poll_notification() {
                assert_eq!(notification.channel, TOY as u8);
                told.push(notification.tag);
                if !notification.delivered {
                    toy.due.extend(&toy.records[notification.tag as usize]);
                }
            }
            while let Some(received) = ends[1].poll_received(TOY) {
                numbers(&received.body).into_iter().for_each(|number| heard[number as usize] += 1);
            }
            while ends[1].poll_received(RELIABLE).is_some() {}
        }
        assert!(
            told.iter().copied().eq(0..toy.records.len() as u32),
            "seed {seed}: once each, in order: {told:?}"
        );
        assert!(heard.iter().all(|times| *times > 0), "seed {seed}");
        assert!(ends[0].is_drained());
    }
}

#[test]
fn the_room_is_shared_by_weight_and_strict_comes_first() {
    let weight = |weight| Share { strict: false, weight };
    let strict = Share { strict: true, weight: 1 };
    for (toy_share, game_share, low, high) in
        [(weight(1), weight(1), 0.4, 0.6), (weight(3), weight(1), 0.65, 0.85), (strict, weight(1), 0.8, 0.95)]
    {
        let protocol = protocol(toy_share, game_share);
        let mut end = connection(&protocol);
        let (mut toy, mut out) = (Toy::default(), Packets::new());
        let mut game = 0;
        for tick in 0..40 {
            let now = Instant::from_millis(tick * 16);
            end.set_budget(BudgetConfig { adaptive: false, ..BudgetConfig::new(75_000.0, 1_200.0) }).unwrap();
            toy.due.extend(0..1000);
            end.want(TOY, 32).unwrap();
            (0..100).for_each(|_| end.send(now, GAME, blob(20), SendOptions::default()).unwrap());
            end.transmit_filled(now, &mut out, &mut toy);
            game = end.channel_stats(GAME).bytes_sent;
        }
        let said = toy.records.iter().map(|said| said.len() as u64 * 4).sum::<u64>();
        let share = said as f64 / (said + game) as f64;
        assert!((low..high).contains(&share), "{toy_share:?} has {share}");
        assert!(out.iter().all(|(_, packet)| packet.len() <= 1200));
    }
}

#[test]
fn who_has_nothing_is_asked_once_and_a_failed_offer_leaves_the_packet_as_it_was() {
    let protocol = protocol(Share::default(), Share::default());
    let mut ends = [connection(&protocol), connection(&protocol)];
    let (mut toy, mut out) = (Toy::default(), Packets::new());
    toy.raises = true;
    for tick in 0..10 {
        let now = Instant::from_millis(tick * 16);
        if tick == 3 {
            ends[0].want(TOY, 8).unwrap();
        }
        ends[0].send(now, GAME, blob(10), SendOptions::default()).unwrap();
        ends[0].transmit_filled(now, &mut out, &mut toy);
    }
    assert_eq!(toy.offers.len(), 1, "once, in the tick in which it wanted to be: {:?}", toy.offers);
    for (number, packet) in out.iter() {
        ends[1].handle_datagram(Instant::from_millis(200), number, packet).unwrap();
    }
    assert!(ends[1].poll_received(TOY).is_none());
    assert_eq!(std::iter::from_fn(|| ends[1].poll_received(GAME)).count(), 10);
    assert_eq!(ends[0].poll_notification(), None);

    // Between ticks, and in ticks of those who have nobody to ask, it isn't asked, and keeps what it wants.
    toy.raises = false;
    toy.due.extend([1, 2, 3]);
    ends[0].want(TOY, 8).unwrap();
    let later = Instant::from_millis(400);
    ends[0].transmit_between(later, &mut out);
    ends[0].transmit(later, &mut out);
    assert_eq!(toy.offers.len(), 1);
    ends[0].transmit_filled(later + Duration::from_millis(1), &mut out, &mut toy);
    assert_eq!((toy.offers.len(), toy.due.len()), (3, 0), "once to say it, once to say no more");
}

#[test]
fn no_offer_is_larger_than_the_channel_takes_and_more_is_refused() {
    let opaque = MessageType { name: "Blob".into(), body: Body::Opaque { max_bytes: 1000 } };
    let payload = ChannelConfig {
        max_message_bytes: 256,
        ..ChannelConfig::new(ChannelKind::Payload { receive_queue: 64 })
    };
    let protocol = Arc::new(Protocol::new(vec![opaque], vec![payload]).unwrap());
    let mut ends = [connection(&protocol), connection(&protocol)];
    let (mut toy, mut out) = (Toy::default(), Packets::new());
    toy.due.extend(0..200);
    let error = ends[0].want(TOY, 256 * 8 + 1).unwrap_err();
    assert_eq!(error, SendError::TooLarge { bytes: 257, max_bytes: 256 });
    assert!(ends[0].want(TOY, usize::MAX).is_err());
    ends[0].want(TOY, 256 * 8).unwrap();
    ends[0].transmit_filled(Instant::ZERO, &mut out, &mut toy);
    assert!(toy.offers.iter().all(|bits| *bits <= 256 * 8), "{:?}", toy.offers);
    for (number, packet) in out.iter() {
        ends[1].handle_datagram(Instant::ZERO, number, packet).unwrap();
    }
    let heard: Vec<u32> =
        std::iter::from_fn(|| ends[1].poll_received(TOY)).flat_map(|it| numbers(&it.body)).collect();
    assert!(heard.into_iter().eq(0..200));

    /// Writes twice as much as it was offered.
    struct Greedy;
    impl Fill for Greedy {
        fn fill(&mut self, _: usize, bits: usize, writer: &mut BitWriter) -> Option<u32> {
            (0..bits / 4).for_each(|_| writer.bits(1, 8));
            Some(7)
        }
    }
    let before = out.len();
    ends[0].want(TOY, 8).unwrap();
    ends[0].transmit_filled(Instant::from_millis(10), &mut out, &mut Greedy);
    assert_eq!(out.len(), before, "nothing of it is sent");
    let lost = Notification { channel: TOY as u8, tag: 7, delivered: false };
    assert_eq!(ends[0].poll_notification(), Some(lost));
}

#[test]
fn what_cannot_be_asked_for_takes_nothing_from_strict_channels() {
    let strict = Share { strict: true, weight: 1 };
    let protocol = protocol(Share::default(), strict);
    let (mut asked, mut never) = (connection(&protocol), connection(&protocol));
    let mut out = Packets::new();
    asked.want(TOY, 32).unwrap();
    for tick in 0..20 {
        let now = Instant::from_millis(tick * 16);
        for end in [&mut asked, &mut never] {
            end.send(now, GAME, blob(1000), SendOptions::default()).unwrap();
            end.transmit_between(now, &mut out);
            end.transmit(now, &mut out);
        }
    }
    assert_eq!(asked.channel_stats(GAME), never.channel_stats(GAME));
    assert!(asked.is_drained() == never.is_drained());
}

/// More packets in flight than the ledger has room for: what they carried is given up, told once and in order.
#[test]
fn a_full_ledger_tells_every_fate_once_and_in_order() {
    let protocol = protocol(Share::default(), Share::default());
    let mut config = ConnectionConfig::default();
    (config.packets.acks.max_window, config.packets.acks.received_window) = (Some(64), 64);
    config.budget = BudgetConfig { adaptive: false, ..BudgetConfig::new(1e9, 1e9) };
    let mut end = Connection::new(&config, protocol.clone()).unwrap();
    let (mut out, mut told) = (Packets::new(), Vec::new());
    for tick in 0..300u32 {
        let now = Instant::from_millis(u64::from(tick));
        let options = SendOptions { tag: tick, notify: true, ..SendOptions::default() };
        end.send(now, GAME, blob(1000), options).unwrap();
        end.transmit(now, &mut out);
        told.extend(std::iter::from_fn(|| end.poll_notification()));
    }
    assert!(told.len() > 200 && told.iter().all(|told| !told.delivered), "{}", told.len());
    end.abandon_all();
    told.extend(std::iter::from_fn(|| end.poll_notification()));
    assert!(told.iter().map(|told| told.tag).eq(0..300), "{told:?}");
}

#[test]
fn only_payload_channels_are_filled() {
    let protocol = protocol(Share::default(), Share::default());
    let mut end = connection(&protocol);
    assert_eq!(end.want(GAME, 8), Err(SendError::WrongKind));
    assert_eq!(end.want(7, 8), Err(SendError::NoChannel { channel: 7, channels: 3 }));
}

#[test]
fn the_budget_of_a_tick_can_be_asked() {
    let protocol = protocol(Share::default(), Share::default());
    let mut end = connection(&protocol);
    let (mut toy, mut out) = (Toy::default(), Packets::new());
    let before = end.budget_bits(Instant::ZERO);
    toy.due.extend(0..200);
    end.want(TOY, 8).unwrap();
    end.transmit_filled(Instant::ZERO, &mut out, &mut toy);
    let sent: usize = out.iter().map(|(_, packet)| packet.len() * 8).sum();
    let after = end.budget_bits(Instant::ZERO);
    assert!(before - after >= sent && before - after <= sent + 400, "{before} {after} {sent}");
}

/// Says one number to each peer.
struct Greeting(Vec<PeerHandle>);

impl Feature for Greeting {
    fn fill(&mut self, peer: PeerHandle, channel: usize, bits: usize, writer: &mut BitWriter) -> Option<u32> {
        assert!(channel == world::PAYLOAD && bits >= 32);
        let place = self.0.iter().position(|waiting| *waiting == peer)?;
        self.0.remove(place);
        writer.bits(7, 32);
        Some(place as u32)
    }
}

#[test]
fn an_endpoints_feature_is_asked_about_each_peer() {
    let (mut server, mut client) = world::connected();
    let peer = server.connected().next().unwrap();
    let (now, mut out) = (Instant::from_millis(100), Datagrams::new());
    assert!(server.connection_mut(peer).unwrap().budget_bits(now) > 32);
    let mut greeting = Greeting(vec![peer]);
    server.connection_mut(peer).unwrap().want(world::PAYLOAD, 32).unwrap();
    server.transmit_with(now, &mut out, &mut greeting);
    assert!(greeting.0.is_empty());
    let mut answers = Datagrams::new();
    for (_, datagram) in out.iter_mut() {
        client.handle_datagram(now, world::START, world::server_address(), datagram, &mut answers);
    }
    let mut inbox = Inbox::new();
    client.take_messages(&mut inbox);
    assert_eq!(numbers(inbox.game.body(&inbox.game.records[0])), [7]);
    client.transmit(now, &mut answers);
    for (_, datagram) in answers.iter_mut() {
        server.handle_datagram(now, world::START, world::client_address(), datagram, &mut out);
    }
    let mut told = Vec::new();
    server.take_notifications(&mut told);
    let notification = Notification { channel: world::PAYLOAD as u8, tag: 0, delivered: true };
    assert_eq!(told, [(peer, notification)]);
    assert!(server.connection_mut(peer).unwrap().want(world::ORDERED, 32).is_err());
    let gone = PeerHandle { generation: peer.generation + 1, ..peer };
    assert!(server.connection_mut(gone).is_none());
}

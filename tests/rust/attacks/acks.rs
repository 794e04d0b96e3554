//! What an authenticated peer gains by what it acks and by what it makes us ack: numbers with gaps, nothing acked, all acked.

use std::sync::Arc;
use std::time::Instant as Clock;

use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::acks::FullHeader;
use tickwire::transport::{
    ChannelConfig, ChannelKind, Connection, ConnectionConfig, End, Protocol, SendOptions, Violation,
};
use tickwire::wire::{BitSink, BitWriter};

use crate::fuzz_targets::native::{Peer as Honest, ackless, datagram};
use crate::pair::{blob, number, protocol_with};

const TICK: Duration = Duration::from_micros(16_667);

/// What lies around a payload on the wire: IP, UDP, netcode.
const OVERHEAD: usize = 28 + 25;

/// A peer that says what it likes to a connection of ours.
struct Peer {
    now: Instant,
    ours: Connection,
    protocol: Arc<Protocol>,
    /// The state of an honest peer.
    acks: Option<Honest>,
    /// The next number of a dishonest peer.
    sequence: u64,
    out: Packets,
    /// Datagrams, and bytes with headers; the largest.
    sent: [usize; 2],
    received: [usize; 2],
    largest: usize,
    nanos: u128,
}

impl Peer {
    fn new(honest: bool) -> Self {
        let channels = vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable()];
        let protocol = protocol_with(channels);
        let mut peer = Peer {
            now: Instant::ZERO,
            ours: Connection::new(&ConnectionConfig::default(), protocol.clone()).unwrap(),
            protocol,
            acks: honest.then(Honest::default),
            sequence: 0,
            out: Packets::new(),
            sent: [0; 2],
            received: [0; 2],
            largest: 0,
            nanos: 0,
        };
        peer.say();
        peer
    }

    /// A packet with hello and nothing else.
    fn say(&mut self) {
        let mut writer = BitWriter::new();
        writer.bool(true);
        writer.bits(tickwire::transport::VERSION.into(), 8);
        writer.bits(self.protocol.hash(), 64);
        writer.bits(0, 5);
        let payload = writer.into_bytes();
        let (number, datagram) = match &mut self.acks {
            Some(acks) => acks.send(&payload).remove(0),
            None => {
                self.sequence += 2;
                (self.sequence, datagram(&ackless(self.sequence), &payload))
            }
        };
        self.sent[0] += 1;
        self.sent[1] += datagram.len() + OVERHEAD;
        let clock = Clock::now();
        self.ours.handle_datagram(self.now, number, &datagram).unwrap();
        self.nanos += clock.elapsed().as_nanos();
    }

    fn tick(&mut self, messages: u32) {
        self.now += TICK;
        for n in 0..messages {
            self.ours.send(self.now, 1, number(n), SendOptions::default()).unwrap();
        }
        let clock = Clock::now();
        self.ours.transmit(self.now, &mut self.out);
        self.nanos += clock.elapsed().as_nanos();
        for (number, datagram) in self.out.iter() {
            self.received[0] += 1;
            self.received[1] += datagram.len() + OVERHEAD;
            self.largest = self.largest.max(datagram.len());
            if let Some(acks) = &mut self.acks {
                acks.accept(number);
            }
        }
        self.out.clear();
    }
}

/// What 9,000 packets and then some a tick make us send in ten seconds, of honest peers and of those that leave every other
/// number out and ack nothing.
fn cost(peers: usize, packets_a_tick: usize, messages: u32) -> [(Vec<Peer>, usize); 2] {
    [true, false].map(|honest| {
        let mut peers: Vec<_> = (0..peers).map(|_| Peer::new(honest)).collect();
        for peer in &mut peers {
            for _ in 0..300 {
                (0..30).for_each(|_| peer.say());
                peer.tick(0);
            }
            (peer.sent, peer.received, peer.nanos, peer.largest) = ([0; 2], [0; 2], 0, 0);
            for _ in 0..600 {
                (0..packets_a_tick).for_each(|_| peer.say());
                peer.tick(messages);
            }
        }
        let out = peers.iter().map(|peer| peer.received[1]).sum();
        (peers, out)
    })
}

/// The section of ack ranges was once as long as the window: 7 KB in each packet, for 26 bytes a second.
#[test]
fn gaps_and_silence_make_nobody_send_much_more_than_an_honest_peer_does() {
    println!(
        "\n| peers | packets in and messages out a tick | honest, bytes out | gaps, bytes out | largest | us |"
    );
    for peers in [1, 25] {
        for (packets, messages) in [(0, 0), (1, 0), (0, 1), (1, 1), (1, 20), (4, 20)] {
            let [(honest, usual), (evil, out)] = cost(peers, packets, messages);
            let largest = evil.iter().map(|peer| peer.largest).max().unwrap();
            let [before, after] =
                [&honest, &evil].map(|all| all.iter().map(|peer| peer.nanos).sum::<u128>() / 1000);
            println!("| {peers} | {packets}, {messages} | {usual} | {out} | {largest} | {before}, {after} |");
            assert!(out * 2 <= usual * 3, "{packets}, {messages}: {out} bytes instead of {usual}");
            let bound = 120 + honest.iter().map(|peer| peer.largest).max().unwrap();
            assert!(largest <= bound, "{packets}, {messages}: a packet of {largest} bytes");
            if messages == 0 {
                let keep_alives = evil.iter().map(|peer| peer.received[0].min(101)).sum::<usize>();
                let paid_for = evil.iter().map(|peer| peer.sent[1] + 2 * 1200).sum::<usize>();
                assert!(out <= paid_for + keep_alives * (OVERHEAD + 20), "{out} bytes that only ack");
            }
        }
    }
}

/// Ack ranges wait when a message would not fit beside them.
#[test]
fn a_message_that_fills_a_datagram_is_not_cut_for_what_we_are_made_to_ack() {
    for bytes in [900, 1100, 1140, 1150] {
        let [honest, evil] = [true, false].map(|honest| {
            let mut peer = Peer::new(honest);
            (0..500).for_each(|_| peer.say());
            peer.ours.send(peer.now, 0, blob(1, bytes), SendOptions::default()).unwrap();
            peer.tick(0);
            peer.ours.counters().fragments_sent
        });
        assert_eq!(evil, honest, "{bytes}");
    }
}

/// A peer that acks whatever was sent by now, received or not, by its number alone.
fn blind(skip_seed: Option<u64>, ahead: u64, backwards: bool) -> Result<u64, (u64, End)> {
    let protocol = protocol_with(vec![ChannelConfig::new(ChannelKind::Unreliable { receive_queue: 8 })]);
    let config = ConnectionConfig { skip_seed, ..ConnectionConfig::default() };
    let mut ours = Connection::new(&config, protocol.clone()).unwrap();
    let (mut now, mut out) = (Instant::ZERO, Packets::new());
    for tick in 0..600 {
        now += TICK;
        ours.send(now, 0, number(tick as u32), SendOptions::default()).unwrap();
        ours.transmit(now, &mut out);
        let newest = out.iter().map(|(number, _)| number).max().unwrap();
        out.clear();
        let mut writer = BitWriter::new();
        writer.bool(true);
        writer.bits(tickwire::transport::VERSION.into(), 8);
        writer.bits(protocol.hash(), 64);
        writer.bits(0, 5);
        // As if in order, or each packet before the previous one.
        let sequence = if backwards { 1000 - tick } else { tick };
        let header = FullHeader { sequence, ack: newest + ahead, ack_bits: u32::MAX, skipped: 0 };
        let datagram = datagram(&header, &writer.into_bytes());
        ours.handle_datagram(now, sequence, &datagram).map_err(|end| (tick, end))?;
    }
    Ok(600)
}

#[test]
fn acks_of_what_was_never_sent_end_the_connection() {
    let violation = End::Violation(Violation::Ack);
    assert_eq!(blind(None, 0, false), Ok(600), "what was sent may have arrived");
    assert_eq!(blind(None, 1, false), Err((0, violation.clone())), "the number of a packet to come");
    assert_eq!(blind(None, 1, true), Err((0, violation.clone())));
    for seed in 0..50 {
        let found = blind(Some(seed), 0, seed % 2 == 0);
        assert!(matches!(&found, Err((tick, end)) if *tick < 520 && *end == violation), "{seed}: {found:?}");
    }
}

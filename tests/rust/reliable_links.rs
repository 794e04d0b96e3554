//! Two reliable endpoints over links that misbehave: what each end believes is what happened.

use tickwire::netsim::{Conditions, Link};
use tickwire::time::{Duration, Instant};
use tickwire::transport::ack_endpoint::{AckEndpoint, AckEndpointConfig};
use tickwire::transport::acks::RttSampling;

/// What became of a packet.
#[derive(Clone, Copy, Default)]
struct Record {
    arrivals: u32,
    acks: u32,
    losses: u32,
}

struct Peer {
    endpoint: AckEndpoint,
    /// By packet, since the start: far fewer than 65,536 are sent.
    records: Vec<Record>,
    out: Link<Vec<u8>>,
}

impl Peer {
    fn new(conditions: Conditions, seed: u64) -> Self {
        Peer {
            endpoint: AckEndpoint::new(AckEndpointConfig::large()).unwrap(),
            records: Vec::new(),
            out: Link::new(conditions, seed).unwrap(),
        }
    }

    fn send(&mut self, now: Instant, bytes: usize) {
        let payload: Vec<u8> = (0..bytes).map(|i| (i + self.records.len()) as u8).collect();
        for piece in self.endpoint.send(now, &payload).unwrap().pieces() {
            let mut datagram = Vec::new();
            piece.write(&mut datagram);
            let bytes = datagram.len();
            self.out.send(now, datagram, bytes);
        }
        self.records.push(Record::default());
    }

    fn receive(&mut self, now: Instant, from: &mut Peer) {
        let (mut acked, mut lost) = (Vec::new(), Vec::new());
        while let Some(datagram) = from.out.poll(now) {
            if let Ok(Some(incoming)) = self.endpoint.open(&datagram) {
                let number = incoming.header.sequence as usize;
                let intact =
                    incoming.payload().iter().enumerate().all(|(i, byte)| *byte == (i + number) as u8);
                assert!(intact, "packet {number} is damaged");
                from.records[number].arrivals += 1;
                self.endpoint.accept(now, incoming, RttSampling::EveryAck, &mut acked);
            }
        }
        self.endpoint.acks.poll_lost(now, &mut lost);
        assert!(lost.is_sorted());
        // A late ack only corrects what was reported as lost.
        let on_time = acked.iter().filter(|acked| !acked.late);
        on_time.for_each(|acked| self.records[acked.sequence as usize].acks += 1);
        lost.iter().for_each(|sequence| self.records[*sequence as usize].losses += 1);
        self.endpoint.acks.update(now);
    }
}

/// 60 packets a second each way, sometimes a large one, for `ticks` ticks and two seconds of silence.
fn converse(conditions: Conditions, seed: u64, ticks: u64) -> [Peer; 2] {
    let [mut a, mut b] = [Peer::new(conditions, seed), Peer::new(conditions, seed + 1)];
    for tick in 0..ticks + 120 {
        let now = Instant::ZERO + Duration::from_micros(tick * 16_667);
        a.receive(now, &mut b);
        b.receive(now, &mut a);
        if tick < ticks {
            a.send(now, if tick % 50 == 0 { 20_000 } else { 100 });
            b.send(now, 100);
        }
    }
    [a, b]
}

#[test]
fn every_packet_arrives_at_most_once_and_is_acked_or_lost_exactly_once() {
    let conditions = Conditions::perfect()
        .latency(Duration::from_millis(60), Duration::from_millis(40))
        .loss(0.05)
        .duplicate(0.05)
        .reorder(0.05, Duration::from_millis(100));
    for peer in converse(conditions, 21, 5000) {
        for (number, record) in peer.records.iter().enumerate() {
            assert!(record.arrivals <= 1, "packet {number} arrived {} times", record.arrivals);
            assert_eq!(record.acks + record.losses, 1, "packet {number}");
            assert!(record.acks <= record.arrivals, "packet {number} was acked and never arrived");
        }
        let counters = peer.endpoint.acks.counters;
        assert!(counters.acked > 4500 && counters.lost > 200, "{counters:?}");
    }
}

#[test]
fn estimates_tell_the_conditions_of_the_link() {
    let conditions =
        Conditions::perfect().latency(Duration::from_millis(50), Duration::from_millis(10)).loss(0.1);
    let [a, _] = converse(conditions, 4, 1500);
    let stats = a.endpoint.acks.stats();
    // Both ways 100 ms, and each end looks at its mail once a tick of 17 ms.
    assert!((100.0..135.0).contains(&stats.rtt), "{stats:?}");
    assert!(stats.rtt_min >= 80.0 && stats.jitter_stddev > 2.0, "{stats:?}");
    assert!((3.0..20.0).contains(&stats.packet_loss), "{stats:?}");
    assert!(stats.acked_kbps < stats.sent_kbps, "{stats:?}");
}

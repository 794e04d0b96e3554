//! When a packet counts as lost, and what order costs, through endpoints over simulated links.

use std::collections::VecDeque;

use tickwire::netsim::{Conditions, Link};
use tickwire::time::{Duration, Instant};
use tickwire::transport::ack_endpoint::{AckEndpoint, AckEndpointConfig, Piece};
use tickwire::transport::acks::{AcksConfig, LossBound, RttSampling};

const STEP: Duration = Duration::from_millis(1);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn endpoint(acks: AcksConfig) -> AckEndpoint {
    AckEndpoint::new(AckEndpointConfig { acks, ..AckEndpointConfig::large() }).unwrap()
}

fn bounded(loss_bound: LossBound) -> AckEndpoint {
    endpoint(AcksConfig { loss_bound, ..AcksConfig::default() })
}

fn rtt_multiple() -> AckEndpoint {
    bounded(LossBound::Rtt { multiple: 2.0, at_least: ms(30) })
}

/// A packet of the sender, as the simulator knows it.
#[derive(Clone, Copy, Default)]
struct Truth {
    sent_at: Instant,
    accepted: bool,
    acked: bool,
    lost_after: Option<Duration>,
}

/// A sender of 60 packets a second, a receiver that answers as many, and what became of each packet.
struct Run {
    ends: [AckEndpoint; 2],
    links: [Link<Vec<u8>>; 2],
    now: Instant,
    packets: Vec<Truth>,
    /// The order in which the receiver accepted them.
    accepted: VecDeque<u64>,
}

impl Run {
    fn new(ends: [AckEndpoint; 2], conditions: Conditions) -> Self {
        Run {
            ends,
            links: [Link::new(conditions, 5).unwrap(), Link::new(conditions, 6).unwrap()],
            now: Instant::ZERO,
            packets: Vec::new(),
            accepted: VecDeque::new(),
        }
    }

    fn seconds(&mut self, seconds: u64) -> &mut Self {
        for step in 0..seconds * 1000 {
            self.now += STEP;
            if step % 17 == 0 {
                self.packets.push(Truth { sent_at: self.now, ..Truth::default() });
                self.send(0);
                self.send(1);
            }
            self.receive(0);
            self.receive(1);
            let mut lost = Vec::new();
            self.ends[0].acks.poll_lost(self.now, &mut lost);
            for sequence in lost {
                let packet = &mut self.packets[sequence as usize];
                packet.lost_after = Some(self.now - packet.sent_at);
            }
        }
        self
    }

    fn send(&mut self, end: usize) {
        for piece in self.ends[end].send(self.now, b"move").unwrap().pieces() {
            let mut datagram = Vec::new();
            Piece::write(&piece, &mut datagram);
            let bytes = datagram.len();
            self.links[end].send(self.now, datagram, bytes);
        }
    }

    fn receive(&mut self, end: usize) {
        let mut acked = Vec::new();
        while let Some(datagram) = self.links[1 - end].poll(self.now) {
            let Ok(Some(incoming)) = self.ends[end].open(&datagram) else { continue };
            if end == 1 {
                self.packets[incoming.header.sequence as usize].accepted = true;
                self.accepted.push_back(incoming.header.sequence);
            }
            self.ends[end].accept(self.now, incoming, RttSampling::EveryAck, &mut acked);
        }
        if end == 0 {
            acked.iter().for_each(|acked| self.packets[acked.sequence as usize].acked = true);
        }
    }

    /// The longest that a packet sent `after` waited for its loss to be told.
    fn slowest_report(&self, after: Duration) -> Duration {
        let late = self.packets.iter().filter(|packet| packet.sent_at > Instant::ZERO + after);
        late.filter_map(|packet| packet.lost_after).max().unwrap()
    }

    /// Packets called lost that did arrive and whose ack came.
    fn misfires(&self) -> usize {
        self.packets.iter().filter(|packet| packet.lost_after.is_some() && packet.acked).count()
    }
}

#[test]
fn by_time_a_loss_is_told_when_the_time_is_over() {
    let conditions = Conditions::perfect().latency(ms(10), ms(0)).loss(0.1);
    let ends = [bounded(LossBound::After(ms(250))), endpoint(AcksConfig::default())];
    let mut run = Run::new(ends, conditions);
    run.seconds(30);
    let told: Vec<_> = run.packets.iter().filter_map(|packet| packet.lost_after).collect();
    assert!(told.len() > 100 && told.iter().all(|after| *after == ms(250)), "{told:?}");
    let old = run.packets.iter().filter(|packet| run.now - packet.sent_at > ms(300));
    for packet in old {
        assert!(packet.acked != packet.lost_after.is_some(), "acked or lost");
        assert!(packet.accepted || !packet.acked, "only what arrived is acked");
    }
}

#[test]
fn by_round_trips_a_loss_is_told_soon_on_a_fast_link() {
    let conditions = Conditions::perfect().latency(ms(10), ms(0)).loss(0.05);
    let mut run = Run::new([rtt_multiple(), endpoint(AcksConfig::default())], conditions);
    run.seconds(30);
    // 20 ms of link and up to 17 ms until the receiver answers, twice.
    let slowest = run.slowest_report(ms(1000));
    assert!((ms(40)..=ms(85)).contains(&slowest), "{slowest:?}");
    // Where an answer is lost, the ack comes with the next, 17 ms later.
    let bound = run.packets.len() / 100;
    assert!(run.misfires() <= bound, "{} of {}", run.misfires(), run.packets.len());
}

#[test]
fn by_round_trips_nothing_is_told_too_soon_on_a_slow_link_with_jitter() {
    let conditions = Conditions::perfect().latency(ms(200), ms(60));
    let mut run = Run::new([rtt_multiple(), endpoint(AcksConfig::default())], conditions);
    run.seconds(60);
    assert_eq!(run.ends[0].acks.counters.lost, 0, "nothing was lost");
    assert!(run.packets.iter().take(3000).all(|packet| packet.acked && packet.lost_after.is_none()));

    let mut run = Run::new([rtt_multiple(), endpoint(AcksConfig::default())], conditions.loss(0.1));
    run.seconds(60);
    let lost = run.ends[0].acks.counters.lost;
    assert!((250..450).contains(&lost), "a tenth of 3,530: {lost}");
    assert!(run.misfires() == 0, "{} of {lost} did arrive", run.misfires());
    let slowest = run.slowest_report(ms(5000));
    assert!((ms(700)..=ms(950)).contains(&slowest), "two round trips of 340 to 460 ms: {slowest:?}");
}

#[test]
fn by_round_trips_the_bound_follows_the_link() {
    let fast = Conditions::perfect().latency(ms(10), ms(0)).loss(0.1);
    let mut run = Run::new([rtt_multiple(), endpoint(AcksConfig::default())], fast);
    run.seconds(10);
    let before = run.ends[0].acks.time_to_loss();
    let slow = Conditions::perfect().latency(ms(200), ms(0)).loss(0.1);
    run.links.iter_mut().for_each(|link| link.set_conditions(slow).unwrap());
    run.seconds(10);
    let after = run.ends[0].acks.time_to_loss();
    assert!(before < ms(80) && after > ms(780), "{before:?}, then {after:?}");
    let misfires = run.misfires();
    run.seconds(20);
    assert_eq!(run.misfires(), misfires, "late acks taught it the new round trip");
    assert!(run.ends[0].acks.counters.late_acks > 0);
}

#[test]
fn in_order_only_drops_what_was_overtaken_and_never_acks_it() {
    let conditions = Conditions::perfect().latency(ms(50), ms(40)).duplicate(0.1).loss(0.02);
    let in_order = AcksConfig { in_order_only: true, ..AcksConfig::default() };
    let mut run = Run::new([endpoint(AcksConfig::default()), endpoint(in_order)], conditions);
    run.seconds(30);
    assert!(run.accepted.iter().is_sorted(), "each newer than all before");
    let counters = run.ends[1].acks.counters;
    assert!(counters.out_of_order > 300, "{counters:?}");
    assert_eq!(counters.received as usize, run.accepted.len());
    assert!(run.packets.iter().all(|packet| packet.accepted || !packet.acked));
    let settled = run.packets.iter().filter(|packet| run.now - packet.sent_at > ms(1001));
    let (mut dropped, mut kept) = (0, 0);
    for packet in settled {
        assert_ne!(packet.acked, packet.lost_after.is_some());
        if packet.accepted {
            kept += 1;
        } else {
            dropped += 1;
        }
        assert!(packet.accepted || packet.lost_after == Some(ms(1000)), "dropped is lost to its sender");
    }
    assert!(dropped > 300 && kept > 300, "{dropped} dropped, {kept} kept");
}

//! What an end believes of its connection is what the simulated links did, within the errors that the docs of
//! `Stats` state: twenty networks, for reliable 1.0 and for our own framing.

use std::sync::Arc;

use tickwire::articles::StandardEstimate;
use tickwire::netsim::{Conditions, Link};
use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::ack_endpoint::{AckEndpoint, AckEndpointConfig};
use tickwire::transport::acks::{LossBound, RttSampling};
use tickwire::transport::{BudgetConfig, Connection, ConnectionConfig, PacketStats, Protocol, SendOptions};

use crate::pair::{UNRELIABLE, blob, protocol};

const OVERHEAD: usize = 28;
/// Bytes of application data in a packet.
const BYTES: usize = 120;
/// What the estimates remember, in seconds.
const MEMORY: f64 = 3.0;
/// How long the estimates are compared with the links.
const MEASURED_SECONDS: f64 = 60.0;

/// A network, as the end sees it that is measured: what it sends, then what it receives.
#[derive(Clone, Copy, Debug)]
struct Setting {
    rtt: f64,
    jitter: [f64; 2],
    loss: [f64; 2],
    rate: [f64; 2],
    duplicate: f64,
    reorder: f64,
}

#[rustfmt::skip]
const SETTINGS: [Setting; 20] = [
    Setting { rtt: 5.0, jitter: [0.0, 0.0], loss: [0.0, 0.0], rate: [60.0, 60.0], duplicate: 0.0, reorder: 0.0 },
    Setting { rtt: 5.0, jitter: [1.0, 2.0], loss: [0.01, 0.0], rate: [200.0, 10.0], duplicate: 0.0, reorder: 0.0 },
    Setting { rtt: 10.0, jitter: [5.0, 5.0], loss: [0.0, 0.05], rate: [100.0, 100.0], duplicate: 0.1, reorder: 0.0 },
    Setting { rtt: 20.0, jitter: [2.0, 2.0], loss: [0.02, 0.02], rate: [10.0, 200.0], duplicate: 0.0, reorder: 0.02 },
    Setting { rtt: 30.0, jitter: [0.0, 15.0], loss: [0.05, 0.0], rate: [60.0, 20.0], duplicate: 0.02, reorder: 0.0 },
    Setting { rtt: 40.0, jitter: [20.0, 0.0], loss: [0.1, 0.05], rate: [30.0, 60.0], duplicate: 0.0, reorder: 0.05 },
    Setting { rtt: 60.0, jitter: [4.0, 4.0], loss: [0.0, 0.3], rate: [20.0, 20.0], duplicate: 0.0, reorder: 0.0 },
    Setting { rtt: 60.0, jitter: [30.0, 30.0], loss: [0.3, 0.0], rate: [60.0, 60.0], duplicate: 0.0, reorder: 0.1 },
    Setting { rtt: 80.0, jitter: [10.0, 5.0], loss: [0.15, 0.01], rate: [200.0, 200.0], duplicate: 0.05, reorder: 0.0 },
    Setting { rtt: 100.0, jitter: [0.0, 0.0], loss: [0.3, 0.3], rate: [100.0, 50.0], duplicate: 0.0, reorder: 0.0 },
    Setting { rtt: 100.0, jitter: [5.0, 3.0], loss: [0.01, 0.2], rate: [10.0, 10.0], duplicate: 0.2, reorder: 0.0 },
    Setting { rtt: 150.0, jitter: [50.0, 20.0], loss: [0.05, 0.05], rate: [60.0, 30.0], duplicate: 0.0, reorder: 0.0 },
    Setting { rtt: 150.0, jitter: [8.0, 70.0], loss: [0.02, 0.1], rate: [30.0, 100.0], duplicate: 0.0, reorder: 0.2 },
    Setting { rtt: 200.0, jitter: [100.0, 100.0], loss: [0.1, 0.1], rate: [60.0, 60.0], duplicate: 0.1, reorder: 0.1 },
    Setting { rtt: 200.0, jitter: [0.0, 0.0], loss: [0.0, 0.1], rate: [200.0, 60.0], duplicate: 0.0, reorder: 0.0 },
    Setting { rtt: 250.0, jitter: [20.0, 10.0], loss: [0.2, 0.1], rate: [20.0, 60.0], duplicate: 0.0, reorder: 0.0 },
    Setting { rtt: 300.0, jitter: [40.0, 40.0], loss: [0.05, 0.15], rate: [10.0, 30.0], duplicate: 0.05, reorder: 0.05 },
    Setting { rtt: 400.0, jitter: [100.0, 100.0], loss: [0.1, 0.0], rate: [150.0, 60.0], duplicate: 0.0, reorder: 0.0 },
    Setting { rtt: 600.0, jitter: [10.0, 10.0], loss: [0.3, 0.05], rate: [60.0, 60.0], duplicate: 0.0, reorder: 0.0 },
    Setting { rtt: 600.0, jitter: [50.0, 100.0], loss: [0.0, 0.02], rate: [200.0, 200.0], duplicate: 0.1, reorder: 0.1 },
];

impl Setting {
    fn conditions(&self, way: usize) -> Conditions {
        let ms = |millis: f64| Duration::from_secs_f64(millis / 1000.0);
        Conditions::perfect()
            .latency(ms(self.rtt / 2.0), ms(self.jitter[way]))
            .loss(self.loss[way])
            .duplicate(self.duplicate)
            .reorder(self.reorder, ms(self.jitter[way]))
    }

    /// The most by which a packet may come late, against the fastest, in milliseconds.
    fn spread(&self, way: usize) -> f64 {
        self.jitter[way] * if self.reorder > 0.0 { 3.0 } else { 2.0 }
    }

    fn interval(&self, way: usize) -> f64 {
        1000.0 / self.rate[way]
    }

    fn may_overtake(&self, way: usize) -> bool {
        self.spread(way) >= self.interval(way)
    }

    /// The noise of a share of packets over `seconds`.
    fn noise(&self, way: usize, seconds: f64) -> f64 {
        let loss = self.loss[way];
        (loss * (1.0 - loss) / (self.rate[way] * seconds)).sqrt()
    }
}

/// An end of a conversation that sends a packet when told.
trait End {
    fn send(&mut self, now: Instant) -> Vec<(u64, Vec<u8>)>;
    fn handle(&mut self, now: Instant, number: u64, datagram: &[u8]);
    fn stats(&self) -> PacketStats;
}

impl End for AckEndpoint {
    fn send(&mut self, now: Instant) -> Vec<(u64, Vec<u8>)> {
        self.acks.poll_lost(now, &mut Vec::new());
        self.acks.update(now);
        let written = |piece: tickwire::transport::ack_endpoint::Piece<'_>| {
            let mut datagram = Vec::new();
            piece.write(&mut datagram);
            (0, datagram)
        };
        AckEndpoint::send(self, now, &[0; BYTES]).unwrap().pieces().map(written).collect()
    }

    fn handle(&mut self, now: Instant, _: u64, datagram: &[u8]) {
        if let Ok(Some(incoming)) = self.open(datagram) {
            self.accept(now, incoming, RttSampling::EveryAck, &mut Vec::new());
        }
    }

    fn stats(&self) -> PacketStats {
        self.acks.stats()
    }
}

impl End for (AckEndpoint, StandardEstimate) {
    fn send(&mut self, now: Instant) -> Vec<(u64, Vec<u8>)> {
        let (endpoint, estimate) = self;
        let sequence = endpoint.acks.next_sequence();
        let datagrams = End::send(endpoint, now);
        estimate.update(&endpoint.acks);
        estimate.note_sent(now, sequence, BYTES);
        datagrams
    }

    fn handle(&mut self, now: Instant, _: u64, datagram: &[u8]) {
        let (endpoint, estimate) = self;
        if let Ok(Some(incoming)) = endpoint.open(datagram) {
            let mut acked = Vec::new();
            estimate.note_received(now, &incoming);
            endpoint.accept(now, incoming, RttSampling::EveryAck, &mut acked);
            estimate.note_acked(&acked);
        }
    }

    fn stats(&self) -> PacketStats {
        self.1.in_place_of(self.0.stats())
    }
}

impl End for Connection {
    fn send(&mut self, now: Instant) -> Vec<(u64, Vec<u8>)> {
        let mut packets = Packets::new();
        Connection::send(self, now, UNRELIABLE, blob(1, BYTES), SendOptions::default()).unwrap();
        self.transmit(now, &mut packets);
        packets.iter().map(|(number, packet)| (number, packet.to_vec())).collect()
    }

    fn handle(&mut self, now: Instant, number: u64, datagram: &[u8]) {
        self.handle_datagram(now, number, datagram).unwrap();
        while self.poll_received(UNRELIABLE).is_some() {}
    }

    fn stats(&self) -> PacketStats {
        Connection::stats(self)
    }
}

#[derive(Clone)]
struct Datagram {
    number: usize,
    /// Its number in the layer below, if it has one.
    packet: u64,
    sent_at: Instant,
    bytes: Vec<u8>,
    /// How long the newest packet received took, if it came since the last datagram.
    newest_took: Option<f64>,
}

/// One direction, as the simulator saw it.
struct Way {
    link: Link<Datagram>,
    next_send: Instant,
    /// Whether the packet has arrived, by its number.
    arrived: Vec<bool>,
    newest: Option<usize>,
    newest_took: Option<f64>,
    sent_bytes: usize,
    delivered_bytes: usize,
    arrived_bytes: usize,
    /// Round trips by `newest_took` and the way back, in milliseconds.
    round_trips: Vec<f64>,
}

/// Sums at one time, to compare with those at another.
#[derive(Clone, Copy)]
struct Mark {
    sent: u64,
    lost: u64,
    sent_bytes: usize,
    delivered_bytes: usize,
    arrived_bytes: usize,
}

impl Way {
    fn new(setting: &Setting, way: usize, seed: u64) -> Self {
        Way {
            link: Link::new(setting.conditions(way), seed).unwrap(),
            next_send: Instant::from_millis(1 + way as u64 * 3),
            arrived: Vec::new(),
            newest: None,
            newest_took: None,
            sent_bytes: 0,
            delivered_bytes: 0,
            arrived_bytes: 0,
            round_trips: Vec::new(),
        }
    }

    fn mark(&self) -> Mark {
        let counters = self.link.counters();
        assert_eq!(counters.overflowed, 0);
        Mark {
            sent: counters.sent,
            lost: counters.lost,
            sent_bytes: self.sent_bytes,
            delivered_bytes: self.delivered_bytes,
            arrived_bytes: self.arrived_bytes,
        }
    }

    /// Notes an arrival; true for the first copy.
    fn arrive(&mut self, now: Instant, datagram: &Datagram) -> bool {
        self.delivered_bytes += datagram.bytes.len() + OVERHEAD;
        let first = !std::mem::replace(&mut self.arrived[datagram.number], true);
        if first {
            self.arrived_bytes += datagram.bytes.len() + OVERHEAD;
            if self.newest.is_none_or(|newest| datagram.number > newest) {
                self.newest = Some(datagram.number);
                self.newest_took = Some(millis(now - datagram.sent_at));
            }
        }
        first
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// What one end measured, once a second, and what the links did meanwhile.
struct Measured {
    stats: Vec<PacketStats>,
    round_trips: Vec<f64>,
    /// Before and after, of what the end sent and of what it received.
    marks: [[Mark; 2]; 2],
}

impl Measured {
    fn mean(&self, value: impl Fn(&PacketStats) -> f64) -> f64 {
        mean(&self.stats.iter().map(value).collect::<Vec<_>>())
    }

    fn true_loss(&self, way: usize) -> f64 {
        let [before, after] = self.marks[way];
        (after.lost - before.lost) as f64 / (after.sent - before.sent) as f64 * 100.0
    }

    fn true_kbps(&self, way: usize, bytes: impl Fn(&Mark) -> usize) -> f64 {
        let [before, after] = &self.marks[way];
        (bytes(after) - bytes(before)) as f64 * 8.0 / 1000.0 / MEASURED_SECONDS
    }
}

/// Both ends send at their rates. After a warm-up, the first end is measured.
fn measure<E: End>(mut ends: [E; 2], setting: &Setting, seed: u64, warm_up: f64) -> Measured {
    let mut ways = [Way::new(setting, 0, seed), Way::new(setting, 1, seed + 100)];
    let start = Instant::ZERO + Duration::from_secs_f64(warm_up);
    let end = start + Duration::from_secs_f64(MEASURED_SECONDS);
    let mut next_look = start;
    let mut stats = Vec::new();
    let (mut before, mut first_round_trip) = (None, 0);
    loop {
        let arrivals = ways.iter().filter_map(|way| way.link.next_delivery());
        let sends = ways.iter().map(|way| way.next_send);
        let now = arrivals.chain(sends).chain([next_look]).min().unwrap();
        if now >= end {
            break;
        }
        if now == next_look {
            if before.is_none() {
                before = Some([ways[0].mark(), ways[1].mark()]);
                first_round_trip = ways[0].round_trips.len();
            }
            stats.push(ends[0].stats());
            next_look += Duration::from_secs(1);
        }
        for way in 0..2 {
            while let Some(datagram) = ways[way].link.poll(now) {
                ends[1 - way].handle(now, datagram.packet, &datagram.bytes);
                if ways[way].arrive(now, &datagram)
                    && let Some(there) = datagram.newest_took
                {
                    ways[1 - way].round_trips.push(there + millis(now - datagram.sent_at));
                }
            }
            if ways[way].next_send == now {
                let datagrams = ends[way].send(now);
                assert_eq!(datagrams.len(), 1, "{setting:?} at {now:?}");
                for (packet, bytes) in datagrams {
                    let newest_took = ways[1 - way].newest_took.take();
                    let size = bytes.len();
                    ways[way].sent_bytes += size + OVERHEAD;
                    let number = ways[way].arrived.len();
                    ways[way].arrived.push(false);
                    ways[way].link.send(
                        now,
                        Datagram { number, packet, sent_at: now, bytes, newest_took },
                        size,
                    );
                }
                ways[way].next_send += Duration::from_secs_f64(1.0 / setting.rate[way]);
            }
        }
    }
    let before = before.unwrap();
    Measured {
        stats,
        round_trips: ways[0].round_trips[first_round_trip..].to_vec(),
        marks: [[before[0], ways[0].mark()], [before[1], ways[1].mark()]],
    }
}

fn within(what: &str, measured: f64, truth: f64, error: f64, setting: &Setting) {
    assert!((measured - truth).abs() <= error, "{what} is {measured}, not {truth} ± {error}, at {setting:?}");
}

/// Sums of the last seconds, against those of a minute that ends with them: what differs are the first and
/// the last [`MEMORY`].
fn edge_noise(setting: &Setting, way: usize) -> f64 {
    setting.noise(way, MEASURED_SECONDS) * (2.0 * MEMORY / MEASURED_SECONDS).sqrt() * 3.0
}

/// Overtaken packets are missing until they come: `missing` milliseconds of packets.
fn check_loss(
    name: &str,
    measured: &Measured,
    way: usize,
    setting: &Setting,
    missing: f64,
    loss: fn(&PacketStats) -> f64,
) {
    let truth = measured.true_loss(way);
    let missing = 100.0 * missing / (1000.0 * MEMORY);
    let edges = 100.0 * edge_noise(setting, way);
    within(name, measured.mean(loss), truth, 0.4 + edges + missing / 10.0, setting);
    // Each reading for itself: four times the stated noise, and two packets.
    let noise = 100.0 * (4.0 * setting.noise(way, 2.0 * MEMORY) + 2.0 / (MEMORY * setting.rate[way]));
    for stats in &measured.stats {
        within(name, loss(stats), truth, noise + missing, setting);
    }
}

fn check_kbps(
    name: &str,
    measured: &Measured,
    way: usize,
    setting: &Setting,
    kbps: fn(&PacketStats) -> f64,
    bytes: fn(&Mark) -> usize,
) {
    let truth = measured.true_kbps(way, bytes);
    let arrives = 1.0 - setting.loss[way];
    within(
        name,
        measured.mean(kbps),
        truth,
        truth * (0.015 + 2.0 * edge_noise(setting, way) / arrives),
        setting,
    );
    let duplicates = (setting.duplicate / (setting.rate[way] * 2.0 * MEMORY)).sqrt();
    let noise = 4.0 * (setting.noise(way, 2.0 * MEMORY) + duplicates) / arrives;
    let packets = 2.0 / (MEMORY * setting.rate[way]);
    for stats in &measured.stats {
        within(name, kbps(stats), truth, truth * (0.01 + noise + packets), setting);
    }
}

/// Estimates of the last seconds, of loss both ways and of all bytes.
fn check_recent(measured: &Measured, setting: &Setting) {
    check_loss("packet_loss", measured, 0, setting, 0.0, |stats| stats.packet_loss);
    let missing = setting.spread(1);
    check_loss("packet_loss_received", measured, 1, setting, missing, |stats| stats.packet_loss_received);
    check_kbps("sent_kbps", measured, 0, setting, |stats| stats.sent_kbps, |mark| mark.sent_bytes);
    check_kbps("acked_kbps", measured, 0, setting, |stats| stats.acked_kbps, |mark| mark.arrived_bytes);
    check_kbps(
        "received_kbps",
        measured,
        1,
        setting,
        |stats| stats.received_kbps,
        |mark| mark.delivered_bytes,
    );
}

/// The round trip of the links alone.
fn network_rtt(setting: &Setting) -> f64 {
    let held_back = setting.reorder * (setting.jitter[0] + setting.jitter[1]);
    setting.rtt + held_back
}

#[test]
fn our_framing_tells_what_the_links_did() {
    for (seed, setting) in SETTINGS.iter().enumerate() {
        let protocol: Arc<Protocol> = protocol();
        // Each packet must go out, also where jitter looks like a queue.
        let budget = BudgetConfig { adaptive: false, ..BudgetConfig::default() };
        let config = ConnectionConfig { budget, ..ConnectionConfig::default() };
        let connection = || Connection::new(&config, protocol.clone()).unwrap();
        let measured = measure([connection(), connection()], setting, seed as u64, 15.0);
        check_recent(&measured, setting);

        // Round trips to 64 µs; and how a smoothed value of samples that vary may differ from their mean.
        let truth = mean(&measured.round_trips);
        let deviation = mean(&measured.round_trips.iter().map(|rtt| (rtt - truth).abs()).collect::<Vec<_>>());
        let samples = measured.round_trips.len() as f64;
        let edges = 6.0 * deviation / samples.sqrt();
        within("rtt", measured.mean(|stats| stats.rtt), truth, 0.1 + edges, setting);
        for stats in &measured.stats {
            within("rtt now", stats.rtt, truth, 0.1 + 1.25 * deviation * 5.0 / 19f64.sqrt(), setting);
        }
        // Against the links: exact where nothing is overtaken; else low by no more than the jitter.
        let low = if setting.may_overtake(0) { setting.spread(0) / 2.0 } else { 0.0 };
        let network = network_rtt(setting);
        // The first copy of two is the faster.
        let duplicates = setting.duplicate * (setting.jitter[0] + setting.jitter[1]);
        assert!(
            (network - low - duplicates - edges - 0.1..network + edges + 0.1).contains(&truth),
            "{truth} of {network} at {setting:?}"
        );

        let steps = measured.round_trips.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        let truth = mean(&steps.collect::<Vec<_>>());
        within(
            "jitter",
            measured.mean(|stats| stats.jitter),
            truth,
            0.1 + truth * 6.0 / samples.sqrt(),
            setting,
        );
        for stats in &measured.stats {
            within("jitter now", stats.jitter, truth, 0.1 + truth * 5.0 / 31f64.sqrt(), setting);
        }
    }
}

#[test]
fn endpoints_with_our_estimates_tell_what_the_links_did() {
    for (seed, setting) in SETTINGS.iter().enumerate() {
        // An end that sends less than a packet for 32 of ours can't ack all: see the docs.
        if setting.rate[0] * setting.spread(0) / 1000.0 > 16.0 {
            continue;
        }
        let endpoint = || AckEndpoint::new(AckEndpointConfig::large()).unwrap();
        let measured = measure([endpoint(), endpoint()], setting, seed as u64, 15.0);
        check_recent(&measured, setting);
    }
}

#[test]
fn reliables_own_estimates_are_as_far_from_the_links_as_stated() {
    for (seed, setting) in SETTINGS.iter().enumerate() {
        let config = AckEndpointConfig::standard();
        let endpoint = || (AckEndpoint::new(config.clone()).unwrap(), StandardEstimate::new(&config));
        let slowest = setting.rate[0].min(setting.rate[1]);
        let measured = measure([endpoint(), endpoint()], setting, seed as u64, 2000.0 / slowest);

        // What the peer's wait adds, and what the fastest way back and acks that never come take away.
        let network = network_rtt(setting);
        let wait = setting.interval(1) / (1.0 - setting.loss[1]);
        let overtaken = |way| if setting.may_overtake(way) { setting.spread(way) / 2.0 } else { 0.0 };
        let low = overtaken(0) + overtaken(1) + setting.duplicate * (setting.jitter[0] + setting.jitter[1]);
        let noise = 0.5 + 0.02 * network;
        let rtt = measured.mean(|stats| stats.rtt);
        assert!(
            (network - low - noise..network + wait + noise).contains(&rtt),
            "{rtt} of {network}: {setting:?}"
        );

        // The noise of the 128 packets a reading is of, and of as many as go in a minute.
        let seconds = 128.0 / setting.rate[0];
        let noise =
            100.0 * 4.0 * setting.noise(0, MEASURED_SECONDS) * (1.0 + 3.0 * seconds / MEASURED_SECONDS);
        let (loss, truth) = (measured.mean(|stats| stats.packet_loss), measured.true_loss(0));
        assert!(loss >= truth - 0.5 - noise, "{loss}, not {truth} - {noise}: {setting:?}");
        let slowest_ack = setting.rtt + setting.spread(0) + setting.spread(1) + 3.0 * wait;
        let acks_cover = setting.rate[0] * (wait * 5.0 + setting.spread(0)) / 1000.0 < 32.0;
        if slowest_ack < seconds * 1000.0 && acks_cover {
            assert!(loss <= truth + 0.5 + noise, "{loss}, not {truth} + {noise}: {setting:?}");
        }

        // Without headers, and 128 packets over the time of 127.
        let kbps = |rate: f64, bytes: usize| rate * bytes as f64 * 8.0 / 1000.0;
        let sent = kbps(setting.rate[0], BYTES + OVERHEAD);
        within("sent_kbps", measured.mean(|stats| stats.sent_kbps), sent, sent * 0.01, setting);
        let acked = sent * (1.0 - loss / 100.0);
        let ends = 3.0 / (128.0 * (1.0 - loss / 100.0));
        within("acked_kbps", measured.mean(|stats| stats.acked_kbps), acked, acked * (0.01 + ends), setting);
        let arrives = 1.0 - measured.true_loss(1) / 100.0;
        let received = kbps(setting.rate[1], BYTES + OVERHEAD + 6) * arrives;
        let spread = setting.spread(1) / (128.0 * setting.interval(1));
        let noise = 4.0 * setting.noise(1, MEASURED_SECONDS) / arrives * 1.5;
        let error = received * (0.02 + 3.0 / (128.0 * arrives) + spread + noise);
        within("received_kbps", measured.mean(|stats| stats.received_kbps), received, error, setting);
        // This one is ours in either profile.
        let missing = setting.spread(1);
        check_loss("packet_loss_received", &measured, 1, setting, missing, |stats| {
            stats.packet_loss_received
        });
    }
}

#[test]
fn late_acks_take_back_losses_that_were_none() {
    let setting = Setting {
        rtt: 2400.0,
        jitter: [20.0, 20.0],
        loss: [0.1, 0.1],
        rate: [60.0, 60.0],
        duplicate: 0.0,
        reorder: 0.0,
    };
    let protocol: Arc<Protocol> = protocol();
    let mut config = ConnectionConfig::default();
    config.packets.acks.loss_bound = LossBound::After(LossBound::DEFAULT_TIME);
    let connection = || Connection::new(&config, protocol.clone()).unwrap();
    let measured = measure([connection(), connection()], &setting, 7, 20.0);
    check_loss("packet_loss", &measured, 0, &setting, 0.0, |stats| stats.packet_loss);
}

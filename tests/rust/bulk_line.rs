//! Connections that share a link with a rate and a queue, in virtual time: what the table of links is measured on.

use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tickwire::netsim::{Conditions, Link};
use tickwire::rng::{Entropy, Rng};
use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::chunks::{
    Assembly, BytesSource, ChunkEvent, MemorySink, SLICE_BYTES, Sink, Source, StorageError, Stored,
};
use tickwire::transport::{
    ChannelConfig, ChannelKind, CongestionConfig, Connection, ConnectionConfig, SendOptions,
};

use crate::pair::{blob, protocol_with};
use crate::tcp::{self, Kind, Tcp};

/// What sealing adds to a packet; IP and UDP headers are the link's.
pub(crate) const SEAL_BYTES: usize = 19;

/// The wait for a tick, of each end: this many ticks a second, each end at its own times, or 0 for each millisecond.
///
/// [`BY_ARRIVAL`] alone or plus a number of ticks: the end is awake between ticks, as an event loop or a thread is.
/// [`IN_LOOP`]: it is so while chunks move, each millisecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Act(pub(crate) [u64; 2]);

/// Acts when a datagram arrives or something is due.
pub(crate) const BY_ARRIVAL: u64 = 1_000_000;

/// A game of 60 ticks a second beside a driver's thread.
pub(crate) const ON_THREAD: u64 = BY_ARRIVAL + 60;

/// A game of 60 ticks a second in `tw.run`.
pub(crate) const IN_LOOP: u64 = 2 * BY_ARRIVAL + 60;

/// From one step of `tw.run` to the next: a sleep of a millisecond, which lasts a little longer.
const LOOP_STEP: Duration = Duration::from_micros(1_100);

impl Act {
    /// Each millisecond.
    pub(crate) const AT_ONCE: Act = Act([0, 0]);
    pub(crate) const POLLED: Act = Act([60, 60]);
    /// The sending end each millisecond, the other one at ticks of 60 Hz.
    pub(crate) const ANSWERS_POLLED: Act = Act([0, 60]);
}

/// A datagram with its number in the layer below.
type Numbered = (u64, Vec<u8>);

/// What crosses a link: a datagram of a connection, or a packet of TCP, each with its flow.
#[derive(Clone, Debug)]
pub(crate) enum Carried {
    Datagram(usize, Numbered),
    Tcp(usize, tcp::Packet),
}

/// TCP beside the connections; it sends from the first end to the second if `from` is 0.
#[derive(Debug)]
pub(crate) struct Company {
    pub(crate) tcp: Tcp,
    from: usize,
    pub(crate) stopped: bool,
}

/// Two ends of a connection; the first one sends chunks.
pub(crate) struct Flow {
    pub(crate) ends: [Connection; 2],
    pub(crate) sent_at: Instant,
    pub(crate) received_at: Option<Instant>,
    /// Sends 200 bytes 60 times a second each way.
    pub(crate) game: bool,
    /// Seconds that the game's messages took, first end to second: of those that arrived. How many didn't, [`Line::settle`] says.
    pub(crate) latencies: Vec<f64>,
    /// Game messages that the first end sent while latencies were noted.
    pub(crate) game_sent: usize,
    /// Bytes that the first end sent and that arrived at the second, all headers included.
    pub(crate) sent: usize,
    pub(crate) arrived: usize,
    /// Its ends tick by this many milliseconds before those of a flow with 0.
    pub(crate) phase: u64,
    /// Whether its ends act in this quantum, and when those do whose tick is late.
    acts: [bool; 2],
    late: [Option<Instant>; 2],
    /// Whether the acts are ticks, and when ends that are awake between ticks act next.
    ticks: [bool; 2],
    due: [Instant; 2],
}

impl Flow {
    /// Whether this end is in `tw.run`, and has chunks.
    fn moves_chunks(&self, end: usize, act: [u64; 2]) -> bool {
        act[end] == IN_LOOP && !self.ends[end].chunks().is_idle()
    }
}

/// A block of zeros of this size, at either end.
#[derive(Debug)]
struct Zeros(u64);

impl Source for Zeros {
    fn size(&self) -> u64 {
        self.0
    }

    fn read_at(&mut self, _: u64, out: &mut [u8]) -> Result<(), StorageError> {
        out.fill(0);
        Ok(())
    }
}

impl Sink for Zeros {
    fn write_at(&mut self, _: u64, _: &[u8]) -> Result<(), StorageError> {
        Ok(())
    }

    fn read_at(&mut self, _: u64, out: &mut [u8]) -> Result<(), StorageError> {
        out.fill(0);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Stored, StorageError> {
        Ok(Stored::Bytes(Vec::new()))
    }
}

/// A link in each direction, and the connections over it.
pub(crate) struct Line {
    pub(crate) now: Instant,
    /// How finely time passes.
    pub(crate) quantum: Duration,
    pub(crate) links: [Link<Carried>; 2],
    pub(crate) flows: Vec<Flow>,
    pub(crate) company: Vec<Company>,
    act: Act,
    /// Datagrams that arrived at each end, until it acts.
    inboxes: [Vec<(usize, Numbered)>; 2],
    /// The first end's clock is read early now and then: by up to this many milliseconds, at one of this many ticks.
    pub(crate) stale: Option<(u64, u64)>,
    /// Ticks come late by up to this many milliseconds, as those of a busy machine do.
    pub(crate) tick_jitter: u64,
    rng: Rng,
    /// For the order of ends that act at the same instant.
    order_rng: Rng,
    packets: Packets,
    content: Arc<Vec<u8>>,
    hash: [u8; 32],
    game_sent: Vec<Instant>,
    /// The queue of the first direction, in bytes, each millisecond since chunks were sent.
    pub(crate) queue: Vec<u64>,
    /// By each end, all headers included.
    pub(crate) sent_bytes: [usize; 2],
    /// By one end in one tick.
    pub(crate) most_at_once: usize,
    sending: bool,
    /// The numbers of the game's messages whose times count.
    counted: Range<usize>,
}

/// Longer than a message takes, through queue and link, in seconds.
const ON_THE_WAY: f64 = 2.0;

impl Line {
    pub(crate) fn new(conditions: Conditions, act: Act, block: usize, seed: u64) -> Self {
        Self::with_links([conditions; 2], act, block, seed)
    }

    /// With different links there and back.
    pub(crate) fn with_links(conditions: [Conditions; 2], act: Act, block: usize, seed: u64) -> Self {
        let link = |way: usize, seed| Link::new(conditions[way], seed).unwrap();
        let mut content = vec![0; block];
        Rng::seeded(seed).fill(&mut content);
        Line {
            now: Instant::ZERO,
            quantum: Duration::from_millis(1),
            links: [link(0, seed), link(1, seed + 1_000_003)],
            flows: Vec::new(),
            company: Vec::new(),
            stale: None,
            tick_jitter: 0,
            rng: Rng::seeded(seed ^ 0x57a1e),
            order_rng: Rng::seeded(seed ^ 0x0a1de),
            act,
            inboxes: Default::default(),
            packets: Packets::new(),
            hash: Sha256::digest(&content).into(),
            content: Arc::new(content),
            game_sent: Vec::new(),
            queue: Vec::new(),
            sent_bytes: [0; 2],
            most_at_once: 0,
            sending: false,
            counted: usize::MAX..usize::MAX,
        }
    }

    pub(crate) fn add(&mut self, congestion: CongestionConfig, game: bool) -> usize {
        let mut config = ConnectionConfig { congestion, skip_seed: Some(1), ..ConnectionConfig::default() };
        config.packets.overhead += SEAL_BYTES as u32;
        let protocol = protocol_with(vec![
            ChannelConfig::new(ChannelKind::Sequenced { receive_queue: 1024 }),
            ChannelConfig::new(ChannelKind::Chunks),
        ]);
        let end = || Connection::new(&config, protocol.clone()).unwrap();
        let (sent_at, received_at) = (Instant::NEVER, None);
        let (latencies, game_sent, sent, arrived) = (Vec::new(), 0, 0, 0);
        let ends = [end(), end()];
        let (phase, acts, late) = (0, [false; 2], [None; 2]);
        let (ticks, due) = ([false; 2], [Instant::ZERO; 2]);
        #[rustfmt::skip]
        let flow = Flow { ends, sent_at, received_at, game, latencies, game_sent, sent, arrived, phase, acts, late, ticks, due };
        self.flows.push(flow);
        self.flows.len() - 1
    }

    /// Adds a TCP flow that sends from now on, from this end.
    pub(crate) fn add_tcp(&mut self, kind: Kind, from: usize) -> usize {
        self.company.push(Company { tcp: Tcp::new(kind), from, stopped: false });
        self.company.len() - 1
    }

    /// Lets a flow send its block.
    pub(crate) fn send(&mut self, flow: usize, burst: bool) {
        let source = Box::new(BytesSource(self.content.clone()));
        let Flow { ends, sent_at, .. } = &mut self.flows[flow];
        ends[0].send_chunk(self.now, source, self.hash, "block", burst).unwrap();
        *sent_at = self.now;
        self.listen();
    }

    /// Lets a flow send a block of this many bytes that nobody looks at.
    pub(crate) fn send_zeros(&mut self, flow: usize, bytes: u64) {
        let Flow { ends, sent_at, .. } = &mut self.flows[flow];
        // An endless one is never whole, and needs no hash that is right.
        let whole = if bytes < 1 << 28 { vec![0; bytes as usize] } else { Vec::new() };
        let hash = Sha256::digest(&whole).into();
        ends[0].send_chunk(self.now, Box::new(Zeros(bytes)), hash, "zeros", false).unwrap();
        *sent_at = self.now;
        self.sending = true;
    }

    /// Begins to note how long the game's messages take.
    pub(crate) fn listen(&mut self) {
        self.sending = true;
        self.counted.start = self.counted.start.min(self.game_sent.len());
    }

    /// Lets those of the game's messages arrive that are on their way: the share of them that did, of a flow.
    pub(crate) fn settle(&mut self, flow: usize) -> f64 {
        self.counted.end = self.game_sent.len();
        self.sending = false;
        self.run(ON_THE_WAY);
        self.flows[flow].latencies.len() as f64 / self.counted.len() as f64
    }

    /// A quantum of time.
    pub(crate) fn step(&mut self) {
        self.now += self.quantum;
        let (now, quantum) = (self.now.as_nanos(), self.quantum.as_nanos() as u64);
        let tick = |hz: u64, phase: u64| {
            let now = now + phase * 1_000_000;
            now * hz / 1_000_000_000 != (now - quantum) * hz / 1_000_000_000
        };
        let game_tick = tick(60, 0);
        if game_tick {
            self.game_sent.push(self.now);
        }
        let number = self.game_sent.len() as u32;
        for flow in self.flows.iter_mut().filter(|flow| flow.game && game_tick) {
            flow.game_sent += usize::from(self.sending);
            for end in &mut flow.ends {
                end.send(self.now, 0, blob(number - 1, 195), SendOptions::default()).unwrap();
            }
        }
        let acts = self.act.0;
        for flow in &mut self.flows {
            for (end, act) in acts.into_iter().enumerate() {
                let hz = act % BY_ARRIVAL;
                let due = hz > 0 && tick(hz, 7 * end as u64 + flow.phase);
                if due {
                    let late = if self.tick_jitter > 0 {
                        self.rng.below(self.tick_jitter * 1_000) * 1_000
                    } else {
                        0
                    };
                    flow.late[end] = Some(Instant::from_nanos(self.now.as_nanos() + late));
                }
                let late = flow.late[end].take_if(|at| *at <= self.now).is_some();
                flow.ticks[end] = act == 0 || late;
                let between = act >= BY_ARRIVAL && act != IN_LOOP || flow.moves_chunks(end, acts);
                flow.acts[end] = flow.ticks[end] || between && flow.due[end] <= self.now;
            }
        }
        for direction in 0..2 {
            self.deliver(direction);
        }
        for end in 0..2 {
            // Hosts whose ticks fall together are in no order.
            let mut order: Vec<usize> = (0..self.flows.len()).collect();
            if self.act.0[end] > 0 {
                (1..order.len())
                    .for_each(|last| order.swap(last, self.order_rng.below(last as u64 + 1) as usize));
            }
            for index in order {
                if self.flows[index].acts[end] {
                    self.act(index, end);
                }
            }
        }
        self.transmit_tcp();
        if self.sending {
            self.queue.push(self.links[0].queued_bytes());
        }
    }

    /// Hands over arrived packets at the end of this direction; connections that act now take theirs.
    fn deliver(&mut self, direction: usize) {
        let to = 1 - direction;
        let wakes = self.act.0[to] >= BY_ARRIVAL && self.act.0[to] != IN_LOOP;
        let acts = wakes || self.flows.iter().any(|flow| flow.acts[to]);
        let mut now = self.now;
        if let Some((most, one_of)) = self.stale.filter(|_| to == 0 && acts)
            && self.rng.below(one_of) == 0
        {
            let early = (self.rng.below(most) + 1) * 1_000_000;
            now = Instant::from_nanos(self.now.as_nanos().saturating_sub(early));
        }
        let seconds = self.now.as_secs_f64();
        while let Some(carried) = self.links[direction].poll(self.now) {
            match carried {
                Carried::Datagram(flow, packet) => self.inboxes[to].push((flow, packet)),
                Carried::Tcp(index, tcp::Packet::Segment(number)) => {
                    self.company[index].tcp.handle_segment(seconds, number);
                }
                Carried::Tcp(index, tcp::Packet::Ack(numbers)) => {
                    self.company[index].tcp.handle_ack(seconds, &numbers);
                }
            }
        }
        if acts {
            for (index, (number, packet)) in std::mem::take(&mut self.inboxes[to]) {
                let flow = &mut self.flows[index];
                flow.acts[to] |= wakes;
                if !flow.acts[to] {
                    self.inboxes[to].push((index, (number, packet)));
                    continue;
                }
                if to == 1 {
                    flow.arrived += packet.len() + SEAL_BYTES + 28;
                }
                flow.ends[to].handle_datagram(now, number, &packet).unwrap();
            }
        }
    }

    fn transmit_tcp(&mut self) {
        let seconds = self.now.as_secs_f64();
        for (index, Company { tcp, from, stopped }) in self.company.iter_mut().enumerate() {
            let segments = if *stopped { Vec::new() } else { tcp.transmit(seconds) };
            for segment in segments {
                self.links[*from].send(self.now, Carried::Tcp(index, segment), tcp::SEGMENT - 28);
            }
            while let Some(ack) = tcp.ack(seconds) {
                self.links[1 - *from].send(self.now, Carried::Tcp(index, ack), tcp::ACK - 28);
            }
        }
    }

    fn act(&mut self, index: usize, end: usize) {
        let flow = &mut self.flows[index];
        let in_loop = self.act.0[end] == IN_LOOP;
        let awake = if in_loop { flow.moves_chunks(end, self.act.0) } else { self.act.0[end] >= BY_ARRIVAL };
        let connection = &mut flow.ends[end];
        while let Some(event) = connection.chunks_mut().poll_event() {
            match event {
                ChunkEvent::Offered(offer) => {
                    let sink: Box<dyn Sink> = match &*offer.label {
                        "zeros" => Box::new(Zeros(offer.size)),
                        _ => Box::new(MemorySink::new(offer.size).unwrap()),
                    };
                    assert!(connection.chunks_mut().accept(offer.id, Assembly::new(&offer, sink)));
                }
                ChunkEvent::Received { .. } => flow.received_at = Some(self.now),
                ChunkEvent::Sent { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        while let Some(received) = connection.poll_received(0) {
            if end == 1 {
                let number = crate::pair::check(&self_protocol(), &received) as usize;
                if self.counted.contains(&number) {
                    flow.latencies.push((self.now - self.game_sent[number]).as_secs_f64());
                }
            }
        }
        connection.set_awake(awake);
        if flow.ticks[end] {
            connection.transmit(self.now, &mut self.packets);
        }
        if awake {
            flow.due[end] = connection.transmit_between(self.now, &mut self.packets);
            if in_loop {
                flow.due[end] = self.now + LOOP_STEP;
            }
        }
        let bytes: usize = self.packets.iter().map(|(_, packet)| packet.len() + SEAL_BYTES + 28).sum();
        self.sent_bytes[end] += bytes;
        if end == 0 {
            flow.sent += bytes;
        }
        self.most_at_once = self.most_at_once.max(bytes);
        for (number, packet) in self.packets.iter() {
            self.links[end].send(
                self.now,
                Carried::Datagram(index, (number, packet.to_vec())),
                packet.len() + SEAL_BYTES,
            );
        }
        self.packets.clear();
    }

    pub(crate) fn run(&mut self, seconds: f64) {
        let end = self.now + Duration::from_secs_f64(seconds);
        while self.now < end {
            self.step();
        }
    }

    /// Until all flows that send are through; false when that takes longer than `seconds`.
    pub(crate) fn finish(&mut self, seconds: f64) -> bool {
        let end = self.now + Duration::from_secs_f64(seconds);
        let waiting = |flow: &Flow| flow.sent_at != Instant::NEVER && flow.received_at.is_none();
        while self.now < end && self.flows.iter().any(waiting) {
            self.step();
        }
        !self.flows.iter().any(waiting)
    }

    /// Seconds from the send call to the whole block in the receiver's hands.
    pub(crate) fn took(&self, flow: usize) -> f64 {
        let Flow { sent_at, received_at, .. } = &self.flows[flow];
        received_at.map_or(f64::INFINITY, |at| (at - *sent_at).as_secs_f64())
    }

    /// Bytes of slices sent again, and bytes of slices that the link lost.
    pub(crate) fn resent_and_lost(&self) -> (f64, f64) {
        let resent: u64 = self.flows.iter().map(|flow| flow.ends[0].chunks().counters.slices_resent).sum();
        let counters = self.links[0].counters();
        let on_the_way = counters.lost + counters.lost_in_bursts + counters.lost_in_outages;
        let lost = on_the_way + counters.queue_dropped;
        ((resent * SLICE_BYTES as u64) as f64, (lost * SLICE_BYTES as u64) as f64)
    }
}

/// The protocol that game messages are checked with.
fn self_protocol() -> Arc<tickwire::transport::Protocol> {
    protocol_with(vec![ChannelConfig::unreliable()])
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub(crate) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get((values.len() * percent / 100).min(values.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

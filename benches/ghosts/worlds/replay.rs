//! Plays a world for one client, and measures.

use std::sync::Arc;

use serde_json::{Value, json};
use tickwire::endpoint::{Feature, PeerHandle};
use tickwire::replication::{
    Classes, GhostClass, GridConfig, Interests, Mirror, Publisher, PublisherConfig, Relevancy,
};
use tickwire::wire::{BitReader, BitWriter};

use crate::clock::{quantile, timed};
use crate::columns::Columns;
use crate::line::Line;
use crate::path::Path;
use crate::world::{View, World};

/// Bits of a payload, at most: what netcode's 1,200 bytes leave after the headers of a packet and a message.
const PAYLOAD_BITS: usize = 1170 * 8;
const CHANNEL: usize = 0;
const PEER: PeerHandle = PeerHandle { slot: 0, generation: 1 };
/// Frames of rest after the last one, in which losses are mended.
const REST: u32 = 60;

struct Replay {
    class: Arc<GhostClass>,
    publisher: Publisher,
    mirror: Mirror,
    line: Line,
    tick: u32,
    interests: Interests,
    view: Option<View>,
    /// Whether the client may lack a part of what the server's tick had.
    partial: bool,
    source: Columns,
    shown: Columns,
    writer: BitWriter,
    body: Vec<u8>,
}

/// The costs of a frame.
#[derive(Default)]
struct Cost {
    bits: usize,
    /// CPU seconds.
    server: f64,
    client: f64,
    updates: usize,
}

/// Plays up to this many frames, and returns a row.
pub(crate) fn replay(name: &str, world: &mut dyn World, coded: bool, path: Path, frames: usize) -> Value {
    let mut replay = Replay::new(world, coded, path);
    let (mut costs, mut wrong) = (Vec::new(), 0);
    while costs.len() < frames && world.step(&mut replay.source) {
        replay.view = world.view();
        costs.push(replay.step());
        wrong += replay.wrong();
    }
    (0..REST).for_each(|_| _ = replay.step());
    wrong += replay.wrong();
    // The first frame is all creates.
    let costs = &costs[1..];
    let bytes = costs.iter().map(|cost| cost.bits).sum::<usize>() as f64 / 8.0;
    let updates: usize = costs.iter().map(|cost| cost.updates).sum();
    let median =
        |of: fn(&Cost) -> f64| rounded(quantile(costs.iter().map(|cost| of(cost) * 1e6).collect(), 0.5));
    let a_frame = bytes / costs.len() as f64;
    json!({
        "world": name,
        "coded": coded,
        "ack_age": path.ack_age(),
        "loss": path.loss,
        "frames": costs.len(),
        "bytes_a_frame": rounded(a_frame),
        "kbit_a_second": rounded(a_frame * 8.0 * f64::from(world.hz()) / 1000.0),
        "updates_a_frame": rounded(updates as f64 / costs.len() as f64),
        "bytes_an_update": rounded(bytes / updates as f64),
        "server_us": median(|cost| cost.server),
        "client_us": median(|cost| cost.client),
        "wrong": wrong,
    })
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

impl Replay {
    fn new(world: &dyn World, coded: bool, path: Path) -> Replay {
        let (class, rows) = (Arc::new(world.class().with_coding(coded)), world.rows());
        let classes = Arc::new(Classes::new([class.clone()]).expect("classes"));
        let mut publisher = Publisher::new(classes.clone(), PublisherConfig { channel: CHANNEL, seed: 0 });
        publisher.add_peer(PEER);
        for _ in 0..rows {
            publisher.spawn(0, None).expect("a row");
        }
        let mut interests = Interests::new(&classes);
        if let Some(View { radius, .. }) = world.view() {
            let (cell, leave_radius) = (radius / 3.0, radius * 1.05);
            let grid = GridConfig { property: 0, cell, radius, leave_radius, linger: 2, far_weight: 0.25 };
            interests.set_rule(&classes, 0, Relevancy::Grid(grid)).expect("a rule");
        }
        let columns = Columns::new(&class, rows);
        Replay {
            body: vec![0; class.properties.schema().row_size()],
            class,
            publisher,
            mirror: Mirror::new(classes),
            line: Line::new(path, 1),
            tick: 0,
            interests,
            view: world.view(),
            partial: path.loss > 0.0 || world.view().is_some(),
            source: columns.clone(),
            shown: columns,
            writer: BitWriter::new(),
        }
    }

    fn step(&mut self) -> Cost {
        self.tick += 1;
        let mut cost = Cost::default();
        self.flush(&mut cost);
        self.receive(&mut cost);
        cost
    }

    /// The server's part.
    fn flush(&mut self, cost: &mut Cost) {
        let mut notifications = Vec::new();
        self.line.notifications(self.tick, |record, delivered| notifications.push((record, delivered)));
        let Replay { publisher, interests, writer, source, view, .. } = self;
        let mut packets = Vec::new();
        timed(&mut cost.server, || {
            for (record, delivered) in notifications {
                publisher.handle_notification(PEER, record, delivered);
            }
            let mut errors = Vec::new();
            publisher.begin_tick(&[source.scanned()], &mut errors);
            assert!(errors.is_empty(), "{errors:?}");
            if let Some(view) = view {
                interests.set_viewpoints(PEER, 0, vec![view.place]);
            }
            interests.update(publisher);
            if publisher.due(PEER) == 0 {
                return;
            }
            publisher.choose(PEER, view.map_or(usize::MAX >> 8, |view| view.budget_bits));
            loop {
                writer.clear();
                let Some(record) = publisher.fill(PEER, CHANNEL, PAYLOAD_BITS, writer) else { break };
                packets.push((Some(record), writer.as_bytes().to_vec(), writer.bit_len()));
            }
        });
        let changed = publisher.table(0).changed().iter();
        cost.updates = changed.filter(|row| publisher.has(PEER, 0, **row)).count();
        for packet in packets {
            cost.bits += packet.2;
            self.line.send(self.tick, packet);
        }
        self.line.keep_alive(self.tick);
    }

    /// The client's part.
    fn receive(&mut self, cost: &mut Cost) {
        let Replay { line, mirror, shown, tick, .. } = self;
        let packets: Vec<_> = std::iter::from_fn(|| line.receive(*tick)).collect();
        let mut events = Vec::new();
        timed(&mut cost.client, || {
            for (_, bytes, bits) in packets.iter().filter(|(record, ..)| record.is_some()) {
                mirror.handle_payload(BitReader::with_range(bytes, 0, *bits)).expect("a packet");
            }
            mirror.take(&mut [shown.all_mut()], &mut events);
        });
        line.ack(*tick);
    }

    /// How many cells the client shows differently from the server's world: of the newest tick that it has, or with losses or
    /// a budget, of the tick that it has of each object.
    fn wrong(&mut self) -> usize {
        let Replay { publisher, mirror, shown, class, body, partial, .. } = self;
        let (table, mut wrong) = (publisher.table(0), 0);
        let mut words = vec![0; class.properties.word_count()];
        // Low bits of ticks are the server's.
        let newest = mirror.tick() & 0xFFFF;
        for row in table.alive() {
            let Some(id) = publisher.ghost_id(PEER, 0, row).filter(|id| mirror.is_alive(0, *id)) else {
                continue;
            };
            let tick = if *partial { mirror.tick_of(0, id) & 0xFFFF } else { newest };
            if table.words_at(row, tick, &mut words) {
                wrong += shown.wrong(class, id as usize, &words, body);
            }
        }
        wrong
    }
}

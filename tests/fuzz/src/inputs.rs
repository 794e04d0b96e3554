//! A server's part in one client's inputs and a client's part in its server's time, with payloads that the fuzzer forges or
//! passes on, loses and alters: each tick gets its input once, as it came first, each press runs once, and time never runs back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use tickwire::time::{Duration, Instant};
use tickwire::timeline::packet::{MAX_INPUTS, Report, read_inputs};
use tickwire::timeline::referee::TickTime;
use tickwire::timeline::{InputState, LeadConfig, MissingPolicy, Player, PlayerConfig, Referee};
use tickwire::wire::{BitReader, BitSink, BitWriter, Encoded, Kind, Schema};

use super::input::Input;

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let fields = [("number", Kind::Bits { bits: 16 }), ("press", Kind::Press)];
    Arc::new(Schema::new(fields).unwrap())
});

/// The offset of the press in a row.
static PRESS: LazyLock<usize> = LazyLock::new(|| SCHEMA.presses()[0]);

const RATE: f64 = 60.0;
const CONFIG: PlayerConfig =
    PlayerConfig { delay: 0, lead: LeadConfig { min: 0.0, max: 60.0, redundancy: 3 } };
/// The maximum of late presses that the server keeps.
const MAX_LATE_PRESSES: u8 = 8;
/// The maximum of payloads in flight in one direction.
const UNDER_WAY: usize = 32;

struct Scene {
    now: Instant,
    time: TickTime,
    referee: Referee,
    player: Player,
    up: Vec<Vec<u8>>,
    down: Vec<Vec<u8>>,
    /// Bodies that the server took, by tick: the first one must stay.
    first: BTreeMap<u32, Vec<u8>>,
    /// Ticks that have run and whose input has arrived.
    done: BTreeSet<u32>,
    /// How many presses wait on the server for ticks with an input, and whether one waits on the client for the next stamp.
    server_presses: u8,
    client_press: bool,
    number: u64,
    stamped: u32,
    shown: f64,
}

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    // Near the turn of the low bits, too.
    let tick = [0, 65_500, 70_000, u32::MAX - 5_000][input.below(4) as usize];
    let time = TickTime { tick, taken_at: Instant::ZERO, rate: RATE };
    let mut scene = Scene {
        now: Instant::ZERO,
        time,
        referee: Referee::new(tick, MissingPolicy::Repeat { limit: 8 }, SCHEMA.presses().into()),
        player: Player::new(RATE, CONFIG, Some(SCHEMA.clone())),
        up: Vec::new(),
        down: Vec::new(),
        first: BTreeMap::new(),
        done: BTreeSet::new(),
        server_presses: 0,
        client_press: false,
        number: 0,
        stamped: 0,
        shown: 0.0,
    };
    while !input.is_empty() {
        let op = input.u8();
        match op & 7 {
            0 | 1 => scene.tick(if op >> 3 & 3 == 3 { 3 } else { 1 }),
            2 | 3 => scene.play(op >> 3 & 1 == 1, op >> 4 & 1 == 1),
            4 => scene.deliver_up(usize::from(op >> 3)),
            5 => scene.deliver_down(usize::from(op >> 3)),
            6 => scene.alter(&mut input),
            _ if op >> 3 & 1 == 1 => scene.hear(input.piece()),
            _ => scene.tell(input.piece()),
        }
        scene.check();
    }
}

impl Scene {
    /// A tick of the server, perhaps after skipped ones: takes the tick's input, and reports what has arrived.
    fn tick(&mut self, ticks: u32) {
        self.now += Duration::from_millis(16);
        self.time.tick = self.time.tick.saturating_add(ticks).min(u32::MAX - 1);
        if self.time.tick <= self.referee.inputs().last() {
            return;
        }
        self.time.taken_at = self.now;
        let (tick, mut first) = (self.time.tick, self.first.remove(&self.time.tick));
        let later = self.first.split_off(&tick);
        let skipped = core::mem::replace(&mut self.first, later);
        skipped.values().for_each(|body| self.keep_press(body[*PRESS]));
        self.done.extend(skipped.keys().copied().chain(first.is_some().then_some(tick)));
        let taken = self.referee.buffer().take(tick);
        if let Some(body) = taken.input {
            let own = first.as_ref().is_some_and(|first| first[*PRESS] != 0);
            let waited = !own && self.server_presses > 0;
            self.server_presses -= u8::from(waited);
            assert_eq!(body[*PRESS] != 0, own || waited, "the press of {tick}");
            if let Some(first) = &mut first {
                first[*PRESS] = body[*PRESS];
            }
        }
        match taken.state {
            InputState::Here => assert_eq!(taken.input, first.as_deref(), "the first that came for {tick}"),
            _ => assert!(first.is_none(), "what came for {tick} was lost"),
        }
        if self.referee.has_news() {
            let mut writer = BitWriter::new();
            self.referee.report(self.now, &self.time, Some(tick)).write(&mut writer);
            push(&mut self.down, writer.encoded().bytes());
        }
    }

    /// A frame of the client.
    fn play(&mut self, sees: bool, presses: bool) {
        if sees {
            self.player.see(f64::from(self.time.tick) + 3.0 / 256.0);
        }
        let mut writer = BitWriter::new();
        self.number += 1;
        writer.bits(self.number & 0xFFFF, 16);
        writer.bool(presses);
        self.client_press |= presses;
        let ticks = self.player.stamp(self.now, &writer.encoded());
        if !ticks.is_empty() {
            assert!(ticks.start > self.stamped || self.stamped == 0, "a tick has one input");
            self.stamped = ticks.end - 1;
            let pressed: Vec<bool> = self.player.newest(ticks.len()).map(has_press).collect();
            assert_eq!(pressed[0], core::mem::take(&mut self.client_press), "the first tick has the press");
            assert!(pressed[1..].iter().all(|press| !press), "no other tick has it");
        }
        let mut writer = BitWriter::new();
        if self.player.write(self.now, 2_000, &mut writer).is_some() {
            push(&mut self.up, writer.encoded().bytes());
        }
    }

    fn deliver_up(&mut self, at: usize) {
        if !self.up.is_empty() {
            let payload = self.up.remove(at % self.up.len());
            self.hear(&payload);
        }
    }

    fn deliver_down(&mut self, at: usize) {
        if !self.down.is_empty() {
            let payload = self.down.remove(at % self.down.len());
            self.tell(&payload);
        }
    }

    fn alter(&mut self, input: &mut Input<'_>) {
        let payloads = if input.u8() & 1 == 0 { &mut self.up } else { &mut self.down };
        let (at, bit) = (usize::from(input.u8()), usize::from(input.u16()));
        if let Some(payload) = payloads.get_mut(at)
            && !payload.is_empty()
        {
            let bit = bit % (payload.len() * 8);
            payload[bit / 8] ^= 1 << (bit % 8);
        }
    }

    /// The server takes a client's payload.
    fn hear(&mut self, payload: &[u8]) {
        let (mut bodies, mut ends) = (Vec::new(), Vec::new());
        let mut reader = exact(payload, |reader| {
            let read = read_inputs(reader, Some(&SCHEMA), &mut bodies, &mut ends);
            read.is_ok()
        });
        let Ok((header, low)) = read_inputs(&mut reader, Some(&SCHEMA), &mut bodies, &mut ends) else {
            return;
        };
        assert!(ends.len() <= MAX_INPUTS && ends.last().is_none_or(|end| *end == bodies.len()));
        let before = self.referee.inputs().counters();
        self.referee.handle_payload(self.now, &self.time, &header, low, &bodies, &ends);
        let after = self.referee.inputs().counters();
        let refused = |counters: &tickwire::timeline::InputCounters| {
            counters.far_ahead + counters.far_behind + counters.late + counters.duplicates
        };
        // Each is taken, or counted; none for a tick before the first there was.
        assert!(refused(&after) - refused(&before) <= ends.len() as u64);
        let head = tickwire::store::sequence::nearest(low, self.time.tick).unwrap_or_default();
        let mut start = 0;
        for (age, end) in (0..).zip(&ends) {
            if let Some(tick) = head.checked_sub(age)
                && tick > self.referee.inputs().last()
                && tick - self.referee.inputs().last() <= 128
            {
                self.first.entry(tick).or_insert_with(|| bodies[start..*end].to_vec());
            } else if let Some(tick) = head.checked_sub(age)
                && self.is_first_late(tick)
            {
                self.keep_press(bodies[start + *PRESS]);
            }
            start = *end;
        }
    }

    /// The press of an input whose tick has run waits for another tick.
    fn keep_press(&mut self, press: u8) {
        self.server_presses = (self.server_presses + u8::from(press != 0)).min(MAX_LATE_PRESSES);
    }

    /// Whether an input for a tick that has run is the first for it.
    fn is_first_late(&mut self, tick: u32) -> bool {
        let last = self.referee.inputs().last();
        tick <= last && last - tick < 128 && self.done.insert(tick)
    }

    /// The client takes what its server says.
    fn tell(&mut self, payload: &[u8]) {
        let mut reader = exact(payload, |reader| Report::read(reader).is_ok());
        let Ok(report) = Report::read(&mut reader) else { return };
        self.player.handle_report(self.now, &report);
        self.player.handle_fate(report.busy >> 1, report.busy & 1 == 0);
    }

    fn check(&mut self) {
        assert!(self.up.len() <= UNDER_WAY && self.down.len() <= UNDER_WAY);
        assert!(self.player.waiting() <= 128);
        self.player.advance(self.now);
        if let Some(tick) = self.player.clock().tick(self.now) {
            assert!(tick.is_finite());
            assert!(tick >= self.shown || self.player.clock().restarts() > 0, "{tick} after {}", self.shown);
            self.shown = tick;
        }
        assert!(self.referee.early().is_none_or(f64::is_finite));
    }
}

fn has_press(input: &Encoded) -> bool {
    let mut body = Vec::new();
    SCHEMA.read(&mut BitReader::new(input.bytes()), &mut body).unwrap();
    body[*PRESS] != 0
}

fn push(payloads: &mut Vec<Vec<u8>>, payload: &[u8]) {
    if payloads.len() < UNDER_WAY {
        payloads.push(payload.to_vec());
    }
}

/// A reader of just as many bits as are read with success, if there are any: payloads say in bits how long they are.
fn exact<'a>(payload: &'a [u8], mut reads: impl FnMut(&mut BitReader<'_>) -> bool) -> BitReader<'a> {
    let bits = payload.len() * 8;
    let fits =
        (bits.saturating_sub(7)..=bits).find(|bits| reads(&mut BitReader::with_range(payload, 0, *bits)));
    BitReader::with_range(payload, 0, fits.unwrap_or(bits))
}

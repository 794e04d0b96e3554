//! Players at one table: rollback games over links that lose, delay, repeat and reorder, in virtual time.

use tickwire::rng::Rng;
use tickwire::rollback::{Config, GameEvent, GameInput, InputShape, Request, Rollback, StateRing, Status};
use tickwire::time::{Duration, Instant};
use tickwire::wire::BitWriter;

/// How bad the network is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) latency: Duration,
    pub(super) jitter: Duration,
    pub(super) loss: f64,
    pub(super) repeats: f64,
}

pub(super) const GOOD: Line =
    Line { latency: Duration::from_millis(20), jitter: Duration::ZERO, loss: 0.0, repeats: 0.0 };
pub(super) const BAD: Line =
    Line { latency: Duration::from_millis(40), jitter: Duration::from_millis(40), loss: 0.1, repeats: 0.05 };

/// The state of the game: a number in which every input of every frame shows, and its order.
pub(super) fn step(state: u64, frame: u32, inputs: impl Iterator<Item = (u64, Status)>) -> u64 {
    let mut state = state.wrapping_add(u64::from(frame)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for (input, status) in inputs {
        let left = u64::from(status == Status::Left);
        state = (state.rotate_left(17) ^ input ^ left << 40).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    }
    state
}

/// An input as a number.
pub(super) fn number(input: GameInput<'_>) -> u64 {
    input.bytes.iter().rev().fold(input.bits as u64, |number, byte| number << 8 | u64::from(*byte))
}

pub(super) struct Seat {
    pub(super) game: Rollback,
    ring: StateRing,
    pub(super) state: u64,
    /// The state before each frame, as it was when that was confirmed.
    pub(super) confirmed: Vec<u64>,
    states: Vec<u64>,
    /// Own inputs by frame, and what was given.
    pub(super) gave: Vec<Option<u64>>,
    pub(super) events: Vec<GameEvent>,
    pub(super) is_gone: bool,
    next_frame: Instant,
    pressed: [u8; 8],
    /// The part of the rate at which it runs.
    pub(super) clock: f64,
    pub(super) bytes: u64,
    pub(super) payloads: u64,
    /// A frame from which on its step is wrong.
    pub(super) cheats_from: u32,
    pub(super) follows_pace: bool,
}

impl Seat {
    pub(super) fn new(config: Config) -> Self {
        Seat {
            ring: StateRing::new(8, config.window as usize + 2),
            game: Rollback::new(config),
            state: 1,
            confirmed: Vec::new(),
            states: Vec::new(),
            gave: Vec::new(),
            events: Vec::new(),
            is_gone: false,
            next_frame: Instant::ZERO,
            pressed: [0; 8],
            clock: 1.0,
            bytes: 0,
            payloads: 0,
            cheats_from: u32::MAX,
            follows_pace: true,
        }
    }

    pub(super) fn advance(&mut self, now: Instant, input: GameInput<'_>) {
        let players: Vec<usize> =
            (0..16).filter(|player| self.game.config().players >> player & 1 == 1).collect();
        let me = usize::from(self.game.config().me);
        let requests = self.game.advance(now, input).to_vec();
        for request in requests {
            match request {
                Request::Save(frame) => self.ring.save(frame).copy_from_slice(&self.state.to_le_bytes()),
                Request::Load(frame) => {
                    let saved = self.ring.get(frame).expect("a state that was saved");
                    self.state = u64::from_le_bytes(saved.try_into().unwrap());
                    assert!(
                        frame as usize >= self.confirmed.len().saturating_sub(1),
                        "no confirmed frame is undone"
                    );
                }
                Request::Advance(frame) => {
                    self.states.truncate(frame as usize);
                    assert_eq!(self.states.len(), frame as usize);
                    self.states.push(self.state);
                    let inputs = players.iter().map(|player| {
                        let (input, status) = self.game.input(*player, frame);
                        (number(input), status)
                    });
                    self.state = step(self.state, frame, inputs);
                    self.state ^= u64::from(frame >= self.cheats_from) << 33;
                }
            }
        }
        self.states.truncate(self.game.frame() as usize);
        let known = (self.game.confirmed().min(self.game.frame()) as usize).min(self.states.len());
        for frame in self.confirmed.len()..known {
            self.confirmed.push(self.states[frame]);
        }
        for frame in self.gave.len() as u32.. {
            let (input, status) = self.game.input(me, frame);
            if status != Status::Confirmed || frame >= self.game.frame() {
                break;
            }
            self.gave.push(Some(number(input)));
        }
        while let Some(frame) = self.game.poll_check() {
            let bytes = self.ring.get(frame).expect("a checked state that is still kept");
            let (low, high) = bytes.split_at(4);
            let sums = [low, high].map(|half| tickwire::rollback::hash(0, half));
            self.game.note_check(now, frame, &sums);
        }
        self.events.extend(core::iter::from_fn(|| self.game.poll_event()));
    }
}

struct Flying {
    at: Instant,
    from: usize,
    to: usize,
    payload: Vec<u8>,
}

pub(super) struct Table {
    pub(super) seats: Vec<Seat>,
    pub(super) now: Instant,
    pub(super) rng: Rng,
    pub(super) line: Line,
    flying: Vec<Flying>,
    shape_bits: usize,
}

impl Table {
    pub(super) fn new(players: u8, seed: u64, line: Line, change: impl Fn(&mut Config)) -> Self {
        let config = |me| {
            let mut config = Config::new(players, me, InputShape::of_bits(10));
            change(&mut config);
            config
        };
        let seats: Vec<_> = (0..players).map(|me| Seat::new(config(me))).collect();
        let shape_bits = seats[0].game.config().input.max_bits();
        Table { seats, now: Instant::ZERO, rng: Rng::seeded(seed), line, flying: Vec::new(), shape_bits }
    }

    /// Another millisecond.
    pub(super) fn tick(&mut self) {
        self.now += Duration::from_millis(1);
        let now = self.now;
        while let Some(place) = self.flying.iter().position(|flying| flying.at <= now) {
            let Flying { from, to, payload, .. } = self.flying.remove(place);
            if !self.seats[to].is_gone {
                self.seats[to].game.read(now, from as u8, &payload).expect("an honest payload");
            }
        }
        for me in 0..self.seats.len() {
            if self.seats[me].is_gone || now < self.seats[me].next_frame {
                continue;
            }
            // Held for some frames each, as players do.
            let pressed = (self.rng.next_u64() & ((1 << self.shape_bits) - 1)).to_le_bytes();
            let seat = &mut self.seats[me];
            if self.rng.chance(0.15) {
                seat.pressed = pressed;
            }
            let (input, bits) = (seat.pressed, self.shape_bits);
            seat.advance(now, GameInput { bytes: &input[..bits.div_ceil(8)], bits });
            let rate = if seat.follows_pace { seat.game.pace() } else { 60.0 };
            let nanos = 1e9 / rate / seat.clock;
            seat.next_frame = (seat.next_frame + Duration::from_nanos(nanos as u64)).max(now);
            self.send(me);
        }
    }

    fn send(&mut self, me: usize) {
        let now = self.now;
        for to in 0..self.seats.len() {
            let mut writer = BitWriter::new();
            if to == me || !self.seats[me].game.fill(now, to as u8, 8_000, &mut writer) {
                continue;
            }
            assert!(writer.bit_len() <= 8_000);
            self.seats[me].bytes += writer.byte_len() as u64;
            self.seats[me].payloads += 1;
            let copies = 1 + u32::from(self.rng.chance(self.line.repeats));
            for _ in 0..copies {
                if self.rng.chance(self.line.loss) || self.seats[to].is_gone {
                    continue;
                }
                let jitter = Duration::from_nanos(self.rng.below(self.line.jitter.as_nanos() as u64 + 1));
                let at = now + self.line.latency + jitter;
                self.flying.push(Flying { at, from: me, to, payload: writer.as_bytes().to_vec() });
            }
        }
    }

    pub(super) fn run(&mut self, seconds: u32) {
        for _ in 0..seconds * 1000 {
            self.tick();
        }
    }

    /// A player goes: what it sent lately reaches some of the others, each hears of it at another time.
    pub(super) fn leave(&mut self, player: usize) {
        self.seats[player].is_gone = true;
        let rng = &mut self.rng;
        self.flying.retain(|flying| flying.from != player || rng.chance(0.5));
    }

    /// The states of all who stay are those of the inputs in order, by a naive game.
    pub(super) fn check(&self, min_frames: usize) {
        let players = self.seats.len();
        let stay: Vec<usize> = (0..players).filter(|player| !self.seats[*player].is_gone).collect();
        let frames = stay.iter().map(|player| self.seats[*player].confirmed.len()).min().unwrap();
        assert!(frames >= min_frames, "{frames} frames were confirmed, not {min_frames}");
        let mut state = 1;
        for frame in 0..frames {
            for player in &stay {
                assert_eq!(
                    self.seats[*player].confirmed[frame], state,
                    "player {player} before frame {frame}"
                );
            }
            let inputs = (0..players).map(|player| {
                let left =
                    stay.iter().flat_map(|seat| &self.seats[*seat].events).find_map(|event| match event {
                        GameEvent::Left { player: who, frame } if usize::from(*who) == player => Some(*frame),
                        _ => None,
                    });
                if left.is_some_and(|left| left as usize <= frame) {
                    (number(GameInput { bytes: &[0, 0], bits: self.shape_bits }), Status::Left)
                } else {
                    (self.seats[player].gave_at(frame), Status::Confirmed)
                }
            });
            state = step(state, frame as u32, inputs);
        }
    }
}

impl Seat {
    fn gave_at(&self, frame: usize) -> u64 {
        self.gave.get(frame).copied().flatten().unwrap_or_else(|| {
            // Given, and the frame not run by its own player: who left.
            number(self.game.input(usize::from(self.game.config().me), frame as u32).0)
        })
    }
}

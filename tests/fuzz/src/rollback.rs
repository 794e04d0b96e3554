//! Three players' frames: two honest ones, whose payloads the fuzzer passes on, loses, repeats and alters, and a third that is
//! the fuzzer. Frames follow each other, what is confirmed stays, and only states that were saved are loaded.

use std::collections::{BTreeMap, BTreeSet};

use tickwire::rollback::{Config, GameInput, InputShape, Request, Rollback, Status};
use tickwire::time::{Duration, Instant};
use tickwire::wire::BitWriter;

use super::input::Input;

const ROOM: usize = 2_000;
/// The maximum of payloads in flight.
const UNDER_WAY: usize = 64;
/// Frames of which confirmed inputs are looked at again.
const PAST: u32 = 12;

struct Honest {
    game: Rollback,
    saved: BTreeSet<u32>,
    next: u32,
    confirmed: u32,
    known: BTreeMap<(u32, usize), (Vec<u8>, usize)>,
}

struct Scene {
    now: Instant,
    honest: [Honest; 2],
    under_way: Vec<(u8, usize, Vec<u8>)>,
}

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let setup = input.u8();
    let honest = [0, 1].map(|me| {
        let mut config = Config::new(3, me, InputShape::of_bits(5));
        (config.delay, config.window) = (u32::from(setup & 3), 1 + u32::from(setup >> 2 & 7));
        config.check_every = 4;
        Honest {
            game: Rollback::new(config),
            saved: BTreeSet::new(),
            next: 0,
            confirmed: 0,
            known: BTreeMap::new(),
        }
    });
    let mut scene = Scene { now: Instant::ZERO, honest, under_way: Vec::new() };
    while !input.is_empty() {
        scene.step(&mut input);
        scene.honest.iter_mut().for_each(Honest::check);
    }
}

impl Scene {
    fn step(&mut self, input: &mut Input<'_>) {
        let op = input.u8();
        let (now, me, at) = (self.now, usize::from(op >> 3 & 1), usize::from(op >> 4));
        match op & 7 {
            0 | 1 => self.frame(me, op >> 3),
            2 if !self.under_way.is_empty() => {
                let place = at % self.under_way.len();
                let (from, to, payload) =
                    if op & 8 == 0 { self.under_way.remove(place) } else { self.under_way[place].clone() };
                let _altered = self.honest[to].game.read(now, from, &payload);
            }
            3 => {
                let payload = input.piece();
                if self.honest[me].game.read(now, 2, payload).is_err() && at & 1 == 1 {
                    self.honest[me].game.note_left(now, 2);
                }
            }
            4 => {
                if let Some((_, _, payload)) = self.under_way.get_mut(at).filter(|it| !it.2.is_empty()) {
                    let bit = usize::from(input.u16()) % (payload.len() * 8);
                    payload[bit / 8] ^= 1 << (bit % 8);
                }
            }
            5 => self.honest[me].game.set_delay(at.try_into().unwrap()),
            6 if at == 15 => self.honest[me].game.note_left(now, 2),
            6 => {
                // A spectator asks.
                let _any = self.honest[me].game.read(now, 7, input.piece());
            }
            _ => drop((at < self.under_way.len()).then(|| self.under_way.remove(at))),
        }
    }

    fn frame(&mut self, me: usize, pressed: u8) {
        self.now += Duration::from_millis(8);
        let now = self.now;
        let honest = &mut self.honest[me];
        honest.advance(now, pressed & 0x1F);
        for to in 0..8 {
            let mut writer = BitWriter::new();
            if honest.game.fill(now, to, ROOM, &mut writer) {
                assert!(writer.bit_len() <= ROOM, "{} bits", writer.bit_len());
                if to < 2 && self.under_way.len() < UNDER_WAY {
                    self.under_way.push((me as u8, to.into(), writer.into_bytes()));
                }
            }
        }
    }
}

impl Honest {
    fn advance(&mut self, now: Instant, pressed: u8) {
        let can = self.game.can_advance();
        let frame = self.game.frame();
        for request in self.game.advance(now, GameInput { bytes: &[pressed], bits: 5 }).to_vec() {
            match request {
                Request::Save(frame) => {
                    assert_eq!(frame, self.next, "the state before the frame that runs next");
                    self.saved.insert(frame);
                }
                Request::Load(frame) => {
                    assert!(self.saved.contains(&frame), "{frame} was saved");
                    self.next = frame;
                }
                Request::Advance(frame) => {
                    assert_eq!(frame, self.next, "frames follow each other");
                    self.next += 1;
                }
            }
        }
        assert_eq!((self.next, self.game.frame()), (frame + u32::from(can), self.next));
        while let Some(frame) = self.game.poll_check() {
            assert!(self.saved.contains(&frame) && frame <= self.game.confirmed());
            self.game.note_check(now, frame, &[frame, 7]);
        }
        while self.game.poll_event().is_some() {}
    }

    /// Confirmed frames stay confirmed and unchanged.
    fn check(&mut self) {
        let confirmed = self.game.confirmed();
        assert!(confirmed >= self.confirmed, "{confirmed} after {}", self.confirmed);
        self.confirmed = confirmed;
        let ran = confirmed.min(self.game.frame());
        for frame in ran.saturating_sub(PAST)..ran {
            for player in 0..3 {
                let (input, status) = self.game.input(player, frame);
                assert_ne!(status, Status::Predicted, "frame {frame} of player {player}");
                if status == Status::Confirmed {
                    let now = (input.bytes.to_vec(), input.bits);
                    let before = self.known.entry((frame, player)).or_insert_with(|| now.clone());
                    assert_eq!(*before, now, "frame {frame} of player {player}");
                }
            }
        }
    }
}

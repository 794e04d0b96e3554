//! Three players' turns: two honest ones, whose payloads the fuzzer passes on, loses, repeats and alters, and a third that is
//! the fuzzer. Turns follow each other, have players' own commands and no others, and none twice.

use tickwire::lockstep::checks::TurnLog;
use tickwire::lockstep::{Lockstep, LockstepConfig};
use tickwire::time::{Duration, Instant};
use tickwire::wire::BitWriter;

use super::input::Input;

const PLAYERS: u16 = 0b111;
const ROOM: usize = 8_000;
/// The maximum of payloads in flight.
const UNDER_WAY: usize = 64;

struct Honest {
    lockstep: Lockstep,
    given: Vec<Vec<u8>>,
    ran: usize,
    turn: Option<i32>,
    /// Nothing that a liar sent was accepted: turns have exactly the given commands.
    fooled: bool,
}

struct Scene {
    now: Instant,
    honest: [Honest; 2],
    under_way: Vec<(u8, usize, Vec<u8>)>,
    /// A payload of an honest player was altered: whatever it seems to say now, it didn't.
    is_altered: bool,
}

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let setup = input.u8();
    let honest = [0, 1].map(|me| {
        let mut config = LockstepConfig::new(me, PLAYERS, setup & 1);
        config.adapt = setup & 2 == 0;
        Honest {
            lockstep: Lockstep::new(config, Instant::ZERO).unwrap(),
            given: Vec::new(),
            ran: 0,
            turn: None,
            fooled: false,
        }
    });
    let mut scene = Scene { now: Instant::ZERO, honest, under_way: Vec::new(), is_altered: false };
    while !input.is_empty() {
        scene.step(&mut input);
    }
}

impl Scene {
    fn step(&mut self, input: &mut Input<'_>) {
        let op = input.u8();
        let (now, me, at) = (self.now, usize::from(op >> 3 & 1), usize::from(op >> 4));
        match op & 7 {
            0 | 1 => self.frame(1 + u64::from(op >> 3)),
            2 => self.deliver(at, op & 8 == 0),
            3 => {
                let payload = input.piece();
                self.read(me, 2, payload);
            }
            4 => {
                if let Some((_, _, payload)) = self.under_way.get_mut(at).filter(|it| !it.2.is_empty()) {
                    let bit = usize::from(input.u16()) % (payload.len() * 8);
                    payload[bit / 8] ^= 1 << (bit % 8);
                    self.is_altered = true;
                }
            }
            5 => {
                let command = input.piece();
                let honest = &mut self.honest[me];
                if honest.lockstep.command(command).is_ok() {
                    honest.given.push(command.to_vec());
                }
            }
            6 => match at & 3 {
                0 => self.honest[me].lockstep.note_left(now, 2),
                1 => self.honest[me].lockstep.vote(now, 2, at & 4 == 0),
                2 => self.honest[me].lockstep.pause(at & 4 == 0),
                _ => self.honest[me].lockstep.set_speed(input.u8()),
            },
            _ => drop((at < self.under_way.len()).then(|| self.under_way.remove(at))),
        }
    }

    fn deliver(&mut self, at: usize, once: bool) {
        if self.under_way.is_empty() {
            return;
        }
        let place = at % self.under_way.len();
        let (from, to, payload) =
            if once { self.under_way.remove(place) } else { self.under_way[place].clone() };
        self.read(to, from, &payload);
    }

    fn read(&mut self, me: usize, from: u8, payload: &[u8]) {
        let Honest { lockstep, fooled, .. } = &mut self.honest[me];
        let read = lockstep.read(self.now, from, payload);
        *fooled |= from == 2;
        if read.is_err() && from == 2 {
            // As the layer above does.
            lockstep.note_left(self.now, from);
        }
        assert!(
            read.is_ok() || from == 2 || self.is_altered || self.honest.iter().any(|it| it.fooled),
            "{read:?} of an honest payload"
        );
    }

    fn frame(&mut self, frames: u64) {
        self.now += Duration::from_millis(16 * frames);
        let now = self.now;
        for (me, honest) in self.honest.iter_mut().enumerate() {
            let mut turns = 0;
            while let Some(turn) = honest.lockstep.poll_turn(now) {
                turns += 1;
                assert!(turns < 10_000, "turns have no end");
                assert!(honest.turn.is_none_or(|before| before + 1 == turn.turn), "turns follow each other");
                honest.turn = Some(turn.turn);
                assert!(turn.players & !PLAYERS == 0 && turn.left & !PLAYERS == 0);
                assert!(turn.players >> me & 1 == 1, "who is out runs no turn");
                for (player, command) in &turn.commands {
                    assert!(turn.players >> player & 1 == 1, "a command of who isn't there");
                    if usize::from(*player) == me {
                        assert_eq!(command[..], honest.given[honest.ran], "own commands come in order");
                        honest.ran += 1;
                    }
                }
                let mut log = TurnLog::default();
                log.push(2, 1, &[turn.commands.len() as i64, 7]);
                assert!(honest.lockstep.check(now, turn.turn, 5, &log).is_some());
            }
            while honest.lockstep.poll_event().is_some() {}
            for to in 0..3 {
                let mut writer = BitWriter::new();
                if honest.lockstep.fill(now, to, ROOM, &mut writer) {
                    assert!(writer.bit_len() <= ROOM, "{} bits", writer.bit_len());
                    if to < 2 && self.under_way.len() < UNDER_WAY {
                        self.under_way.push((me as u8, to.into(), writer.into_bytes()));
                    }
                }
            }
        }
    }
}

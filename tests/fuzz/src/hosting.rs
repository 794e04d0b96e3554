//! A player's part in hosting a game: anything that the other players say of its worlds, worlds that nobody announced, and
//! masters that change as they like. Whatever comes is dropped and counted, and memory stays within bounds.

use tickwire::mesh::{MAX_PLAYERS, bit};
use tickwire::session::Carried;
use tickwire::session::hosting::{Agreed, Hosting, News, WorldBytes};
use tickwire::time::{Duration, Instant};
use tickwire::wire::BitWriter;

use super::input::Input;

/// What a player's part takes to show at most, without its worlds: a measure of its memory.
const MAX_SHOWN: usize = 400_000;

struct Scene {
    hosting: Hosting,
    now: Instant,
    agreed: Agreed,
    /// A master is to load a world.
    begins: bool,
}

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let setup = input.u8();
    let agreed = Agreed { epoch: 1, me: Some(1), master: Some(setup & 1), others: 0b1101 };
    let hosting = Hosting::new(Duration::from_secs(2));
    let mut scene = Scene { hosting, now: Instant::from_millis(5_000), agreed, begins: false };
    while !input.is_empty() {
        scene.step(&mut input);
        scene.settle();
    }
    assert!(format!("{:?}", scene.hosting).len() < MAX_SHOWN);
}

impl Scene {
    fn step(&mut self, input: &mut Input<'_>) {
        let op = input.u8();
        let (now, player) = (self.now, op >> 3 & 3);
        match op & 7 {
            // Whatever is refused ends that player's connection.
            0 => match self.hosting.read(now, player, input.piece()) {
                Ok(()) => {}
                Err(_) => self.hosting.note_left(now, player),
            },
            1 | 2 => {
                let head = [self.agreed.epoch, 1 + u32::from(input.u8()), input.u32()].map(u32::to_le_bytes);
                let counts = [input.u8(), 1 + input.u8() % 250].map(u16::from).map(u16::to_le_bytes);
                let packet = [head.as_flattened(), counts.as_flattened(), input.piece()].concat();
                let _ = self.hosting.read(now, player, &packet);
            }
            3 => {
                let id = (u32::from(input.u8() % 4), u32::from(input.u8()));
                self.hosting.handle_world(player, id, WorldBytes::new(input.piece().to_vec()));
            }
            4 => self.hosting.note_sent(op >> 3, input.u8() & 1 == 1),
            5 => {
                let what = input.u8() & 3;
                let Agreed { epoch, master, others, .. } = &mut self.agreed;
                if what == 1 {
                    (*epoch, *master) = (*epoch + 1, Some(player));
                } else if what == 3 {
                    *master = None;
                } else {
                    *others ^= bit(player) & !bit(1);
                    self.hosting.note_left(now, player);
                }
            }
            6 => {
                self.now += Duration::from_millis(u64::from(op >> 3) * 40);
                if self.hosting.is_save_due(self.now) {
                    assert!(self.hosting.keep(self.now, WorldBytes::new(vec![op; 64])));
                }
            }
            _ if self.begins => {
                self.begins = false;
                self.hosting.note_begun(now, op >> 3 & 1 == 1);
            }
            _ => {}
        }
    }

    /// Carries out what it wants, and checks what it says.
    fn settle(&mut self) {
        self.hosting.update(self.now, self.agreed, true);
        let mut left = 100;
        while self.hosting.poll_transfer().is_some() {
            left -= 1;
            assert!(left > 0, "there is no end to what it sends");
        }
        while let Some(news) = self.hosting.poll_news() {
            left -= 1;
            assert!(left > 0, "there is no end to its news");
            self.begins |= matches!(news, News::Begin { .. });
        }
        for player in 0..MAX_PLAYERS as u8 {
            let mut writer = BitWriter::new();
            if self.hosting.fill(self.now, player, 8_000, &mut writer) {
                let mut other = Hosting::new(Duration::from_secs(2));
                other.read(self.now, 1, &writer.into_bytes()).expect("others can read what it says");
            }
        }
    }
}

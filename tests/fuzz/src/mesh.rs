//! A peer's part in who is in the game: anything that those at its links say, and links that come and end as they like. It
//! keeps one roster that can be, memory within bounds, and speaks to links that there are alone.

use std::collections::BTreeSet;

use tickwire::mesh::{Action, LeaveReason, LinkEnd, Mesh, MeshConfig, Message, Phase, Start};
use tickwire::time::{Duration, Instant};

use super::input::Input;

/// Links at once: the layer above has so many places.
const LINKS: usize = 40;
/// What a mesh takes to show at most: a measure of its memory. Each link may say so much before its time.
const MAX_SHOWN: usize = LINKS * 64 * 4_000;

const ENDS: [LinkEnd; 7] = [
    LinkEnd::Left,
    LinkEnd::Parted,
    LinkEnd::Lost,
    LinkEnd::Violation,
    LinkEnd::Accused,
    LinkEnd::Mismatch,
    LinkEnd::Full,
];

struct Scene {
    mesh: Mesh,
    now: Instant,
    links: BTreeSet<u64>,
    next: u64,
}

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let setup = input.u8();
    let config = MeshConfig {
        name: "ours".into(),
        key: [1; 32],
        addresses: vec!["10.0.0.1:7".parse().unwrap()],
        places: 1 + (setup >> 1) % 16,
        timeout: Duration::from_secs(5),
    };
    let mesh = if setup & 1 == 0 {
        Mesh::host(config)
    } else {
        Mesh::join(config, vec!["10.0.0.2:7".parse().unwrap()])
    };
    let mut scene = Scene { mesh, now: Instant::from_millis(1_000), links: BTreeSet::new(), next: 1 };
    scene.settle();
    while !input.is_empty() {
        scene.step(&mut input);
        scene.settle();
    }
    assert!(format!("{:?}", scene.mesh).len() < MAX_SHOWN);
}

impl Scene {
    fn step(&mut self, input: &mut Input<'_>) {
        let op = input.u8();
        let (now, at) = (self.now, usize::from(op >> 3));
        let link = self.links.iter().nth(at % self.links.len().max(1)).copied();
        match (op & 7, link) {
            (0, _) if self.links.len() < LINKS => {
                let ticket = (op >> 3 & 1 == 1).then(|| [input.u8(); 16]);
                self.links.insert(self.next);
                self.mesh.handle_accepted(now, self.next, "10.0.0.9:7".parse().unwrap(), ticket);
                self.next += 1;
            }
            (1, Some(link)) => {
                self.links.remove(&link);
                self.mesh.handle_end(now, link, ENDS[input.u8() as usize % ENDS.len()]);
            }
            (2, Some(link)) => self.mesh.handle_dialled(now, link, "10.0.0.8:7".parse().unwrap()),
            (3, _) => {
                self.now += Duration::from_millis(u64::from(op >> 3) * 100);
                self.mesh.update(self.now);
            }
            (4, _) => match op >> 3 & 3 {
                0 => {
                    let late = op >> 5 & 1 == 0;
                    self.mesh.start(now, Start { seed: 3, countdown: 100_000, players: 0, late });
                }
                1 => drop(self.mesh.kick(now, op >> 5)),
                2 if op >> 5 == 7 => self.mesh.end(LeaveReason::Left),
                _ => self.mesh.set_address("10.0.0.7:7".parse().unwrap()),
            },
            (_, Some(link)) => {
                let bytes = input.piece();
                if let Some(message) = Message::read(bytes) {
                    assert_eq!(message.write(), bytes, "a message has one form");
                }
                let rtt = Duration::from_millis(u64::from(op));
                if self.mesh.handle_bytes(now, link, bytes, rtt).is_err() {
                    // As the layer above does.
                    self.links.remove(&link);
                    self.mesh.handle_end(now, link, LinkEnd::Violation);
                }
            }
            _ => {}
        }
    }

    /// Carries out the mesh's actions, and checks its state.
    fn settle(&mut self) {
        let mut left = 10_000;
        while let Some(action) = self.mesh.poll_action() {
            left -= 1;
            assert!(left > 0, "there is no end to what it wants");
            match action {
                Action::Send { message, .. } => {
                    let bytes = message.write();
                    assert!(bytes.len() <= Message::MAX_BYTES);
                    assert_eq!(Message::read(&bytes), Some(message), "others can read what it says");
                }
                Action::Ask { addresses } => {
                    assert!(!addresses.is_empty());
                    self.dial(None);
                }
                Action::Dial { who, .. } => self.dial(Some(who)),
                Action::End { link, .. } => drop(self.links.remove(&link)),
                Action::Refuse { link, .. } => {
                    self.links.remove(&link);
                    self.mesh.handle_end(self.now, link, LinkEnd::Violation);
                }
                Action::Introduce { .. } | Action::Admit { .. } | Action::TakeSeat { .. } => {}
            }
        }
        while self.mesh.poll_happening().is_some() {}
        let roster = self.mesh.roster();
        assert!(roster.is_valid(), "{roster:?}");
        if self.mesh.phase() == Phase::Member {
            let me = self.mesh.me().expect("a member has a number");
            assert!(roster.member(me).is_some(), "a member is in the roster that it knows: {roster:?}");
        }
        assert!(!self.mesh.is_master() || self.mesh.master().is_some());
    }

    fn dial(&mut self, player: Option<(u8, u32)>) {
        if self.links.len() == LINKS {
            return self.mesh.note_undialled(player.map(|(player, _)| player));
        }
        self.links.insert(self.next);
        self.mesh.note_dialling(self.now, self.next, player);
        self.next += 1;
    }
}

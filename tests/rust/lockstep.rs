//! Lockstep over links that misbehave, in virtual time.

use tickwire::lockstep::checks::TurnLog;
use tickwire::lockstep::{Lockstep, LockstepConfig, LockstepEvent, Pace, SharedRandom, StartedTurn};
use tickwire::netsim::{Conditions, Link};
use tickwire::time::{Duration, Instant};
use tickwire::wire::BitWriter;

/// Bits of a payload in these games.
const ROOM: usize = 1000 * 8;

/// A small world: units that move as they are commanded.
#[derive(Clone)]
struct World {
    units: Vec<[i64; 4]>,
    random: SharedRandom,
}

impl World {
    fn new(units: usize, seed: u64) -> Self {
        World {
            units: (0..units).map(|i| [i as i64, 0, 0, 100]).collect(),
            random: SharedRandom::seeded(seed),
        }
    }

    fn step(&mut self, turn: &StartedTurn) {
        for (player, command) in &turn.commands {
            let unit = usize::from(command[0]) % self.units.len();
            self.units[unit][1] = i64::from(command[1]) + i64::from(*player);
            self.units[unit][2] = i64::from(command[2]);
        }
        for _ in 0..turn.steps {
            let lucky = self.random.below(self.units.len() as u64) as usize;
            self.units[lucky][3] += 1;
            for unit in &mut self.units {
                unit[0] += (unit[1] - unit[0]).signum();
            }
        }
        for left in 0..16 {
            if turn.left >> left & 1 == 1 {
                self.units.iter_mut().for_each(|unit| unit[3] -= 7);
            }
        }
    }

    fn log(&self) -> TurnLog {
        let mut log = TurnLog::default();
        self.units.iter().enumerate().for_each(|(id, unit)| log.push(2, id as u32 + 1, unit));
        log
    }
}

/// Players on links between all pairs.
struct Game {
    peers: Vec<Option<Lockstep>>,
    worlds: Vec<World>,
    links: Vec<Option<Link<Vec<u8>>>>,
    now: Instant,
    /// Of each turn, what the first who ran it found: (crc, who left).
    crcs: Vec<Option<(u32, u16)>>,
    events: Vec<Vec<LockstepEvent>>,
    luck: SharedRandom,
    /// Commands that a player gives in a second.
    rate: f64,
    may_differ: bool,
    bytes: Vec<u64>,
    payloads: Vec<u64>,
}

const FRAME: Duration = Duration::from_millis(16);

impl Game {
    fn new(count: usize, conditions: &Conditions, change: impl Fn(&mut LockstepConfig)) -> Self {
        let mask = ((1u32 << count) - 1) as u16;
        let peers = (0..count).map(|me| {
            let mut config = LockstepConfig::new(me as u8, mask, 0);
            change(&mut config);
            // They don't begin at one instant, nor do their frames.
            Some(Lockstep::new(config, Instant::from_millis(1000 + 17 * me as u64)).unwrap())
        });
        let links = (0..count * count)
            .map(|i| (i / count != i % count).then(|| Link::new(*conditions, i as u64 + 1).unwrap()));
        Game {
            peers: peers.collect(),
            worlds: (0..count).map(|_| World::new(24, 99)).collect(),
            links: links.collect(),
            now: Instant::ZERO,
            crcs: Vec::new(),
            events: vec![Vec::new(); count],
            luck: SharedRandom::seeded(5),
            rate: 0.5,
            may_differ: false,
            bytes: vec![0; count],
            payloads: vec![0; count],
        }
    }

    fn count(&self) -> usize {
        self.peers.len()
    }

    fn run(&mut self, seconds: f64) {
        let end = self.now + Duration::from_secs_f64(seconds);
        while self.now < end {
            self.now += FRAME;
            self.frame();
        }
    }

    fn frame(&mut self) {
        let (count, now) = (self.count(), self.now);
        for me in 0..count {
            let Some(peer) = self.peers[me].as_mut() else { continue };
            for from in 0..count {
                let Some(link) = &mut self.links[from * count + me] else { continue };
                while let Some(payload) = link.poll(now) {
                    peer.read(now, from as u8, &payload)
                        .unwrap_or_else(|fault| panic!("{from} to {me}: {fault}"));
                }
            }
            while let Some(turn) = peer.poll_turn(now) {
                let world = &mut self.worlds[me];
                world.step(&turn);
                let draw = world.random.next_u64() as u16;
                let check = peer.check(now, turn.turn, draw, &world.log()).unwrap();
                let at = (turn.turn + 16) as usize;
                self.crcs.resize(self.crcs.len().max(at + 1), None);
                let known = *self.crcs[at].get_or_insert((check.crc, turn.left));
                assert!(self.may_differ || known == (check.crc, turn.left), "turn {} of {me}", turn.turn);
            }
            if self.luck.unit() < self.rate * FRAME.as_secs_f64() {
                let word = self.luck.next_u64().to_le_bytes();
                peer.command(&word[..4 + usize::from(word[7] % 5)]).unwrap();
            }
            while let Some(event) = peer.poll_event() {
                self.events[me].push(event);
            }
            for to in 0..count {
                let mut writer = BitWriter::new();
                if peer.fill(now, to as u8, ROOM, &mut writer) {
                    let bytes = writer.into_bytes();
                    self.bytes[me] += bytes.len() as u64;
                    self.payloads[me] += 1;
                    let link = self.links[me * count + to].as_mut().unwrap();
                    let size = bytes.len();
                    link.send(now, bytes, size);
                }
            }
        }
    }

    fn turns(&self) -> Vec<i32> {
        self.peers.iter().map(|peer| peer.as_ref().map_or(-99, Lockstep::turn)).collect()
    }

    /// The worst part of the time that someone waited.
    fn stalled(&self, since: &[u64], seconds: f64) -> f64 {
        let now = self.peers.iter().map(|peer| peer.as_ref().unwrap().counters().stalled_us);
        now.zip(since).map(|(now, since)| (now - since) as f64 / 1e6 / seconds).fold(0.0, f64::max)
    }
}

fn bad() -> Conditions {
    Conditions::perfect().latency(Duration::from_millis(80), Duration::from_millis(20)).loss(0.05)
}

#[test]
fn commands_run_two_turns_later() {
    let mut game = Game::new(2, &Conditions::perfect(), |_| ());
    game.rate = 0.0;
    let start = Instant::from_millis(2000);
    let mut peer = Lockstep::new(LockstepConfig::new(0, 1, 0), start).unwrap();
    assert_eq!(peer.poll_turn(Instant::from_millis(1999)), None);
    let first = peer.poll_turn(start).unwrap();
    assert_eq!((first.turn, first.steps, first.delay), (-2, 3, 2));
    peer.command(b"go").unwrap();
    let turn =
        |peer: &mut Lockstep, n: u64| peer.poll_turn(start + Duration::from_millis(99) * n as u32).unwrap();
    assert_eq!(turn(&mut peer, 1).commands, []);
    let third = turn(&mut peer, 2);
    assert_eq!((third.turn, third.commands), (0, vec![(0, b"go"[..].into())]));
    game.run(10.0);
    assert!(game.turns().iter().all(|turn| *turn > 85), "{:?}", game.turns());
}

/// How long eight play: an hour where there is time for it.
fn minutes() -> f64 {
    std::env::var("TICKWIRE_LOCKSTEP_MINUTES").map_or(3.0, |it| it.parse().unwrap())
}

#[test]
fn eight_players_stay_one_world_over_a_bad_network() {
    let mut game = Game::new(8, &bad(), |_| ());
    game.run(30.0);
    let since: Vec<u64> = game.peers.iter().map(|it| it.as_ref().unwrap().counters().stalled_us).collect();
    let (bytes, payloads) = (game.bytes.clone(), game.payloads.clone());
    let before = game.turns()[0];
    let seconds = minutes() * 60.0;
    game.run(seconds);
    let stalled = game.stalled(&since, seconds);
    let rate =
        game.bytes.iter().zip(&bytes).map(|(a, b)| (a - b) * 8).max().unwrap() as f64 / seconds / 1000.0;
    let packets = (game.payloads[0] - payloads[0]) as f64 / seconds;
    let pace = game.peers[0].as_ref().unwrap().pace();
    let turns = f64::from(game.turns()[0] - before) / seconds;
    let changes = game.events[0].iter().filter(|it| matches!(it, LockstepEvent::PaceChanged { .. })).count();
    println!(
        "stalled {:.3} % {pace:?} {rate:.1} kbit/s {packets:.0} payloads/s {turns:.2} turns/s {changes} paces",
        stalled * 100.0
    );
    assert!(stalled < 0.01, "{stalled}");
    let (low, high) = (*game.turns().iter().min().unwrap(), *game.turns().iter().max().unwrap());
    assert!(high - low <= 6 && f64::from(low) > seconds * 4.5, "{:?}", game.turns());
    assert!(game.events.iter().flatten().all(|it| matches!(it, LockstepEvent::PaceChanged { .. })));
}

#[test]
fn four_players_say_little() {
    let mut game = Game::new(4, &bad(), |_| ());
    // Five commands a second of 4 to 8 bytes each: as much as good players give.
    game.rate = 5.0;
    game.run(30.0);
    let (bytes, payloads) = (game.bytes.clone(), game.payloads.clone());
    let since: Vec<u64> = game.peers.iter().map(|it| it.as_ref().unwrap().counters().stalled_us).collect();
    game.run(120.0);
    let rate = (0..4).map(|it| (game.bytes[it] - bytes[it]) * 8).max().unwrap() as f64 / 120.0 / 1000.0;
    let packets = (game.payloads[0] - payloads[0]) as f64 / 120.0;
    let stalled = game.stalled(&since, 120.0) * 100.0;
    println!("four players: {rate:.2} kbit/s in {packets:.1} payloads/s each, stalled {stalled:.3} %");
    assert!(rate <= 10.0, "{rate}");
}

#[test]
fn a_good_network_keeps_the_shortest_delay() {
    let near = Conditions::perfect().latency(Duration::from_millis(15), Duration::from_millis(2));
    let mut game = Game::new(4, &near, |_| ());
    game.run(60.0);
    assert_eq!(game.peers[0].as_ref().unwrap().pace(), Pace { steps: 3, delay: 2 });
    let stalled = game.stalled(&[0; 4], 60.0);
    assert!(stalled < 0.001, "{stalled}");
}

#[test]
fn delay_and_length_follow_the_network_at_the_same_turn() {
    let mut game =
        Game::new(4, &Conditions::perfect().latency(Duration::from_millis(20), Duration::ZERO), |_| ());
    game.run(20.0);
    for link in game.links.iter_mut().flatten() {
        link.set_conditions(
            Conditions::perfect().latency(Duration::from_millis(250), Duration::from_millis(30)),
        )
        .unwrap();
    }
    game.run(40.0);
    let far = game.peers[0].as_ref().unwrap().pace();
    assert!(far.delay >= 4, "{far:?}");
    for link in game.links.iter_mut().flatten() {
        link.set_conditions(Conditions::perfect().latency(Duration::from_millis(20), Duration::ZERO))
            .unwrap();
    }
    game.run(120.0);
    assert!(game.peers[0].as_ref().unwrap().pace().delay < far.delay);
    let changes = |events: &Vec<LockstepEvent>| -> Vec<_> {
        events.iter().filter(|it| matches!(it, LockstepEvent::PaceChanged { .. })).cloned().collect()
    };
    let mine = changes(&game.events[0]);
    assert!(!mine.is_empty() && game.events.iter().all(|it| changes(it) == mine), "{:?}", game.events);
}

#[test]
fn pause_and_speed_are_the_same_for_all() {
    let mut game = Game::new(3, &bad(), |_| ());
    game.run(5.0);
    game.peers[1].as_mut().unwrap().pause(true);
    game.run(5.0);
    let places =
        |game: &Game| -> Vec<_> { game.worlds[0].units.iter().map(|unit| (unit[0], unit[3])).collect() };
    let world = places(&game);
    game.run(2.0);
    assert_eq!(places(&game), world, "nothing moves");
    game.peers[2].as_mut().unwrap().pause(false);
    game.peers[0].as_mut().unwrap().set_speed(20);
    game.run(5.0);
    let before = game.turns()[1];
    game.run(10.0);
    assert_ne!(places(&game), world);
    let turns = game.turns()[1] - before;
    assert!(
        turns > 110,
        "about twice as fast: {turns} in 10 s at {:?}",
        game.peers[0].as_ref().unwrap().pace()
    );
}

impl Game {
    /// Cuts a player off; who notices it when is given by `notice`, in seconds from now.
    fn cut(&mut self, player: usize) {
        self.peers[player] = None;
        let count = self.count();
        for other in 0..count {
            // Packets in flight still arrive, or are lost: each link has its own luck.
            if self.luck.below(3) == 0 {
                let link = &mut self.links[player * count + other];
                if link.is_some() {
                    *link = Some(Link::new(bad(), 77 + other as u64).unwrap());
                }
            }
        }
    }

    fn note_left(&mut self, who: usize, player: u8) {
        let now = self.now;
        if let Some(peer) = &mut self.peers[who] {
            peer.note_left(now, player);
        }
    }

    fn live(&self) -> Vec<usize> {
        (0..self.count()).filter(|it| self.peers[*it].is_some()).collect()
    }

    fn dropped(&self, by: usize) -> Vec<(u8, i32)> {
        let of = |event: &LockstepEvent| match event {
            LockstepEvent::Dropped { player, turn } => Some((*player, *turn)),
            _ => None,
        };
        let mut dropped: Vec<(u8, i32)> = self.events[by].iter().filter_map(of).collect();
        dropped.dedup();
        dropped
    }
}

#[test]
fn a_player_who_leaves_is_out_at_one_turn_for_all() {
    // Any player, the master too, and whoever of the others notices first; the game compares its world each turn.
    for round in 0..40u64 {
        let mut game = Game::new(4, &bad(), |_| ());
        game.luck = SharedRandom::seeded(1000 + round);
        game.rate = 20.0;
        game.run(4.0 + round as f64 * 0.037);
        let gone = (round % 4) as usize;
        game.cut(gone);
        for who in game.live() {
            let wait = 0.3 * game.luck.unit();
            game.run(wait);
            game.note_left(who, gone as u8);
            if gone == 0 {
                game.peers[who].as_mut().unwrap().set_master(1);
            }
        }
        game.run(5.0);
        let live = game.live();
        let last = |who: usize| game.dropped(who).last().copied();
        assert!(
            live.iter().all(|it| last(*it) == last(live[0]) && last(*it).is_some()),
            "{round}: {:?}",
            game.events
        );
        let turns = game.turns();
        assert!(live.iter().all(|it| turns[*it] > 70), "{round}: {turns:?}");
    }
}

#[test]
fn two_may_leave_and_the_one_who_decides_among_them() {
    // In the last of them a decision by words that were too old parted the worlds once.
    for round in (0..40u64).chain(996..1000) {
        let mut game = Game::new(5, &bad(), |_| ());
        game.luck = SharedRandom::seeded(2000 + round);
        game.rate = 20.0;
        game.run(4.0 + round as f64 * 0.041);
        game.cut(3);
        game.note_left(0, 3);
        // The master decides it, has told some or nobody, and leaves too.
        let wait = 0.5 * game.luck.unit();
        game.run(wait);
        game.cut(0);
        for who in [1, 2, 4] {
            let wait = 0.4 * game.luck.unit();
            game.run(wait);
            game.note_left(who, 0);
            game.note_left(who, 3);
        }
        game.run(6.0);
        let turns = game.turns();
        assert!([1, 2, 4].iter().all(|it| turns[*it] > 70), "{round}: {turns:?} {:?}", game.events);
        assert_eq!(game.peers[2].as_ref().unwrap().players(), 0b10110);
    }
}

#[test]
fn the_delay_shows_who_is_waited_for() {
    let mut game = Game::new(3, &bad(), |_| ());
    game.run(5.0);
    game.cut(2);
    game.run(3.0);
    let waiting = game.peers[0].as_ref().unwrap().waiting().unwrap();
    assert_eq!(waiting.players, 0b100);
    assert!((1.8..3.0).contains(&(game.now - waiting.since).as_secs_f64()));
    let turns = game.turns();
    game.run(1.0);
    assert_eq!(game.turns(), turns, "nothing runs without it");
}

#[test]
fn a_player_is_dropped_by_vote_and_hears_of_it() {
    // The master itself is voted out.
    let mut game = Game::new(4, &bad(), |_| ());
    game.run(5.0);
    let now = game.now;
    game.peers[1].as_mut().unwrap().vote(now, 0, true);
    game.run(2.0);
    assert!(game.dropped(1).is_empty(), "one vote of three isn't enough");
    game.peers[3].as_mut().unwrap().vote(now, 0, true);
    game.run(3.0);
    assert!([1, 2, 3].iter().all(|it| game.dropped(*it).len() == 1), "{:?}", game.events);
    assert!(game.events[0].contains(&LockstepEvent::Excluded));
    assert_eq!(game.peers[2].as_ref().unwrap().players(), 0b1110);
}

#[test]
fn one_changed_bit_is_found_within_two_turns_down_to_the_field() {
    let mut game = Game::new(
        4,
        &Conditions::perfect().latency(Duration::from_millis(80), Duration::from_millis(20)),
        |_| (),
    );
    game.may_differ = true;
    game.worlds.iter_mut().for_each(|world| *world = World::new(300, 4));
    game.run(20.0);
    let planted = game.turns()[2];
    game.worlds[2].units[217][3] ^= 1;
    let (mut noticed, mut named) = ([None; 4], [const { None }; 4]);
    for _ in 0..300 {
        game.now += FRAME;
        game.frame();
        for who in 0..4 {
            let turns = game.turns();
            for event in &game.events[who] {
                match event {
                    LockstepEvent::Mismatch { .. } => {
                        noticed[who].get_or_insert(turns[who]);
                    }
                    LockstepEvent::Desync(verdict) => {
                        assert_eq!((verdict.turn, verdict.right, verdict.odd), (planted + 1, 0b1011, 0b100));
                    }
                    LockstepEvent::Report { turn, player, differences } => {
                        named[who].get_or_insert((*turn, *player, differences.clone(), turns[who]));
                    }
                    _ => {}
                }
            }
        }
    }
    let after: Vec<i32> = noticed.iter().map(|it| it.unwrap() - (planted + 1)).collect();
    let reported: Vec<i32> = named.iter().map(|it| it.as_ref().unwrap().3 - (planted + 1)).collect();
    println!("noticed {after:?}, reported {reported:?} turns after it");
    assert!(after.iter().all(|turns| *turns <= 2), "{after:?}");
    for (who, found) in named.iter().enumerate() {
        let (turn, player, differences, _) = found.as_ref().unwrap();
        assert_eq!((*turn, *player), (planted + 1, if who == 2 { 0 } else { 2 }));
        let [difference] = &differences[..] else { panic!("{differences:?}") };
        assert_eq!((difference.class, difference.id, difference.field), (2, 218, Some(3)));
        assert_eq!(difference.mine.unwrap() ^ difference.theirs.unwrap(), 1);
    }
}

#[test]
fn who_says_other_commands_to_each_is_named_by_the_log() {
    let mut a = Lockstep::new(LockstepConfig::new(0, 0b111, 0), Instant::ZERO).unwrap();
    let mut b = Lockstep::new(LockstepConfig::new(1, 0b111, 0), Instant::ZERO).unwrap();
    // Two games of one liar, who gives other commands in each.
    let mut liars = [(); 2].map(|()| Lockstep::new(LockstepConfig::new(2, 0b111, 0), Instant::ZERO).unwrap());
    liars[0].command(b"left").unwrap();
    liars[1].command(b"right").unwrap();
    let mut found = Vec::new();
    for ms in (0..6000).step_by(10) {
        let now = Instant::from_millis(ms);
        for peer in [&mut a, &mut b].into_iter().chain(&mut liars) {
            while let Some(turn) = peer.poll_turn(now) {
                peer.check(now, turn.turn, 7, &TurnLog::default()).unwrap();
            }
        }
        let talk = |from: (&mut Lockstep, u8), to: (&mut Lockstep, u8)| {
            let mut writer = BitWriter::new();
            if from.0.fill(now, to.1, ROOM, &mut writer) {
                to.0.read(now, from.1, &writer.into_bytes()).unwrap();
            }
        };
        talk((&mut a, 0), (&mut b, 1));
        talk((&mut b, 1), (&mut a, 0));
        let [to_a, to_b] = &mut liars;
        talk((to_a, 2), (&mut a, 0));
        talk((to_b, 2), (&mut b, 1));
        for (from, player) in [(&mut a, 0), (&mut b, 1)] {
            let mut writer = BitWriter::new();
            if from.fill(now, 2, ROOM, &mut writer) {
                let bytes = writer.into_bytes();
                to_a.read(now, player, &bytes).unwrap();
                to_b.read(now, player, &bytes).unwrap();
            }
        }
        while let Some(event) = a.poll_event() {
            if let LockstepEvent::Report { player: 1, differences, .. } = event {
                found = differences;
            }
        }
    }
    // Class 0 is the commands, by player.
    assert!(found.iter().any(|it| it.class == 0 && it.id == 2 && it.field == Some(1)), "{found:?}");
}

/// Two who have played for some seconds, on links without faults.
fn two() -> Game {
    let mut game =
        Game::new(3, &Conditions::perfect().latency(Duration::from_millis(20), Duration::ZERO), |_| ());
    game.rate = 5.0;
    game.run(5.0);
    game
}

#[test]
fn lies_are_faults_and_harm_nobody() {
    use tickwire::lockstep::Fault;
    use tickwire::lockstep::entry::TurnEntry;
    use tickwire::wire::ReadError;
    let mut game = two();
    let now = game.now;
    let peer = game.peers[0].as_mut().unwrap();
    let turn = peer.turn();
    // The parts of `src/lockstep/packet.rs`, written by hand.
    let payload =
        |ack: i32, first: i32, entries: &[&dyn Fn(&mut BitWriter)], more: &dyn Fn(&mut BitWriter)| {
            use tickwire::wire::BitSink;
            let mut writer = BitWriter::new();
            writer.bits(0, 1);
            writer.bits(u64::from(ack as u8), 8);
            writer.bits(0, 1);
            writer.bool(!entries.is_empty());
            if !entries.is_empty() {
                writer.bits(u64::from(first as u8), 8);
                writer.bits(entries.len() as u64, 4);
            }
            entries.iter().for_each(|entry| entry(&mut writer));
            more(&mut writer);
            writer.into_bytes()
        };
    use tickwire::wire::BitSink;
    let empty: &dyn Fn(&mut BitWriter) = &|writer| writer.bits(0, 3);
    let none: &dyn Fn(&mut BitWriter) = &|writer| writer.bits(0, 1);
    let mut says = |payload: Vec<u8>| peer.read(now, 1, &payload);
    assert_eq!(says(payload(turn + 60, 0, &[], none)), Err(Fault::Ack { turn: turn + 60 }));
    assert_eq!(says(payload(0, turn + 55, &[empty], none)), Err(Fault::Ahead { turn: turn + 55 }));
    assert_eq!(says(payload(0, turn + 20, &[empty], none)), Ok(()), "a gap is counted");
    let other: &dyn Fn(&mut BitWriter) = &|writer| {
        writer.bits(1, 1);
        writer.bits(1, 6);
        writer.bits(0, 5);
        writer.bits(0, 2);
    };
    assert_eq!(says(payload(0, turn, &[other], none)), Err(Fault::Rewritten { turn }));
    let huge: &dyn Fn(&mut BitWriter) = &|writer| {
        writer.bits(1, 1);
        writer.bits(1, 6);
        writer.bits(1, 1);
        writer.bits(1000, 10);
    };
    assert_eq!(
        says(payload(0, turn + 1, &[huge], none)),
        Err(Fault::Read(ReadError::OutOfRange { offset: 1000, span: 480 }))
    );
    // Commands in the name of another, who doesn't leave; and of one who doesn't exist.
    for (player, fault) in [(2, Fault::Forged { player: 2 }), (9, Fault::Stranger { player: 9 })] {
        let copies: &dyn Fn(&mut BitWriter) = &|writer| {
            writer.bits(1, 1);
            writer.bits(0, 1 + 4);
            writer.bits(1, 4);
            writer.bits(player, 4);
            writer.bits(u64::from((turn + 1) as u8), 8);
            writer.bits(1, 4);
            writer.bits(0, 3);
            writer.bits(0, 2);
        };
        assert_eq!(says(payload(0, 0, &[], copies)), Err(fault));
    }
    let late: &dyn Fn(&mut BitWriter) = &|writer| {
        writer.bits(1, 1);
        writer.bits(0, 1);
        writer.bits(1, 4);
        writer.bits(2, 4);
        writer.bits(u64::from((turn + 90) as u8), 8);
    };
    assert_eq!(says(payload(0, 0, &[], late)), Err(Fault::CutShort));
    assert_eq!(says(vec![]), Err(Fault::CutShort));
    let counters = peer.counters();
    assert_eq!(counters.gaps, 1);
    assert_eq!(peer.read(now, 9, &[0; 9]), Err(Fault::Stranger { player: 9 }));
    assert_eq!(TurnEntry::default().bits(), 3);
    // A pace from one whose part it isn't changes nothing, and all others agree on that.
    game.run(5.0);
    assert!(game.turns().iter().all(|turn| *turn > 75), "{:?}", game.turns());
}

#[test]
fn floods_and_noise_are_bounded() {
    let mut game = two();
    let (now, mut luck) = (game.now, SharedRandom::seeded(3));
    let (mut faults, mut fine) = (0, 0);
    let mut peer = game.peers[0].clone().unwrap();
    let mut real = Vec::new();
    for i in 0..4000u64 {
        let at = now + Duration::from_millis(5) * i as u32;
        let mut writer = BitWriter::new();
        if game.peers[1].as_mut().unwrap().fill(at, 0, ROOM, &mut writer) {
            real = writer.into_bytes();
        }
        let mut bytes = real.clone();
        match i % 3 {
            0 => (0..luck.below(60)).for_each(|_| bytes.push(luck.next_u64() as u8)),
            1 => bytes.truncate(luck.below(bytes.len() as u64 + 1) as usize),
            _ => {
                if !bytes.is_empty() {
                    let place = luck.below(bytes.len() as u64) as usize;
                    bytes[place] ^= 1 << luck.below(8);
                }
            }
        }
        match peer.read(at, 1, &bytes) {
            Ok(()) => fine += 1,
            Err(_) => faults += 1,
        }
        let mut out = BitWriter::new();
        peer.fill(at, 1, ROOM, &mut out);
        assert!(out.bit_len() <= ROOM);
    }
    // Nearly every bit of a payload is checked, so little of the noise is fine.
    assert!(faults > 500 && fine > 10, "{faults} {fine}");
    // Many at once: the rest isn't even read. By another one, as this one may have taken noise for that player's commands.
    let mut peer = game.peers[0].clone().unwrap();
    let before = peer.counters().flooded;
    let at = now + Duration::from_secs(100);
    assert!((0..2000).all(|_| peer.read(at, 1, &real).is_ok()));
    assert!(
        (1700..1800).contains(&(peer.counters().flooded - before)),
        "{}",
        peer.counters().flooded - before
    );
}

#[test]
fn no_payload_is_larger_than_its_room_however_many_leave() {
    let perfect = Conditions::perfect().latency(Duration::from_millis(20), Duration::ZERO);
    let mut game = Game::new(12, &perfect, |_| ());
    game.run(2.0);
    let now = game.now + Duration::from_secs(1);
    let peer = game.peers[0].as_mut().unwrap();
    (2..12).for_each(|player| peer.note_left(now, player));
    let mut written = 0;
    for bits in 64..800 {
        let mut writer = BitWriter::new();
        let later = now + Duration::from_secs(bits as u64);
        written += u32::from(peer.fill(later, 1, bits, &mut writer));
        assert!(writer.bit_len() <= bits, "{} bits in {bits}", writer.bit_len());
    }
    assert!(written > 300, "{written}");
}

//! Newcomers of a running lockstep game, and worlds that are healed, over links that misbehave, in virtual time.

use tickwire::lockstep::checks::TurnLog;
use tickwire::lockstep::{
    JoinRefusal, Lockstep, LockstepConfig, LockstepEvent, Pace, SharedRandom, StartedTurn, StateHead,
};
use tickwire::netsim::{Conditions, Link};
use tickwire::time::{Duration, Instant};
use tickwire::wire::BitWriter;

const FRAME: Duration = Duration::from_millis(16);

#[derive(Clone)]
struct World {
    units: Vec<[i64; 3]>,
    random: SharedRandom,
}

impl World {
    fn new() -> Self {
        World { units: (0..8).map(|i| [i, 0, 0]).collect(), random: SharedRandom::seeded(9) }
    }

    fn step(&mut self, turn: &StartedTurn) {
        for (player, command) in &turn.commands {
            self.units[usize::from(command[0]) % 8][1] += i64::from(*player) + i64::from(command[1]);
        }
        for _ in 0..turn.steps {
            self.units[self.random.below(8) as usize][2] += 1;
        }
        for player in 0..16 {
            let (joined, left) = (turn.joined >> player & 1, turn.left >> player & 1);
            self.units[player % 8][0] += i64::from(joined) * 100 - i64::from(left) * 7;
        }
    }

    fn log(&self) -> TurnLog {
        let mut log = TurnLog::default();
        self.units.iter().enumerate().for_each(|(id, unit)| log.push(2, id as u32, unit));
        log
    }
}

struct Player {
    core: Lockstep,
    world: World,
    joined_at: Option<i32>,
    events: Vec<LockstepEvent>,
    kept: Vec<StartedTurn>,
    /// How long each was waited for, in frames.
    waited: [u32; 16],
}

/// A world on its way: when it is there, from whom, to whom.
type Sent = (Instant, u8, u8, Vec<u8>, World);

struct Game {
    players: Vec<Option<Player>>,
    links: Vec<Option<Link<Vec<u8>>>>,
    conditions: Conditions,
    now: Instant,
    crcs: std::collections::BTreeMap<i32, u32>,
    states: Vec<Sent>,
    luck: SharedRandom,
    may_differ: bool,
    start: u16,
    admits: bool,
    seed: u64,
    pace: Pace,
    /// The time that a world takes to arrive.
    transfer: Duration,
    /// The bytes of commands that each player gives in each turn.
    orders: usize,
    /// The players that run no turns.
    stopped: u16,
}

impl Game {
    fn new(count: usize, loss: f64, seed: u64) -> Self {
        let ms = Duration::from_millis;
        let conditions = Conditions::perfect().latency(ms(80), ms(20)).loss(loss);
        Game::over(conditions, Pace { steps: 3, delay: 2 }, count, seed)
    }

    fn over(conditions: Conditions, pace: Pace, count: usize, seed: u64) -> Self {
        let mut game = Game {
            players: (0..16).map(|_| None).collect(),
            links: (0..256).map(|_| None).collect(),
            conditions,
            now: Instant::from_millis(500),
            crcs: std::collections::BTreeMap::new(),
            states: Vec::new(),
            luck: SharedRandom::seeded(seed),
            may_differ: false,
            start: (1 << count) - 1,
            admits: true,
            seed,
            pace,
            transfer: Duration::from_millis(1700),
            orders: 0,
            stopped: 0,
        };
        for me in 0..count {
            game.enter(me as u8, false);
        }
        game
    }

    fn enter(&mut self, me: u8, joins: bool) {
        let mut config = LockstepConfig::new(me, self.start, 0);
        (config.joins, config.admits, config.heals) = (joins, self.admits, true);
        config.pace = self.pace;
        let core = Lockstep::new(config, self.now + Duration::from_millis(500)).unwrap();
        let (world, events) = (World::new(), Vec::new());
        let mut player = Player { core, world, joined_at: None, events, kept: Vec::new(), waited: [0; 16] };
        for other in 0..16u8 {
            let seed = self.seed * 1000 + u64::from(me) * 16 + u64::from(other);
            for (from, to) in [(me, other), (other, me)] {
                let at = usize::from(from) * 16 + usize::from(to);
                self.links[at] =
                    (from != to).then(|| Link::new(self.conditions, seed + u64::from(to)).unwrap());
            }
            if let Some(there) = &mut self.players[usize::from(other)] {
                if joins {
                    there.core.note_joined(me);
                    if self.start >> other & 1 == 0 {
                        player.core.note_joined(other);
                    }
                }
            } else if joins && self.start >> other & 1 == 1 && other != me {
                player.core.note_left(self.now, other);
            }
        }
        self.players[usize::from(me)] = Some(player);
    }

    /// A player is gone; the others notice after so long.
    fn vanish(&mut self, player: u8, noticed: f64) {
        self.players[usize::from(player)] = None;
        self.run(noticed);
        for other in self.players.iter_mut().flatten() {
            other.core.note_left(self.now, player);
        }
    }

    fn run(&mut self, seconds: f64) {
        let end = self.now + Duration::from_secs_f64(seconds);
        while self.now < end {
            self.now += FRAME;
            self.frame();
        }
    }

    fn frame(&mut self) {
        let now = self.now;
        for me in 0..16u8 {
            let Some(player) = self.players[usize::from(me)].as_mut() else { continue };
            for from in 0..16 {
                let Some(link) = &mut self.links[from * 16 + usize::from(me)] else { continue };
                while let Some(payload) = link.poll(now) {
                    let read = player.core.read(now, from as u8, &payload);
                    read.unwrap_or_else(|fault| panic!("{from} to {me}: {fault}"));
                }
            }
            for (_, from, _, head, world) in self.states.extract_if(.., |it| it.0 <= now && it.2 == me) {
                let head = StateHead::read(&head).unwrap();
                if player.core.is_healing() && player.core.expects(from, &head) {
                    let later: Vec<_> =
                        player.kept.iter().filter(|it| it.turn > head.turn).cloned().collect();
                    player.world = world;
                    for turn in later {
                        player.world.step(&turn);
                        player.world.random.next_u64();
                    }
                    player.core.note_healed();
                } else if player.core.load(now, from, &head) {
                    player.world = world;
                }
            }
            for to in player.core.states_wanted() {
                let head = player.core.state_head(now, to).unwrap();
                self.states.push((now + self.transfer, me, to, head.write(), player.world.clone()));
            }
            for _ in 0..if self.stopped >> me & 1 == 1 { 0 } else { 8 } {
                let Some(turn) = player.core.poll_turn(now) else { break };
                player.world.step(&turn);
                let draw = player.world.random.next_u64() as u16;
                let check = player.core.check(now, turn.turn, draw, &player.world.log()).unwrap();
                if turn.joined >> me & 1 == 1 {
                    player.joined_at = Some(turn.turn);
                }
                if !self.may_differ {
                    let known = *self.crcs.entry(turn.turn).or_insert(check.crc);
                    assert_eq!(known, check.crc, "turn {} of {me}", turn.turn);
                }
                player.kept.push(turn);
                let mut left = if player.core.is_joining() { 0 } else { self.orders };
                while left > 0 {
                    let size = left.min(256);
                    let _full = player.core.command(&vec![me; size]);
                    left -= size;
                }
            }
            for of in 0..16 {
                let waits = player.core.waiting().is_some_and(|it| it.players >> of & 1 == 1);
                player.waited[of] += u32::from(waits);
            }
            if self.luck.below(60) == 0 && !player.core.is_joining() {
                player.core.command(&[self.luck.below(8) as u8, me]).unwrap();
            }
            player.events.extend(core::iter::from_fn(|| player.core.poll_event()));
            for to in 0..16u8 {
                let mut writer = BitWriter::new();
                let is_there = self.players[usize::from(to)].is_some();
                let Some(player) = self.players[usize::from(me)].as_mut() else { continue };
                if is_there && to != me && player.core.fill(now, to, 8000, &mut writer) {
                    let link = self.links[usize::from(me) * 16 + usize::from(to)].as_mut().unwrap();
                    link.send(now, writer.as_bytes().to_vec(), writer.as_bytes().len());
                }
            }
        }
    }

    fn at(&mut self, player: u8) -> &mut Player {
        self.players[usize::from(player)].as_mut().unwrap()
    }

    /// All who are there run turns, as the same players.
    fn check(&mut self, players: u16) {
        self.check_of(u16::MAX, players);
    }

    /// The same of some of them.
    fn check_of(&mut self, some: u16, players: u16) {
        let turn = |player: &Option<Player>| player.as_ref().map_or(0, |it| it.core.turn());
        let before: Vec<i32> = self.players.iter().map(turn).collect();
        self.run(4.0);
        for (i, player) in self.players.iter().enumerate().filter(|(i, _)| some >> i & 1 == 1) {
            let (Some(player), before) = (player, before[i]) else { continue };
            assert_eq!(player.core.players(), players, "of {i}, with {:?}", player.events);
            assert!(
                player.core.turn() > before + 15,
                "{i} stands at {}: {:?}",
                before,
                player.core.waiting()
            );
        }
    }
}

#[test]
fn a_newcomer_catches_up_and_then_counts_for_all() {
    for seed in 1..6 {
        let mut game = Game::new(4, 0.05, seed);
        game.run(20.0);
        game.enter(4, true);
        game.run(6.0);
        let at = game.at(4).joined_at.expect("it plays");
        assert!(!game.at(4).core.is_joining());
        // Nobody waited for it for more than a turn in all.
        let most = (0..4).map(|player| game.at(player).waited[4]).max().unwrap();
        assert!(most * 16 < 99, "{most} frames with seed {seed}");
        game.check(0b11111);
        let turn = game.at(0).core.turn();
        assert!(turn > at);
        for player in 0..4 {
            assert!(game.at(player).events.contains(&LockstepEvent::Joined { player: 4, turn: at }));
        }
        game.at(4).core.command(&[1, 77]).unwrap();
        game.run(3.0);
        assert!(game.at(2).kept.iter().any(|it| it.commands.contains(&(4, [1, 77][..].into()))));
    }
}

#[test]
fn two_newcomers_at_once_while_somebody_leaves() {
    for seed in 1..6 {
        let mut game = Game::new(4, 0.05, seed);
        game.run(5.0);
        game.enter(4, true);
        game.enter(5, true);
        game.run(1.0 + seed as f64 * 0.7);
        game.vanish(2, 0.3);
        game.run(8.0);
        game.check(0b111011);
    }
}

#[test]
fn a_newcomer_that_disappears_at_any_moment_harms_nobody() {
    for i in 0..24 {
        let mut game = Game::new(3, 0.05, i + 1);
        game.run(3.0);
        game.enter(3, true);
        game.run(0.2 * i as f64);
        game.vanish(3, 0.5);
        game.run(2.0);
        game.check(0b111);
    }
}

#[test]
fn whoever_helps_is_gone_at_any_moment_and_the_others_help_on() {
    for i in 0..72 {
        let mut game = Game::new(4, 0.05, i + 1);
        game.run(3.0);
        game.enter(4, true);
        game.run(0.2 * (i % 24) as f64);
        game.vanish(0, 1.0);
        for player in 1..5 {
            game.at(player).core.set_master(1);
        }
        game.run(9.0);
        game.check(0b11110);
    }
}

#[test]
fn a_number_is_given_again_once_nobody_speaks_of_who_had_it() {
    let mut game = Game::new(4, 0.05, 3);
    game.run(5.0);
    game.vanish(3, 0.2);
    game.run(0.5);
    game.enter(3, true);
    game.run(18.0);
    game.check(0b1111);
    let at = game.at(3).joined_at.unwrap();
    assert!(at > 150, "{at}");
    // And once more, the decider's own.
    game.vanish(0, 0.2);
    (1..4).for_each(|player| game.at(player).core.set_master(1));
    game.run(0.5);
    game.enter(0, true);
    game.run(20.0);
    game.check(0b1111);
}

#[test]
fn pause_and_speed_reach_the_newcomer() {
    let mut game = Game::new(3, 0.02, 2);
    game.run(3.0);
    game.at(1).core.set_speed(30);
    game.at(1).core.pause(true);
    game.run(3.0);
    game.enter(3, true);
    game.run(8.0);
    game.check(0b1111);
    assert!(game.at(3).kept.iter().all(|turn| turn.paused && turn.speed == 30));
    game.at(3).core.pause(false);
    game.at(0).core.set_speed(10);
    game.run(3.0);
    assert!(game.players.iter().flatten().all(|it| !it.kept.last().unwrap().paused));
    game.check(0b1111);
}

#[test]
fn a_closed_game_says_so_and_the_newcomer_may_ask_again() {
    let mut game = Game::new(2, 0.05, 2);
    game.admits = false;
    for player in 0..2 {
        game.enter(player, false);
    }
    game.run(3.0);
    game.enter(2, true);
    game.run(2.0);
    assert_eq!(game.at(2).events, [LockstepEvent::Refused { reason: JoinRefusal::Closed }]);
    let now = game.now;
    game.at(2).core.ask_again(now);
    game.run(2.0);
    assert_eq!(game.at(2).events.len(), 2);
}

#[test]
fn a_world_that_is_not_the_others_is_found_before_its_owner_counts() {
    let mut game = Game::new(3, 0.05, 4);
    game.run(3.0);
    game.enter(3, true);
    game.may_differ = true;
    while game.states.is_empty() {
        game.run(0.02);
    }
    game.states[0].4.units[3][2] ^= 1;
    game.run(6.0);
    let refused = LockstepEvent::Refused { reason: JoinRefusal::OtherWorld };
    assert!(game.at(3).events.contains(&refused), "{:?}", game.at(3).events);
}

#[test]
fn a_changed_world_is_healed_by_the_others() {
    for seed in 1..6 {
        let mut game = Game::new(4, 0.05, seed);
        game.run(5.0);
        game.may_differ = true;
        game.at(2).world.units[5][2] ^= 1;
        game.run(8.0);
        for player in 0..4 {
            let healed = |it: &LockstepEvent| matches!(it, LockstepEvent::Healed { player: 2, .. });
            let events = game.at(player).events.clone();
            assert!(events.iter().any(healed), "{player}: {events:?}");
            assert_eq!(events.iter().filter(|it| matches!(it, LockstepEvent::Desync(_))).count(), 1);
        }
        game.may_differ = false;
        game.crcs.clear();
        game.check(0b1111);
    }
}

#[test]
fn whoever_heals_a_world_is_gone_and_another_one_does() {
    let mut game = Game::new(4, 0.05, 7);
    game.run(5.0);
    game.may_differ = true;
    game.at(2).world.units[5][2] ^= 1;
    while !game.at(2).core.is_healing() {
        game.run(0.02);
    }
    // The first of those who are right is asked, and its world never comes.
    game.states.retain(|it| it.1 != 0);
    game.vanish(0, 0.5);
    game.run(12.0);
    for player in 1..4 {
        let healed = |it: &LockstepEvent| matches!(it, LockstepEvent::Healed { player: 2, .. });
        let events = game.at(player).events.clone();
        assert!(events.iter().any(healed), "{player}: {events:?}");
    }
    assert!(!game.at(2).core.is_healing());
    game.may_differ = false;
    game.crcs.clear();
    game.check(0b1110);
}

#[test]
fn a_newcomer_goes_on_comparing_after_it_saw_somebody_else_differ() {
    let mut game = Game::new(4, 0.0, 3);
    game.run(5.0);
    game.enter(4, true);
    while game.states.is_empty() {
        game.run(0.02);
    }
    game.may_differ = true;
    while game.at(4).core.turn() < 40 {
        game.run(0.02);
    }
    game.at(2).world.units[5][2] ^= 1;
    let turn = game.at(2).core.turn();
    while game.at(4).joined_at.is_none() {
        game.run(0.02);
    }
    assert!(game.at(4).joined_at.unwrap() > turn + 4, "it didn't play yet");
    game.run(8.0);
    // Now its own world is the odd one: it must notice, and be healed.
    game.at(4).world.units[1][2] ^= 1;
    game.run(10.0);
    let healed = |it: &LockstepEvent| matches!(it, LockstepEvent::Healed { player: 4, .. });
    let events = game.at(4).events.clone();
    assert!(events.iter().any(healed), "{events:?}");
    game.may_differ = false;
    game.crcs.clear();
    game.check(0b11111);
}

/// Lines of 5 to 200 ms, perfect and lossy ones, under games with short and long turns.
fn lines() -> impl Iterator<Item = (Conditions, Pace, usize, u64)> {
    let ms = Duration::from_millis;
    let paces = [(3, 2), (1, 2), (1, 6), (6, 1), (3, 4)];
    let latencies = [5, 20, 50, 80, 120, 200];
    (0..30_usize).map(move |i| {
        let (steps, delay) = paces[i % paces.len()];
        let loss = [0.0, 0.05][i / 15];
        let line = Conditions::perfect().latency(ms(latencies[i % latencies.len()]), ms(0)).loss(loss);
        (line, Pace { steps, delay }, 2 + i % 3, i as u64 + 1)
    })
}

#[test]
fn a_newcomer_joins_a_game_whose_turns_are_as_large_as_they_may_be() {
    for (line, pace, count, seed) in lines() {
        let mut game = Game::over(line, pace, count, seed);
        game.orders = [512, 470, 200, 500][seed as usize % 4];
        game.transfer = Duration::from_millis(300);
        game.run(3.0);
        game.enter(count as u8, true);
        game.run(20.0);
        // A payload a frame holds one of such entries: more than 60 a second don't reach a newcomer, which then loads on.
        let entries = count as f64 / game.at(0).core.length().as_secs_f64();
        let new = game.at(count as u8);
        if entries < 50.0 {
            assert!(!new.core.is_joining(), "{line:?} {pace:?} {count}, {:?}", new.events);
        }
        let players = (1 << (count + u8::from(!new.core.is_joining()) as usize)) - 1;
        game.check_of((1 << count) - 1, players);
    }
}

#[test]
fn two_newcomers_join_among_bursts_of_large_turns() {
    for (line, pace, count, seed) in lines().step_by(3) {
        let mut game = Game::over(line, pace, count, seed);
        game.transfer = Duration::from_millis(300);
        game.run(3.0);
        for new in [count, count + 1] {
            game.enter(new as u8, true);
            for _ in 0..60 {
                for player in 0..count as u8 {
                    game.at(player).core.command(&[player; 200]).unwrap();
                }
            }
            game.run(0.8);
        }
        game.run(25.0);
        game.check((1 << (count + 2)) - 1);
    }
}

#[test]
fn a_newcomer_whose_world_is_another_one_is_refused_and_delays_nobody() {
    for (line, pace, count, seed) in lines() {
        let mut game = Game::over(line, pace, count, seed);
        game.transfer = Duration::from_millis(10 * seed);
        game.run(3.0);
        game.may_differ = true;
        game.enter(count as u8, true);
        while game.states.is_empty() {
            game.run(0.016);
        }
        game.states[0].4.units[3][2] ^= 1;
        let mut before = game.at(0).core.turn();
        for _ in 0..10 {
            game.run(1.0);
            let turn = game.at(0).core.turn();
            assert!(turn > before, "{line:?} {pace:?} {count}: {:?}", game.at(0).core.waiting());
            before = turn;
        }
        let refused = LockstepEvent::Refused { reason: JoinRefusal::OtherWorld };
        assert!(game.at(count as u8).events.contains(&refused), "{:?}", game.at(count as u8).events);
        for player in 0..count as u8 {
            let came = |it: &LockstepEvent| matches!(it, LockstepEvent::Joined { .. });
            assert!(!game.at(player).events.iter().any(came), "{line:?} {pace:?} {count}");
        }
        game.check_of((1 << count) - 1, (1 << count) - 1);
    }
}

#[test]
fn a_newcomer_that_gives_up_after_it_was_let_in_leaves_again() {
    for seed in 1..6 {
        let mut game = Game::new(3, 0.05, seed);
        game.run(3.0);
        game.enter(3, true);
        let came = |it: &LockstepEvent| matches!(it, LockstepEvent::Joined { .. });
        while !game.at(1).events.iter().any(came) {
            game.run(0.016);
        }
        assert!(game.at(3).core.is_joining());
        game.at(3).core.give_up(JoinRefusal::Unloadable);
        let before = game.at(1).core.turn();
        game.run(4.0);
        let gone = |it: &LockstepEvent| matches!(it, LockstepEvent::Dropped { player: 3, .. });
        for player in 0..3 {
            assert!(game.at(player).events.iter().any(gone), "{:?}", game.at(player).events);
        }
        assert!(game.at(1).core.turn() > before + 20);
        // Nobody is left with it, so it may come again.
        let now = game.now;
        game.at(3).core.ask_again(now);
        game.run(25.0);
        game.check(0b1111);
    }
}

#[test]
fn newcomers_that_stop_while_they_load_are_dropped_and_hear_so() {
    for count in 1..4 {
        let mut game = Game::new(count, 0.05, count as u64);
        game.run(3.0);
        let (first, second) = (count as u8, count as u8 + 1);
        game.enter(first, true);
        game.enter(second, true);
        let came = |player| move |it: &LockstepEvent| matches!(it, LockstepEvent::Joined { player: it, .. } if *it == player);
        let joined = |game: &mut Game, player| game.at(0).events.iter().any(came(player));
        while !joined(&mut game, first) && !joined(&mut game, second) {
            game.run(0.016);
        }
        // Neither runs a turn any more, though both say that they are there.
        game.stopped = 0b11 << count;
        game.run(20.0);
        game.check_of((1 << count) - 1, (1 << count) - 1);
        game.stopped = 0;
        game.run(2.0);
        for player in [first, second] {
            let new = game.at(player);
            let told = new.events.iter().any(|it| {
                matches!(
                    it,
                    LockstepEvent::Refused { reason: JoinRefusal::TooSlow } | LockstepEvent::Excluded
                )
            });
            assert!(told || !new.core.is_joining(), "{player} of {count}: {:?}", new.events);
        }
    }
}

use super::*;
use crate::replication::{ACKED_AFTER, LONG_LOSS, MAX_IN_FLIGHT};
use crate::rng::Rng;

const STEP: u64 = 1_000_000_000 / 60;

/// A link of 100 +- 30 ms with a loss, and a game with its own frame rate.
struct Scene {
    rng: Rng,
    /// The middle way in nanoseconds, and the time between the shortest and the longest way.
    latency: u64,
    jitter: u64,
    /// Whether the client's program stands still.
    stands: bool,
    playout: Playout,
    /// Arrival, tick and sequence number.
    on_its_way: Vec<(Instant, u32, usize)>,
    /// Whether each packet arrived, by its sequence number.
    arrived: Vec<bool>,
    ticks_arrived: Vec<u32>,
    newest: usize,
    now: u64,
    next_tick: u64,
    ticks: u32,
    shown: Vec<f64>,
}

impl Scene {
    fn new(seed: u64, config: PlayoutConfig) -> Self {
        Scene {
            rng: Rng::seeded(seed),
            latency: 100_000_000,
            jitter: 60_000_000,
            stands: false,
            playout: Playout::new(config),
            on_its_way: Vec::new(),
            arrived: Vec::new(),
            ticks_arrived: Vec::new(),
            newest: 0,
            now: 0,
            next_tick: 0,
            ticks: 70_000,
            shown: Vec::new(),
        }
    }

    fn run(&mut self, seconds: f64, tick: u64, frame: u64, loss: f64) {
        self.run_with(seconds, (tick, frame), loss, |_| true);
    }

    /// The ticks that are sent are chosen by their numbers.
    fn run_with(
        &mut self,
        seconds: f64,
        (tick, frame): (u64, u64),
        loss: f64,
        is_sent: impl Fn(u32) -> bool,
    ) {
        let until = self.now + (seconds * 1e9) as u64;
        while self.now < until {
            while self.next_tick <= self.now {
                if is_sent(self.ticks) {
                    if !self.rng.chance(loss) {
                        let way = self.latency - self.jitter / 2 + self.rng.below(self.jitter + 1);
                        let at = Instant::from_nanos(self.next_tick + way);
                        self.on_its_way.push((at, self.ticks, self.arrived.len()));
                    }
                    self.arrived.push(false);
                }
                self.ticks += 1;
                self.next_tick += tick;
            }
            let now = Instant::from_nanos(self.now);
            if self.stands {
                self.now += frame;
                continue;
            }
            let mut come: Vec<_> = self.on_its_way.iter().copied().filter(|(at, ..)| *at <= now).collect();
            self.on_its_way.retain(|(at, ..)| *at > now);
            come.sort_unstable();
            for (_, tick, sequence) in come {
                let between = self.newest + 1..sequence.max(self.newest + 1);
                let lost = self.arrived[between].iter().filter(|arrived| !**arrived).count();
                self.arrived[sequence] = true;
                self.ticks_arrived.push(tick);
                self.newest = self.newest.max(sequence);
                self.playout.handle_arrival(tick, now, lost as u32);
            }
            self.shown.extend(self.playout.advance(now));
            self.now += frame;
        }
    }

    fn steps(&self) -> impl Iterator<Item = f64> {
        self.shown.windows(2).map(|pair| pair[1] - pair[0])
    }
}

#[test]
fn time_runs_as_the_servers_over_a_bad_line() {
    for (seed, tick, frame) in
        [(1, STEP, STEP), (2, STEP, STEP / 4), (3, 66_666_667, STEP), (4, STEP / 2, STEP)]
    {
        let mut scene = Scene::new(seed, PlayoutConfig::default());
        scene.run(10.0, tick, frame, 0.05);
        let settled = scene.shown.len();
        scene.run(60.0, tick, frame, 0.05);
        let true_step = frame as f64 / tick as f64;
        assert!(scene.steps().all(|step| step >= 0.0), "never back");
        let fastest = scene.steps().skip(settled).fold(0.0, f64::max);
        assert!(fastest <= true_step * 1.07, "seed {seed}: {fastest} of {true_step}");
        let stood = scene.steps().skip(settled).filter(|step| *step < true_step * 0.9).count();
        assert!(
            stood * 100 < scene.shown.len(),
            "seed {seed}: stood in {stood} of {} frames",
            scene.shown.len()
        );
        assert_eq!(scene.playout.jumps(), 0);
        let (delay, period) = (scene.playout.delay(), scene.playout.period());
        assert!((period / (tick as f64 / 1e9) - 1.0).abs() < 0.02, "{period}");
        assert!((period..0.06 + 2.5 * tick as f64 / 1e9).contains(&delay), "seed {seed}: {delay}");
    }
}

#[test]
fn on_a_good_line_the_delay_is_one_tick_and_little_more() {
    let mut playout = Playout::new(PlayoutConfig::default());
    let mut delays = Vec::new();
    for tick in 0..600 {
        playout.handle_arrival(100 + tick, Instant::from_nanos(u64::from(tick) * STEP), 0);
        playout.advance(Instant::from_nanos(u64::from(tick) * STEP));
        delays.push(playout.delay());
    }
    let delay = delays[599];
    assert!((1.0 / 60.0 - 1e-9..1.2 / 60.0).contains(&delay), "{delay}");
    assert_eq!(playout.stood(), Duration::ZERO);
}

#[test]
fn a_view_that_is_drawn_very_often_runs_on() {
    const CALLS: u64 = 400;
    let mut playout = Playout::new(PlayoutConfig::default());
    let mut last = 0.0;
    for call in 0..CALLS * 120 {
        let now = Instant::from_nanos(call * STEP / CALLS);
        if call % CALLS == 0 {
            playout.handle_arrival(100 + (call / CALLS) as u32, now, 0);
        }
        let shown = playout.advance(now).unwrap_or_default();
        assert!(call < CALLS || (shown - last) * CALLS as f64 <= 5.0, "{last} to {shown}");
        last = shown;
    }
    assert_eq!((playout.jumps(), playout.stood()), (0, Duration::ZERO));
}

#[test]
fn a_given_delay_is_kept_and_never_below_a_tick() {
    for (given, expected) in [(0.2, 0.2), (0.0, 1.0 / 60.0)] {
        let mut scene = Scene::new(5, PlayoutConfig { delay: Some(given), ..PlayoutConfig::default() });
        scene.run(10.0, STEP, STEP, 0.0);
        let wanted = scene.playout.wanted_delay();
        assert!((wanted - expected).abs() < 1e-3, "{wanted}");
    }
}

#[test]
fn it_waits_for_what_is_late_and_goes_on_after_a_silence() {
    let mut scene = Scene::new(6, PlayoutConfig::default());
    scene.run(5.0, STEP, STEP, 0.0);
    let newest = f64::from(scene.playout.newest);
    // 0.2 s without packets, then as before.
    scene.run(0.2, STEP, STEP, 1.0);
    assert!(scene.shown.last().is_some_and(|shown| *shown <= newest + 9.0));
    scene.run(2.0, STEP, STEP, 0.0);
    // 3 s of silence: ticks go on, and nothing has to be sent.
    scene.run_with(3.0, (STEP, STEP), 0.0, |_| false);
    scene.run(1.0, STEP, STEP, 0.0);
    assert!(scene.steps().all(|step| step >= 0.0));
    let behind = f64::from(scene.ticks) - scene.shown.last().unwrap();
    assert!(behind < 0.25 * 60.0, "{behind} ticks");
}

#[test]
fn rests_of_the_whole_world_leave_no_delay_behind() {
    let mut scene = Scene::new(7, PlayoutConfig::default());
    for _ in 0..20 {
        scene.run(1.0, STEP, STEP, 0.0);
        scene.run_with(0.6, (STEP, STEP), 0.0, |_| false);
    }
    scene.run(0.5, STEP, STEP, 0.0);
    assert!(scene.steps().all(|step| step >= 0.0), "never back");
    let delay = scene.playout.delay();
    assert!(delay < 0.1, "{delay}");
}

#[test]
fn rests_of_any_pattern_are_not_lateness() {
    for (moves, of) in [(1, 1), (10, 20), (1, 10), (5, 10), (1, 5), (1, 2), (1, 20), (40, 90)] {
        let late = |jitter: u64, loss: f64| {
            let mut scene = Scene::new(9, PlayoutConfig::default());
            scene.jitter = jitter;
            scene.run_with(20.0, (STEP, STEP), loss, |tick| tick % of < moves);
            let settled = scene.shown.len();
            scene.run_with(60.0, (STEP, STEP), loss, |tick| tick % of < moves);
            assert!(scene.steps().all(|step| step >= 0.0), "never back");
            assert!(scene.playout.stood().as_secs_f64() < 0.01 * 80.0, "{:?}", scene.playout.stood());
            // How many ticks after it was sent a change is shown, if it wasn't lost.
            let sent = |frame: usize| scene.ticks - (scene.shown.len() - frame) as u32;
            let late = (settled..scene.shown.len()).flat_map(|frame| {
                let [before, shown] = [frame - 1, frame].map(|frame| scene.shown[frame] as u32);
                let changes = (before + 1..=shown).filter(|tick| scene.ticks_arrived.contains(tick));
                changes.map(move |tick| sent(frame) - tick)
            });
            late.max().unwrap()
        };
        let clean = late(0, 0.0);
        assert!(clean <= 8, "{moves} of {of}: {clean} ticks, 6 of them on the way");
        let bad = late(60_000_000, 0.05);
        assert!(bad <= 11, "{moves} of {of}: {bad} ticks");
    }
}

#[test]
fn a_server_that_stood_still_is_followed() {
    let mut scene = Scene::new(7, PlayoutConfig::default());
    scene.run(5.0, STEP, STEP, 0.0);
    // The server's process was stopped: no ticks for 2 s.
    let paused = scene.now + 2_000_000_000;
    scene.next_tick = paused;
    scene.run(2.0, STEP, STEP, 0.0);
    scene.run(6.0, STEP, STEP, 0.0);
    assert!(scene.steps().all(|step| step >= 0.0));
    let behind = f64::from(scene.ticks) - scene.shown.last().unwrap();
    assert!((1.0..0.25 * 60.0).contains(&behind), "{behind} ticks");
}

#[test]
fn a_pause_of_the_client_spoils_no_measurement() {
    for loss in [0.0, 0.1, 0.3, 0.5] {
        for seed in 1..=8 {
            let mut scene = Scene::new(seed, PlayoutConfig { history: 64, ..PlayoutConfig::default() });
            (scene.latency, scene.jitter) = (300_000_000, 600_000_000);
            scene.run(10.0, STEP, STEP, loss);
            scene.stands = true;
            scene.run(5.0, STEP, STEP, loss);
            scene.stands = false;
            for _ in 0..100 {
                scene.run(0.1, STEP, STEP, loss);
                let (delay, period) = (scene.playout.delay(), scene.playout.period());
                let behind = f64::from(scene.ticks) - scene.shown.last().unwrap();
                let case = format!("seed {seed}, loss {loss}");
                assert!((period * 60.0 - 1.0).abs() < 0.05, "{case}: {period} s a tick");
                assert!((0.0..0.5).contains(&delay), "{case}: {delay} s");
                assert!((5.0..40.0).contains(&behind), "{case}: {behind} ticks behind");
            }
            assert!(scene.steps().all(|step| step >= 0.0), "{seed}: never back");
        }
    }
}

/// The configuration of a client whose server waits for acks, as it has with ghosts.
fn with_waits() -> PlayoutConfig {
    PlayoutConfig { long_stall: LONG_LOSS.into(), acked_after: ACKED_AFTER, ..PlayoutConfig::default() }
}

/// A pause of the client, in ticks. The server stands still too, or sends nothing with [`MAX_IN_FLIGHT`] ticks in flight until it
/// has an ack.
fn play_pause(pause: u64, stands_too: bool, config: PlayoutConfig) -> (Vec<f64>, Playout) {
    let (mut playout, mut behind, mut next) = (Playout::new(config), Vec::new(), 0);
    let (begins, ends) = (400, 400 + pause);
    for frame in (0..=begins).chain(ends..ends + 600) {
        let now = Instant::from_nanos(frame * STEP);
        let made = if stands_too && frame >= ends { frame - pause } else { frame };
        for tick in next..=made {
            let waits = (begins + 1 + u64::from(MAX_IN_FLIGHT)..ends + 6).contains(&tick);
            if stands_too || !waits {
                playout.handle_arrival(tick as u32, now, 0);
            }
        }
        next = made + 1;
        let shown = playout.advance(now).unwrap_or_default();
        if frame >= ends {
            let (at, period) = (frame - ends, playout.period() * 60.0);
            assert!((period - 1.0).abs() < 0.03, "{period} of a tick, {at} frames after a pause of {pause}");
            behind.push(made as f64 - shown);
        }
    }
    (behind, playout)
}

#[test]
fn a_pause_in_which_the_server_waits_for_acks_changes_no_schedule() {
    for pause in (12..=300).step_by(3) {
        let (behind, playout) = play_pause(pause, false, PlayoutConfig::default());
        assert!(behind[120..].iter().all(|ticks| *ticks <= 2.5), "{pause}: {behind:?}");
        assert!(playout.wanted_delay() < 0.03, "{pause}: {} s", playout.wanted_delay());
    }
}

#[test]
fn the_ticks_for_which_the_server_waited_are_caught_up_with_in_a_second() {
    for pause in 28..=36 {
        let (behind, _) = play_pause(pause, false, with_waits());
        assert!(behind[72..].iter().all(|ticks| *ticks <= 2.5), "{pause}: {behind:?}");
    }
}

#[test]
fn a_pause_of_client_and_server_together_leaves_no_delay() {
    for config in [PlayoutConfig::default(), with_waits()] {
        for pause in (12..=300).step_by(3) {
            let (behind, playout) = play_pause(pause, true, config);
            assert!(behind.iter().all(|ticks| (0.0..=2.5).contains(ticks)), "{pause}: {behind:?}");
            assert!(playout.wanted_delay() < 0.03, "{pause}: {} s", playout.wanted_delay());
        }
    }
}

#[test]
fn anything_is_taken() {
    let mut playout = Playout::new(PlayoutConfig::default());
    assert_eq!(playout.advance(Instant::ZERO), None);
    let mut rng = Rng::seeded(8);
    for _ in 0..5000 {
        let tick = if rng.chance(0.5) { rng.next_u64() as u32 } else { rng.below(100) as u32 };
        let now = Instant::from_nanos(rng.below(10_000_000_000));
        playout.handle_arrival(tick, now, rng.below(100) as u32);
        let shown = playout.advance(now);
        assert!(shown.is_some_and(f64::is_finite));
    }
}

#[test]
fn what_is_late_for_one_tick_in_sixty_is_not_waited_for() {
    let mut playout = Playout::new(PlayoutConfig::default());
    for tick in 0..1_200_u32 {
        let late = if tick % 60 == 59 { 14 * STEP / 10 } else { 0 };
        let now = Instant::from_nanos(u64::from(tick) * STEP + late);
        playout.handle_arrival(100 + tick, now, 0);
        playout.advance(now);
    }
    let delay = playout.wanted_delay();
    assert!(delay < 1.5 / 60.0, "{delay}");
}

/// A stall: its ticks are held back and arrive together, are lost, or are never made.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Held,
    Lost,
    Unmade,
}

/// What a view did in stalls.
struct Played {
    /// Ticks behind the newest one at the end.
    behind: f64,
    /// Seconds for which it stood by its own count, and by its frames.
    stood: f64,
    seen_to_stand: f64,
    /// The same, in the last stall alone.
    stood_last: f64,
    /// The largest step, in ticks a tick.
    fastest: f64,
    /// The most ticks by which it was beyond the newest one.
    ahead: f64,
}

/// Plays 10 s, `count` stalls of `length` seconds with `apart` ticks between their beginnings, and 3 s more.
fn play_stalls(kind: Kind, (rate, hz): (u64, u64), length: f64, count: u64, apart: u64) -> Played {
    let (step, frame) = (1_000_000_000 / rate, 1_000_000_000 / hz);
    let stall = (length * 1e9) as u64;
    let config = PlayoutConfig { period: step as f64 / 1e9, ..PlayoutConfig::default() };
    let mut playout = Playout::new(config);
    let begins = |number: u64| (10 * rate + number * apart) * step;
    let arrives = |tick: u64| {
        let mut began = (0..count).filter(|number| begins(*number) < tick * step);
        match kind {
            Kind::Unmade => Some(tick * step + began.count() as u64 * stall),
            Kind::Held => Some(began.map(|number| begins(number) + stall).fold(tick * step, u64::max)),
            Kind::Lost => began.all(|number| begins(number) + stall <= tick * step).then_some(tick * step),
        }
    };
    let (mut next, mut lost, mut shown) = (0, 0, 0.0);
    let (mut stood, mut seen_to_stand, mut fastest, mut ahead) = (0.0, 0.0, 0.0_f64, f64::MIN);
    for number in 0..(begins(count) + 3_000_000_000 + count * stall) / frame {
        let now = Instant::from_nanos(number * frame + frame / 2);
        let has_begun = number * frame > 9 * 1_000_000_000;
        if now.as_nanos() < begins(count - 1) {
            stood = playout.stood().as_secs_f64();
        }
        while arrives(next).is_none_or(|at| at <= now.as_nanos()) && next * step <= now.as_nanos() {
            match arrives(next) {
                Some(_) => playout.handle_arrival(next as u32, now, core::mem::take(&mut lost)),
                None => lost += 1,
            }
            next += 1;
        }
        let tick = playout.advance(now).unwrap_or_default();
        assert!(tick >= shown, "never back");
        if has_begun {
            let moved = (tick - shown) * step as f64 / frame as f64;
            (fastest, ahead) = (fastest.max(moved), ahead.max(tick - f64::from(playout.newest)));
            seen_to_stand += frame as f64 / 1e9 * f64::from(moved < 0.01);
        }
        shown = tick;
    }
    let total = playout.stood().as_secs_f64();
    Played {
        behind: f64::from(playout.newest) - shown,
        stood: total,
        stood_last: total - stood,
        seen_to_stand,
        fastest,
        ahead,
    }
}

#[test]
fn a_stall_leaves_no_delay_behind() {
    for (kind, apart) in [(Kind::Held, 120), (Kind::Unmade, 120), (Kind::Lost, 120), (Kind::Held, 600)] {
        let behind = play_stalls(kind, (60, 60), 0.3, 1, apart).behind;
        assert!(behind <= 2.0, "{behind} ticks behind, {kind:?}");
    }
    let behind = play_stalls(Kind::Held, (60, 60), 0.3, 4, 600).behind;
    assert!(behind <= 2.0, "{behind} ticks behind after four stalls far apart");
}

#[test]
fn stalls_that_come_again_soon_are_buffered_against() {
    let stood = play_stalls(Kind::Held, (60, 60), 0.3, 4, 90).stood_last;
    assert!(stood < 0.05, "{stood} s");
}

#[test]
fn a_program_that_hangs_again_and_again_buffers_nothing() {
    let mut playout = Playout::new(PlayoutConfig::default());
    let hangs = |frame: u64| frame > 600 && frame % 90 < 18;
    let mut next = 0;
    for frame in 0..1_400 {
        if hangs(frame) {
            continue;
        }
        let now = Instant::from_nanos(frame * STEP);
        for tick in next..=frame {
            playout.handle_arrival(tick as u32, now, 0);
        }
        next = frame + 1;
        playout.advance(now);
    }
    let delay = playout.wanted_delay();
    assert!(delay < 0.03, "{delay}");
    assert!(playout.stood().as_secs_f64() < 0.01, "{:?}", playout.stood());
}

#[test]
fn a_view_stands_in_a_stall_and_counts_all_of_it() {
    for kind in [Kind::Held, Kind::Lost, Kind::Unmade] {
        for rates in [(15, 60), (15, 144), (30, 60), (30, 144), (60, 60), (60, 144)] {
            for length in [0.3, 0.5, 0.8, 2.0] {
                let played = play_stalls(kind, rates, length, 2, 8 * rates.0);
                let Played { stood, seen_to_stand, fastest, ahead, behind, .. } = played;
                let case = format!("{kind:?} {rates:?} {length}");
                assert!(ahead <= 0.0, "{case}: {ahead} ticks beyond what is known");
                assert!((stood - seen_to_stand).abs() < 0.08, "{case}: {stood} of {seen_to_stand} s");
                assert!(stood > 2.0 * (length - 0.1), "{case}: {stood} s");
                assert!(length > 1.0 || fastest < 2.1, "{case}: {fastest} times as fast");
                assert!(behind <= 2.5, "{case}: {behind} ticks behind");
            }
        }
    }
}

#[test]
fn packets_without_a_tick_say_that_nothing_changed() {
    let mut playout = Playout::new(PlayoutConfig::default());
    for frame in 0..600_u32 {
        let now = Instant::from_nanos(u64::from(frame) * STEP);
        match frame {
            0..300 => playout.handle_arrival(100 + frame, now, 0),
            300..500 if frame % 6 == 0 => playout.handle_quiet(),
            500 => playout.handle_arrival(100 + frame, now, 0),
            _ => {}
        }
        let shown = playout.advance(now).unwrap_or_default();
        let behind = f64::from(100 + frame) - shown;
        let most = if frame < 500 { 8.0 } else { f64::from(frame - 500) + 1.0 };
        assert!(frame < 10 || (0.0..=most).contains(&behind), "{behind} ticks behind in frame {frame}");
        assert!(frame > 500 || playout.delay() < 0.15, "{}", playout.delay());
    }
    assert_eq!(playout.stood(), Duration::ZERO);
}

use super::*;
use crate::rng::Rng;

const STEP: u64 = 1_000_000_000 / 60;

/// A link of 100 +- 30 ms with a loss, and a game with its own frame rate.
struct Scene {
    rng: Rng,
    /// Nanoseconds between the shortest and the longest way.
    jitter: u64,
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
            jitter: 60_000_000,
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
                        let way = 100_000_000 - self.jitter / 2 + self.rng.below(self.jitter + 1);
                        let at = Instant::from_nanos(self.next_tick + way);
                        self.on_its_way.push((at, self.ticks, self.arrived.len()));
                    }
                    self.arrived.push(false);
                }
                self.ticks += 1;
                self.next_tick += tick;
            }
            let now = Instant::from_nanos(self.now);
            let mut come: Vec<_> = self.on_its_way.iter().copied().filter(|(at, ..)| *at <= now).collect();
            self.on_its_way.retain(|(at, ..)| *at > now);
            come.sort_unstable();
            for (at, tick, sequence) in come {
                let between = self.newest + 1..sequence.max(self.newest + 1);
                let lost = self.arrived[between].iter().filter(|arrived| !**arrived).count();
                self.arrived[sequence] = true;
                self.ticks_arrived.push(tick);
                self.newest = self.newest.max(sequence);
                self.playout.handle_arrival(tick, at, lost as u32);
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

/// Plays 10 s, `count` stalls of 0.3 s with `apart` ticks between their beginnings, and 2 s more; returns by how many ticks
/// the view is then behind the newest one, and how long it stood in the last stall.
fn after_stalls(is_servers: bool, count: u64, apart: u64) -> (f64, f64) {
    const STALL: u64 = 300_000_000;
    let mut playout = Playout::new(PlayoutConfig::default());
    let begins = |number: u64| (600 + number * apart) * STEP;
    let (mut stood, mut shown, mut next) = (0.0, 0.0, 0);
    let arrives = |tick: u64| {
        let began = (0..count).filter(|number| begins(*number) < tick * STEP);
        match is_servers {
            true => tick * STEP + began.count() as u64 * STALL,
            false => began.map(|number| begins(number) + STALL).fold(tick * STEP, u64::max),
        }
    };
    for frame in 0..(begins(count) + 2_000_000_000) / STEP {
        let now = Instant::from_nanos(frame * STEP + STEP / 2);
        if frame == begins(count - 1) / STEP {
            stood = playout.stood().as_secs_f64();
        }
        while arrives(next) <= now.as_nanos() {
            playout.handle_arrival(next as u32, now, 0);
            next += 1;
        }
        let tick = playout.advance(now).unwrap_or_default();
        assert!(tick >= shown, "never back");
        shown = tick;
    }
    (f64::from(playout.newest) - shown, playout.stood().as_secs_f64() - stood)
}

#[test]
fn a_stall_leaves_no_delay_behind() {
    for (is_servers, apart) in [(false, 120), (true, 120), (false, 600), (true, 600)] {
        let (behind, _) = after_stalls(is_servers, 1, apart);
        assert!(behind <= 2.0, "{behind} ticks behind, of a server: {is_servers}");
    }
    let (behind, _) = after_stalls(false, 4, 600);
    assert!(behind <= 2.0, "{behind} ticks behind after four stalls far apart");
}

#[test]
fn stalls_that_come_again_soon_are_buffered_against() {
    let (_, stood) = after_stalls(false, 4, 90);
    assert!(stood < 0.05, "{stood} s");
}

use super::*;
use crate::rng::Rng;

const STEP: u64 = 1_000_000_000 / 60;

/// A link of 100 +- 30 ms with a loss, and a game with its own frame rate.
struct Scene {
    rng: Rng,
    playout: Playout,
    on_its_way: Vec<(Instant, u32)>,
    now: u64,
    next_tick: u64,
    ticks: u32,
    shown: Vec<f64>,
}

impl Scene {
    fn new(seed: u64, config: PlayoutConfig) -> Self {
        Scene {
            rng: Rng::seeded(seed),
            playout: Playout::new(config),
            on_its_way: Vec::new(),
            now: 0,
            next_tick: 0,
            ticks: 70_000,
            shown: Vec::new(),
        }
    }

    fn run(&mut self, seconds: f64, tick: u64, frame: u64, loss: f64) {
        let until = self.now + (seconds * 1e9) as u64;
        while self.now < until {
            while self.next_tick <= self.now {
                if !self.rng.chance(loss) {
                    let way = 70_000_000 + self.rng.below(60_000_000);
                    self.on_its_way.push((Instant::from_nanos(self.next_tick + way), self.ticks));
                }
                self.ticks += 1;
                self.next_tick += tick;
            }
            let now = Instant::from_nanos(self.now);
            let mut come: Vec<_> = self.on_its_way.iter().copied().filter(|(at, _)| *at <= now).collect();
            self.on_its_way.retain(|(at, _)| *at > now);
            come.sort_unstable();
            for (at, tick) in come {
                self.playout.handle_arrival(tick, at);
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
        playout.handle_arrival(100 + tick, Instant::from_nanos(u64::from(tick) * STEP));
        playout.advance(Instant::from_nanos(u64::from(tick) * STEP));
        delays.push(playout.delay());
    }
    let delay = delays[599];
    assert!((1.0 / 60.0 - 1e-9..1.2 / 60.0).contains(&delay), "{delay}");
    assert_eq!(playout.stood(), Duration::ZERO);
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
    scene.run(3.0, STEP, STEP, 1.0);
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
        // Nothing changes for a while: ticks aren't sent.
        scene.run(0.6, STEP, STEP, 1.0);
    }
    scene.run(0.5, STEP, STEP, 0.0);
    assert!(scene.steps().all(|step| step >= 0.0), "never back");
    let delay = scene.playout.delay();
    assert!(delay < 0.1, "{delay}");
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
        playout.handle_arrival(tick, now);
        let shown = playout.advance(now);
        assert!(shown.is_some_and(f64::is_finite));
    }
}

use super::*;
use crate::rng::Rng;

/// A server whose clock drifts against the client's, over a line with this delay and jitter in each direction.
struct Line {
    rate: f64,
    skew: f64,
    delay: f64,
    jitter: f64,
    loss: f64,
    rng: Rng,
    /// Server time less local time at local time 0.
    offset: f64,
    /// Packets in flight: arrival time, whether it echoes a packet up, that packet's sending time, and the tick.
    arrivals: Vec<(f64, bool, f64, f64)>,
}

impl Line {
    fn new(delay: f64, jitter: f64, loss: f64, seed: u64) -> Self {
        let rng = Rng::seeded(seed);
        Line { rate: 60.0, skew: 0.0, delay, jitter, loss, rng, offset: 100.0, arrivals: Vec::new() }
    }

    fn server(&self, local: f64) -> f64 {
        (local + self.offset + local * self.skew) * self.rate
    }

    fn unit(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Runs it for this long; calls `look` with the local time, the clock's tick and the true one.
    fn run(
        &mut self,
        clock: &mut ServerClock,
        from: f64,
        seconds: f64,
        mut look: impl FnMut(f64, Option<f64>, f64),
    ) {
        let frame = 1.0 / 60.0;
        for i in 0..(seconds / frame) as u64 {
            let local = from + i as f64 * frame;
            for up in [false, true] {
                let delay = self.delay + self.jitter * (2.0 * self.unit() - 1.0);
                if self.unit() < self.loss {
                    continue;
                }
                if up {
                    // The echo comes back in a packet of its own.
                    let back = self.delay + self.jitter * (2.0 * self.unit() - 1.0);
                    let tick = (self.server(local + delay) * 16.0).floor() / 16.0 + 1.0 / 32.0;
                    self.arrivals.push((local + delay + back, true, local, tick));
                } else {
                    self.arrivals.push((local + delay, false, 0.0, self.server(local)));
                }
            }
            self.arrivals.sort_by(|a, b| b.0.total_cmp(&a.0));
            while self.arrivals.last().is_some_and(|arrival| arrival.0 <= local) {
                let (at, up, sent, tick) = self.arrivals.pop().unwrap();
                let now = instant(at);
                if up { clock.handle_up(now, instant(sent), tick) } else { clock.handle_down(now, tick) }
            }
            clock.advance(instant(local));
            look(local, clock.tick(instant(local)), self.server(local));
        }
    }
}

fn instant(local: f64) -> Instant {
    Instant::from_nanos((local * 1e9) as u64)
}

fn p99(mut errors: Vec<f64>) -> f64 {
    errors.sort_by(f64::total_cmp);
    errors[errors.len() * 99 / 100]
}

#[test]
fn is_settled_within_two_seconds_and_exact_to_milliseconds_under_jitter_and_loss() {
    for seed in 1..=10 {
        let mut line = Line::new(0.1, 0.03, 0.05, seed);
        let mut clock = ServerClock::new(60.0);
        let (mut errors, mut settled) = (Vec::new(), None);
        let mut shown = f64::MIN;
        line.run(&mut clock, 1.0, 30.0, |local, tick, truth| {
            let Some(tick) = tick else { return };
            assert!(tick >= shown, "runs back");
            shown = tick;
            if local >= 3.0 {
                errors.push((tick - truth).abs() / 60.0);
            }
        });
        let mut line = Line::new(0.1, 0.03, 0.05, seed);
        let mut clock = ServerClock::new(60.0);
        for step in 0..40 {
            line.run(&mut clock, 1.0 + f64::from(step) * 0.05, 0.05, |_, _, _| {});
            let now = instant(1.0 + f64::from(step + 1) * 0.05);
            if clock.is_settled(now) {
                settled.get_or_insert(step);
            }
        }
        assert!(settled.is_some(), "seed {seed}: not settled within two seconds");
        assert!(p99(errors.clone()) < 0.005, "seed {seed}: {}", p99(errors));
    }
}

#[test]
fn follows_clocks_that_drift() {
    for skew in [200e-6, -200e-6, 0.01, -0.03] {
        let mut line = Line { skew, ..Line::new(0.1, 0.03, 0.05, 7) };
        let mut clock = ServerClock::new(60.0);
        let mut errors = Vec::new();
        line.run(&mut clock, 1.0, 60.0, |local, tick, truth| {
            if local >= 20.0 {
                errors.push((tick.unwrap() - truth).abs() / 60.0);
            }
        });
        let bound = if skew.abs() < 0.001 { 0.005 } else { 0.012 };
        assert!(p99(errors.clone()) < bound, "skew {skew}: {}", p99(errors));
        assert!((clock.drift() - skew).abs() < 0.1 * skew.abs() + 100e-6, "{skew}: {}", clock.drift());
    }
}

#[test]
fn runs_at_nearly_its_rate_and_never_back_when_the_server_stood_still() {
    let mut line = Line::new(0.04, 0.01, 0.02, 3);
    let mut clock = ServerClock::new(60.0);
    line.run(&mut clock, 1.0, 6.0, |_, _, _| {});
    assert_eq!(clock.restarts(), 0);
    // Two seconds without any tick.
    line.offset -= 2.0;
    let (mut shown, mut last) = (0.0, f64::MAX);
    line.run(&mut clock, 7.0, 6.0, |local, tick, truth| {
        assert!(tick.unwrap() >= shown);
        shown = tick.unwrap();
        if local > 11.0 {
            last = (shown - truth).abs() / 60.0;
            assert!(last < 0.01, "{local}: {last}");
        }
    });
    assert!(last < 0.01 && clock.restarts() == 1);
}

#[test]
fn a_server_that_stood_still_and_caught_up_is_where_it_would_be() {
    for stall in [0.2, 0.3, 0.45] {
        let mut line = Line::new(0.04, 0.0, 0.0, 3);
        let mut clock = ServerClock::new(60.0);
        line.run(&mut clock, 1.0, 6.0, |_, _, _| {});
        // Packets that came meanwhile were taken in the first tick afterwards.
        let (now, tick) = (instant(7.0 + stall + 0.04), line.server(7.0));
        clock.handle_down(now, tick);
        for early in [0.02, 0.04, 0.06] {
            clock.handle_up(now, instant(7.0 + stall - 0.04 - early), tick);
        }
        let mut worst: f64 = 0.0;
        line.run(&mut clock, 7.0 + stall, 4.0, |_, tick, truth| {
            worst = worst.max((tick.unwrap() - truth).abs() / 60.0);
        });
        assert!(worst < 0.015 && clock.restarts() == 0, "{stall}: {worst}");
    }
}

#[test]
fn a_queue_in_one_direction_is_no_other_time() {
    let mut line = Line::new(0.04, 0.01, 0.0, 5);
    let mut clock = ServerClock::new(60.0);
    line.run(&mut clock, 1.0, 5.0, |_, _, _| {});
    let before = clock.drift();
    line.delay = 0.2;
    let mut worst: f64 = 0.0;
    line.run(&mut clock, 6.0, 1.5, |_, tick, truth| {
        worst = worst.max((tick.unwrap() - truth).abs() / 60.0);
    });
    assert!(worst < 0.006, "{worst}");
    assert!((clock.drift() - before).abs() < 0.002);
}

#[test]
fn knows_nothing_before_samples_of_both_directions() {
    let mut clock = ServerClock::new(60.0);
    for i in 0..20 {
        clock.handle_down(instant(f64::from(i) * 0.1), f64::from(i) * 6.0);
        clock.advance(instant(f64::from(i) * 0.1));
    }
    assert_eq!(clock.tick(instant(2.0)), None);
    assert!(!clock.is_settled(instant(2.0)));
}

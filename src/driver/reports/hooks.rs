//! What the application's hooks cost, by the computer's clock.
//!
//! Promises: every call is counted; at most one slow call a second is worth a line.

use std::time::Duration;

use super::LogPace;

/// The hooks' calls and times, by the computer's clock: a simulated network's doesn't advance meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub struct HookCounters {
    calls: u64,
    slow: u64,
    time: Duration,
}

impl HookCounters {
    /// Each count under its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let microseconds = u64::try_from(self.time.as_micros()).unwrap_or(u64::MAX);
        [("calls", self.calls), ("slow", self.slow), ("microseconds", microseconds)].into_iter()
    }
}

/// Measures an endpoint's hooks.
#[derive(Debug)]
pub struct HookClock {
    counters: HookCounters,
    /// Longer calls are slow.
    bound: Duration,
    pace: LogPace,
    /// Slow calls when the last line was logged.
    logged: u64,
}

/// A call to be logged.
#[derive(Debug)]
pub struct Slow {
    took: Duration,
    bound: Duration,
    /// Slow calls since the last line.
    calls: u64,
}

impl HookClock {
    /// A clock by which calls are slow that take more seconds than `slow`. None if that is no length of time.
    pub fn new(slow: f64) -> Option<Self> {
        if slow.is_nan() || slow < 0.0 {
            return None;
        }
        // A bound too long for a duration is never reached.
        let bound = Duration::try_from_secs_f64(slow).unwrap_or(Duration::MAX);
        Some(HookClock { counters: HookCounters::default(), bound, pace: LogPace::default(), logged: 0 })
    }

    /// The counts so far.
    pub fn counters(&self) -> HookCounters {
        self.counters
    }

    /// Counts a call, and returns whether it should be logged.
    pub fn count(&mut self, started: std::time::Instant, ended: std::time::Instant) -> Option<Slow> {
        let took = ended - started;
        self.counters.calls += 1;
        self.counters.time += took;
        if took <= self.bound {
            return None;
        }
        self.counters.slow += 1;
        if !self.pace.is_due(ended) {
            return None;
        }
        let calls = self.counters.slow - self.logged;
        self.logged = self.counters.slow;
        Some(Slow { took, bound: self.bound, calls })
    }
}

impl Slow {
    /// A line for the log about a hook of an endpoint.
    pub fn line(&self, hook: &str, endpoint: &str) -> String {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let more = match self.calls - 1 {
            0 => String::new(),
            more => format!(" ({more} more since the last warning)"),
        };
        let (took, bound) = (ms(self.took), ms(self.bound));
        format!(
            "the {hook} hook of {endpoint} took {took:.1} ms, more than slow_hook's {bound:.1} ms: its tick waited{more}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn one_slow_call_a_second_is_worth_a_line() {
        let mut clock = HookClock::new(0.010).unwrap();
        let start = Instant::now();
        let mut call = |at: u64, takes: u64| {
            let started = start + Duration::from_millis(at);
            let slow = clock.count(started, started + Duration::from_millis(takes));
            slow.map(|slow| slow.line("priority", "the server"))
        };
        assert_eq!(call(0, 10), None);
        let line =
            "the priority hook of the server took 20.0 ms, more than slow_hook's 10.0 ms: its tick waited";
        assert_eq!(call(0, 20).as_deref(), Some(line));
        assert_eq!((call(500, 20), call(600, 20)), (None, None));
        assert_eq!(call(1000, 20).unwrap(), format!("{line} (2 more since the last warning)"));
        let counts: Vec<_> = clock.counters().iter().collect();
        assert_eq!(counts, [("calls", 5), ("slow", 4), ("microseconds", 90_000)]);
    }

    #[test]
    fn a_bound_is_a_length_of_time() {
        assert!(HookClock::new(f64::NAN).is_none() && HookClock::new(-1.0).is_none());
        assert!(HookClock::new(f64::INFINITY).is_some() && HookClock::new(0.0).is_some());
    }
}

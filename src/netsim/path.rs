//! The effect of a link's conditions on one packet, and the state that the link keeps between packets.

use super::conditions::Conditions;
use super::outages::OutageState;
use super::random_walk::RandomWalkState;
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// The luck of one direction of a link, and its state.
#[derive(Clone, Debug)]
pub(super) struct Path {
    rng: Rng,
    /// In a burst of losses.
    bad: bool,
    outage: OutageState,
    random_walk: RandomWalkState,
}

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Lost,
    LostInBurst,
    LostInOutage,
    Arrives {
        first: Instant,
        /// When there is one.
        second: Option<Instant>,
        /// How many copies were held back.
        held_back: u64,
    },
}

impl Path {
    pub(super) fn new(seed: u64) -> Self {
        Path {
            rng: Rng::seeded(seed),
            bad: false,
            outage: OutageState::default(),
            random_walk: RandomWalkState::default(),
        }
    }

    /// The outcome of a packet transmitted at `now`, not before the last one.
    pub(super) fn fate(&mut self, now: Instant, conditions: &Conditions) -> Fate {
        let Path { rng, bad, outage, random_walk } = self;
        // The chain counts packets, also those that are lost for another reason.
        let in_burst = conditions.bursts.is_some_and(|bursts| bursts.step(bad, rng));
        if conditions.outages.is_some_and(|outages| outage.is_out(now, &outages, rng)) {
            return Fate::LostInOutage;
        }
        if in_burst {
            return Fate::LostInBurst;
        }
        if rng.chance(conditions.loss) {
            return Fate::Lost;
        }
        let range = conditions.random_walk.map_or(Duration::ZERO, |random_walk| random_walk.range);
        let passed = conditions.random_walk.map_or(now, |settings| random_walk.pass(now, &settings, rng));
        let early = conditions.latency.saturating_sub(conditions.jitter).saturating_sub(range);
        let twice = rng.chance(conditions.duplicate);
        let mut held_back = 0;
        let mut arrival = || {
            let late = rng.chance(conditions.reorder);
            held_back += u64::from(late);
            let extra = if late { conditions.reorder_delay } else { Duration::ZERO };
            passed + early + (conditions.jitter * 2).mul_f64(rng.unit()) + extra
        };
        let first = arrival();
        let second = twice.then(arrival);
        Fate::Arrives { first, second, held_back }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn jitter_is_uniform_around_the_latency() {
        let conditions = Conditions::perfect().latency(ms(50), ms(10));
        let mut path = Path::new(1);
        let delays: Vec<_> = (0..10_000)
            .map(|_| match path.fate(Instant::ZERO, &conditions) {
                Fate::Arrives { first, second: None, held_back: 0 } => first - Instant::ZERO,
                fate => panic!("{fate:?}"),
            })
            .collect();
        assert!(delays.iter().all(|d| (ms(40)..=ms(60)).contains(d)));
        let below = delays.iter().filter(|d| **d < ms(45)).count();
        assert!((2370..2630).contains(&below), "{below}: a quarter, within 3 sigma");
    }

    #[test]
    fn an_outage_comes_before_all_other_luck_but_the_bursts_go_on() {
        let bursts = super::super::Bursts { to_bad: 1.0, to_good: 0.0, good_loss: 0.0, bad_loss: 1.0 };
        let out = Conditions::perfect().bursts(bursts).outages(ms(1), 1.0);
        let mut path = Path::new(1);
        assert_eq!(path.fate(Instant::ZERO, &out), Fate::LostInOutage);
        assert_eq!(path.fate(Instant::from_millis(1000), &out.outages(ms(1), 0.0)), Fate::LostInBurst);
    }
}

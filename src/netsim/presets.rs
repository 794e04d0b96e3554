//! Conditions of well-known kinds of networks, for tests and for trying out a game.
//!
//! Promises: plausible numbers of an ordinary evening, not of a laboratory, and the same in each release. `up` is from
//! the player, `down` to the player; latencies are one way, to a nearby server unless stated. Rates are what a bulk
//! transfer gets; the queues hold a fraction of a second at that rate, as in such networks.

use super::conditions::{Bursts, Conditions};
use crate::time::Duration;

/// Both directions of a player's network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// What the player sends.
    pub up: Conditions,
    /// What the player receives.
    pub down: Conditions,
}

/// The names that [`named`] knows.
pub const NAMES: [&str; 5] = ["3g", "4g", "wifi-bad", "transatlantic", "satellite"];

/// The preset of this name.
pub fn named(name: &str) -> Option<Preset> {
    Some(match name {
        "3g" => third_generation(),
        "4g" => fourth_generation(),
        "wifi-bad" => bad_wifi(),
        "transatlantic" => transatlantic(),
        "satellite" => satellite(),
        _ => return None,
    })
}

/// A phone on 3G (HSPA): 1 Mbit/s up and 3 down, 75 ms with runs of ± 40, deep queues, 1 % lost in bursts of
/// 3, and a handover of 0.3 s each minute.
fn third_generation() -> Preset {
    let both = path(75, 40, 500).bursts(Bursts::of(0.01, 3.0)).outages(ms(300), 0.005);
    Preset { up: both.rate(mbit(1), 64_000), down: both.rate(mbit(3), 256_000) }
}

/// A phone on 4G (LTE): 8 Mbit/s up and 25 down, 25 ms with runs of ± 12, 0.2 % lost in bursts of 2, and a
/// handover of 0.1 s each 50 s.
fn fourth_generation() -> Preset {
    let both = path(25, 12, 300).bursts(Bursts::of(0.002, 2.0)).outages(ms(100), 0.002);
    Preset { up: both.rate(mbit(8), 200_000), down: both.rate(mbit(25), 600_000) }
}

/// Crowded 2.4 GHz Wi-Fi, two walls away: 5 Mbit/s up and 10 down, 20 ms with runs of ± 12, 3 % lost in
/// bursts of 4, some doubled, and nothing at all for 0.25 s each 25 s.
fn bad_wifi() -> Preset {
    let both = path(20, 12, 100).bursts(Bursts::of(0.03, 4.0)).duplicate(0.001).outages(ms(250), 0.01);
    Preset { up: both.rate(mbit(5), 128_000), down: both.rate(mbit(10), 256_000) }
}

/// From a home with fibre in Europe to a server in New York: 50 Mbit/s up and 100 down, 45 ms and steady,
/// 0.05 % lost.
fn transatlantic() -> Preset {
    let both = path(45, 2, 1000).loss(0.0005);
    Preset { up: both.rate(mbit(50), 500_000), down: both.rate(mbit(100), 1_000_000) }
}

/// A geostationary satellite: 3 Mbit/s up and 25 down, 300 ms with runs of ± 15, 0.5 % lost in bursts of 8,
/// and nothing for a second every 500.
fn satellite() -> Preset {
    let both = path(300, 15, 1000).bursts(Bursts::of(0.005, 8.0)).outages(ms(1000), 0.002);
    Preset { up: both.rate(mbit(3), 150_000), down: both.rate(mbit(25), 1_000_000) }
}

/// Latency and a randomly walking delay with its memory, in milliseconds. Such networks seldom reorder, so there is no
/// other jitter.
fn path(latency: u64, range: u64, memory: u64) -> Conditions {
    Conditions::perfect().latency(ms(latency), Duration::ZERO).random_walk(ms(range), ms(memory))
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// In bytes a second.
fn mbit(mbit: u64) -> u64 {
    mbit * 1_000_000 / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_has_its_name_and_can_be_met() {
        for name in NAMES {
            let Preset { up, down } = named(name).unwrap();
            assert_eq!((up.check(), down.check()), (Ok(()), Ok(())), "{name}");
        }
        assert_eq!(named("5g"), None);
    }
}

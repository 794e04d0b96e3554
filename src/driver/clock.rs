//! The time of a driver: the system's clocks, or a virtual network's.

use std::time::SystemTime;

use super::simulated::VirtualNetwork;
use crate::time::{Duration, Instant, UnixSeconds};

/// How long the wall clock needn't be read again: it counts seconds.
const UNIX_LASTS: Duration = Duration::from_millis(100);

/// The system's wall clock.
pub fn unix_now() -> UnixSeconds {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    UnixSeconds(since.map_or(0, |time: Duration| time.as_secs()))
}

/// A driver's time, in a form that drivers of one process share.
#[derive(Clone, Debug)]
pub(super) enum Clock {
    /// The system's, since this moment.
    System(std::time::Instant),
    Virtual(VirtualNetwork),
}

impl Clock {
    pub(super) fn now(&self) -> Instant {
        match self {
            Clock::System(started) => Instant::ZERO + started.elapsed(),
            Clock::Virtual(network) => network.now(),
        }
    }

    pub(super) fn unix(&self) -> UnixSeconds {
        self.virtual_unix().unwrap_or_else(unix_now)
    }

    /// The wall clock of a virtual network, which moves by leaps.
    pub(super) fn virtual_unix(&self) -> Option<UnixSeconds> {
        match self {
            Clock::System(_) => None,
            Clock::Virtual(network) => Some(network.unix()),
        }
    }

    /// Time zero by the wall clock, in nanoseconds since 1970.
    pub(super) fn origin(&self) -> u64 {
        match self {
            Clock::System(started) => {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                since.saturating_sub(started.elapsed()).as_nanos() as u64
            }
            Clock::Virtual(network) => network.epoch().0 * 1_000_000_000,
        }
    }
}

/// The wall clock as it was read last, and until when that is good enough for tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct WallClock {
    unix: UnixSeconds,
    until: Instant,
}

impl WallClock {
    /// A clock that is read at the first use.
    pub(super) const UNREAD: WallClock = WallClock { unix: UnixSeconds(0), until: Instant::ZERO };

    /// Reads the system's wall clock, but not at each call.
    pub(super) fn read(&mut self, now: Instant) -> UnixSeconds {
        if now >= self.until {
            *self = WallClock { unix: unix_now(), until: now + UNIX_LASTS };
        }
        self.unix
    }
}

//! What servers and clients have behind their lock: the sans-IO core, its driver, and what waits for the game.
//!
//! Promises: a turn of the driver's thread is bounded, and leaves a core alone while the priority hook is asked about
//! what is in it.

use core::ops::{Deref, DerefMut};

use super::chunks::Transfers;
use super::hooks::{HookClock, Moment, Source};
use super::inbox::Pending;
use super::log::{DropLog, Dropped};
use super::refusals::Refusals;
use super::sans_io::Core;
use super::shared::Shared;
use super::stats::Counted;
use crate::driver::{Driver, DriverCounters, Station, Turn};
use crate::endpoint::{self, Goodbye};
use crate::time::{Duration, Instant};
use crate::transport::{Attribute, Column, Read};

/// Datagrams read in one turn between ticks: some 100 microseconds that a call of the game may have to wait.
const READ_BOUND: usize = 64;

/// How long the thread waits for the game when it could go on at once: a lock let go is not a lock handed over.
pub(super) const BETWEEN_TURNS: Duration = Duration::from_micros(100);

/// How long the thread lets datagrams gather when nothing of what came was urgent: a turn for each of a thousand clients'
/// datagrams costs more than what is in them. The smallest of the system's usual receive buffers has room for as long, at 100,000
/// datagrams a second; whoever waits for an ack is told how long it was held.
const GATHER: Duration = Duration::from_millis(4);

/// As long as chunks move, and how long a row of turns may go on before what is due is sent: what is due is known to a
/// millisecond.
const GATHER_BULK: Duration = Duration::from_millis(1);

/// A datagram of so many bytes is taken for part of a chunk, which more will follow for a while.
const BULK_BYTES: usize = 500;
const BULK_LASTS: Duration = Duration::from_millis(50);

/// How long the thread leaves a socket alone that raised an error.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// While an endpoint lingers nobody ticks it: so often it is as if. The copies of redundant messages go out with ticks.
const LINGER_TICK: Duration = Duration::from_millis(16);

/// An endpoint's wait for its peers.
#[derive(Debug)]
struct Lingering {
    until: Instant,
    next_tick: Instant,
}

/// Knows whether its core could have changed since some moment.
#[derive(Debug)]
pub(super) struct Versioned<C> {
    core: C,
    pub(super) version: u64,
}

impl<C> Deref for Versioned<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.core
    }
}

impl<C> DerefMut for Versioned<C> {
    fn deref_mut(&mut self) -> &mut C {
        self.version += 1;
        &mut self.core
    }
}

pub(super) struct State<C: Core> {
    pub(super) core: Versioned<C>,
    /// None once closed.
    pub(super) driver: Option<Driver>,
    /// Of the driver, once closed.
    driver_counters: DriverCounters,
    drops: DropLog,
    pub(super) hooks: HookClock,
    pub(super) refusals: Refusals,
    /// The priority hook runs, and the thread leaves alone what it was asked about.
    pub(super) asking: bool,
    /// A socket's error that the game wasn't told of.
    pub(super) failed: Option<std::io::Error>,
    /// None while objects are being made of it.
    pub(super) pending: Option<Pending>,
    pub(super) transfers: Transfers,
    /// The last receive raised, and left something for the next.
    pub(super) unfinished: bool,
    /// The logger knows that the capture ended.
    capture_told: bool,
    /// The game closed it, and it lingers.
    closing: Option<Lingering>,
    /// When the socket was last emptied, by the thread or the game.
    emptied_at: Instant,
    /// When there is something to do between ticks, as far as the last turn knew.
    due: Instant,
    /// When a chunk seems to move no more.
    bulk_until: Instant,
    /// When what is due between ticks was last asked for.
    asked_between: Instant,
    /// The thread's next turn is to panic.
    #[cfg(feature = "faults")]
    pub(super) broken: bool,
}

impl<C: Core> State<C> {
    /// Of a core that nothing was done with yet.
    pub(super) fn new(core: C, driver: Driver, hooks: HookClock) -> Self {
        State {
            core: Versioned { core, version: 0 },
            driver: Some(driver),
            driver_counters: DriverCounters::default(),
            drops: DropLog::default(),
            hooks,
            refusals: Refusals::default(),
            asking: false,
            failed: None,
            pending: Some(Pending::default()),
            transfers: Transfers::default(),
            unfinished: false,
            capture_told: false,
            closing: None,
            emptied_at: Instant::ZERO,
            due: Instant::ZERO,
            bulk_until: Instant::ZERO,
            asked_between: Instant::ZERO,
            #[cfg(feature = "faults")]
            broken: false,
        }
    }

    /// Gives the core the datagrams that wait.
    pub(super) fn receive(&mut self) -> std::io::Result<()> {
        let State { core, driver, emptied_at, bulk_until, .. } = self;
        let Some(driver) = driver else { return Ok(()) };
        let mut largest = 0;
        let received = driver.receive(|now, unix, from, datagram, out| {
            largest = largest.max(datagram.len());
            core.handle_datagram(now, unix, from, datagram, out);
        });
        *emptied_at = driver.now();
        if largest >= BULK_BYTES {
            *bulk_until = *emptied_at + BULK_LASTS;
        }
        self.note_transfers();
        received
    }

    /// Whether the game closed it.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Has the core end its connections, and say so if they linger no longer than now. True when there is a wait ahead, of this
    /// call or of one before.
    pub(super) fn begin_close(&mut self, goodbye: Goodbye) -> bool {
        let State { core, driver, closing, .. } = self;
        let Some(driver) = driver else { return false };
        let (now, linger) = (driver.now(), goodbye.linger);
        core.begin_close(now, goodbye);
        if linger.is_zero() {
            return false;
        }
        if closing.is_none() {
            *closing = Some(Lingering { until: now + linger, next_tick: now + LINGER_TICK });
            driver.transmit(|now, out| core.transmit(now, out));
            self.end_linger();
        }
        true
    }

    /// Closes what has lingered to its end, or for long enough.
    pub(super) fn end_linger(&mut self) {
        if let (Some(closing), Some(driver)) = (&self.closing, &self.driver)
            && (self.core.is_over() || closing.until <= driver.now())
        {
            self.close();
        }
    }

    /// Gives the core what held packets say.
    pub(super) fn handle_read(
        &mut self,
        read: Vec<(endpoint::ClientHandle, Read)>,
        inbox: &mut endpoint::Inbox,
    ) {
        let State { core, driver, .. } = self;
        let Some(driver) = driver else { return };
        driver.transmit(|now, out| {
            for (client, read) in read {
                core.handle_read(now, client, read, inbox, out);
            }
        });
    }

    pub(super) fn counted(&self) -> Counted {
        Counted {
            driver: self.driver.as_ref().map_or(self.driver_counters, Driver::counters),
            netcode: self.core.netcode_counters().clone(),
            packets: self.core.packet_counters(),
            chunks: self.core.all_chunk_counters(),
            refusals: self.refusals.counters,
            hooks: self.hooks.counters(),
        }
    }

    /// In what words to tell, once, that the capture ended.
    pub(super) fn look_at_capture(&mut self) -> Option<String> {
        let capture = self.driver.as_ref()?.capture().filter(|_| !self.capture_told)?;
        let ended = capture.ended()?;
        self.capture_told = true;
        Some(ended)
    }

    pub(super) fn look_for_drops(&mut self) -> Option<Dropped> {
        let now = self.driver.as_ref()?.now();
        if !self.drops.is_due(now) {
            return None;
        }
        let counted = self.counted();
        self.drops.look(now, counted)
    }
}

impl<C: Core> State<C> {
    /// Does what there is to do between ticks, for a bounded time: what comes then.
    pub(super) fn step(&mut self) -> Turn {
        let State {
            core,
            driver,
            asking,
            failed,
            transfers,
            closing,
            emptied_at,
            due,
            bulk_until,
            asked_between,
            ..
        } = self;
        let Some(driver) = driver else { return Turn::Over };
        if *asking {
            return Turn::Pause(BETWEEN_TURNS);
        }
        let (mut read, mut largest) = (false, 0);
        let received = driver.receive_at_most(READ_BOUND, |now, unix, from, datagram, out| {
            (read, largest) = (true, largest.max(datagram.len()));
            core.handle_datagram(now, unix, from, datagram, out);
        });
        let tick = closing.as_mut().filter(|closing| closing.next_tick <= driver.now());
        if let Some(closing) = tick {
            closing.next_tick = driver.now() + LINGER_TICK;
            driver.transmit(|now, out| core.transmit(now, out));
        } else if !matches!(received, Ok(true)) || *asked_between + GATHER_BULK <= driver.now() {
            // Asking takes a look at each connection.
            let sent = driver.transmit(|now, out| {
                *asked_between = now;
                core.transmit_between(now, out);
                out.entries().iter().map(|(_, bytes)| bytes.len()).max()
            });
            largest = largest.max(sent.unwrap_or(0));
        }
        let now = driver.now();
        if read {
            *emptied_at = now;
        }
        if largest >= BULK_BYTES {
            *bulk_until = now + BULK_LASTS;
        }
        transfers.note(&mut **core, driver.now());
        let turn = match received {
            Ok(true) => Turn::Pause(BETWEEN_TURNS),
            Ok(false) => {
                let next_tick = closing.as_ref().map_or(Instant::NEVER, |closing| closing.next_tick);
                *due = core.next_deadline().min(driver.next_delivery()).min(next_tick);
                Turn::Wait(*due - driver.now())
            }
            Err(error) => {
                *failed = Some(error);
                Turn::Pause(AFTER_ERROR)
            }
        };
        self.end_linger();
        if self.driver.is_none() { Turn::Over } else { turn }
    }
}

impl<C: Core> State<C> {
    /// How long to let datagrams gather, if nothing is due and the socket was empty just now.
    fn gather(&self) -> Option<Duration> {
        let now = self.driver.as_ref()?.now();
        let gather = if now < self.bulk_until { GATHER_BULK } else { GATHER };
        let until = (self.emptied_at + gather).min(self.due);
        (now < until && self.emptied_at > Instant::ZERO).then(|| until - now)
    }
}

impl<C: Core> Station for State<C> {
    fn turn(&mut self) -> Turn {
        #[cfg(feature = "faults")]
        assert!(!self.broken, "broken on purpose");
        // Before anything, too: a game that looks all the time leaves nothing to read.
        if let Some(pause) = self.gather() {
            return Turn::Pause(pause);
        }
        match self.step() {
            Turn::Wait(wait) => self.gather().map_or(Turn::Wait(wait), Turn::Pause),
            turn => turn,
        }
    }

    fn close(&mut self) {
        let Some(mut driver) = self.driver.take() else { return };
        driver.transmit(|now, out| self.core.close(now, out));
        driver.finish();
        self.driver_counters = driver.counters();
        self.transfers.note(&mut *self.core, driver.now());
    }

    fn forsake(&mut self) {
        self.driver = None;
    }
}

impl<C: Core> Source for Shared<State<C>> {
    fn describe(&self, moment: Moment, attribute: Attribute) -> Option<Column> {
        let state = self.lock().ok()?;
        let same = state.core.version == moment.version;
        same.then(|| state.core.describe_candidates(moment.now, attribute))
    }
}

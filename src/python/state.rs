//! The locked state of servers and clients: the session with its driver, and the data that waits for the game.
//!
//! Promises: a turn of the driver's thread is bounded, and leaves the session unchanged while the priority hook is
//! asked about its messages.

use crate::python::prelude::*;

use crate::calls::CallCounts;
use crate::driver::reports::{Counted, DropReport, Dropped, HookClock, Refusals};
use crate::driver::{AFTER_ERROR, BETWEEN_TURNS, Carrier, Next, Service};
use crate::endpoint::{Goodbye, Transfers};
use crate::session::protocol::ServerTime;
use crate::session::{Ghosts, Session, Tick};
use crate::transport::ReadPackets;

pub(super) struct State {
    pub(super) carrier: Carrier,
    drops: DropReport,
    pub(super) hooks: HookClock,
    pub(super) refusals: Refusals,
    pub(super) calls: Arc<CallCounts>,
    /// Whether the priority hook is running; the thread then leaves its candidates unchanged.
    pub(super) asking: bool,
    /// A socket error that wasn't raised yet.
    pub(super) failed: Option<std::io::Error>,
    pub(super) transfers: Transfers,
    /// Whether the last receive raised, and left data for the next.
    pub(super) unfinished: bool,
    /// Whether the end of the capture was logged.
    capture_told: bool,
    /// Whether the thread is to panic at its next turn.
    #[cfg(feature = "faults")]
    pub(super) broken: bool,
}

impl State {
    /// The state of a new endpoint.
    pub(super) fn new(
        host: Host,
        driver: Driver,
        (ghosts, time): (Ghosts, Option<&ServerTime>),
        hooks: HookClock,
    ) -> Self {
        State {
            carrier: Carrier::new(Session::with_roles(host, ghosts, time), driver),
            drops: DropReport::default(),
            hooks,
            refusals: Refusals::default(),
            calls: Arc::default(),
            asking: false,
            failed: None,
            transfers: Transfers::default(),
            unfinished: false,
            capture_told: false,
            #[cfg(feature = "faults")]
            broken: false,
        }
    }

    /// The endpoint, to read.
    pub(super) fn host(&self) -> &Host {
        self.carrier.session.host()
    }

    /// The endpoint, to change.
    pub(super) fn change(&mut self) -> &mut Host {
        self.carrier.session.change()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.carrier.is_closed()
    }

    /// Lets the carrier act, then notes how far the transfers got.
    fn carry<T>(&mut self, act: impl FnOnce(&mut Carrier) -> T) -> T {
        let result = act(&mut self.carrier);
        self.note_transfers();
        result
    }

    /// Reads the waiting datagrams.
    pub(super) fn receive(&mut self) -> std::io::Result<()> {
        self.carry(Carrier::receive)
    }

    /// Sends everything queued.
    pub(super) fn transmit(&mut self) {
        self.carry(Carrier::transmit);
    }

    /// [`Carrier::begin_close`] with this state.
    pub(super) fn begin_close(&mut self, goodbye: Goodbye) -> Option<Duration> {
        self.carry(|carrier| carrier.begin_close(goodbye))
    }

    /// [`Session::handle_read`] with this state.
    pub(super) fn handle_read(&mut self, read: Vec<(PeerHandle, ReadPackets)>, tick: &mut Tick) {
        match self.carrier.parts() {
            Some((session, driver)) => driver.transmit(|now, out| session.handle_read(now, read, tick, out)),
            // The endpoint was closed meanwhile, so there is nobody to send it.
            None => {
                let session = &mut self.carrier.session;
                session.handle_read(Instant::ZERO, Vec::new(), tick, &mut Datagrams::new());
            }
        }
    }

    pub(super) fn counted(&self) -> Counted {
        let host = self.host();
        Counted {
            driver: self.carrier.counters(),
            netcode: host.netcode_counters(),
            packets: host.packet_counters(),
            chunks: host.all_chunk_counters(),
            refusals: self.refusals.counters,
            hooks: self.hooks.counters(),
            connections: host.connection_counters(),
            hosting: self.carrier.session.hosting_counters(),
            calls: self.calls.now(),
        }
    }

    /// The log line, once, if the capture ended.
    pub(super) fn look_at_capture(&mut self) -> Option<String> {
        let capture = self.carrier.driver()?.capture().filter(|_| !self.capture_told)?;
        let ended = capture.ended()?;
        self.capture_told = true;
        Some(ended)
    }

    pub(super) fn look_for_drops(&mut self) -> Option<Dropped> {
        let now = self.carrier.read_at();
        if self.is_closed() || !self.drops.is_due(now) {
            return None;
        }
        let counted = self.counted();
        self.drops.look(now, counted)
    }

    /// The work between ticks, for a bounded time; returns what comes next.
    pub(super) fn step(&mut self) -> Next {
        self.act(Carrier::step)
    }

    fn act(&mut self, act: impl FnOnce(&mut Carrier) -> std::io::Result<Next>) -> Next {
        if self.asking && !self.is_closed() {
            return Next::Pause(BETWEEN_TURNS);
        }
        self.carry(act).unwrap_or_else(|error| {
            self.failed = Some(error);
            if self.is_closed() { Next::Over } else { Next::Pause(AFTER_ERROR) }
        })
    }
}

impl Service for State {
    fn turn(&mut self) -> Next {
        #[cfg(feature = "faults")]
        assert!(!self.broken, "broken on purpose");
        self.act(Carrier::turn)
    }

    fn close(&mut self) {
        self.carry(Carrier::close);
    }

    fn discard(&mut self) {
        self.carrier.discard();
    }
}

//! The services that a thread runs: a port and the code that answers there.

use std::net::SocketAddr;

use crate::driver::carrier::AFTER_ERROR;
use crate::driver::polled::Driver;
use crate::driver::threaded::{Next, Service};
use crate::rendezvous::server::observe;
use crate::rendezvous::{RelayServer, RendezvousServer};
use crate::store::Datagrams;
use crate::time::{Duration, Instant, UnixSeconds};

/// Datagrams read in one turn: a caller that wants the counters doesn't wait for a flood.
const READ_BOUND: usize = 256;

/// Answers datagrams and counts them.
pub trait Counted: Send + 'static {
    /// Answers a datagram, or drops it.
    fn handle_datagram(
        &mut self,
        now: Instant,
        unix: UnixSeconds,
        from: SocketAddr,
        datagram: &[u8],
        out: &mut Datagrams,
    );

    /// Forgets peers that have been silent too long.
    fn sweep(&mut self, now: Instant);

    /// All counters by name.
    fn counters(&self) -> Vec<(&'static str, u64)>;
}

/// A rendezvous server's second port.
#[derive(Debug, Default)]
pub struct Lookout {
    observed: u64,
    malformed: u64,
}

macro_rules! counted {
    ($($Server:ty),*) => { $(
        impl Counted for $Server {
            fn handle_datagram(
                &mut self,
                now: Instant,
                unix: UnixSeconds,
                from: SocketAddr,
                datagram: &[u8],
                out: &mut Datagrams,
            ) {
                Self::handle_datagram(self, now, unix, from, datagram, out);
            }

            fn sweep(&mut self, now: Instant) {
                Self::sweep(self, now);
            }

            fn counters(&self) -> Vec<(&'static str, u64)> {
                Self::counters(self).iter().collect()
            }
        }
    )* };
}

counted! { RendezvousServer, RelayServer }

impl Counted for Lookout {
    fn handle_datagram(
        &mut self,
        _: Instant,
        _: UnixSeconds,
        from: SocketAddr,
        datagram: &[u8],
        out: &mut Datagrams,
    ) {
        let answered = observe(from, datagram, out);
        self.observed += u64::from(answered);
        self.malformed += u64::from(!answered);
    }

    fn sweep(&mut self, _: Instant) {}

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("observed", self.observed), ("malformed", self.malformed)]
    }
}

/// A port with its service.
pub(super) struct MeetingService<S> {
    driver: Option<Driver>,
    service: S,
    socket_errors: u64,
}

impl<S: Counted> MeetingService<S> {
    pub(super) fn new(driver: Driver, service: S) -> Self {
        MeetingService { driver: Some(driver), service, socket_errors: 0 }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.driver.is_none()
    }

    pub(super) fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.service.counters();
        if let Some(driver) = &self.driver {
            let udp = driver.counters().udp;
            counters.extend([
                ("datagrams_received", udp.received),
                ("datagrams_sent", udp.sent),
                ("kernel_drops", udp.kernel_drops),
                ("send_buffer_full", udp.send_buffer_full),
                ("too_long", udp.too_long),
            ]);
        }
        counters.push(("socket_errors", self.socket_errors));
        counters
    }
}

impl<S: Counted> Service for MeetingService<S> {
    fn turn(&mut self) -> Next {
        let MeetingService { driver, service, .. } = self;
        let Some(driver) = driver else { return Next::Over };
        let read = driver.receive_at_most(READ_BOUND, |now, unix, from, datagram, out| {
            service.handle_datagram(now, unix, from, datagram, out);
        });
        service.sweep(driver.now());
        match read {
            Ok(true) => Next::Again,
            Ok(false) => Next::Wait(Duration::from_secs(3600)),
            Err(_) => {
                self.socket_errors += 1;
                Next::Pause(AFTER_ERROR)
            }
        }
    }

    fn close(&mut self) {
        self.driver = None;
    }

    fn discard(&mut self) {
        self.driver = None;
    }
}

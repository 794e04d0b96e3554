//! What a peer knows about the server, and about itself from the server: its cookie, and the addresses it is seen with.
//!
//! Promises: an answer counts only with the number of an open question, which nobody knows who can't read the path.

use core::net::SocketAddr;

use super::candidates::Ourselves;
use crate::rendezvous::messages::{Asked, Request, Sighting};
use crate::rendezvous::secrets::{ShortTag, TAG_BYTES};
use crate::store::Datagrams;
use crate::time::{Duration, Instant};

/// Between two questions to the second port.
const OBSERVE_INTERVAL: Duration = Duration::from_millis(100);

/// Questions to the second port before going on without it.
const OBSERVE_TRIES: u32 = 4;

pub(super) struct ServerLine {
    pub(super) server: SocketAddr,
    cookie: Option<ShortTag>,
    second_port: u16,
    us: Ourselves,
    /// A cookie was taken and used at once. A server that sends only cookies doesn't make us ask faster.
    has_hurried: bool,
    observe_number: u32,
    observe_tries: u32,
    observe_at: Instant,
}

impl ServerLine {
    pub(super) fn new(server: SocketAddr, inside: Vec<SocketAddr>, observe_number: u32) -> Self {
        ServerLine {
            server,
            cookie: None,
            second_port: 0,
            us: Ourselves { outside: None, sighting: Sighting { second: None, inside } },
            has_hurried: false,
            observe_number,
            observe_tries: 0,
            observe_at: Instant::NEVER,
        }
    }

    pub(super) fn us(&self) -> &Ourselves {
        &self.us
    }

    /// Whether a question may be sent: the first one gets a cookie, later ones wait until both our addresses are known.
    pub(super) fn may_ask(&self) -> bool {
        self.cookie.is_none() || self.observe_at == Instant::NEVER
    }

    pub(super) fn ask(&self, number: u32, request: Request, out: &mut Datagrams) {
        let cookie = self.cookie.unwrap_or([0; TAG_BYTES]);
        out.push_with(self.server, |out| Asked { number, cookie, request }.write(out));
    }

    /// Handles a cookie. True if questions with an old cookie are to be repeated now.
    pub(super) fn handle_challenge(
        &mut self,
        now: Instant,
        cookie: ShortTag,
        second_port: u16,
        seen: SocketAddr,
    ) -> bool {
        self.cookie = Some(cookie);
        self.second_port = second_port;
        self.note_seen(now, seen);
        !core::mem::replace(&mut self.has_hurried, true)
    }

    /// The server accepted our cookie and saw us at this address. True if that is new.
    pub(super) fn note_answered(&mut self, now: Instant, seen: Option<SocketAddr>) -> bool {
        self.has_hurried = false;
        seen.is_some_and(|seen| self.note_seen(now, seen))
    }

    fn note_seen(&mut self, now: Instant, seen: SocketAddr) -> bool {
        let is_news = self.us.outside.replace(seen) != Some(seen);
        if is_news {
            self.us.sighting.second = None;
            self.observe_tries = 0;
            self.observe_at = if self.second_port == 0 { Instant::NEVER } else { now };
        }
        is_news
    }

    /// True if this answers our question to the second port.
    pub(super) fn handle_observed(&mut self, from: SocketAddr, number: u32, seen: SocketAddr) -> bool {
        let asked = self.observe_at != Instant::NEVER && number == self.observe_number;
        let is_answer = asked && Some(from) == self.second_address();
        if is_answer {
            self.us.sighting.second = Some(seen);
            self.observe_at = Instant::NEVER;
        }
        is_answer
    }

    pub(super) fn second_address(&self) -> Option<SocketAddr> {
        (self.second_port != 0).then(|| SocketAddr::new(self.server.ip(), self.second_port))
    }

    pub(super) fn transmit(&mut self, now: Instant, out: &mut Datagrams) {
        if now < self.observe_at {
            return;
        }
        let Some(second) = self.second_address().filter(|_| self.observe_tries < OBSERVE_TRIES) else {
            self.observe_at = Instant::NEVER;
            return;
        };
        self.observe_tries += 1;
        self.observe_at = now + OBSERVE_INTERVAL;
        let (number, cookie, request) = (self.observe_number, [0; TAG_BYTES], Request::Observe);
        out.push_with(second, |out| Asked { number, cookie, request }.write(out));
    }

    pub(super) fn next_deadline(&self) -> Instant {
        self.observe_at
    }
}

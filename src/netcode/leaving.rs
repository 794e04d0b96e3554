//! Disconnected clients to which disconnect packets are still being sent: their slots are already free.
//!
//! Promises: each is notified [`DISCONNECT_REPEATS`] times, [`REPEAT_INTERVAL`] apart, so that a burst of loss
//! doesn't swallow them all. Bounded: beyond [`CAPACITY`] all repeats go out at once.

use core::net::SocketAddr;
use core::ops::Range;

use super::packet::{KEEP_ALIVE_BODY_BYTES, Kind};
use super::sealer::{DISCONNECT_REPEATS, Sealer};
use super::slots::ClientHandle;
use crate::store::Datagrams;
use crate::time::{Duration, Instant};

/// The maximum number of clients being notified.
const CAPACITY: usize = 1024;

const REPEAT_INTERVAL: Duration = Duration::from_millis(15);

/// The goodbyes to one peer, counted from 0.
#[derive(Clone, Debug)]
pub struct Repeats {
    sent: u32,
    next: Instant,
    until: Instant,
}

impl Repeats {
    /// Starts now; at `until`, all goodbyes that are left are due.
    pub fn new(now: Instant, until: Instant) -> Self {
        Repeats { sent: 0, next: now, until }
    }

    /// Takes the goodbyes to send now.
    pub fn take_due(&mut self, now: Instant) -> Range<u32> {
        if self.until <= now {
            return self.take_all();
        }
        let first = self.sent;
        if self.next <= now && !self.is_over() {
            self.sent += 1;
            self.next = now + REPEAT_INTERVAL;
        }
        first..self.sent
    }

    /// Takes all goodbyes that are left.
    pub fn take_all(&mut self) -> Range<u32> {
        core::mem::replace(&mut self.sent, DISCONNECT_REPEATS)..DISCONNECT_REPEATS
    }

    /// Whether all goodbyes were taken.
    pub fn is_over(&self) -> bool {
        self.sent == DISCONNECT_REPEATS
    }

    /// When the next goodbye is due.
    pub fn next(&self) -> Instant {
        self.next.min(self.until)
    }
}

/// The farewell of the layer above.
#[derive(Clone, Debug)]
pub struct Farewell {
    /// Sent instead of a disconnect packet.
    pub payload: Vec<u8>,
    /// Whether the client is known to understand them. Otherwise half of the goodbyes carry them, and the other half
    /// are plain disconnect packets, which every client understands.
    pub understood: bool,
}

impl Farewell {
    /// In how many of the goodbyes it is sent.
    fn repeats(&self) -> u32 {
        if self.understood { DISCONNECT_REPEATS } else { DISCONNECT_REPEATS / 2 }
    }
}

/// A client to be notified.
pub(crate) struct Leaver {
    pub(crate) client: ClientHandle,
    pub(crate) address: SocketAddr,
    pub(crate) sealer: Sealer,
    /// The keep-alive that must come before, for a client that may not know yet that it is connected.
    pub(crate) introduction: Option<[u8; KEEP_ALIVE_BODY_BYTES]>,
    pub(crate) farewell: Option<Farewell>,
    pub(crate) repeats: Repeats,
}

#[derive(Default)]
pub(crate) struct LeavingList {
    leavers: Vec<Leaver>,
}

impl LeavingList {
    /// Notifies a client with [`LeavingList::update`] from now on; until then its farewell can be set.
    pub(crate) fn add(&mut self, mut leaver: Leaver, out: &mut Datagrams) {
        if self.leavers.len() >= CAPACITY {
            leaver.send_all(out);
        } else {
            self.leavers.push(leaver);
        }
    }

    /// Sets the farewell of a client that is still being notified.
    pub(crate) fn set_farewell(&mut self, client: ClientHandle, farewell: Farewell) {
        // The last ones were added last.
        if let Some(leaver) = self.leavers.iter_mut().rev().find(|leaver| leaver.client == client) {
            leaver.farewell = Some(farewell);
        }
    }

    /// Sends the repeats that are due: at most one a client.
    pub(crate) fn update(&mut self, now: Instant, out: &mut Datagrams) {
        self.leavers.iter_mut().for_each(|leaver| leaver.send_due(now, out));
        self.leavers.retain(|leaver| !leaver.repeats.is_over());
    }

    /// Sends all repeats at once and forgets everybody.
    pub(crate) fn flush(&mut self, out: &mut Datagrams) {
        self.leavers.drain(..).for_each(|mut leaver| leaver.send_all(out));
    }

    pub(crate) fn next_deadline(&self) -> Instant {
        self.leavers.iter().map(|leaver| leaver.repeats.next()).min().unwrap_or(Instant::NEVER)
    }
}

impl Leaver {
    /// Sends the goodbye that is due, if one is.
    pub(crate) fn send_due(&mut self, now: Instant, out: &mut Datagrams) {
        let due = self.repeats.take_due(now);
        self.send(due, out);
    }

    fn send_all(&mut self, out: &mut Datagrams) {
        let left = self.repeats.take_all();
        self.send(left, out);
    }

    fn send(&mut self, goodbyes: Range<u32>, out: &mut Datagrams) {
        let Leaver { address, sealer, introduction, farewell, .. } = self;
        for i in goodbyes {
            if let Some(keep_alive) = introduction {
                sealer.send(*address, Kind::KeepAlive, keep_alive, out);
            }
            let farewell = farewell.as_ref().filter(|farewell| i < farewell.repeats());
            sealer.send_goodbye(*address, farewell.map(|farewell| &farewell.payload[..]), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaver() -> Leaver {
        Leaver {
            client: ClientHandle::default(),
            address: "1.1.1.1:1".parse().unwrap(),
            sealer: Sealer::new(1, [0; 32], 0),
            introduction: None,
            farewell: None,
            repeats: Repeats::new(Instant::ZERO, Instant::NEVER),
        }
    }

    /// Adds a client whose first goodbye goes at once.
    fn add(list: &mut LeavingList, mut leaver: Leaver, out: &mut Datagrams) {
        leaver.send_due(Instant::ZERO, out);
        list.add(leaver, out);
    }

    #[test]
    fn goodbyes_are_spread_over_time() {
        let (mut list, mut out) = (LeavingList::default(), Datagrams::new());
        add(&mut list, leaver(), &mut out);
        assert_eq!(out.len(), 1);
        for ms in 0..135 {
            list.update(Instant::from_millis(ms), &mut out);
            assert_eq!(out.len() as u64, 1 + ms / 15, "{ms}");
        }
        list.update(Instant::from_millis(135), &mut out);
        assert_eq!((out.len(), list.next_deadline()), (10, Instant::NEVER));
    }

    #[test]
    fn words_that_may_not_be_understood_are_followed_by_disconnect_packets() {
        let kinds = |understood| {
            let (mut list, mut out) = (LeavingList::default(), Datagrams::new());
            let farewell = Some(Farewell { payload: vec![7; 9], understood });
            add(&mut list, Leaver { farewell, ..leaver() }, &mut out);
            list.flush(&mut out);
            // The kind is in the lower half of the first byte.
            out.iter().map(|(_, datagram)| datagram[0] & 0xF).collect::<Vec<_>>()
        };
        assert_eq!(kinds(true), [5; 10], "payloads");
        assert_eq!(kinds(false), [5, 5, 5, 5, 5, 6, 6, 6, 6, 6], "and disconnect packets");
    }

    #[test]
    fn beyond_the_capacity_nobody_waits() {
        let (mut list, mut out) = (LeavingList::default(), Datagrams::new());
        (0..CAPACITY).for_each(|_| add(&mut list, leaver(), &mut out));
        assert_eq!(out.len(), CAPACITY);
        add(&mut list, leaver(), &mut out);
        assert_eq!((out.len(), list.leavers.len()), (CAPACITY + 10, CAPACITY));
        list.flush(&mut out);
        assert_eq!((out.len(), list.leavers.len()), (10 * (CAPACITY + 1), 0));
    }

    #[test]
    fn goodbyes_that_are_left_are_due_at_the_end() {
        let mut repeats = Repeats::new(Instant::ZERO, Instant::from_millis(20));
        let due = [0, 14, 15, 19, 20, 35].map(|ms| repeats.take_due(Instant::from_millis(ms)));
        assert_eq!(due, [0..1, 1..1, 1..2, 2..2, 2..10, 10..10]);
        assert!(repeats.is_over());
    }
}

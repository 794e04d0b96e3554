//! Disconnected clients to which disconnect packets are still being sent: their slots are already free.
//!
//! Promises: each is notified [`DISCONNECT_REPEATS`] times, [`REPEAT_INTERVAL`] apart, so that a burst of loss
//! doesn't swallow them all. Bounded: beyond [`CAPACITY`] all repeats go out at once.

use core::net::SocketAddr;

use super::packet::{KEEP_ALIVE_BODY_BYTES, Kind};
use super::sealer::{DISCONNECT_REPEATS, Sealer};
use super::slots::ClientHandle;
use crate::store::Datagrams;
use crate::time::{Duration, Instant};

/// The maximum number of clients being notified.
const CAPACITY: usize = 1024;

const REPEAT_INTERVAL: Duration = Duration::from_millis(15);

/// The farewell of the layer above.
#[derive(Clone, Copy, Debug)]
pub struct Farewell<'a> {
    /// They go out as a payload.
    pub payload: &'a [u8],
    /// Whether the client is known to understand them. Otherwise half of the goodbyes carry them, and the other half
    /// are plain disconnect packets, which every client understands.
    pub understood: bool,
}

impl Farewell<'_> {
    /// In how many of the goodbyes it is sent.
    pub(crate) fn repeats(&self) -> u32 {
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
    /// Sent instead of a disconnect packet.
    pub(crate) farewell: Option<Box<[u8]>>,
    /// Goodbyes that may be the farewell; the rest are disconnect packets.
    pub(crate) farewells: u32,
}

impl Leaver {
    fn tell(&mut self, out: &mut Datagrams) {
        if let Some(keep_alive) = &self.introduction {
            self.sealer.send(self.address, Kind::KeepAlive, keep_alive, out);
        }
        let farewell = self.farewell.as_deref().filter(|_| self.farewells > 0);
        self.sealer.send_goodbye(self.address, farewell, out);
        self.farewells = self.farewells.saturating_sub(1);
    }
}

struct Parting {
    leaver: Leaver,
    repeats_left: u32,
    next: Instant,
}

#[derive(Default)]
pub(crate) struct LeavingList {
    entries: Vec<Parting>,
}

impl LeavingList {
    /// Notifies a client once now; the repeats follow from [`LeavingList::update`].
    pub(crate) fn add(&mut self, now: Instant, leaver: Leaver, out: &mut Datagrams) {
        let mut entry = Parting { leaver, repeats_left: DISCONNECT_REPEATS, next: now };
        if self.entries.len() >= CAPACITY {
            entry.finish(out);
        } else {
            entry.tell(now, out);
            self.entries.push(entry);
        }
    }

    /// Like [`LeavingList::add`], but starts with [`LeavingList::update`], so that its farewell can still be set.
    pub(crate) fn add_later(&mut self, now: Instant, leaver: Leaver, out: &mut Datagrams) {
        let mut entry = Parting { leaver, repeats_left: DISCONNECT_REPEATS, next: now };
        if self.entries.len() >= CAPACITY {
            entry.finish(out);
        } else {
            self.entries.push(entry);
        }
    }

    /// Sets the farewell of a client that is still being notified.
    pub(crate) fn set_farewell(&mut self, client: ClientHandle, farewell: Farewell<'_>) {
        // The last ones were added last.
        let mut entries = self.entries.iter_mut().rev().map(|entry| &mut entry.leaver);
        if let Some(leaver) = entries.find(|leaver| leaver.client == client) {
            leaver.farewell = Some(farewell.payload.into());
            leaver.farewells = farewell.repeats();
        }
    }

    /// Sends the repeats that are due: at most one a client.
    pub(crate) fn update(&mut self, now: Instant, out: &mut Datagrams) {
        for entry in self.entries.iter_mut().filter(|entry| entry.next <= now) {
            entry.tell(now, out);
        }
        self.entries.retain(|entry| entry.repeats_left > 0);
    }

    /// Sends all repeats at once and forgets everybody.
    pub(crate) fn flush(&mut self, out: &mut Datagrams) {
        self.entries.drain(..).for_each(|mut entry| entry.finish(out));
    }

    pub(crate) fn next_deadline(&self) -> Instant {
        self.entries.iter().map(|entry| entry.next).min().unwrap_or(Instant::NEVER)
    }
}

impl Parting {
    fn tell(&mut self, now: Instant, out: &mut Datagrams) {
        self.leaver.tell(out);
        self.repeats_left -= 1;
        self.next = now + REPEAT_INTERVAL;
    }

    fn finish(&mut self, out: &mut Datagrams) {
        (0..self.repeats_left).for_each(|_| self.leaver.tell(out));
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
            farewells: 0,
        }
    }

    #[test]
    fn goodbyes_are_spread_over_time() {
        let (mut list, mut out) = (LeavingList::default(), Datagrams::new());
        list.add(Instant::ZERO, leaver(), &mut out);
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
        let kinds = |farewells| {
            let (mut list, mut out) = (LeavingList::default(), Datagrams::new());
            list.add(
                Instant::ZERO,
                Leaver { farewell: Some([7; 9].into()), farewells, ..leaver() },
                &mut out,
            );
            list.flush(&mut out);
            // The kind is in the lower half of the first byte.
            out.iter().map(|(_, datagram)| datagram[0] & 0xF).collect::<Vec<_>>()
        };
        assert_eq!(kinds(DISCONNECT_REPEATS), [5; 10], "payloads");
        assert_eq!(kinds(5), [5, 5, 5, 5, 5, 6, 6, 6, 6, 6], "and disconnect packets");
    }

    #[test]
    fn beyond_the_capacity_nobody_waits() {
        let (mut list, mut out) = (LeavingList::default(), Datagrams::new());
        (0..CAPACITY).for_each(|_| list.add(Instant::ZERO, leaver(), &mut out));
        assert_eq!(out.len(), CAPACITY);
        list.add(Instant::ZERO, leaver(), &mut out);
        assert_eq!((out.len(), list.entries.len()), (CAPACITY + 10, CAPACITY));
        list.flush(&mut out);
        assert_eq!((out.len(), list.entries.len()), (10 * (CAPACITY + 1), 0));
    }
}

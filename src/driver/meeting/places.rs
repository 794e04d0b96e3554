//! The ports of a rendezvous server or a relay, as one.

use super::Meeting;
use super::services::{Counted, Lookout};
use crate::rendezvous::{RelayServer, RendezvousServer};

/// A rendezvous server with its second port, or a relay.
#[derive(Default)]
pub struct Meetings {
    pub rendezvous: Option<Meeting<RendezvousServer>>,
    pub lookout: Option<Meeting<Lookout>>,
    pub relay: Option<Meeting<RelayServer>>,
}

impl Meetings {
    /// Ends all; later calls do nothing.
    pub fn close(&self) {
        self.rendezvous.iter().for_each(Meeting::close);
        self.lookout.iter().for_each(Meeting::close);
        self.relay.iter().for_each(Meeting::close);
    }

    /// Whether the service was closed, or its thread panicked.
    pub fn is_closed(&self) -> bool {
        let rendezvous = self.rendezvous.as_ref().is_none_or(Meeting::is_closed);
        rendezvous && self.relay.as_ref().is_none_or(Meeting::is_closed)
    }

    /// Answers the waiting datagrams of ports without a thread.
    pub fn pump(&self) {
        self.rendezvous.iter().for_each(Meeting::pump);
        self.lookout.iter().for_each(Meeting::pump);
        self.relay.iter().for_each(Meeting::pump);
    }

    /// All counters by name; those of the second port begin with `second_port`.
    pub fn counters(&self) -> Vec<(String, u64)> {
        fn of<S: Counted>(meeting: Option<&Meeting<S>>) -> Vec<(&'static str, u64)> {
            meeting.map(Meeting::counters).unwrap_or_default()
        }
        let first = of(self.rendezvous.as_ref()).into_iter().chain(of(self.relay.as_ref()));
        let first = first.map(|(name, count)| (name.to_owned(), count));
        let second = of(self.lookout.as_ref()).into_iter();
        first.chain(second.map(|(name, count)| (format!("second_port.{name}"), count))).collect()
    }
}

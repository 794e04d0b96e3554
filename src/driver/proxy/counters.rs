//! A proxy's counters: everything that it drops is counted under a name.

use super::direction::Both;
use crate::netsim::link::LinkCounters;
use crate::store::counters::counters;

counters! {
    /// Datagrams of one direction at the two sockets.
    pub struct PathCounters {
        received,
        /// Their bytes, without headers.
        received_bytes,
        /// Datagrams dropped because those under way took all the memory they may.
        memory_full,
        /// Datagrams handed to the system after their time on the link.
        forwarded,
        /// Their bytes, without headers.
        forwarded_bytes,
        /// Of those, sent more than a millisecond late: the machine is too busy.
        late,
        /// Datagrams dropped because the system's buffers were full.
        send_buffer_full,
        /// Reports that the receiving side, or its network, can't be reached.
        unreachable,
        /// Datagrams dropped, and receptions that failed, for another reason.
        errors,
    }
}

counters! {
    /// Clients: the addresses that datagrams came from.
    pub struct ClientCounters {
        present,
        /// Clients ever; one that returned after it was forgotten counts again.
        admitted,
        /// Clients forgotten after a silence.
        forgotten,
        /// Datagrams dropped because they would have begun one client too many.
        refused,
        /// Datagrams dropped because the system had no socket for a new client.
        without_socket,
    }
}

counters! {
    /// Datagrams now on the links of all clients.
    pub struct UnderWay {
        /// How many, copies counted.
        datagrams,
        /// The memory they take, counted against its bound.
        bytes,
    }
}

/// Everything a proxy counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyCounters {
    /// Each direction at the sockets.
    pub paths: Both<PathCounters>,
    /// Each direction on the links, of all clients together.
    pub links: Both<LinkCounters>,
    pub clients: ClientCounters,
    /// What is under way now.
    pub under_way: UnderWay,
}

impl ProxyCounters {
    /// Group, name and count.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let of = |group| move |(name, count)| (group, name, count);
        // The sockets' counts cover both ends of a link; the link's `sent` and `delivered` would only confuse.
        let inside = |(name, _): &(&str, u64)| !["sent", "delivered"].contains(name);
        let up = self.paths.up.iter().chain(self.links.up.iter().filter(inside)).map(of("up"));
        let down = self.paths.down.iter().chain(self.links.down.iter().filter(inside)).map(of("down"));
        let clients = self.clients.iter().map(of("clients"));
        up.chain(down).chain(clients).chain(self.under_way.iter().map(of("under_way")))
    }
}

//! Finds the endpoint of a shared port that a datagram is for: a table by remote address, sans-IO.
//!
//! Promises: a datagram from an address that an endpoint dials goes to that endpoint, every other one to the
//! listener, if there is one. Only our own endpoints make routes, by dialling: no sender, and no forged address,
//! makes, moves or ends one. An endpoint has a route for each server that it dials now, and none once it is gone.
//!
//! Refuses a second endpoint that dials the same address, which couldn't be told from the first. A peer that dials
//! our listener from an address that another endpoint here dials never reaches the listener: if you need both, use
//! one host that listens and dials.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// Names an endpoint of a port; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(u64);

/// An address for comparison: IPv4 in IPv6 counts as IPv4, and a link-local scope, which only one side knows, is left
/// out.
type Key = (IpAddr, u16);

fn key(address: SocketAddr) -> Key {
    (address.ip().to_canonical(), address.port())
}

/// The endpoints of a port, by remote address.
#[derive(Debug, Default)]
pub struct Router {
    routes: HashMap<Key, MemberId>,
    listener: Option<MemberId>,
    next: u64,
}

impl Router {
    /// A name for an endpoint that dials.
    pub fn add(&mut self) -> MemberId {
        self.next += 1;
        MemberId(self.next)
    }

    /// Names an endpoint that gets the datagrams of no route; None if there is one already.
    pub fn add_listener(&mut self) -> Option<MemberId> {
        if self.listener.is_some() {
            return None;
        }
        self.listener = Some(self.add());
        self.listener
    }

    /// Sets the addresses that an endpoint dials. Returns those that belong to another one, which keeps them.
    pub fn set_routes(
        &mut self,
        member: MemberId,
        dialled: impl Iterator<Item = SocketAddr> + Clone,
    ) -> Option<SocketAddr> {
        let is_dialled = |address: &Key| dialled.clone().any(|dialled| key(dialled) == *address);
        self.routes.retain(|address, owner| *owner != member || is_dialled(address));
        dialled.fold(None, |taken, address| {
            let owner = *self.routes.entry(key(address)).or_insert(member);
            taken.or((owner != member).then_some(address))
        })
    }

    /// The endpoint that a datagram is for.
    pub fn route(&self, from: SocketAddr) -> Option<MemberId> {
        self.routes.get(&key(from)).copied().or(self.listener)
    }

    /// Forgets an endpoint and all its routes.
    pub fn remove(&mut self, member: MemberId) {
        self.set_routes(member, core::iter::empty());
        self.listener = self.listener.filter(|listener| *listener != member);
    }

    /// How many routes there are.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether all datagrams go to the listener.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, n], 7))
    }

    #[test]
    fn what_nobody_dials_goes_to_the_listener_of_which_there_is_one() {
        let mut router = Router::default();
        assert_eq!(router.route(address(1)), None);
        let listener = router.add_listener();
        assert_eq!((router.route(address(1)), router.add_listener()), (listener, None));
        let client = router.add();
        assert_eq!(router.set_routes(client, [address(1)].into_iter()), None);
        assert_eq!((router.route(address(1)), router.route(address(2))), (Some(client), listener));
        router.remove(listener.unwrap());
        assert_eq!((router.route(address(1)), router.route(address(2))), (Some(client), None));
        assert!(router.add_listener().is_some());
    }

    #[test]
    fn a_route_stays_with_who_has_it_and_ends_with_it() {
        let mut router = Router::default();
        let (first, second) = (router.add(), router.add());
        assert_eq!(router.set_routes(first, [address(1), address(2)].into_iter()), None);
        let taken = router.set_routes(second, [address(3), address(2)].into_iter());
        assert_eq!((taken, router.route(address(2)), router.len()), (Some(address(2)), Some(first), 3));
        // It dials another server of its token.
        router.set_routes(first, [address(4)].into_iter());
        assert_eq!(
            (router.route(address(1)), router.route(address(4)), router.len()),
            (None, Some(first), 2)
        );
        assert_eq!(router.set_routes(second, [address(3), address(2)].into_iter()), None);
        router.remove(first);
        router.remove(second);
        assert!(router.is_empty());
        assert!(router.add() > second, "no name is given twice");
    }
}

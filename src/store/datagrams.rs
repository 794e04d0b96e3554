//! A batch of datagrams to send: one arena of bytes and a list of (destination, range). The core writes
//! into it, the driver transmits it in as few system calls as it can, and its memory is used again.

use core::net::SocketAddr;
use core::ops::Range;

/// Datagrams waiting to be transmitted, in order, each with its destination.
#[derive(Clone, Debug)]
pub struct Datagrams<To = SocketAddr> {
    arena: Vec<u8>,
    entries: Vec<(To, Range<usize>)>,
}

/// Packets of one conversation, each with its number in the layer below.
pub type Packets = Datagrams<u64>;

impl<To> Default for Datagrams<To> {
    fn default() -> Self {
        Datagrams { arena: Vec::new(), entries: Vec::new() }
    }
}

impl<To: Copy> Datagrams<To> {
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends one datagram for `to`, written by `write` at the end of the arena it is given. `write` may only
    /// append to it.
    pub fn push_with(&mut self, to: To, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.arena.len();
        write(&mut self.arena);
        debug_assert!(self.arena.len() >= start);
        self.entries.push((to, start..self.arena.len()));
    }

    /// Appends a copy of one datagram for `to`.
    pub fn push(&mut self, to: To, datagram: &[u8]) {
        self.push_with(to, |arena| arena.extend_from_slice(datagram));
    }

    /// The datagrams in the order they were appended.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (To, &[u8])> {
        self.entries.iter().map(|(to, range)| (*to, &self.arena[range.clone()]))
    }

    /// The destination of each datagram, in order, and where its bytes are in [`Datagrams::arena`]: those of one
    /// begin where those of the one before it end.
    pub fn entries(&self) -> &[(To, Range<usize>)] {
        &self.entries
    }

    /// The bytes of all datagrams, one after the other.
    pub fn arena(&self) -> &[u8] {
        &self.arena
    }

    /// As [`Datagrams::iter`], to change in place.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (To, &mut [u8])> {
        // Ranges follow each other without gaps.
        let mut rest = self.arena.as_mut_slice();
        self.entries.iter().map(move |(to, range)| {
            let (datagram, behind) = core::mem::take(&mut rest).split_at_mut(range.len());
            rest = behind;
            (*to, datagram)
        })
    }

    /// Changes where the datagrams go.
    pub fn redirect(&mut self, change: impl Fn(To) -> To) {
        self.entries.iter_mut().for_each(|(to, _)| *to = change(*to));
    }

    /// Passes each datagram for which `is_other` holds to `take`, with the batch to append to; the rest stays, in order.
    pub fn divert(
        &mut self,
        is_other: impl Fn(To) -> bool,
        mut take: impl FnMut(To, &[u8], &mut Datagrams<To>),
    ) {
        if !self.entries.iter().any(|(to, _)| is_other(*to)) {
            return;
        }
        for (to, datagram) in core::mem::take(self).iter() {
            if is_other(to) { take(to, datagram, self) } else { self.push(to, datagram) }
        }
    }

    /// How many datagrams wait.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bytes of all datagrams together, without headers below UDP's payload.
    pub fn total_bytes(&self) -> usize {
        self.arena.len()
    }

    /// Forgets all datagrams and keeps the memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_and_boundaries() {
        let (a, b): (SocketAddr, SocketAddr) = ("127.0.0.1:1".parse().unwrap(), "[::1]:2".parse().unwrap());
        let mut batch = Datagrams::<SocketAddr>::new();
        batch.push(a, b"one");
        batch.push_with(b, |arena| arena.extend_from_slice(b"three"));
        batch.push(a, b"");
        let seen: Vec<_> = batch.iter().collect();
        assert_eq!(seen, [(a, &b"one"[..]), (b, b"three"), (a, b"")]);
        assert_eq!((batch.len(), batch.total_bytes()), (3, 8));
        batch.iter_mut().for_each(|(_, datagram)| datagram.reverse());
        assert_eq!(
            batch.iter().map(|(_, datagram)| datagram).collect::<Vec<_>>(),
            [&b"eno"[..], b"eerht", b""]
        );
        batch.clear();
        assert!(batch.is_empty());
    }
}

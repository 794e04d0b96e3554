//! The receiving half of a socket: from the system into the slab, from there to the caller.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use super::errors::is_too_long;
use super::slab::Piece;
use super::{Calls, UdpSocket, plain};
use crate::store::Datagrams;
use crate::time::Duration;

/// What one attempt to receive gave.
enum Filled {
    /// Something to hand out; whether more may wait in the kernel.
    Some {
        more: bool,
    },
    /// An error that says nothing of this socket; more may wait.
    Passed,
    Nothing,
}

impl UdpSocket {
    /// Receives one datagram, and tells where it came from. `None` when none waits, or as many as one call reads
    /// were dropped.
    ///
    /// # Errors
    /// Only what won't pass by itself.
    pub fn receive(&mut self) -> io::Result<Option<(SocketAddr, &mut [u8])>> {
        let mut left = self.receive_bound;
        while left > 0 {
            if let Some(piece) = self.slab.take() {
                left -= 1;
                if self.accept(&piece) {
                    return Ok(Some((piece.from, self.slab.bytes(&piece))));
                }
            } else {
                match self.fill(1)? {
                    Filled::Some { .. } => {}
                    Filled::Passed => left -= 1,
                    Filled::Nothing => break,
                }
            }
        }
        Ok(None)
    }

    /// Appends the datagrams that wait to `out`, each with the address it came from, up to the bound of one
    /// call. True when the bound ended it and more may wait.
    ///
    /// # Errors
    /// Only what won't pass by itself. What was received before is in `out`.
    pub fn receive_batch(&mut self, out: &mut Datagrams) -> io::Result<bool> {
        self.receive_each(self.receive_bound, || (), |(), from, datagram| out.push(from, datagram))
    }

    /// Gives each datagram that waits to `handle`, with what `clock` said after it was read from the system and the address
    /// it came from, reading at most `bound`, those dropped counted. True when the bound ended it and more may wait.
    ///
    /// # Errors
    /// Only what won't pass by itself. What was received before has been handled.
    pub fn receive_each<T: Copy>(
        &mut self,
        bound: usize,
        mut clock: impl FnMut() -> T,
        mut handle: impl FnMut(T, SocketAddr, &mut [u8]),
    ) -> io::Result<bool> {
        let (mut left, mut more, mut read_at) = (bound, true, None);
        while left > 0 {
            if let Some(piece) = self.slab.take() {
                left -= 1;
                if self.accept(&piece) {
                    // What an earlier call read has this call's time: time never goes back.
                    let at = *read_at.get_or_insert_with(&mut clock);
                    handle(at, piece.from, self.slab.bytes(&piece));
                }
            } else if more {
                match self.fill(left)? {
                    Filled::Some { more: maybe } => (more, read_at) = (maybe, Some(clock())),
                    Filled::Passed => left -= 1,
                    Filled::Nothing => return Ok(false),
                }
            } else {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Blocks until a datagram waits or `timeout` has passed; true when one (or an error) waits. For a thread
    /// of its own: nothing else may use the socket meanwhile, which `&mut` sees to.
    ///
    /// # Errors
    /// When the socket can't be switched between blocking and not.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        if !self.slab.is_empty() {
            return Ok(true);
        }
        // A timeout of zero would mean none at all.
        self.socket.set_read_timeout(Some(timeout.max(Duration::from_micros(1))))?;
        self.socket.set_nonblocking(false)?;
        let peeked = self.socket.peek_from(&mut [0]);
        self.socket.set_nonblocking(true)?;
        let timed_out =
            |kind| matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted);
        // Any other error is for the next receive to find: Windows reports one for a datagram above one byte.
        Ok(!matches!(peeked, Err(error) if timed_out(error.kind())))
    }

    /// Reads into the slab, of which all was handed out, at most `most` slots.
    fn fill(&mut self, most: usize) -> io::Result<Filled> {
        self.counters.receive_calls += 1;
        let read = match self.calls {
            Calls::Plain => plain::receive(&self.socket, &mut self.slab, most),
            #[cfg(target_os = "linux")]
            Calls::Batched => super::linux::receive(&self.socket, &mut self.slab, most),
        };
        let error = match read {
            // When fewer came than could have, no more did; or an error that the next call will be told.
            Ok((read, room)) => return Ok(Filled::Some { more: read >= room }),
            Err(error) => error,
        };
        if error.kind() == ErrorKind::WouldBlock {
            Ok(Filled::Nothing)
        } else if is_too_long(&error) {
            self.counters.too_long += 1;
            Ok(Filled::Passed)
        } else if self.count_passing(&error, 1) {
            Ok(Filled::Passed)
        } else {
            Err(error)
        }
    }

    /// Whether a datagram is one to hand over. A slot is longer than those are: one that fills it may be the
    /// beginning of a longer one.
    fn accept(&mut self, piece: &Piece) -> bool {
        if piece.bytes.len() > self.max_datagram {
            self.counters.too_long += 1;
            return false;
        }
        self.counters.received += 1;
        self.counters.received_gro += u64::from(piece.gro);
        true
    }
}

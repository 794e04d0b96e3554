//! The receiving half of a socket: from the system into the slab, from there to the caller.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use super::errors::is_too_long;
use super::slab::Piece;
use super::{Calls, UdpSocket, plain};
use crate::time::Duration;

/// The result of one attempt to receive.
enum Filled {
    /// Something to hand out; whether more may wait in the kernel.
    Some {
        more: bool,
    },
    /// A transient error; more datagrams may wait.
    Passed,
    Nothing,
}

impl UdpSocket {
    /// Receives one datagram with its source address. `None` if none waits, or if a whole call's bound was dropped.
    ///
    /// # Errors
    ///
    /// Only permanent ones.
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

    /// Passes each waiting datagram to `handle`, with the time of `clock` after it was read and its source address;
    /// reads at most `bound`, dropped ones included. True if the bound ended it and more may wait.
    ///
    /// # Errors
    ///
    /// Only permanent ones. Datagrams received before have been handled.
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
                    // Datagrams left over from an earlier call get this call's time: time never goes back.
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
        // A timeout of zero would mean no timeout.
        self.socket.set_read_timeout(Some(timeout.max(Duration::from_micros(1))))?;
        self.socket.set_nonblocking(false)?;
        let peeked = self.socket.peek_from(&mut [0]);
        self.socket.set_nonblocking(true)?;
        let timed_out =
            |kind| matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted);
        // Any other error is for the next receive to find: Windows reports one for a datagram above one byte.
        Ok(!matches!(peeked, Err(error) if timed_out(error.kind())))
    }

    /// Reads at most `most` slots into the slab, which was handed out completely.
    fn fill(&mut self, most: usize) -> io::Result<Filled> {
        self.counters.receive_calls += 1;
        let read = match self.calls {
            Calls::Plain => plain::receive(&self.socket, &mut self.slab, most),
            #[cfg(target_os = "linux")]
            Calls::Batched => super::linux::receive(&self.socket, &mut self.slab, most),
        };
        let error = match read {
            // Fewer than requested: no more wait, or an error that the next call will get.
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

    /// Whether to hand over a datagram. Slots are longer than valid datagrams: one that fills its slot may have been
    /// truncated.
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

//! The sending half of a socket: a batch in as few system calls as the system allows, and the outcome of each
//! datagram.

use std::cell::OnceCell;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::ops::Range;

use super::errors::is_out_of_buffers;
use super::runs::{Run, gather};
use super::{Calls, UdpSocket, plain, refuses_to_cut};
use crate::store::Datagrams;

impl UdpSocket {
    /// Sends one datagram; false if it could not be sent now, which is counted and no worse than a loss on the way.
    ///
    /// # Errors
    ///
    /// Permanent errors of this destination. They are counted, and the socket goes on.
    pub fn send(&mut self, to: SocketAddr, datagram: &[u8]) -> io::Result<bool> {
        let run = Run::single(to, 0..datagram.len());
        match self.send_runs(datagram, std::slice::from_ref(&run)) {
            Ok(_) => Ok(true),
            Err(error) if self.count_unsent(&error, 1) => Ok(false),
            Err(error) => {
                self.counters.send_errors += 1;
                Err(error)
            }
        }
    }

    /// Sends a batch in order, and continues after errors: everything is in the counters.
    pub fn send_batch(&mut self, batch: &Datagrams) {
        let mut runs = std::mem::take(&mut self.runs);
        let mut rest = batch.entries();
        while !rest.is_empty() {
            let age = OnceCell::new();
            let allows = |to, segment| self.gso.allows(to, segment, || *age.get_or_init(|| self.age()));
            gather(rest, allows, self.calls.batch(), &mut runs);
            let done = match self.send_runs(batch.arena(), &runs) {
                Ok(datagrams) => datagrams,
                Err(error) => self.send_apart(batch.arena(), rest, &runs, &error),
            };
            rest = rest.get(done..).unwrap_or_default();
        }
        self.runs = runs;
    }

    /// Finishes the first of `runs`, which failed: returns how many of `entries` are done.
    fn send_apart(
        &mut self,
        arena: &[u8],
        entries: &[(SocketAddr, Range<usize>)],
        runs: &[Run],
        error: &io::Error,
    ) -> usize {
        let Some(&Run { to, count, segment, .. }) = runs.first() else { return 1 };
        if self.count_unsent(error, count as u64) {
            return count;
        }
        if count == 1 {
            self.counters.send_errors += 1;
            return 1;
        }
        self.counters.gso_refused += 1;
        let mut sent = 0;
        for (to, bytes) in entries.iter().take(count) {
            sent += usize::from(self.send(*to, &arena[bytes.clone()]).unwrap_or(false));
        }
        // If none can be sent alone either, GSO wasn't the reason.
        if sent > 0 {
            self.gso.refused(to, segment, refuses_to_cut(error), self.age());
        }
        count
    }

    /// One system call for the first of `runs`: how many datagrams went.
    fn send_runs(&mut self, arena: &[u8], runs: &[Run]) -> io::Result<usize> {
        self.counters.send_calls += 1;
        #[cfg(test)]
        let runs = super::tests::until_fault(self.fault, arena, runs)?;
        let sent = match self.calls {
            Calls::Plain => plain::send(&self.socket, arena, runs)?,
            #[cfg(target_os = "linux")]
            Calls::Batched => super::linux::send(&self.socket, arena, runs)?,
        };
        let went = runs.get(..sent).unwrap_or(runs);
        let joined = went.iter().filter(|run| run.count > 1).map(|run| run.count).sum::<usize>();
        let datagrams = went.iter().map(|run| run.count).sum::<usize>();
        self.counters.sent += datagrams as u64;
        self.counters.sent_gso += joined as u64;
        if joined > 0 {
            self.gso.taken();
        }
        // No system should return this; never loop if one does.
        if datagrams == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(datagrams) }
    }

    /// Counts datagrams that could not go now; false when it is not a matter of time.
    fn count_unsent(&mut self, error: &io::Error, datagrams: u64) -> bool {
        if error.kind() == ErrorKind::WouldBlock || is_out_of_buffers(error) {
            self.counters.send_buffer_full += datagrams;
            return true;
        }
        self.count_passing(error, datagrams)
    }
}

//! The settings of a socket, and its counters.

use crate::limits::MAX_DATAGRAM;
use crate::store::counters::counters;

/// Kernel buffers, each direction: a full datagram takes up to 2.5 kB of it, for which Linux grants twice the
/// requested size, so that more than [`DEFAULT_RECEIVE_BOUND`] of them fit. A system may grant less.
pub const DEFAULT_KERNEL_BUFFER: usize = 4 << 20;

/// Datagrams that one call reads: 1,000 clients sending 60 a second, read 30 times a second, and half as many again.
/// (100 Mbit/s in full datagrams, read 60 times a second, are 170.) For netcode to find them all forged takes some
/// milliseconds; the rest of a flood waits in the kernel.
pub const DEFAULT_RECEIVE_BOUND: usize = 3000;

/// Settings of a [`UdpSocket`](super::UdpSocket).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// The kernel's send buffer to ask for, in bytes.
    pub send_buffer: usize,
    /// The kernel's receive buffer to ask for, in bytes.
    pub receive_buffer: usize,
    /// Datagrams that one call reads at most, those dropped counted; at least 1.
    pub receive_bound: usize,
    /// The longest datagram to receive, in bytes. Longer ones are dropped.
    pub max_datagram: usize,
    /// Have a socket of IPv6 carry IPv4 as well. Its addresses of IPv4 are `::ffff:a.b.c.d`.
    pub both_families: bool,
    /// Carry several datagrams with one system call, where the system can.
    pub batched: bool,
    /// Send datagrams of one length to one peer as one (GSO), if the system can; only with `batched`.
    pub gso: bool,
    /// Receive datagrams of one length from one peer as one (GRO), if the system can; only with `batched`. Some may
    /// then wait here and not in the system, so don't use it if you wait by
    /// [`UdpSocket::number`](super::UdpSocket::number) or [`UdpSocket::handle`](super::UdpSocket::handle).
    pub gro: bool,
}

impl Default for UdpConfig {
    fn default() -> Self {
        UdpConfig {
            send_buffer: DEFAULT_KERNEL_BUFFER,
            receive_buffer: DEFAULT_KERNEL_BUFFER,
            receive_bound: DEFAULT_RECEIVE_BOUND,
            max_datagram: MAX_DATAGRAM,
            both_families: false,
            batched: true,
            gso: true,
            gro: true,
        }
    }
}

counters! {
    /// The counters of a socket.
    pub struct UdpCounters {
        /// Datagrams handed to the kernel.
        sent,
        /// Of these, sent in one segment with others (GSO).
        sent_gso,
        /// System calls to send, failed ones included.
        send_calls,
        received,
        /// Of these, received in one segment with others (GRO).
        received_gro,
        /// System calls to receive, empty ones included.
        receive_calls,
        /// Datagrams that the kernel dropped because its receive buffer was full or their checksum wrong, if the
        /// system reports them (Linux). Datagrams that would have arrived as one (GRO) count as one.
        kernel_drops,
        /// Datagrams dropped because they are longer than the caller allows.
        too_long,
        /// Datagrams not sent because the kernel's buffers were full.
        send_buffer_full,
        /// Reports that a peer or its network can't be reached.
        unreachable,
        /// Calls that a signal interrupted.
        interrupted,
        /// Datagrams not sent for another reason, which the call returned.
        send_errors,
        /// How often the system refused several datagrams as one. They were sent one by one, as are others of such
        /// length to that destination for a minute.
        gso_refused,
    }
}

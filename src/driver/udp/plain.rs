//! One datagram a system call, everywhere: batches of one.

use std::io;
use std::net::UdpSocket;

use super::runs::Run;
use super::slab::{Arrived, Slab};

/// Sends the first run, of one datagram: how many runs went.
pub(super) fn send(socket: &UdpSocket, arena: &[u8], runs: &[Run]) -> io::Result<usize> {
    let Some(run) = runs.first() else { return Ok(0) };
    socket.send_to(&arena[run.bytes.clone()], run.to)?;
    Ok(1)
}

/// Receives into a slab that was handed out completely, never more than one slot: how many slots were filled, and how
/// many could have been.
pub(super) fn receive(socket: &UdpSocket, slab: &mut Slab, most: usize) -> io::Result<(usize, usize)> {
    let (mut slots, arrived) = slab.refill(most.min(1));
    let Some(slot) = slots.next() else { return Ok((0, 0)) };
    let (len, from) = socket.recv_from(slot)?;
    arrived.push(Arrived { from, len, segment: slot.len() });
    Ok((1, 1))
}

/// Datagrams that the system dropped: only Linux reports them.
#[cfg(not(target_os = "linux"))]
pub(super) fn drops(_socket: &UdpSocket) -> Option<u32> {
    None
}

/// Whether an error means that the system doesn't support GSO, which isn't used here.
#[cfg(not(target_os = "linux"))]
pub(super) fn refuses_to_cut(_error: &io::Error) -> bool {
    false
}

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

/// Receives one datagram, into a slab of which all was handed out: how many slots were read into.
pub(super) fn receive(socket: &UdpSocket, slab: &mut Slab) -> io::Result<usize> {
    let (mut slots, arrived) = slab.refill(1);
    let Some(slot) = slots.next() else { return Ok(0) };
    let (len, from) = socket.recv_from(slot)?;
    arrived.push(Arrived { from, len, segment: slot.len() });
    Ok(1)
}

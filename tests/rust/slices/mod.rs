//! Chunks and slices, end to end: what the two ends promise each other, and what they promise against anyone.

mod cancelling;
mod hangs;
mod hostile;
mod rates;
mod soak;
mod transfer;

use tickwire::articles::slices::{ChunkReceiver, ChunkReceiverConfig, ChunkSender, ChunkSenderConfig};
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant};
use tickwire::wire::{BitReader, BitSink, BitWriter, bit_len};

/// IPv4 and UDP headers.
const OVERHEAD: usize = 28;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn sender() -> ChunkSender {
    ChunkSender::new(ChunkSenderConfig::default()).unwrap()
}

/// A sender that the rate never stops.
fn fast_sender() -> ChunkSender {
    let config = ChunkSenderConfig { bytes_per_second: 1e9, ..Default::default() };
    ChunkSender::new(config).unwrap()
}

fn receiver() -> ChunkReceiver {
    ChunkReceiver::new(ChunkReceiverConfig::default()).unwrap()
}

/// Bytes that depend on the number and on their place.
fn content(number: u64, bytes: usize) -> Vec<u8> {
    let mixed = |i: usize| number.wrapping_mul(31).wrapping_add((i + i / 1024) as u64) as u8;
    (0..bytes).map(mixed).collect()
}

fn send_tick(sender: &mut ChunkSender, now: Instant) -> Vec<Vec<u8>> {
    let mut out = Datagrams::<()>::new();
    sender.tick(now, &mut out);
    out.iter().map(|(_, packet)| packet.to_vec()).collect()
}

fn ack_tick(receiver: &mut ChunkReceiver, now: Instant) -> Option<Vec<u8>> {
    let mut out = Datagrams::<()>::new();
    receiver.tick(now, &mut out);
    assert!(out.len() <= 1, "{} acks in a tick", out.len());
    out.iter().next().map(|(_, packet)| packet.to_vec())
}

/// A slice packet of the usual `max_slices`, as the tables of the module say and not as the code under test does.
fn slice_packet(chunk: u16, slice: usize, count: usize, data: &[u8]) -> Vec<u8> {
    let mut writer = BitWriter::new();
    writer.bits(0, 1);
    writer.bits(chunk.into(), 16);
    writer.bits(slice as u64, 8);
    writer.bits(count as u64 - 1, 8);
    if slice == count - 1 {
        writer.bits(data.len() as u64 - 1, 10);
    }
    writer.bytes(data);
    writer.into_bytes()
}

/// As [`slice_packet`], an ack.
fn ack_packet(chunk: u16, count: usize, received: impl Fn(usize) -> bool) -> Vec<u8> {
    let mut writer = BitWriter::new();
    writer.bits(1, 1);
    writer.bits(chunk.into(), 16);
    writer.bits(count as u64 - 1, 8);
    (0..count).for_each(|slice| writer.bool(received(slice)));
    writer.into_bytes()
}

/// The chunk id and slice id of a slice packet.
fn slice_of(packet: &[u8], max_slices: usize) -> (u16, usize) {
    let mut reader = BitReader::new(packet);
    assert!(!reader.bool().unwrap());
    let chunk = reader.bits(16).unwrap() as u16;
    let slice = match bit_len(max_slices as u64 - 1) {
        0 => 0,
        n => reader.bits(n).unwrap() as usize,
    };
    (chunk, slice)
}

/// The chunk id and the flags of an ack packet of the usual `max_slices`.
fn flags_of(packet: &[u8]) -> (u16, Vec<bool>) {
    let mut reader = BitReader::new(packet);
    assert!(reader.bool().unwrap());
    let chunk = reader.bits(16).unwrap() as u16;
    let count = reader.bits(8).unwrap() + 1;
    let flags = (0..count).map(|_| reader.bool().unwrap()).collect();
    reader.finish().unwrap();
    (chunk, flags)
}

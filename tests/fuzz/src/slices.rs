//! Chunk streams: a sender and a receiver, the fuzzer's network between them, and its own bytes at both.

use tickwire::articles::slices::{
    ChunkReceiver, ChunkReceiverConfig, ChunkSender, ChunkSenderConfig, SliceDrop,
};
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant};

use super::input::Input;

const MAX_SLICES: usize = 16;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let config = ChunkSenderConfig {
        max_slices: MAX_SLICES,
        bytes_per_second: 100_000.0,
        max_queued: 4,
        ..Default::default()
    };
    let mut sender = ChunkSender::new(config).unwrap();
    let config = ChunkReceiverConfig { max_slices: MAX_SLICES, ..Default::default() };
    let mut receiver = ChunkReceiver::new(config).unwrap();
    let (mut now, mut out) = (Instant::ZERO, Datagrams::<()>::new());
    let (mut slices, mut acks) = (Vec::<Vec<u8>>::new(), Vec::<Vec<u8>>::new());
    let (mut sent, mut next, mut altered, mut slice_bytes, mut ack_bytes) = (Vec::new(), 0, false, 0, 0);
    while !input.is_empty() {
        let op = input.u8();
        match op & 7 {
            0 => {
                let chunk = vec![sent.len() as u8; usize::from(input.u16())];
                let burst = op & 8 != 0;
                let queued =
                    if burst { sender.send_burst(chunk.clone()) } else { sender.send(chunk.clone()) };
                if let Ok(number) = queued {
                    assert_eq!(number, sent.len() as u64);
                    sent.push(chunk);
                }
            }
            1 | 2 => {
                now += Duration::from_millis(u64::from(op >> 3) * 4);
                sender.tick(now, &mut out);
                slices.extend(out.iter().map(|(_, packet)| packet.to_vec()));
                out.clear();
                receiver.tick(now, &mut out);
                assert!(out.len() <= 1);
                ack_bytes += out.total_bytes();
                acks.extend(out.iter().map(|(_, packet)| packet.to_vec()));
                out.clear();
            }
            3 | 4 => {
                let count = usize::from(op >> 3).min(slices.len());
                for slice in slices.drain(..count) {
                    slice_bytes += slice.len();
                    let taken = receiver.handle_slice(now, &slice);
                    assert!(altered || taken.err().is_none_or(is_honest), "{taken:?}");
                }
                for ack in acks.drain(..usize::from(op >> 5).min(acks.len())) {
                    let _of_another_chunk = sender.handle_ack(now, &ack);
                }
            }
            5 => {
                let at = usize::from(input.u8());
                match op >> 3 & 3 {
                    0 if at < slices.len() => drop(slices.remove(at)),
                    1 if at < acks.len() => drop(acks.remove(at)),
                    2 if at < slices.len() => slices.push(slices[at].clone()),
                    3 if at < acks.len() => acks.push(acks[at].clone()),
                    _ => {}
                }
            }
            6 => {
                let bytes = input.piece();
                altered = true;
                slice_bytes += bytes.len();
                let _dropped_by_name = receiver.handle_slice(now, bytes);
                let _dropped_by_name = sender.handle_ack(now, bytes);
            }
            _ => {
                if op & 8 != 0 {
                    sender.cancel(u64::from(input.u8()));
                } else if let Some(chunk) = receiver.read()
                    && !altered
                {
                    let at = sent[next..].iter().position(|other| *other == chunk);
                    next += 1 + at.expect("a chunk that was sent, in order");
                }
            }
        }
        assert!(ack_bytes <= slice_bytes, "acks are paid for by slices");
    }
}

/// Nothing that honest ends send is wrong in itself.
fn is_honest(drop: SliceDrop) -> bool {
    use SliceDrop::*;
    matches!(drop, Duplicate | Complete | AlreadyRead | Unread | Old)
}

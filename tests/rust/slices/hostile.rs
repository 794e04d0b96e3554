//! Bytes that no honest end sends: dropped, counted by name, and never the worse for what is honest.

use tickwire::articles::slices::{
    AckDrop, ChunkSender, ChunkSenderConfig, ReceiverCounters, SenderCounters, SliceDrop,
};
use tickwire::rng::{Entropy, Rng};

use super::{ack_packet, ack_tick, at, content, fast_sender, receiver, send_tick, sender, slice_packet};
use crate::memory::held;

const FULL: [u8; 1024] = [7; 1024];

#[test]
fn slices_that_contradict_are_dropped_by_name() {
    let mut receiver = receiver();
    let mut drop_of = |packet: &[u8]| receiver.handle_slice(at(0), packet).unwrap_err();
    let cut = |packet: &[u8]| packet[..packet.len() - 1].to_vec();
    let more = |packet: &[u8]| [packet, &[0]].concat();
    assert_eq!(drop_of(&[]), SliceDrop::TooShort);
    assert_eq!(drop_of(&cut(&slice_packet(0, 0, 2, &FULL))), SliceDrop::TooShort);
    assert_eq!(drop_of(&cut(&slice_packet(0, 1, 2, b"end"))), SliceDrop::TooShort);
    assert_eq!(drop_of(&more(&slice_packet(0, 0, 2, &FULL))), SliceDrop::Trailing);
    assert_eq!(drop_of(&slice_packet(0, 2, 2, &FULL)), SliceDrop::Malformed, "the third slice of two");
    assert_eq!(drop_of(&ack_packet(0, 2, |_| true)), SliceDrop::WrongKind);
    for ahead in [1, 2, 100, 32_767] {
        assert_eq!(
            drop_of(&slice_packet(ahead, 0, 2, &FULL)),
            SliceDrop::FarAhead,
            "nothing of chunk 0 came"
        );
    }
    for behind in [32_768, 65_534, 65_535] {
        assert_eq!(drop_of(&slice_packet(behind, 0, 2, &FULL)), SliceDrop::Old);
    }
    receiver.handle_slice(at(0), &slice_packet(0, 0, 2, &FULL)).unwrap();
    let mut drop_of = |packet: &[u8]| receiver.handle_slice(at(0), packet).unwrap_err();
    for count in [1, 3, 256] {
        assert_eq!(drop_of(&slice_packet(0, 0, count, &FULL)), SliceDrop::SliceCount, "the first had 2");
    }
    assert_eq!(drop_of(&slice_packet(2, 0, 2, &FULL)), SliceDrop::FarAhead);
    // None of it moved the receiver.
    receiver.handle_slice(at(0), &slice_packet(0, 1, 2, b"end")).unwrap();
    assert_eq!(receiver.read(), Some([&FULL[..], b"end"].concat()));
    assert_eq!(receiver.handle_slice(at(0), &slice_packet(0, 0, 1, b"?")), Err(SliceDrop::SliceCount));
    let counters = receiver.counters();
    assert_eq!((counters.too_short, counters.trailing, counters.malformed), (3, 1, 1));
    assert_eq!((counters.wrong_kind, counters.far_ahead, counters.old, counters.slice_count), (1, 5, 3, 4));
    assert_eq!(counters.slices_received, 2);
}

#[test]
fn what_is_dropped_causes_no_ack() {
    let mut receiver = receiver();
    let bad = [
        slice_packet(0, 2, 2, &FULL),
        slice_packet(5, 0, 2, &FULL),
        slice_packet(65_535, 0, 2, &FULL),
        ack_packet(0, 2, |_| true),
        vec![0; 1200],
    ];
    for (packet, now) in bad.iter().cycle().zip(0..1000) {
        assert!(receiver.handle_slice(at(now), packet).is_err());
        assert_eq!(ack_tick(&mut receiver, at(now)), None);
    }
}

#[test]
fn acks_that_lie_are_dropped_by_name_and_change_nothing() {
    let mut sender = sender();
    assert_eq!(
        sender.handle_ack(at(0), &ack_packet(0, 1, |_| true)),
        Err(AckDrop::OtherChunk),
        "none in flight"
    );
    sender.send(content(0, 10 * 1024)).unwrap();
    // Slices 0 to 3.
    assert_eq!(send_tick(&mut sender, at(0)).len(), 4);
    let mut drop_of = |packet: &[u8]| sender.handle_ack(at(0), packet).unwrap_err();
    let good = ack_packet(0, 10, |slice| slice < 4);
    assert_eq!(drop_of(&[]), AckDrop::TooShort);
    assert_eq!(drop_of(&good[..good.len() - 1]), AckDrop::TooShort);
    assert_eq!(drop_of(&[&good[..], &[0]].concat()), AckDrop::Trailing);
    assert_eq!(drop_of(&slice_packet(0, 0, 10, &FULL)), AckDrop::WrongKind);
    assert_eq!(drop_of(&ack_packet(1, 10, |slice| slice < 4)), AckDrop::OtherChunk);
    assert_eq!(drop_of(&ack_packet(65_535, 10, |slice| slice < 4)), AckDrop::OtherChunk);
    assert_eq!(drop_of(&ack_packet(0, 9, |slice| slice < 4)), AckDrop::SliceCount);
    assert_eq!(drop_of(&ack_packet(0, 11, |slice| slice < 4)), AckDrop::SliceCount);
    assert_eq!(drop_of(&ack_packet(0, 10, |slice| slice <= 4)), AckDrop::NeverSent);
    assert_eq!(drop_of(&ack_packet(0, 10, |_| true)), AckDrop::NeverSent);
    assert_eq!(sender.progress().unwrap().slices, 0);
    assert_eq!(sender.handle_ack(at(0), &good), Ok(None));
    assert_eq!(sender.progress().unwrap().slices, 4);
    let counters = sender.counters();
    assert_eq!((counters.too_short, counters.trailing, counters.wrong_kind), (2, 1, 1));
    assert_eq!((counters.other_chunk, counters.slice_count, counters.never_sent), (3, 2, 2));
}

#[test]
fn an_ack_of_nothing_does_not_stand_for_a_receiver_that_has_begun() {
    let mut sender = fast_sender();
    sender.send(content(0, 3000)).unwrap();
    send_tick(&mut sender, at(0));
    sender.cancel(0);
    assert_eq!(sender.handle_ack(at(0), &ack_packet(0, 3, |_| false)), Ok(None));
    assert!(!sender.is_idle());
}

fn turn_a_bit(rng: &mut Rng, packet: &mut [u8]) {
    // Headers are where it hurts.
    let bit = rng.below(packet.len().min(8) as u64 * 8) as usize;
    if let Some(byte) = packet.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
}

/// Noise and honest packets with bits turned, at both ends, between those of a transfer.
fn play_among_noise(rng: &mut Rng) -> (SenderCounters, ReceiverCounters) {
    let before = held();
    let config = ChunkSenderConfig { bytes_per_second: 100_000.0, ..Default::default() };
    let (mut sender, mut receiver) = (ChunkSender::new(config).unwrap(), receiver());
    let (mut bytes_in, mut bytes_out) = (0, 0);
    for now in 0..500 {
        if sender.is_idle() {
            sender.send(content(now, 1 + rng.below(20_000) as usize)).unwrap();
        }
        let mut packets = send_tick(&mut sender, at(now * 5));
        packets.push(vec![0; rng.below(60) as usize]);
        rng.fill(packets.last_mut().unwrap());
        for packet in &mut packets {
            if rng.chance(0.1) {
                turn_a_bit(rng, packet);
            }
            bytes_in += packet.len();
            let _ = receiver.handle_slice(at(now * 5), packet);
            let _ = sender.handle_ack(at(now * 5), packet);
        }
        if rng.chance(0.1) {
            receiver.read();
        }
        if let Some(mut ack) = ack_tick(&mut receiver, at(now * 5)) {
            bytes_out += ack.len();
            if rng.chance(0.3) {
                turn_a_bit(rng, &mut ack);
            }
            let _ = sender.handle_ack(at(now * 5), &ack);
            let _ = receiver.handle_slice(at(now * 5), &ack);
        }
        assert!(held() - before < 512 * 1024);
    }
    assert!(bytes_out < bytes_in);
    (sender.counters(), receiver.counters())
}

#[test]
fn noise_neither_panics_nor_grows_nor_is_answered_with_more() {
    let mut rng = Rng::seeded(5);
    let (mut sent, mut received) = (SenderCounters::default(), ReceiverCounters::default());
    for _ in 0..100 {
        let (sender, receiver) = play_among_noise(&mut rng);
        (sent, received) = (sent + sender, received + receiver);
    }
    // All that can be wrong was.
    assert!(received.iter().all(|(_, count)| count > 0), "{received:?}");
    // With 256 slices, every number that an ack can hold is in its range.
    let rest = ["chunks_cancelled", "malformed"];
    assert!(sent.iter().all(|(name, count)| count > 0 || rest.contains(&name)), "{sent:?}");
}

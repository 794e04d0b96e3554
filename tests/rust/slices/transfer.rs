//! Chunks over good links: order, numbers, progress, the queue, both ends' memory.

use tickwire::articles::slices::{
    ChunkReceiver, ChunkReceiverConfig, ChunkSendError, ChunkSender, ChunkSenderConfig, MAX_SLICES,
};
use tickwire::netsim::{Conditions, Link};

use super::{ack_tick, at, content, fast_sender, ms, receiver, send_tick, sender};
use crate::memory::held;

fn launch(link: &mut Link<Vec<u8>>, now: u64, packet: Vec<u8>) {
    let bytes = packet.len();
    link.send(at(now), packet, bytes);
}

/// Ticks both ends each 10 ms over links with an RTT of 40 ms until the sender is idle; gives what was read, and when.
fn run(sender: &mut ChunkSender, receiver: &mut ChunkReceiver, from: u64) -> (Vec<Vec<u8>>, u64) {
    let link = |seed| Link::new(Conditions::perfect().latency(ms(20), ms(0)), seed).unwrap();
    let (mut there, mut back) = (link(1), link(2));
    let mut read = Vec::new();
    let mut now = from;
    while !sender.is_idle() {
        assert!(now < from + 600_000, "a hang");
        send_tick(sender, at(now)).into_iter().for_each(|packet| launch(&mut there, now, packet));
        while let Some(packet) = there.poll(at(now)) {
            let _ = receiver.handle_slice(at(now), &packet);
        }
        read.extend(receiver.read());
        ack_tick(receiver, at(now)).into_iter().for_each(|packet| launch(&mut back, now, packet));
        while let Some(packet) = back.poll(at(now)) {
            let _ = sender.handle_ack(at(now), &packet);
        }
        now += 10;
    }
    (read, now)
}

#[test]
fn chunks_of_every_size_arrive_in_order() {
    let (mut sender, mut receiver) = (fast_sender(), receiver());
    let sizes = [1, 2, 1023, 1024, 1025, 2048, 2049, 255 * 1024 + 1, 256 * 1024];
    for (number, bytes) in sizes.into_iter().enumerate() {
        assert_eq!(sender.send(content(number as u64, bytes)), Ok(number as u64));
    }
    let (read, _) = run(&mut sender, &mut receiver, 0);
    let expected: Vec<_> = sizes.iter().zip(0..).map(|(bytes, number)| content(number, *bytes)).collect();
    assert!(read == expected);
    assert_eq!((sender.counters().chunks_acked, receiver.counters().chunks_received), (9, 9));
}

#[test]
fn the_largest_chunk_that_can_be_set_arrives() {
    let config = ChunkSenderConfig { max_slices: MAX_SLICES, bytes_per_second: 1e7, ..Default::default() };
    let mut sender = ChunkSender::new(config).unwrap();
    let config = ChunkReceiverConfig { max_slices: MAX_SLICES, ..Default::default() };
    let mut receiver = ChunkReceiver::new(config).unwrap();
    let chunk = content(7, MAX_SLICES * 1024 - 1);
    sender.send(chunk.clone()).unwrap();
    let (read, _) = run(&mut sender, &mut receiver, 0);
    assert!(read == [chunk]);
}

#[test]
fn a_quarter_mebibyte_takes_as_long_as_its_rate_says() {
    for rate in [32_000.0, 64_000.0, 125_000.0] {
        let config = ChunkSenderConfig { bytes_per_second: rate, ..Default::default() };
        let mut sender = ChunkSender::new(config).unwrap();
        sender.send(content(0, 256 * 1024)).unwrap();
        let (read, millis) = run(&mut sender, &mut receiver(), 0);
        assert_eq!(read.len(), 1);
        let wire = 256.0 * (1024.0 + 5.0 + 28.0);
        let ideal = wire / rate;
        let seconds = millis as f64 / 1000.0;
        assert!(
            (ideal - 0.1..ideal + 0.5).contains(&seconds),
            "{seconds} s at {rate} bytes/s: ideally {ideal}"
        );
    }
}

#[test]
fn ids_wrap() {
    // Straight through, without links: 65,536 chunks and some.
    let (mut sender, mut receiver) = (fast_sender(), receiver());
    for number in 0..66_000u64 {
        let now = at(number * 50);
        sender.send(number.to_le_bytes().to_vec()).unwrap();
        for packet in send_tick(&mut sender, now) {
            receiver.handle_slice(now, &packet).unwrap();
        }
        assert_eq!(receiver.read(), Some(number.to_le_bytes().to_vec()));
        let ack = ack_tick(&mut receiver, now).unwrap();
        assert_eq!(sender.handle_ack(now, &ack), Ok(Some(number)));
    }
}

#[test]
fn progress_is_visible_at_both_ends() {
    let config = ChunkSenderConfig { bytes_per_second: 32_000.0, ..Default::default() };
    let (mut sender, mut receiver) = (ChunkSender::new(config).unwrap(), receiver());
    assert_eq!((sender.progress(), receiver.progress()), (None, None));
    let bytes = 31 * 1024 + 100;
    sender.send(content(0, bytes)).unwrap();
    for now in (0..=500).step_by(10) {
        for packet in send_tick(&mut sender, at(now)) {
            receiver.handle_slice(at(now), &packet).unwrap();
        }
        if let Some(ack) = ack_tick(&mut receiver, at(now)) {
            sender.handle_ack(at(now), &ack).unwrap();
        }
    }
    let sent = sender.progress().unwrap();
    assert_eq!((sender.in_flight(), sent.total_bytes, sent.total_slices), (Some(0), bytes, 32));
    // A burst of 4,258 bytes and half a second at 32,000, in packets of 1,057.
    assert_eq!((sent.slices, sent.bytes), (19, 19 * 1024));
    assert_eq!(sent.bytes_per_second, 19.0 * 1024.0 / 0.5);
    let left = sent.time_left.unwrap().as_secs_f64();
    assert!((left - (bytes - 19 * 1024) as f64 / sent.bytes_per_second).abs() < 1e-6);
    let received = receiver.progress().unwrap();
    assert_eq!((received.slices, received.bytes, received.total_slices), (19, 19 * 1024, 32));
    assert_eq!(received.total_bytes, 32 * 1024, "the last slice hasn't come: the most it can be");
}

#[test]
fn what_is_not_taken_is_named() {
    let mut sender = ChunkSender::new(ChunkSenderConfig { max_queued: 2, ..Default::default() }).unwrap();
    assert_eq!(sender.send(Vec::new()).unwrap_err(), ChunkSendError::Empty);
    let error = sender.send(vec![0; 256 * 1024 + 1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the chunk must be at most 262144 bytes, not 262145: raise max_slices at both ends"
    );
    sender.send(vec![1]).unwrap();
    send_tick(&mut sender, at(0));
    // One in flight, two behind it.
    sender.send(vec![1]).unwrap();
    sender.send(vec![1]).unwrap();
    assert_eq!(sender.queued(), 2);
    let error = sender.send(vec![1]).unwrap_err();
    assert!(
        error.to_string().starts_with("2 chunks are already waiting, the maximum (max_queued)"),
        "{error}"
    );
}

#[test]
fn one_chunk_is_in_flight_and_the_next_waits_until_it_is_acked_and_read() {
    let (mut sender, mut receiver) = (fast_sender(), receiver());
    sender.send(vec![1]).unwrap();
    sender.send(vec![2]).unwrap();
    let first = send_tick(&mut sender, at(0));
    assert_eq!(first.len(), 1);
    receiver.handle_slice(at(0), &first[0]).unwrap();
    let ack = ack_tick(&mut receiver, at(0)).unwrap();
    assert_eq!(sender.handle_ack(at(0), &ack), Ok(Some(0)));
    let second = send_tick(&mut sender, at(10));
    // The receive queue has a length of 1.
    assert!(receiver.handle_slice(at(10), &second[0]).is_err());
    assert_eq!((receiver.counters().unread, ack_tick(&mut receiver, at(60))), (1, None));
    assert_eq!(receiver.read(), Some(vec![1]));
    receiver.handle_slice(at(110), &send_tick(&mut sender, at(110))[0]).unwrap();
    assert_eq!(receiver.read(), Some(vec![2]));
}

#[test]
fn a_receiver_takes_memory_as_slices_come_and_gives_it_back() {
    let config = ChunkReceiverConfig { max_slices: MAX_SLICES, ..Default::default() };
    let mut receiver = ChunkReceiver::new(config).unwrap();
    let config = ChunkSenderConfig { max_slices: MAX_SLICES, bytes_per_second: 1e9, ..Default::default() };
    let mut sender = ChunkSender::new(config).unwrap();
    sender.send(content(0, MAX_SLICES * 1024)).unwrap();
    let slices = send_tick(&mut sender, at(0));
    assert_eq!(slices.len(), MAX_SLICES);

    let before = held();
    receiver.handle_slice(at(0), &slices[MAX_SLICES - 1]).unwrap();
    let one = held() - before;
    assert!(one < 1024 + 4096, "{one} bytes for one slice");
    for slice in &slices[..MAX_SLICES - 1] {
        receiver.handle_slice(at(0), slice).unwrap();
    }
    let all = (held() - before) as f64 / (MAX_SLICES * 1024) as f64;
    assert!(all < 1.05, "{all} of the chunk's bytes");
    drop(receiver.read());
    let rest = held() - before;
    assert!(rest < 4096, "{rest} bytes after the chunk was read");
}

#[test]
fn a_sender_begins_with_what_its_accumulator_holds() {
    let mut sender = sender();
    sender.send(content(0, 64 * 1024)).unwrap();
    // A tenth of a second's worth and a packet: 3,200 and 1,058 bytes.
    assert_eq!(send_tick(&mut sender, at(0)).len(), 4);
}

//! How much goes out, in each direction, and when.

use tickwire::articles::slices::{ChunkReceiver, ChunkReceiverConfig, ChunkSender, ChunkSenderConfig};

use super::{
    OVERHEAD, ack_tick, at, content, fast_sender, flags_of, ms, receiver, send_tick, sender, slice_of,
    slice_packet,
};

fn wire_bytes(packets: &[Vec<u8>]) -> usize {
    packets.iter().map(|packet| packet.len() + OVERHEAD).sum()
}

#[test]
fn a_sender_keeps_to_its_rate_with_headers_whatever_the_ticks() {
    for rate in [32_000.0, 64_000.0, 125_000.0, 1234.5] {
        for tick in [1, 16, 33, 100] {
            let config = ChunkSenderConfig { bytes_per_second: rate, ..Default::default() };
            let mut sender = ChunkSender::new(config).unwrap();
            sender.send(content(0, 256 * 1024)).unwrap();
            let most = rate / 10.0 + 1030.0 + 28.0;
            let mut sent = 0;
            for now in (0..=10_000).step_by(tick) {
                sent += wire_bytes(&send_tick(&mut sender, at(now)));
                let allowed = most + rate * now as f64 / 1000.0;
                assert!(sent as f64 <= allowed + 1e-3, "{sent} of {allowed} bytes after {now} ms");
            }
            assert!(sent as f64 > rate * 9.9 - 1100.0, "{sent} bytes in 10 s at {rate}");
            assert_eq!(sender.counters().bytes_sent, sent as u64);
        }
    }
}

#[test]
fn acks_just_before_a_tick_take_nothing_off_the_rate() {
    let mut sender = sender();
    sender.send(content(0, 256 * 1024)).unwrap();
    let ack = super::ack_packet(0, 256, |slice| slice == 0);
    let mut sent = wire_bytes(&send_tick(&mut sender, at(0)));
    for now in (10..=4000).step_by(10) {
        sender.handle_ack(at(now), &ack).unwrap();
        sent += wire_bytes(&send_tick(&mut sender, at(now)));
    }
    assert!(sent > 4 * 32_000, "{sent} bytes in 4 s");
}

#[test]
fn what_is_saved_up_in_a_silence_is_bounded() {
    let config = ChunkSenderConfig { accumulator_bytes: Some(5000), ..Default::default() };
    let mut sender = ChunkSender::new(config).unwrap();
    send_tick(&mut sender, at(0));
    sender.send(content(0, 64 * 1024)).unwrap();
    let burst = wire_bytes(&send_tick(&mut sender, at(3_600_000)));
    assert!((4000..=5000).contains(&burst), "{burst}");
    // A clock that goes back adds nothing, also when it comes back.
    assert!(send_tick(&mut sender, at(0)).is_empty());
    assert!(send_tick(&mut sender, at(3_600_000)).is_empty());
}

#[test]
fn a_changed_rate_counts_from_now_on() {
    let mut sender = sender();
    sender.send(content(0, 256 * 1024)).unwrap();
    send_tick(&mut sender, at(0));
    assert!(sender.set_bytes_per_second(0.0).is_err() && sender.bytes_per_second() == 32_000.0);
    sender.set_bytes_per_second(320_000.0).unwrap();
    let sent = wire_bytes(&send_tick(&mut sender, at(100)));
    assert!((31_000..=32_001).contains(&sent), "{sent}");
}

/// The times, in milliseconds, at which the only slice of a chunk goes out in half a second without acks.
fn sends(rtt: Option<u64>) -> Vec<u64> {
    let mut sender = fast_sender();
    sender.set_rtt(rtt.map(ms));
    sender.send(vec![1]).unwrap();
    (0..500).filter(|now| !send_tick(&mut sender, at(*now)).is_empty()).collect()
}

#[test]
fn a_slice_waits_for_100_ms_or_one_and_a_quarter_round_trips() {
    assert_eq!(sends(None), [0, 100, 200, 300, 400]);
    assert_eq!(sends(Some(200)), [0, 250]);
    assert_eq!(sends(Some(80)), [0, 100, 200, 300, 400]);
    assert_eq!(sends(Some(120)), [0, 150, 300, 450]);
    assert_eq!(sends(Some(0)).len(), 500, "and never twice in a tick");
}

#[test]
fn an_initial_burst_sends_all_waits_and_goes_on_with_what_is_missing() {
    // Longer than the resend delay, to tell the two apart.
    let config = ChunkSenderConfig { initial_burst_wait: ms(150), ..Default::default() };
    let (mut paused, mut receiver) = (ChunkSender::new(config).unwrap(), receiver());
    paused.send_burst(content(0, 256 * 1024)).unwrap();
    let burst = send_tick(&mut paused, at(0));
    assert_eq!(burst.len(), 256);
    for (slice, packet) in burst.iter().enumerate() {
        // Every tenth is lost.
        if slice % 10 != 0 {
            receiver.handle_slice(at(20), packet).unwrap();
        }
    }
    let ack = ack_tick(&mut receiver, at(20)).unwrap();
    paused.handle_ack(at(40), &ack).unwrap();
    (40..150).for_each(|now| assert!(send_tick(&mut paused, at(now)).is_empty(), "{now}"));
    let rest: Vec<_> = (150..1000).step_by(10).flat_map(|now| send_tick(&mut paused, at(now))).collect();
    let slices: Vec<_> = rest.iter().take(26).map(|packet| slice_of(packet, 256).1).collect();
    assert_eq!(slices, (0..256).step_by(10).collect::<Vec<_>>());
    let sent = wire_bytes(&rest);
    assert!(sent <= 32_000, "the usual rate again, from nothing: {sent}");

    let mut sender = sender();
    sender.send_burst(content(0, 256 * 1024)).unwrap();
    assert_eq!(send_tick(&mut sender, at(0)).len(), 256);
    assert_eq!(send_tick(&mut sender, at(100)).len(), 3, "of 3,200 bytes since the burst");

    let error = sender.send_burst(content(0, 256 * 1024 + 1)).unwrap_err().to_string();
    assert_eq!(
        error,
        "a chunk with burst must be at most 262144 bytes, not 262145: more would overflow routers' buffers \
         on the path"
    );
}

#[test]
fn a_thousand_slices_cause_one_ack_each_interval() {
    for interval in [50, 100, 20] {
        let config = ChunkReceiverConfig { ack_interval: ms(interval), ..Default::default() };
        let mut receiver = ChunkReceiver::new(config).unwrap();
        let mut acks = Vec::new();
        for now in 0..1000 {
            let _ = receiver.handle_slice(at(now), &slice_packet(0, now as usize % 256, 256, &[1; 1024]));
            acks.extend(ack_tick(&mut receiver, at(now)).map(|_| now));
        }
        assert_eq!(acks.len() as u64, 1000 / interval);
        assert!(acks.windows(2).all(|pair| pair[1] - pair[0] == interval));
    }
}

#[test]
fn an_ack_waits_until_the_slices_have_paid_for_it() {
    // The last slice of 256, with one byte: 7 + 1 bytes, where the ack has 36.
    let tiny = slice_packet(0, 255, 256, &[9]);
    assert_eq!(tiny.len(), 7);
    let mut receiver = receiver();
    receiver.handle_slice(at(0), &tiny).unwrap();
    assert_eq!(ack_tick(&mut receiver, at(0)), None, "35 bytes in, 64 out");
    assert_eq!(ack_tick(&mut receiver, at(1000)), None, "time doesn't pay");
    let _ = receiver.handle_slice(at(1000), &tiny);
    let ack = ack_tick(&mut receiver, at(1000)).expect("70 bytes in, 64 out");
    assert_eq!(ack.len(), 36);
    assert_eq!(flags_of(&ack).1.iter().filter(|received| **received).count(), 1);
    // 6 bytes are left over, then 41.
    let _ = receiver.handle_slice(at(1100), &tiny);
    assert_eq!(ack_tick(&mut receiver, at(1100)), None);
    let _ = receiver.handle_slice(at(1150), &tiny);
    assert!(ack_tick(&mut receiver, at(1150)).is_some());
    assert_eq!(receiver.counters().bytes_sent, 2 * 64);
}

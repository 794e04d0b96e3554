//! Chunks that fill a link: the connection's measurements of it, and the bytes it sends at once.

use tickwire::netsim::Conditions;
use tickwire::time::Duration;
use tickwire::transport::CongestionConfig;

use crate::bulk_line::{Act, Line};

fn link(mbit: u64, rtt_ms: u64) -> Conditions {
    let rate = mbit * 1_000_000 / 8;
    Conditions::perfect()
        .latency(Duration::from_micros(rtt_ms * 500), Duration::ZERO)
        .rate(rate, rate * rtt_ms / 1000)
}

#[test]
fn loss_and_rtt_stay_right_at_ten_thousand_packets_a_second_against_a_peer_of_60_hz() {
    let mut line = Line::new(link(110, 60).loss(0.03), Act::ANSWERS_POLLED, 96 << 20, 1);
    let flow = line.add(CongestionConfig::default(), false);
    line.run(1.5);
    line.send(flow, false);
    // What the start sent too much of is forgotten.
    line.run(4.0);
    let before = line.flows[flow].ends[0].counters();
    let (mut losses, mut rtts) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        line.run(0.1);
        let stats = line.flows[flow].ends[0].stats();
        losses.push(stats.packet_loss);
        rtts.push(stats.rtt);
    }
    let after = line.flows[flow].ends[0].counters();
    let per_second = (after.sent - before.sent) / 2;
    assert!(per_second > 9_000, "{per_second} packets a second");
    assert_eq!(after.late_acks, 0, "no packet was taken for lost that was not");
    assert!(losses.iter().all(|loss| (2.0..4.0).contains(loss)), "{losses:?}");
    // The round trip with the queue, but without the peer's waiting for its ticks.
    assert!(rtts.iter().all(|rtt| (60.0..60.0 + 30.0).contains(rtt)), "{rtts:?}");
}

#[test]
fn acks_of_slices_take_fewer_bytes_than_the_slices() {
    for block in [1, 500, 5_000, 300_000] {
        let mut line = Line::new(link(10, 50).loss(0.1), Act::AT_ONCE, block, 1);
        let flow = line.add(CongestionConfig::default(), false);
        line.run(1.5);
        let before = line.sent_bytes;
        line.send(flow, false);
        // Keep-alives go on anyway, so the two are compared during the chunk's transfer.
        assert!(line.finish(20.0));
        let [there, back] = [0, 1].map(|end| line.sent_bytes[end] - before[end]);
        assert!(back <= there + 100, "{block}: {back} bytes of acks for {there}");
    }
}

#[test]
fn a_tick_sends_no_more_at_once_than_the_setting_says() {
    let mut line = Line::new(link(1000, 20), Act::POLLED, 16 << 20, 1);
    let flow = line.add(CongestionConfig::default(), false);
    line.run(1.5);
    line.send(flow, false);
    assert!(line.finish(5.0));
    // 256 KiB, and the packet that went over it.
    assert!((100_000..264_000).contains(&line.most_at_once), "{}", line.most_at_once);
}

#[test]
fn the_greatest_rate_holds_from_the_start() {
    let mut line = Line::new(link(100, 100), Act::AT_ONCE, 1 << 20, 1);
    let most = CongestionConfig { max_bytes_per_second: 50_000.0, ..CongestionConfig::default() };
    let flow = line.add(most, false);
    line.run(1.5);
    let before = line.sent_bytes[0];
    line.send(flow, false);
    line.run(1.0);
    let sent = line.sent_bytes[0] - before;
    // Two of the shortest trains that tell a rate are over it.
    assert!((20_000..72_000).contains(&sent), "{sent}");
}

//! How fast blocks move over links that lose packets, and what they do to a game beside them. In virtual time.

#[allow(dead_code)]
#[path = "../tests/rust/bulk_line.rs"]
mod bulk_line;
#[allow(dead_code)]
#[path = "../tests/rust/pair.rs"]
mod pair;

use bulk_line::{Act, Line, median, percentile};
use tickwire::netsim::{Bursts, Conditions};
use tickwire::time::Duration;
use tickwire::transport::CongestionConfig;

fn link(mbit: u64, rtt_ms: u64) -> Conditions {
    let rate = mbit * 1_000_000 / 8;
    let half = Duration::from_micros(rtt_ms * 500);
    Conditions::perfect().latency(half, Duration::ZERO).rate(rate, rate * rtt_ms / 1000)
}

fn main() {
    let rows = [
        ("10/50/0", link(10, 50), 10.0, 0.05, 1.05, 1.09),
        ("10/50/2", link(10, 50).loss(0.02), 10.0, 0.05, 1.25, 1.10),
        ("50/100/1", link(50, 100).loss(0.01), 50.0, 0.1, 1.5, 1.2),
        ("100/30/b5", link(100, 30).bursts(Bursts::mean(0.05, 5.0).unwrap()), 100.0, 0.03, 2.5, 1.3),
        ("100/30/o5", link(100, 30).outages(Duration::from_millis(5), 0.05), 100.0, 0.03, 1.5, 1.25),
        ("2/150/3", link(2, 150).loss(0.03), 2.0, 0.15, 1.25, 1.12),
    ];
    for act in [Act::AtOnce, Act::Polled] {
        for (name, conditions, mbit, rtt, small_goal, large_goal) in rows {
            for (block, seeds, goal) in [(256 << 10, 21, small_goal), (8 << 20, 5, large_goal)] {
                let ideal = block as f64 * 8.0 / (mbit * 1e6) + rtt;
                let (mut ratios, mut queues, mut again) = (Vec::new(), Vec::new(), Vec::new());
                for seed in 1..=seeds {
                    let mut line = Line::new(conditions, act, block, seed);
                    let flow = line.add(CongestionConfig::default(), false);
                    line.run(1.5);
                    line.send(flow, block <= 256 << 10);
                    line.finish(60.0);
                    ratios.push(line.took(flow) / ideal);
                    let queue: Vec<f64> =
                        line.queue.iter().map(|bytes| *bytes as f64 * 8e-3 / mbit).collect();
                    queues.push(percentile(&queue, 99) / 1000.0 * 1000.0);
                    let (resent, lost) = line.resent_and_lost();
                    again.push((resent - 0.02 * block as f64) / lost.max(1.0));
                }
                let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
                println!(
                    "{act:?} {name} {block}: ratio {:.3} (mean {mean:.3}, worst {:.3}) goal {goal} queue p99 {:.1} ms, (resent-2%)/lost {:.2}",
                    median(ratios.clone()),
                    ratios.iter().cloned().fold(0.0, f64::max),
                    median(queues),
                    median(again)
                );
            }
        }
    }
}

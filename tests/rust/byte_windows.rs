//! Reliable channels whose byte window is full most of the time, over links that lose packets: it opens again.

use tickwire::netsim::Conditions;
use tickwire::rng::Rng;
use tickwire::time::Duration;
use tickwire::transport::{BudgetConfig, ChannelConfig, ChannelKind, ConnectionConfig, Resend, SendError};

use crate::pair::{Pair, blob, protocol_with};

const MESSAGES: u32 = 400;
const SEEDS: u64 = 20;
/// Ten seconds; without a stall the slowest of these takes two.
const TICKS: usize = 600;

/// A link and a window that it fills.
#[derive(Clone, Copy, Debug)]
struct Case {
    receive_bytes: usize,
    /// Each message has one of these sizes, by lot.
    sizes: [usize; 2],
    latency: u64,
    loss: f64,
    mbits: f64,
}

/// Messages of [`MESSAGES`] that don't arrive, and the ticks until the last one did.
fn missing(case: Case, ordered: bool, seed: u64) -> (usize, usize) {
    let Case { receive_bytes, sizes, latency, loss, mbits } = case;
    let kind =
        ChannelKind::Reliable { ordered, receive_window: 1024, receive_bytes, resend: Resend::default() };
    let max_message_bytes = 65_536.min(receive_bytes / 2 - 64);
    let channel = ChannelConfig { max_message_bytes, ..ChannelConfig::new(kind) };
    let conditions = Conditions::perfect().latency(Duration::from_millis(latency), Duration::ZERO).loss(loss);
    let bytes_per_second = mbits * 125_000.0;
    // A tick's worth and more.
    let burst_bytes = (bytes_per_second / 20.0).max(65_536.0);
    let budget = BudgetConfig::new(bytes_per_second, burst_bytes);
    let config = ConnectionConfig { budget, ..ConnectionConfig::default() };
    let mut pair = Pair::with_config(&config, protocol_with(vec![channel]), conditions, seed);
    let mut rng = Rng::seeded(seed);
    let sizes: Vec<usize> = (0..MESSAGES).map(|_| sizes[rng.below(2) as usize]).collect();
    let (mut sent, mut arrived) = (0, vec![false; MESSAGES as usize]);
    for tick in 0..TICKS {
        while sent < MESSAGES {
            match pair.send(0, 0, blob(sent, sizes[sent as usize])) {
                Ok(()) => sent += 1,
                Err(SendError::Full { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        pair.tick();
        for number in pair.take(1, 0) {
            assert!(!core::mem::replace(&mut arrived[number as usize], true), "{number} came twice");
        }
        if arrived.iter().all(|arrived| *arrived) && pair.ends[0].channel_stats(0).queued == 0 {
            return (0, tick);
        }
    }
    (arrived.iter().filter(|arrived| !**arrived).count(), TICKS)
}

#[test]
fn a_full_byte_window_opens_again_after_losses() {
    let fast = Case { receive_bytes: 1 << 20, sizes: [20, 8000], latency: 50, loss: 0.02, mbits: 100.0 };
    let small = Case { receive_bytes: 65_536, sizes: [1000; 2], mbits: 10.0, ..fast };
    let tiny = Case { receive_bytes: 16_384, sizes: [40, 1000], latency: 30, loss: 0.01, ..small };
    let cases = [fast, small, Case { sizes: [200; 2], ..small }, tiny];
    let mut stalls = 0;
    for case in cases {
        for ordered in [false, true] {
            let runs: Vec<_> = (0..SEEDS).map(|seed| missing(case, ordered, seed)).collect();
            let stalled = runs.iter().filter(|(missing, _)| *missing > 0).count();
            let slowest = runs.iter().map(|(_, ticks)| ticks).max().expect("some");
            println!("{case:?} ordered {ordered}: {stalled} of {SEEDS} stop, slowest {slowest} ticks");
            stalls += stalled;
        }
    }
    assert_eq!(stalls, 0);
}

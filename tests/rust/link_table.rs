//! The links that blocks are measured on, and how one measurement goes.

use tickwire::netsim::{Bursts, Conditions};
use tickwire::time::Duration;
use tickwire::transport::CongestionConfig;

use crate::bulk_line::{Act, Line, percentile};

/// Loads the connection's own measurements before a block is sent.
const WARM_UP: f64 = 1.5;
const MOST_SECONDS: f64 = 120.0;

/// A link with a queue of one bandwidth-delay product.
#[derive(Clone, Copy)]
pub(crate) struct TableLink {
    pub(crate) name: &'static str,
    mbit: u64,
    rtt_ms: u64,
    conditions: Conditions,
}

impl TableLink {
    fn new(
        name: &'static str,
        mbit: u64,
        rtt_ms: u64,
        change: impl FnOnce(Conditions) -> Conditions,
    ) -> Self {
        let rate = mbit * 1_000_000 / 8;
        let latency = Duration::from_micros(rtt_ms * 500);
        let perfect = Conditions::perfect().latency(latency, Duration::ZERO);
        let conditions = change(perfect.rate(rate, rate * rtt_ms / 1000));
        TableLink { name, mbit, rtt_ms, conditions }
    }

    /// Seconds that a block takes at least.
    pub(crate) fn ideal(&self, block: usize) -> f64 {
        block as f64 * 8.0 / (self.mbit as f64 * 1e6) + self.rtt_ms as f64 / 1e3
    }

    /// Bytes a second.
    pub(crate) fn rate(&self) -> f64 {
        self.mbit as f64 * 1e6 / 8.0
    }
}

pub(crate) fn links() -> [TableLink; 6] {
    let bursts = Bursts::mean(0.05, 5.0).unwrap();
    [
        TableLink::new("10 Mbit/s, 50 ms, 0 % loss", 10, 50, |link| link),
        TableLink::new("10 Mbit/s, 50 ms, 2 % loss", 10, 50, |link| link.loss(0.02)),
        TableLink::new("50 Mbit/s, 100 ms, 1 % loss", 50, 100, |link| link.loss(0.01)),
        TableLink::new("100 Mbit/s, 30 ms, 5 % loss in bursts of 5", 100, 30, |link| link.bursts(bursts)),
        TableLink::new("100 Mbit/s, 30 ms, outages of 5 ms, 5 %", 100, 30, |link| {
            link.outages(Duration::from_millis(5), 0.05)
        }),
        TableLink::new("2 Mbit/s, 150 ms, 3 % loss", 2, 150, |link| link.loss(0.03)),
    ]
}

/// What one block did.
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    pub(crate) ratio: f64,
    /// The 95th and 99th percentile of the time that what is sent waits in the link's queue, in milliseconds.
    pub(crate) queue_ms: [f64; 2],
    /// Bytes of slices sent again over bytes of slices lost on the way; 2 % of the block are taken off first.
    pub(crate) resent_over_lost: f64,
    /// The 99th percentile of the time that a game's messages take, in milliseconds, if one is played.
    pub(crate) game_p99_ms: f64,
    /// The share of the game's messages that arrived: a percentile is of those only.
    pub(crate) received_share: f64,
}

/// Sends one block; up to 256 KiB it may go out at once.
pub(crate) fn measure(
    link: &TableLink,
    act: Act,
    block: usize,
    congestion: CongestionConfig,
    game: bool,
    seed: u64,
) -> Measured {
    let mut line = Line::new(link.conditions, act, block, seed);
    let flow = line.add(congestion, game);
    line.run(WARM_UP);
    line.send(flow, block <= 256 << 10);
    line.finish(MOST_SECONDS);
    let seconds = line.took(flow);
    let millis: Vec<f64> = line.queue.iter().map(|bytes| *bytes as f64 / link.rate() * 1e3).collect();
    let (resent, lost) = line.resent_and_lost();
    let beyond = (resent - 0.02 * block as f64).max(0.0);
    Measured {
        seconds,
        ratio: seconds / link.ideal(block),
        queue_ms: [95, 99].map(|percent| percentile(&millis, percent)),
        resent_over_lost: if beyond > 0.0 { beyond / lost } else { 0.0 },
        game_p99_ms: percentile(&line.flows[flow].latencies, 99) * 1e3,
        received_share: received_share(&line, flow),
    }
}

fn received_share(line: &Line, flow: usize) -> f64 {
    let flow = &line.flows[flow];
    // Some sent before are counted too, and some sent are yet to arrive.
    (flow.latencies.len() as f64 / flow.game_sent.max(1) as f64).min(1.0)
}

/// The game's 99th percentile with nothing beside it, in milliseconds, and the share of its messages that arrived.
pub(crate) fn game_alone(link: &TableLink, act: Act, seconds: f64, seed: u64) -> (f64, f64) {
    let mut line = Line::new(link.conditions, act, 0, seed);
    let flow = line.add(CongestionConfig::default(), true);
    line.run(WARM_UP);
    line.listen();
    line.run(seconds);
    (percentile(&line.flows[flow].latencies, 99) * 1e3, received_share(&line, flow))
}

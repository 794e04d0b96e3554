//! The links that blocks are measured on, and how one measurement goes.

use tickwire::netsim::{Bursts, Conditions};
use tickwire::time::Duration;
use tickwire::transport::CongestionConfig;

use crate::bulk_line::{Act, Line, percentile};

/// Loads the connection's own measurements before a block is sent.
const WARM_UP: f64 = 1.5;
const MAX_SECONDS: f64 = 120.0;

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

    /// The share of packets that it doesn't lose.
    pub(crate) fn passes(&self) -> f64 {
        let Conditions { loss, bursts, outages, .. } = self.conditions;
        let bursts = bursts.map_or(0.0, |Bursts { to_bad, to_good, good_loss, bad_loss }| {
            (to_bad * bad_loss + to_good * good_loss) / (to_bad + to_good)
        });
        (1.0 - loss) * (1.0 - bursts) * (1.0 - outages.map_or(0.0, |outages| outages.fraction))
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
    /// The 95th and 99th percentile of the queueing delay in milliseconds.
    pub(crate) queue_ms: [f64; 2],
    /// Bytes of slices sent again over bytes of slices lost on the way; 2 % of the block are taken off first.
    pub(crate) resent_over_lost: f64,
    /// Of the game beside it, if one is played.
    pub(crate) game: Game,
}

/// How a game's messages fared.
#[derive(Clone, Copy)]
pub(crate) struct Game {
    /// The 99th percentile of the time that those took that arrived, in milliseconds.
    pub(crate) p99_ms: f64,
    /// The share that arrived, of those sent in that time.
    pub(crate) received_share: f64,
}

impl Game {
    fn of(line: &mut Line, flow: usize) -> Self {
        let received_share = line.settle(flow);
        Game { p99_ms: percentile(&line.flows[flow].latencies, 99) * 1e3, received_share }
    }
}

/// Sends one block; up to 256 KiB it may go out at once.
pub(crate) fn measure(link: &TableLink, act: Act, block: usize, game: bool, seed: u64) -> Measured {
    let mut line = Line::new(link.conditions, act, block, seed);
    let flow = line.add(CongestionConfig::default(), game);
    line.run(WARM_UP);
    line.send(flow, block <= 256 << 10);
    line.finish(MAX_SECONDS);
    let seconds = line.took(flow);
    let millis: Vec<f64> = line.queue.iter().map(|bytes| *bytes as f64 / link.rate() * 1e3).collect();
    let (resent, lost) = line.resent_and_lost();
    let beyond = (resent - 0.02 * block as f64).max(0.0);
    Measured {
        seconds,
        ratio: seconds / link.ideal(block),
        queue_ms: [95, 99].map(|percent| percentile(&millis, percent)),
        resent_over_lost: if beyond > 0.0 { beyond / lost } else { 0.0 },
        game: if game { Game::of(&mut line, flow) } else { Game { p99_ms: 0.0, received_share: 1.0 } },
    }
}

/// How the game's messages fare with nothing beside it.
pub(crate) fn game_alone(link: &TableLink, act: Act, seconds: f64, seed: u64) -> Game {
    let mut line = Line::new(link.conditions, act, 0, seed);
    let flow = line.add(CongestionConfig::default(), true);
    line.run(WARM_UP);
    line.listen();
    line.run(seconds);
    Game::of(&mut line, flow)
}

//! A test of a share of losses: for some round trips less is sent, and what is lost then tells whose losses they are.

use super::constants::PACKET;
use super::delivery::{Epoch, Signs};

/// The rate in a test, as a part of what arrived before it.
const TEST_RATE: f64 = 0.92;

/// The rate in a deep test: others can't fill at once what that leaves.
const DEEP_RATE: f64 = 0.6;

/// Epochs until the test's effect shows in losses: a round trip, and the time to notice them.
const TEST_SKIPS: u32 = 2;
const MAX_TEST_EPOCHS: u32 = 16;
const MIN_TEST_BYTES: f64 = 30.0 * PACKET;

/// A test lasts until this many packets would be lost if the share were still the same.
const MIN_TEST_LOSSES: f64 = 3.0;

/// The same for a deep test, and for what tells others from chance in it.
pub(super) const MIN_OTHERS_LOSSES: f64 = 2.0;

/// A queue that is still longer than this part of what it was isn't ours alone: others may fill what we leave, and lose
/// as much for us as before.
const QUEUE_STAYS: f64 = 0.4;

/// A test under way. Rates are bytes a second.
#[derive(Debug)]
pub(super) struct ShareTest {
    rate: f64,
    pub(super) share_before: f64,
    pub(super) arrived_before: f64,
    /// The highest rate of the last epochs before.
    pub(super) most_before: f64,
    /// We sent as before when the losses began: only the queue had changed.
    pub(super) unprovoked: bool,
    epochs: u32,
    pub(super) lost: f64,
    pub(super) judged: f64,
    /// The mean wait in the queue before.
    wait_before: f64,
    /// A queue stayed, and so yet less is sent.
    deep: bool,
}

impl ShareTest {
    /// Begins to send less than arrived, on a link of which it is known that it loses the first share by itself; the
    /// second is tested.
    pub(super) fn new(arrived: f64, known: f64, tested: f64, wait: f64) -> Self {
        ShareTest {
            rate: TEST_RATE * arrived / (1.0 - known),
            share_before: tested,
            arrived_before: arrived,
            most_before: arrived,
            unprovoked: false,
            epochs: 0,
            lost: 0.0,
            judged: 0.0,
            wait_before: wait,
            deep: false,
        }
    }

    /// The rate that is held meanwhile.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn is_deep(&self) -> bool {
        self.deep
    }

    /// Begins again with much less.
    pub(super) fn go_deep(&mut self) {
        self.rate = DEEP_RATE * self.arrived_before;
        (self.deep, self.epochs, self.lost, self.judged) = (true, 0, 0.0, 0.0);
    }

    /// Takes an epoch's outcome: whether that was the last one needed.
    pub(super) fn add(&mut self, epoch: &Epoch) -> bool {
        self.epochs += 1;
        if self.epochs <= TEST_SKIPS {
            return false;
        }
        self.lost += epoch.lost;
        self.judged += epoch.lost + epoch.delivered;
        let epochs = self.epochs - TEST_SKIPS;
        let least = if self.deep { MIN_OTHERS_LOSSES } else { MIN_TEST_LOSSES };
        let enough = MIN_TEST_BYTES.max(least * PACKET / self.share_before);
        epochs >= TEST_SKIPS && (self.judged >= enough || epochs >= MAX_TEST_EPOCHS)
    }

    /// How many packets would have been lost if the share were still the same.
    pub(super) fn expected_losses(&self) -> f64 {
        self.share_before * self.judged / PACKET
    }

    /// Whether packets of the last epoch waited in a queue that less doesn't empty.
    pub(super) fn has_queue_stayed(&self, epoch: &Epoch, signs: Signs) -> bool {
        epoch.waits.mean() > (QUEUE_STAYS * self.wait_before).max(signs.standing_wait())
    }
}

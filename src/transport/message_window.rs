//! The window of messages, in bytes in flight. It makes messages yield when the line is full.
//!
//! A window, because it paces itself: at any rate of the line at most the window is in flight, so a line much slower
//! than the budget fills its queue by the window and no more. The window grows while everything arrives soon and the
//! game wants more (slow start, then a twentieth per round trip), and shrinks when packets wait in a queue or many
//! are lost. Neither is proof: lossy lines and jitter are common, and others fill queues too. So each shrinking is a
//! test: if arrivals fall in proportion to sending, our data wasn't filling the line, and the window is restored. A
//! game that sends less than [`MIN_WINDOW`] per round trip, or never reaches the window, isn't affected.
//!
//! After TCP's window (RFC 5681), with the delay of LEDBAT (RFC 6817) in place of loss, and a regular probe of the
//! empty line like BBR's ProbeRTT.
//!
//! Promises: constant work and memory per packet. A peer that acks falsely changes what it is sent, up to the budget.

use super::windowed_min::WindowedMin;
use crate::time::{Duration, Instant};

/// Bytes of a full packet on the wire.
const PACKET: f64 = 1_250.0;

/// The initial window: a quarter of a second at 1 Mbit/s.
const INITIAL_WINDOW: f64 = 32.0 * 1024.0;

/// The minimum window: seven full packets, more than most games send in a round trip.
const MIN_WINDOW: f64 = 8.0 * 1024.0;

/// The least round trip is believed for one to two of these without being seen again: paths change.
const BASE_RTT_BUCKET: Duration = Duration::from_secs(5);

/// A wait in the queue that is too long for a game.
const MAX_QUEUE: Duration = Duration::from_millis(100);

/// A wait that timers must heed: a burst of ours may be in front.
const NO_QUEUE: Duration = Duration::from_millis(5);

/// A wait that is noise rather than a queue.
const SHORT_QUEUE: Duration = Duration::from_millis(25);

/// Above this share of losses the line may be full. Sending less shows whether it is.
const MAX_LOSS: f64 = 0.2;

/// And this much is never chance.
const CERTAIN_LOSS: f64 = 0.5;

/// An epoch is a round trip, but not shorter than this, and has enough packets to compute a share.
const MIN_EPOCH: Duration = Duration::from_millis(50);
const MIN_EPOCH_PACKETS: u32 = 8;

/// Sending this much less shows whether the line was full: then as much as before arrives. If less arrives, in
/// proportion but for noise, losses are by chance, up to this many times as many.
const SLOWER: f64 = 0.85;
const PROPORTION_NOISE: f64 = 1.2;
const CHANCE_SPREAD: f64 = 1.5;

/// No line that games are played on loses more than this by chance.
const MAX_CHANCE: f64 = 0.4;

/// Epochs until the effect shows: in one the data in flight drains, and each is judged at the end of the next.
const EPOCHS_TO_SHOW: u32 = 2;

/// How long others' queues and chance are then left alone: each test costs the game some messages.
const TEST_PAUSE: Duration = Duration::from_secs(5);

/// The part of the window that is kept after an epoch in which the line was full.
const DECREASE: f64 = 0.85;

/// How much the window grows in a round trip, once it has met a full line.
const INCREASE: f64 = 0.05;

/// Knowledge of a full line is dropped if it wasn't full for this long.
const FORGET: Duration = Duration::from_secs(10);

/// If the minimum round trip wasn't seen for this long, less is sent until it is.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(4);

/// The window during the probe, as a part of what the line holds without a queue.
const PROBE_RTT_SHARE: f64 = 0.5;

/// Bytes of messages in flight, and how many may be.
#[derive(Debug)]
pub(crate) struct MessageWindow {
    window: f64,
    in_flight: f64,
    /// The window doubles each round trip: it has not met a full line, or long ago.
    slow_start: bool,
    base_rtt: WindowedMin<Duration>,
    /// When a round trip was last about as short as the least.
    base_seen_at: Instant,
    newest_rtt: Duration,
    /// How far round trips in a row are apart.
    jitter: Duration,
    /// How often this end acts: a round trip may look longer by this much.
    tick: Duration,
    sent_at: Instant,
    congested_at: Instant,
    /// The share of packets that this line loses whatever is sent.
    chance: f64,
    /// The line looked full, so less is sent: whether that helps shows whether it was.
    full_line_test: Option<FullLineTest>,
    /// Until then a queue is taken for others' work, as sending less didn't help.
    no_test_until: Instant,
    /// The epoch before ran into the window.
    was_limited: bool,
    /// Until then little is in flight, to see the line without a queue.
    probe_rtt: Option<ProbeRtt>,
    epoch: Epoch,
    /// The losses of the previous epoch.
    losses: Losses,
}

#[derive(Clone, Copy, Debug)]
struct FullLineTest {
    before: Losses,
    /// The window to restore.
    window: f64,
    /// Until it shows whether sending less helps.
    epochs: u32,
}

#[derive(Clone, Copy, Debug)]
struct ProbeRtt {
    until: Instant,
    window: f64,
}

/// The measurements of a round trip.
#[derive(Debug, Default)]
struct Epoch {
    began: Instant,
    losses: Losses,
    /// Packets acked or lost.
    packets: u32,
    min_rtt: Option<Duration>,
    /// More messages were queued than the window allowed.
    limited: bool,
}

/// Bytes acked, and bytes taken for lost.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    acked: f64,
    lost: f64,
    seconds: f64,
}

impl FullLineTest {
    /// Whether arrivals fell in proportion to sending, but for noise: if the line still looks full, our data isn't
    /// the cause.
    fn is_refuted(&self, now: &Losses) -> bool {
        let (sent, carried) = (now.sent() / self.before.sent(), now.carried() / self.before.carried());
        sent < SLOWER && carried < PROPORTION_NOISE * sent
    }
}

impl Losses {
    /// Bytes a second, at least one.
    fn sent(&self) -> f64 {
        (self.acked + self.lost).max(1.0) / self.seconds.max(0.001)
    }

    fn carried(&self) -> f64 {
        self.acked.max(1.0) / self.seconds.max(0.001)
    }

    fn share(&self) -> f64 {
        self.lost / (self.acked + self.lost).max(1.0)
    }

    /// Bytes that counted as lost have been acked.
    fn take_back(&mut self, bytes: f64) {
        self.lost = (self.lost - bytes).max(0.0);
        self.acked += bytes;
    }
}

impl Epoch {
    fn new(began: Instant) -> Self {
        Epoch { began, ..Epoch::default() }
    }
}

impl Default for MessageWindow {
    fn default() -> Self {
        MessageWindow {
            window: INITIAL_WINDOW,
            in_flight: 0.0,
            slow_start: true,
            base_rtt: WindowedMin::default(),
            base_seen_at: Instant::ZERO,
            newest_rtt: Duration::ZERO,
            jitter: Duration::ZERO,
            tick: Duration::ZERO,
            sent_at: Instant::ZERO,
            congested_at: Instant::ZERO,
            chance: 0.0,
            full_line_test: None,
            no_test_until: Instant::ZERO,
            was_limited: false,
            probe_rtt: None,
            epoch: Epoch::default(),
            losses: Losses::default(),
        }
    }
}

impl MessageWindow {
    /// Bytes of messages that may be in flight.
    pub(crate) fn bytes(&self) -> f64 {
        self.probe_rtt.map_or(self.window, |probe| probe.window)
    }

    /// Whether another packet of messages may go. The last one may overdraw, so that one larger than the window goes
    /// at all.
    pub(crate) fn allows(&mut self) -> bool {
        let allows = self.in_flight < self.bytes();
        self.epoch.limited |= !allows;
        allows
    }

    /// Bytes that may go now.
    pub(crate) fn room(&self) -> f64 {
        self.bytes() - self.in_flight
    }

    /// When a closed window opens without anything being acked; [`Instant::NEVER`] if it doesn't.
    pub(crate) fn next(&self) -> Instant {
        match self.probe_rtt {
            _ if self.in_flight < self.bytes() => Instant::ZERO,
            Some(probe) if self.in_flight < self.window => probe.until,
            _ => Instant::NEVER,
        }
    }

    /// Whether packets sent now would wait in a queue.
    pub(crate) fn has_queue(&self) -> bool {
        self.newest_rtt > self.base_rtt() + NO_QUEUE + self.tick
    }

    /// Something may be sent now: called whenever this end acts. Its effect doesn't depend on how often that is,
    /// because a replayed capture only has the times at which something was received or sent.
    pub(crate) fn update(&mut self, now: Instant) {
        if let Some(probe) = self.probe_rtt.filter(|probe| probe.until <= now) {
            self.probe_rtt = None;
            self.base_seen_at = probe.until;
            self.epoch = Epoch::new(probe.until);
        }
    }

    /// A packet with this many bytes of messages goes out; 0 for none.
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: u32) {
        if now > self.sent_at {
            // A pause isn't a tick, and one late tick not the next one's length.
            self.tick =
                (now - self.sent_at).min(self.tick + self.tick / 4 + Duration::from_millis(5)).min(FORGET);
            self.sent_at = now;
        }
        self.in_flight += f64::from(bytes);
    }

    /// Its ack arrived; `late` if it counted as lost before.
    pub(crate) fn on_acked(&mut self, bytes: u32, late: bool) {
        let bytes = f64::from(bytes);
        self.epoch.packets += 1;
        if !late {
            self.in_flight -= bytes;
            self.epoch.losses.acked += bytes;
        } else if self.epoch.losses.lost >= bytes.min(PACKET) {
            self.epoch.losses.take_back(bytes.min(PACKET));
        } else {
            self.losses.take_back(bytes.min(PACKET));
        }
        if self.slow_start && self.epoch.limited {
            self.window += bytes;
        }
    }

    /// It counts as lost.
    pub(crate) fn on_lost(&mut self, bytes: u32) {
        let bytes = f64::from(bytes);
        self.in_flight -= bytes;
        // One lost datagram is enough to lose a packet in fragments.
        let lost = bytes.min(PACKET);
        self.epoch.losses.lost += lost;
        self.epoch.losses.acked += bytes - lost;
        self.epoch.packets += 1;
    }

    /// The round trip of the newest packet, after its acks were taken.
    pub(crate) fn on_round_trip(&mut self, now: Instant, rtt: Duration) {
        self.base_rtt.push(now, BASE_RTT_BUCKET, rtt);
        if self.newest_rtt == Duration::ZERO {
            // Only now does anything begin: the clock may have run for long.
            (self.congested_at, self.base_seen_at, self.epoch.began) = (now, now, now);
        } else {
            let apart = rtt.abs_diff(self.newest_rtt);
            self.jitter = (15 * self.jitter + apart) / 16;
        }
        self.newest_rtt = rtt;
        self.epoch.min_rtt = Some(self.epoch.min_rtt.map_or(rtt, |least| least.min(rtt)));
        if rtt <= self.base_rtt() + SHORT_QUEUE {
            self.base_seen_at = now;
        } else if self.slow_start && self.no_test_until <= now && rtt > self.base_rtt() + self.max_queue() {
            // No doubling into a queue. The end of the epoch decides how much to keep.
            self.slow_start = false;
        }
    }

    /// Judges the epoch, if it is over: called after each datagram of the peer.
    pub(crate) fn judge(&mut self, now: Instant) {
        let length = self.newest_rtt.max(MIN_EPOCH);
        // Before the first round trip, packets that count as lost may only be far away.
        let over = self.newest_rtt > Duration::ZERO && now - self.epoch.began >= length;
        if !over || self.epoch.packets < MIN_EPOCH_PACKETS || self.probe_rtt.is_some() {
            return;
        }
        let epoch = core::mem::replace(&mut self.epoch, Epoch::new(now));
        let base = self.base_rtt();
        let queue = epoch.min_rtt.map_or(Duration::ZERO, |rtt| rtt.saturating_sub(base));
        // From the previous epoch: packets that were merely overtaken have been acked since.
        let newest = Losses { seconds: (now - epoch.began).as_secs_f64(), ..epoch.losses };
        let rate = newest.carried();
        let losses = core::mem::replace(&mut self.losses, newest);
        let loss = losses.share();
        self.chance += (loss - self.chance).min(0.0) / 8.0;
        let full = queue > self.max_queue() || loss > MAX_LOSS.max(CHANCE_SPREAD * self.chance);
        let limited = core::mem::replace(&mut self.was_limited, epoch.limited) || epoch.limited;
        // A game that never reached the window has little in flight: not enough to fill a line, unless the line loses
        // most of it.
        let certain = loss > CERTAIN_LOSS;
        if let Some(full_line_test) = &mut self.full_line_test
            && full_line_test.epochs > 0
        {
            full_line_test.epochs -= 1;
        } else if let Some(full_line_test) =
            self.full_line_test.take().filter(|it| full && !certain && it.is_refuted(&losses))
        {
            self.chance = loss.min(MAX_CHANCE);
            self.window = full_line_test.window.max(self.window);
            self.slow_start = true;
            self.no_test_until = now + TEST_PAUSE;
        } else if full && (certain || (limited && self.no_test_until <= now)) {
            self.full_line_test =
                Some(FullLineTest { before: losses, window: self.window, epochs: EPOCHS_TO_SHOW });
            self.shrink(now, rate, base + queue.min(self.max_queue()));
        } else if limited && !self.slow_start {
            self.window += (INCREASE * self.window).max(2.0 * PACKET);
        }
        if now - self.congested_at > FORGET {
            self.slow_start = true;
            self.window = self.window.max(INITIAL_WINDOW);
        } else if epoch.limited && self.no_test_until <= now && now - self.base_seen_at > PROBE_RTT_INTERVAL {
            let window = (rate * base.as_secs_f64() * PROBE_RTT_SHARE).max(2.0 * PACKET);
            self.probe_rtt = Some(ProbeRtt { until: now + queue + 2 * base + self.tick, window });
        }
    }

    /// Shrinks the window to what a line of this rate holds in this time, or to half if that is more: the first acks
    /// of a connection give no rate.
    fn shrink(&mut self, now: Instant, rate: f64, rtt: Duration) {
        let carried = rate * rtt.as_secs_f64() * DECREASE;
        self.window = carried.max(self.window / 2.0).min(self.window).max(MIN_WINDOW);
        self.slow_start = false;
        self.congested_at = now;
    }

    /// The round trip without a queue; zero before the first.
    fn base_rtt(&self) -> Duration {
        self.base_rtt.value().unwrap_or(Duration::ZERO)
    }

    fn max_queue(&self) -> Duration {
        MAX_QUEUE + self.tick + 2 * self.jitter
    }
}

#[cfg(test)]
mod tests;

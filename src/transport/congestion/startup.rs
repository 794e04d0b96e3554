//! The rate of a link of which nothing is known.
//!
//! Rounds, each four times as fast as the one before arrived, until one takes noticeably longer to arrive than it took to send:
//! what arrives then is the rate. The first lasts for half a round trip, the next ones for a third: a link only as fast as the
//! round before holds that in a queue of one round trip. pathChirp (Ribeiro and others, PAM 2003) reads a link's rate off
//! in the same way, where packets begin to wait; a chirp in rounds overshoots once at most, and by less than slow
//! start (RFC 9406 ends that at a queue too, but a round trip later).
//!
//! A burst of one instant (a packet train, Jain and Routhier, 1986) would tell the rate of the narrowest place in one round trip. But of
//! twenty that begin together each would be told all of it, and the first few would take it. What is spread meets what the
//! others spread, in one queue, and so each learns its part.
//!
//! Beside others who were there before (their queue shows), a share is what we get of the link while we send as fast as they do:
//! there a round may take longer before it ends the startup.
//!
//! Jitter makes a round longer too, and one that ends the startup then leaves a rate from which growing takes many seconds. Waits that
//! fall and packets that are overtaken tell of it: a round then ends the startup only if it took longer by more than the jitter, and
//! the next is less faster.

use super::SentStamp;
use super::constants::{BLUR, ENOUGH, MIN_JITTER, PACKET};
use crate::time::{Duration, Instant};

/// How much faster each round is than the one before.
const STEP: f64 = 4.0;

/// And with jitter, which hides how much longer a round takes: the excess of the next one would wait in the queue.
const STEP_IN_JITTER: f64 = 0.5 * STEP;

/// Waits that fall by less than [`MIN_JITTER`] show no jitter, and no more than this part of a round trip is taken for it.
const MAX_JITTER: f64 = 0.5;

/// How long it is remembered by how much waits fell.
const DROPS_KEPT: Duration = Duration::from_secs(2);

/// A round goes out in this part of a round trip, but in no less time than [`MIN_JITTER`].
const SPREAD: f64 = 0.5;

/// A round [`STEP`] times as fast as the one before goes out in this part: a queue of one round trip holds what a link as fast
/// as the one before leaves. Of a round as long as the first, such a link drops a quarter.
const SHORT_SPREAD: f64 = 1.0 / (STEP - 1.0);

/// The first round goes out over this time, in seconds; where the part of the round trip is shorter it has fewer bytes, but not
/// fewer than this. Twenty that begin together on 50 Mbit/s and 20 ms would drop 8 % of their first second otherwise.
const INITIAL_SPREAD: f64 = 0.025;
const MIN_ROUND: f64 = 8.0 * PACKET;

/// The part of a round whose outcome must be known: if it is clear whether it took longer, and if ticks blur that.
const SETTLED: f64 = 0.28;
const SETTLED_AT_LAST: f64 = 0.8;

/// Longer ticks than this, in seconds, blur a round's duration as much as a queue does. With ticks above the upper
/// end a round has too few of them.
const COARSE_TICKS: core::ops::Range<f64> = 0.005..0.06;

/// With such ticks a round is slower only if it is by this many times more than otherwise: losses aren't all known yet.
const TICKS_BLUR: f64 = 1.1;

/// The fastest round lasts for this many ticks.
const MIN_TICKS: f64 = 4.0;

/// The link is full if a round takes this many times as long to arrive as to send.
const LONGER: f64 = 1.25;

/// A round that isn't longer arrived at no less than this part of its pace.
const MIN_MEASURED: f64 = 2.0 - LONGER;

/// The same beside others: a flow as fast as all of them together, on a link that they fill, takes twice as long.
/// With 2.5 ten times as much is dropped when a newcomer begins, with 1.25 it begins with a sixth of the link.
const LONGER_BESIDE_OTHERS: f64 = 1.0 + 2.0 * (LONGER - 1.0);

/// Others are there if the first packet of a round waited longer than this, in seconds.
const MIN_WAIT: f64 = 0.0015;

/// Clocks blur a round trip by this many seconds: a round that ticks spread over just a round trip counts as one.
const CLOCKS_BLUR: f64 = 0.0002;

/// Others are there, too, if two rounds in a row lose more than this share: one may by chance.
const MAX_LOSS: f64 = 0.4;

/// A burst is spread over this part of a round trip: slowly enough that a link which can't hold it
/// drops only some of each part, so that losses show as soon as the rest is acked.
const BURST_SPREAD: f64 = 0.72;

/// The path's times, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// Until an ack comes if there is no queue.
    pub(super) rtt: f64,
    /// The time between our sends, and between the peer's reads.
    pub(super) send_tick: f64,
    pub(super) receive_tick: f64,
}

impl Path {
    /// The longer of both ticks.
    fn tick(self) -> f64 {
        self.send_tick.max(self.receive_tick)
    }

    fn has_coarse_ticks(self) -> bool {
        self.tick() >= COARSE_TICKS.start
    }
}

/// By how much waits drop. In a queue that we fill they only grow, and in one that others fill they seldom drop: a
/// drop seen several times is jitter, and may have lengthened a round by as much.
#[derive(Debug, Default)]
struct WaitDrops {
    /// The longest wait since the last fall, or in a fall the shortest.
    turn: Option<f64>,
    falling: bool,
    /// The last drops: when they began, and their seconds.
    recent: [(Instant, f64); 3],
}

impl WaitDrops {
    fn push(&mut self, at: Instant, wait: f64) {
        let turn = self.turn.get_or_insert(wait);
        let further = if self.falling { *turn - wait } else { wait - *turn };
        if further > 0.0 {
            self.recent[0].1 += if self.falling { further } else { 0.0 };
            *turn = wait;
        } else if further < -MIN_JITTER {
            self.falling = !self.falling;
            *turn = wait;
            if self.falling {
                self.recent.rotate_right(1);
                self.recent[0] = (at, -further);
            }
        }
    }

    /// A packet came later by this than one that was sent after it, which no queue does.
    fn on_overtaken(&mut self, at: Instant, late: f64) {
        if late > MIN_JITTER {
            let most = self.recent.iter().map(|(_, fall)| *fall).fold(late, f64::max);
            self.recent = [(at, most); 3];
        }
    }

    /// Forgets how long waits were, and not how far they fell.
    fn pause(&mut self) {
        (self.turn, self.falling) = (None, false);
    }

    /// By how much a span may be too long or too short.
    fn jitter(&self, now: Instant, path: Path) -> f64 {
        // With ticks there are few samples.
        let tick = path.tick();
        let enough = if COARSE_TICKS.contains(&tick) { 1 } else { self.recent.len() };
        let often =
            self.recent[..enough].iter().all(|(at, _)| *at != Instant::ZERO && now - *at < DROPS_KEPT);
        let most = self.recent.iter().map(|(_, fall)| *fall).fold(0.0, f64::max);
        if often { most.min(MAX_JITTER * path.rtt) } else { 0.0 }
    }
}

/// The state before the rate is known.
#[derive(Debug)]
pub(super) struct Startup {
    /// Bytes of this round, and bytes a second at which it goes out.
    pub(super) window: f64,
    pub(super) pace: f64,
    /// The round's bytes if it isn't short.
    whole: f64,
    /// It lasts for [`SHORT_SPREAD`], unless ticks are coarse.
    short: bool,
    /// Exists from the first packet on: most connections never send one.
    round: Option<Box<Round>>,
    /// Bytes that the application wants to go out at once, within one round trip.
    pub(super) burst: f64,
    /// The round under way is such a burst.
    pub(super) bursting: bool,
    /// The rate of the previous round, if that lost much.
    lossy: Option<f64>,
    drops: WaitDrops,
    /// No round goes out faster, nor more of it at one time.
    max_rate: f64,
    max_burst: f64,
}

/// The outcome of a round. Amounts are bytes.
#[derive(Debug)]
struct Round {
    /// It is the first round.
    first: bool,
    began: Instant,
    sent: f64,
    /// Later packets only ask for acks.
    ended: Instant,
    acked: f64,
    lost: f64,
    /// Sending and arrival times of the first and the last packet acked, and the bytes that arrived after the first.
    arrivals: Option<[(Instant, Instant); 2]>,
    arrived: f64,
    /// The wait of its first packet, in seconds.
    waited: Option<f64>,
}

impl Round {
    fn is_beside_others(&self, path: Path) -> bool {
        self.waited.is_some_and(|wait| wait > MIN_WAIT + 0.5 * (path.send_tick + path.receive_tick))
    }
}

impl Startup {
    pub(super) fn new(initial_bytes: u32, max_burst_bytes: u32, max_rate: f64) -> Self {
        let window = f64::from(initial_bytes);
        Startup {
            window,
            pace: 0.0,
            whole: window,
            short: false,
            round: None,
            burst: 0.0,
            bursting: false,
            lossy: None,
            drops: WaitDrops::default(),
            max_rate,
            max_burst: f64::from(max_burst_bytes),
        }
    }

    /// Whether the round goes on, with this many bytes in flight.
    pub(super) fn has_room(&self, in_flight: f64) -> bool {
        // Offers and acks are on their way too: the last slice of a burst mustn't wait for a round trip.
        let most = if self.bursting { self.window + MIN_ROUND } else { 0.0 };
        self.round.as_ref().is_some_and(|round| round.sent < self.window || in_flight < most)
    }

    /// Whether the round under way has more to send.
    pub(super) fn is_going_out(&self) -> bool {
        self.round.as_ref().is_some_and(|round| round.sent < self.window)
    }

    /// Begins a round if none is under way, and returns the bytes to send at once; `idle` says that nothing is in
    /// flight, nor about to be.
    pub(super) fn begin(&mut self, now: Instant, path: Path, idle: bool) -> Option<f64> {
        let unfinished = |round: &mut Box<Round>| idle && round.sent > 0.0;
        if self.round.is_some() && self.round.take_if(unfinished).is_none() {
            return None;
        }
        let first = self.pace == 0.0;
        if first {
            let spread = SPREAD * path.rtt / INITIAL_SPREAD;
            self.whole = (self.whole * spread.min(1.0)).max(MIN_ROUND.min(self.whole));
        } else {
            // The previous round's queue is drained in the pause.
            self.drops.pause();
        }
        let spread = |round_trips: f64| {
            (round_trips * path.rtt).max(path.send_tick).max(0.25 * path.receive_tick).max(MIN_JITTER)
        };
        let (spread, short) = (spread(SPREAD), spread(SHORT_SPREAD));
        self.pace = (self.whole / spread).min(self.max_rate(path));
        self.whole = self.whole.min(self.pace * spread.max(MIN_TICKS * path.tick())).max(ENOUGH);
        self.window = self.whole * if self.short && !path.has_coarse_ticks() { short / spread } else { 1.0 };
        self.bursting = self.burst > self.window;
        let mut at_once = (self.pace * path.send_tick).max(PACKET);
        if self.bursting {
            at_once = self.window;
            self.pace = self.pace.max((self.burst - at_once) / (BURST_SPREAD * path.rtt));
            (self.window, self.whole) = (self.burst, self.whole.max(self.burst));
        }
        self.burst = 0.0;
        self.round = Some(Box::new(Round {
            first,
            began: now,
            sent: 0.0,
            ended: Instant::NEVER,
            acked: 0.0,
            lost: 0.0,
            arrivals: None,
            arrived: 0.0,
            waited: None,
        }));
        Some(at_once)
    }

    fn max_rate(&self, path: Path) -> f64 {
        self.max_rate.min(self.max_burst / path.send_tick.max(1e-9))
    }

    pub(super) fn on_sent(&mut self, stamp: &SentStamp) {
        if let Some(round) = &mut self.round {
            round.sent += f64::from(stamp.bytes);
            if round.sent >= self.window && round.ended == Instant::NEVER {
                round.ended = stamp.sent_at;
            }
        }
    }

    pub(super) fn on_lost(&mut self, stamp: &SentStamp) {
        if let Some(round) = self.round.as_mut().filter(|round| stamp.sent_at >= round.began) {
            round.lost += f64::from(stamp.bytes);
        }
    }

    /// A packet sent then waited in the queue.
    pub(super) fn on_wait(&mut self, sent_at: Instant, wait: f64) {
        // The previous round's queue shrinks in the pause after it.
        let counts = |round: &Round| (round.first || sent_at >= round.began) && sent_at <= round.ended;
        if !self.bursting && self.round.as_deref().map_or(self.pace == 0.0, counts) {
            self.drops.push(sent_at, wait);
        }
        if let Some(round) = self.round.as_mut().filter(|round| sent_at >= round.began) {
            round.waited.get_or_insert(wait);
        }
    }

    /// Takes an ack of a packet: it arrived at this time, or earlier if the ack shows when `newest` arrived, which
    /// was sent later.
    pub(super) fn on_acked(&mut self, at: Instant, newest: Instant, path: Path, stamp: &SentStamp) {
        let Some(round) = self.round.as_mut().filter(|round| stamp.sent_at >= round.began) else { return };
        let bytes = f64::from(stamp.bytes);
        round.acked += bytes;
        if stamp.sent_at > round.ended {
            return;
        }
        let before = round.arrivals.map_or(at, |[_, last]| last.1);
        let at = if newest > round.ended && (at - before).as_secs_f64() > 1.5 * path.receive_tick + MIN_JITTER
        {
            // The ack of its own was lost, and the pause after the round is no wait.
            Instant::from_nanos(at.as_nanos().saturating_sub((newest - stamp.sent_at).as_nanos() as u64))
                .max(before)
        } else {
            at
        };
        let arrival = (stamp.sent_at, at);
        let [first, last] = *round.arrivals.get_or_insert([arrival; 2]);
        // Packets that arrived with the first one began before.
        if at > first.1 {
            round.arrived += bytes;
        }
        // An overtaken packet shows its own delay, not the round's duration.
        if last.0 <= stamp.sent_at {
            round.arrivals = Some([first, arrival]);
        } else {
            let late = (last.0 - stamp.sent_at) + (at - last.1);
            self.drops.on_overtaken(at, late.as_secs_f64());
        }
    }

    /// Draws the conclusions from a round when enough is known of it: the bytes a second that are ours, once the link is full.
    pub(super) fn judge(&mut self, now: Instant, path: Path) -> Option<f64> {
        let round = self.round.as_ref()?;
        let findings = self.examine(now, round, path)?;
        // Acks that come before an honest peer's could don't hurry us.
        if (now - round.began).as_secs_f64() < path.rtt - CLOCKS_BLUR {
            return None;
        }
        let Findings { sending, arriving, known, longer, .. } = findings;
        let rate =
            if known { round.arrived / arriving } else { round.acked / sending.max(0.5 * path.receive_tick) };
        let rate = rate.min(self.pace);
        let lossy = round.lost > MAX_LOSS * (round.acked + round.lost);
        self.round = None;
        // The remains of a round after an outage give no rate.
        if longer && !lossy {
            return Some(rate);
        }
        let before = core::mem::replace(&mut self.lossy, lossy.then_some(rate));
        if lossy {
            // An outage may have hit a short round.
            self.short = false;
            return before.map(|before| rate.max(before));
        }
        if self.pace >= self.max_rate(path) && self.whole >= MIN_TICKS * path.receive_tick * self.pace {
            let blurred = arriving < 1.5 * path.tick();
            return Some(if blurred { self.pace } else { rate });
        }
        self.lengthen(&findings, rate, path);
        None
    }

    /// What is known of a round; None while it isn't enough.
    fn examine(&self, now: Instant, round: &Round, path: Path) -> Option<Findings> {
        let (mut sending, mut arriving) = (path.send_tick, 0.0);
        if let Some([first, last]) = round.arrivals {
            // A tick's packets cover the time until the next tick.
            sending += (last.0 - first.0).as_secs_f64();
            arriving = (last.1 - first.1).as_secs_f64();
        }
        let beside_others = round.is_beside_others(path);
        let times = if beside_others { LONGER_BESIDE_OTHERS } else { LONGER };
        let jitter = self.drops.jitter(now, path);
        let blur = path.receive_tick.max(jitter);
        let clear = !(0.0..=blur + 2.0 * BLUR).contains(&(arriving - times * sending));
        let known = round.arrived >= ENOUGH;
        // With ticks a span is only known to a tick or two. But as long as more is to come, each tick's arrivals are
        // what the link carries.
        let tick = path.tick();
        let more_comes = round.arrivals.is_some_and(|[_, last]| last.0 < round.ended);
        let slower = known
            && COARSE_TICKS.contains(&tick)
            && TICKS_BLUR * times * (round.arrived + round.lost) < self.pace * (arriving - jitter);
        let clear = clear && !(slower && more_comes);
        let fills = slower && more_comes && arriving > 1.5 * tick && jitter == 0.0;
        let fate = (round.acked + round.lost) / self.window;
        let settled = fate >= SETTLED_AT_LAST || (fate >= SETTLED && known && clear);
        // A round that took longer than allowed in all needn't be settled.
        let sending_all = if settled { sending } else { sending.max(self.window / self.pace) };
        let longer = known && (fills || arriving > times * sending_all + blur);
        (settled || longer).then_some(Findings { sending, arriving, jitter, known, beside_others, longer })
    }

    /// Makes the next round longer.
    fn lengthen(&mut self, findings: &Findings, rate: f64, path: Path) {
        let Findings { jitter, known, beside_others, .. } = *findings;
        let measured = known && !beside_others && jitter == 0.0 && !path.has_coarse_ticks();
        let step = if jitter > 0.0 { STEP_IN_JITTER } else { STEP };
        self.whole *= step * if measured { (rate / self.pace).max(MIN_MEASURED) } else { 1.0 };
        self.short = step == STEP && !beside_others;
    }
}

/// What is known of a round that is judged.
struct Findings {
    /// The seconds from the first packet's sending to the last one's, and of their arrivals.
    sending: f64,
    arriving: f64,
    /// The link's jitter in seconds, if it may hide a queue.
    jitter: f64,
    /// Enough of it arrived.
    known: bool,
    /// Another flow was in the queue.
    beside_others: bool,
    /// It arrived in a longer time than it was sent in: the link is full.
    longer: bool,
}

#[cfg(test)]
mod tests;

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
//! fall and packets that are overtaken tell of it: a round then ends the startup only if its later half waited as a whole and most
//! of it is known, and the next is less faster.

use super::SentStamp;
use crate::time::{Duration, Instant};

/// Bytes of a packet that carries bulk, with all headers, more or less.
const PACKET: f64 = 1_215.0;

/// How much faster each round is than the one before.
const STEP: f64 = 4.0;

/// And with jitter, which hides how much longer a round takes: the excess of the next one would wait in the queue.
const STEP_IN_JITTER: f64 = 2.0;

/// Waits that fall by less than this, in seconds, show no jitter; and no more than this part of a round trip is taken
/// for it.
const MIN_JITTER: f64 = 0.004;
const MAX_JITTER: f64 = 0.5;

/// How long it is remembered by how much waits fell.
const DROPS_KEPT: Duration = Duration::from_secs(2);

/// A round goes out in this part of a round trip, but in no less time than this, in seconds.
const SPREAD: f64 = 0.5;
const MIN_SPREAD: f64 = 0.004;

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

/// After a drop of waits fewer bytes than this don't tell a queue from packets that were held back.
const FEW: f64 = 12.0 * PACKET;

/// Nearer to taking longer than this, in seconds, it isn't clear.
const UNCLEAR: f64 = 0.002;

/// Clocks blur a round trip by this many seconds: a round that ticks spread over just a round trip counts as one.
const CLOCKS_BLUR: f64 = 0.0002;

/// Packets that arrive this many seconds later than a tick of the peer after the previous ones may have been acked
/// before.
const MISSING_ACK: f64 = 0.004;

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
const MIN_MEASURED: f64 = 0.75;

/// The same beside others: a flow as fast as all of them together, on a link that they fill, takes twice as long.
/// With 2.5 ten times as much is dropped when a newcomer begins, with 1.25 it begins with a sixth of the link.
const LONGER_BESIDE_OTHERS: f64 = 1.5;

/// Others are there if the first packet of a round waited longer than this, in seconds.
const MIN_WAIT: f64 = 0.0015;

/// Or if two rounds in a row lose more than this share: one may by chance.
const MAX_LOSS: f64 = 0.4;

/// Bytes that must have arrived after the first packet before a rate is computed.
const ENOUGH: f64 = 4.0 * PACKET;

/// A burst is spread over this part of a round trip: slowly enough that a link which can't hold it
/// drops only some of each part, so that losses show as soon as the rest is acked.
const BURST_SPREAD: f64 = 0.72;

/// How much else may be in flight with a burst.
const BESIDE_BURST: f64 = 8.0 * PACKET;

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
    /// A packet was overtaken.
    overtaken: bool,
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
            self.overtaken = true;
            let most = self.recent.iter().map(|(_, fall)| *fall).fold(late, f64::max);
            self.recent = [(at, most); 3];
        }
    }

    /// Forgets how long waits were, and not how far they fell.
    fn pause(&mut self) {
        (self.turn, self.falling) = (None, false);
    }

    /// Whether the packets known of a round, of this many bytes, may be those that jitter held back.
    fn may_mislead(&self, arrived: f64) -> bool {
        self.overtaken || (arrived < FEW && self.recent[0].1 > 2.0 * MIN_JITTER)
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
    window: f64,
    pace: f64,
    /// The round's bytes if it isn't short.
    whole: f64,
    /// It lasts for [`SHORT_SPREAD`], unless ticks are coarse.
    short: bool,
    /// Exists from the first packet on: most connections never send one.
    round: Option<Box<Round>>,
    /// Bytes that the application wants to go out at once.
    burst: f64,
    /// The round under way is such a burst.
    bursting: bool,
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
    /// The least wait of packets sent in its first half and in its second half.
    least_waits: [f64; 2],
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

    /// Lets `bytes` go out within one round trip.
    pub(super) fn begin_burst(&mut self, bytes: f64) {
        self.burst = bytes;
    }

    /// Whether the application asked for a burst.
    pub(super) fn is_burst(&self) -> bool {
        self.bursting
    }

    /// Bytes a second to send at.
    pub(super) fn rate(&self) -> f64 {
        self.pace
    }

    /// Bytes of the round.
    pub(super) fn window(&self) -> f64 {
        self.window
    }

    /// Whether the round goes on, with this many bytes in flight.
    pub(super) fn has_room(&self, in_flight: f64) -> bool {
        // Offers and acks are on their way too: the last slice of a burst mustn't wait for a round trip.
        let most = if self.bursting { self.window + BESIDE_BURST } else { 0.0 };
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
            (round_trips * path.rtt).max(path.send_tick).max(0.25 * path.receive_tick).max(MIN_SPREAD)
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
            least_waits: [f64::INFINITY; 2],
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
            let half = usize::from((sent_at - round.began).as_secs_f64() > 0.5 * self.window / self.pace);
            round.least_waits[half] = round.least_waits[half].min(wait);
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
        let at =
            if newest > round.ended && (at - before).as_secs_f64() > 1.5 * path.receive_tick + MISSING_ACK {
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
        let clear = !(0.0..=blur + UNCLEAR).contains(&(arriving - times * sending));
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
        // One late packet makes no queue; in a queue the minimum wait of the later half is at least about half of the
        // last wait.
        let [first, second] = round.least_waits;
        let grown = if second.is_finite() { 2.0 * (second - first).max(0.0) } else { 0.0 };
        let stands = jitter == 0.0 || grown > (times - 1.0) * sending_all + path.receive_tick;
        let may_mislead = self.drops.may_mislead(round.arrived);
        if longer && (!stands || may_mislead) && fate < SETTLED_AT_LAST {
            return None;
        }
        let longer = longer && stands;
        // Acks that come before an honest peer's could don't hurry us.
        if !(settled || longer) || (now - round.began).as_secs_f64() < path.rtt - CLOCKS_BLUR {
            return None;
        }
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
            let blurred = arriving < 1.5 * tick;
            return Some(if blurred { self.pace } else { rate });
        }
        let measured = known && !beside_others && jitter == 0.0 && !path.has_coarse_ticks();
        let step = if jitter > 0.0 { STEP_IN_JITTER } else { STEP };
        self.whole *= step * if measured { (rate / self.pace).max(MIN_MEASURED) } else { 1.0 };
        self.short = step == STEP && !beside_others;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path { rtt: 0.05, send_tick: 0.001, receive_tick: 0.001 };

    fn us(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    /// A round that begins then, over a link of `rate` bytes a second; `lost` says which packets are lost.
    fn play(startup: &mut Startup, began: u64, rate: f64, lost: impl Fn(u64) -> bool) -> Option<f64> {
        play_over(startup, PATH, began, rate, lost)
    }

    fn play_over(
        startup: &mut Startup,
        path: Path,
        began: u64,
        rate: f64,
        lost: impl Fn(u64) -> bool,
    ) -> Option<f64> {
        startup.begin(us(began), path, true).unwrap();
        let (bytes, pace) = (1_000.0, startup.rate());
        let packets = (startup.window() / bytes).ceil() as u64;
        let stamp = |n: u64| SentStamp {
            sent_at: us(began + (n as f64 * bytes / pace * 1e6) as u64),
            bytes: bytes as u32,
            bulk: true,
            sent_in_startup: true,
            app_limited: false,
        };
        (0..packets).for_each(|n| startup.on_sent(&stamp(n)));
        assert!(!startup.has_room(0.0), "the round is out");
        let spacing = bytes / rate.min(pace) * 1e6;
        let mut verdict = None;
        for n in 0..packets {
            let at = us(began + 25_000 + (n as f64 * spacing) as u64);
            if lost(n) {
                startup.on_lost(&stamp(n));
            } else {
                startup.on_acked(at, stamp(n).sent_at, path, &stamp(n));
            }
            verdict = verdict.or(startup.judge(at + core::time::Duration::from_millis(25), path));
        }
        verdict
    }

    #[test]
    fn rounds_grow_until_one_takes_longer_to_arrive() {
        let mut startup = Startup::new(32_768, 262_144, 125e6);
        let mut paces = Vec::new();
        let rate = (0..9).find_map(|round| {
            let rate = play(&mut startup, round * 200_000, 6e6, |_| false);
            paces.push(startup.rate() / (32_768.0 / 0.025));
            rate
        });
        assert!((rate.unwrap() - 6e6).abs() < 0.2e6, "{rate:?}");
        assert_eq!(paces.iter().map(|pace| pace.round()).collect::<Vec<_>>(), [1.0, 4.0, 16.0]);
    }

    #[test]
    fn the_greatest_rate_ends_it_with_ticks_of_some_milliseconds() {
        for tick in [0.001, 0.002, 0.003, 0.004] {
            let path = Path { rtt: 0.03, send_tick: tick, receive_tick: tick };
            let mut startup = Startup::new(32_768, 262_144, 2e6);
            let rate =
                (0..20).find_map(|round| play_over(&mut startup, path, round * 200_000, 9e6, |_| false));
            assert!(rate.is_some_and(|rate| rate > 1.5e6), "{tick}: {startup:?}");
        }
    }

    #[test]
    fn many_that_share_a_link_learn_their_part_in_the_first_round() {
        let mut startup = Startup::new(32_768, 262_144, 125e6);
        let rate = play(&mut startup, 0, 0.3e6, |_| false).unwrap();
        assert!((rate - 0.3e6).abs() < 0.02e6, "{rate}");
    }

    #[test]
    fn a_short_path_gets_a_shorter_first_round() {
        let path = Path { rtt: 0.02, ..PATH };
        let mut startup = Startup::new(32_768, 262_144, 125e6);
        startup.begin(Instant::ZERO, path, true);
        assert!((startup.window() - 0.4 * 32_768.0).abs() < 1.0 && startup.rate() < 1.32e6, "{startup:?}");
    }

    #[test]
    fn one_round_may_lose_most_by_chance_and_two_may_not() {
        let mut startup = Startup::new(32_768, 262_144, 125e6);
        assert_eq!(play(&mut startup, 0, 6e6, |n| n % 2 == 0), None);
        assert_eq!(startup.window(), 32_768.0, "it is repeated");
        let rate = play(&mut startup, 200_000, 6e6, |n| n % 2 == 0);
        assert!(rate.is_some_and(|rate| rate <= startup.rate()), "{rate:?}");
    }

    #[test]
    fn what_an_outage_leaves_of_a_round_on_a_full_link_is_no_rate() {
        let mut startup = Startup::new(32_768, 262_144, 125e6);
        assert_eq!(play(&mut startup, 0, 0.6e6, |n| n < 20), None, "most of it was lost");
        let rate = play(&mut startup, 200_000, 0.6e6, |_| false).unwrap();
        assert!((rate - 0.6e6).abs() < 0.05e6, "{rate}");
    }

    #[test]
    fn an_ack_that_was_lost_does_not_lengthen_a_round() {
        for (pause, longest) in [(0, 0.030), (40_000, 0.035)] {
            let mut startup = Startup::new(32_768, 262_144, 125e6);
            startup.begin(us(0), PATH, true);
            let stamp = |n: u64| SentStamp {
                sent_at: us(n * 760),
                bytes: 1_000,
                bulk: true,
                sent_in_startup: true,
                app_limited: false,
            };
            (0..33).for_each(|n| startup.on_sent(&stamp(n)));
            (0..20).for_each(|n| startup.on_acked(us(25_000 + n * 760), us(n * 760), PATH, &stamp(n)));
            // The rest is acked together with a packet that was sent after the pause.
            let newest = us(32 * 760 + pause);
            let at = newest + core::time::Duration::from_millis(25);
            (20..33).for_each(|n| startup.on_acked(at, newest, PATH, &stamp(n)));
            let [first, last] = startup.round.as_ref().unwrap().arrivals.unwrap();
            assert!((last.1 - first.1).as_secs_f64() < longest, "{startup:?}");
        }
    }

    #[test]
    fn beside_others_a_round_may_take_longer() {
        for (wait, done) in [(0.0, true), (0.004, false)] {
            let mut startup = Startup::new(32_768, 262_144, 125e6);
            startup.begin(Instant::ZERO, PATH, true);
            startup.on_wait(Instant::ZERO, wait);
            let arriving = 0.6 * startup.rate();
            let rate = play_on(&mut startup, arriving);
            assert_eq!(rate.is_some(), done, "{wait}: {rate:?}");
        }
    }

    /// Acks of a round that arrived at this many bytes a second.
    fn play_on(startup: &mut Startup, rate: f64) -> Option<f64> {
        let pace = startup.rate();
        (0..33).find_map(|n| {
            let sent_at = us((f64::from(n) * 1e9 / pace) as u64);
            let stamp =
                SentStamp { sent_at, bytes: 1_000, bulk: true, sent_in_startup: true, app_limited: false };
            startup.on_sent(&stamp);
            let at = us(25_000 + (f64::from(n) * 1e9 / rate) as u64);
            startup.on_acked(at, stamp.sent_at, PATH, &stamp);
            startup.judge(at + core::time::Duration::from_millis(50), PATH)
        })
    }

    #[test]
    fn a_round_that_the_application_cut_short_is_begun_again() {
        let mut startup = Startup::new(32_768, 262_144, 125e6);
        startup.begin(Instant::ZERO, PATH, true).unwrap();
        assert_eq!(startup.begin(us(1_000), PATH, true), None, "nothing of it went out");
        let sent_at = us(1_000);
        let stamp =
            SentStamp { sent_at, bytes: 1_000, bulk: true, sent_in_startup: true, app_limited: false };
        startup.on_sent(&stamp);
        assert_eq!(startup.begin(us(2_000), PATH, false), None, "it is under way");
        assert!(startup.begin(us(90_000), PATH, true).is_some());
    }
}

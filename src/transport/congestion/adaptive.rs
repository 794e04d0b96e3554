//! The controller: sends as fast as the link carries, without a queue of more than some milliseconds.
//!
//! Promises: a loss alone never slows it down, up to a share of 12 %; a queue does, and within a round trip. Sending
//! is spread over time, and unused rate is not saved up. Refuses any claim to the whole link while others use it.
//!
//! How it works, and where it comes from:
//!
//! - **Delivery rate leads**, as in BBR (Cardwell and others, 2016; draft-ietf-ccwg-bbr): the rate of arrival while
//!   there is a queue is the capacity. Divided by the share that random loss leaves, it is the rate to send at. But
//!   BBR's maximum over ten rounds overestimates if a peer acks once in a 60 Hz tick, and its probes by a quarter
//!   make queues of a quarter round trip, 37 ms at 150 ms.
//! - **Rate and queue are measured on the way there**, if the peer reports arrival times by its clock: acks that wait
//!   in a queue of their own, or come in groups, only delay the measurement.
//! - **Delay steers.** The rate is corrected in proportion to how far the queue is from a target of some milliseconds
//!   (like the window of LEDBAT++ and of SCReAM, RFC 8298). The queue never quite empties, so no probes are needed
//!   while it is there. The target falls with the root of the rate (as in Swift, Kumar and others, SIGCOMM 2020), so
//!   that of several flows in a queue the faster yields.
//! - **An empty queue asks for more**: up to 5 % for a round trip, and twice as much each time more arrives for it.
//! - **Startup** sends ever faster rounds until one takes longer to arrive than to send: [`startup`](super::startup).
//! - **The round trip without queues** is the minimum of 5 to 10 seconds. If it isn't seen for 4 seconds, one round
//!   trip of sending less shows it (BBR's ProbeRTT, but only as deep as our own queue).
//! - **Against flows that fill the queue** it competes: [`competition`](super::competition), after Copa.

use super::competition::{Circumstances, Competition};
use super::constants::{BASE_BUCKET, BLUR, FRUITFUL, LESS, LONG, MAX_DOUBLINGS, MIN_JITTER, PACKET};
use super::delay::{Delay, MAX_TICK};
use super::delivery::{Epoch, Passage, Signs};
use super::flight::Flight;
use super::loss::Loss;
use super::startup::{Path, Startup};
use super::{CongestionConfig, RoundTrip, SentStamp};
use crate::time::{Duration, Instant};
use crate::transport::pacing::Pacer;
use crate::transport::peer_clock::PeerClock;

/// The queue to aim for, in seconds, is this over the root of bytes a second: 7 ms at 10 Mbit/s, 2 ms at 100. It is at
/// least twice [`BLUR`].
const TARGET: f64 = 8.0;
const MAX_TARGET: f64 = 0.010;

/// The part of both ends' ticks that is added to the target, because ticks blur the measurement.
const TARGET_TICKS: f64 = 0.25;
const MAX_TARGET_TICKS: f64 = 0.025;

/// And of the jitter, which is no queue.
const TARGET_JITTER: f64 = 3.0;
const MAX_TARGET_JITTER: f64 = 0.030;

/// How strongly the queue steers: this part of the difference to the target should be gone after a round trip.
/// Effects show a round trip later, and at 1 / e that doesn't oscillate.
const STEERING: f64 = 0.35;

/// The least and the most of that, as shares of the rate.
const MAX_SLOWER: f64 = 0.5;
const MAX_FASTER: f64 = 0.15;

/// How much faster to send while the queue is empty: by this part, or by what makes a queue of [`MIN_JITTER`] in a round
/// trip, but by at least half of this part, or filling the longest paths would take minutes. It doubles each time that more
/// arrived, up to [`MAX_DOUBLINGS`] times. A queue shorter than its target lets us send a packet a round trip more, up to
/// this part.
const FIRST_GROWTH: f64 = 0.05;

/// More counts as arriving if it exceeds the amount before by [`FRUITFUL`] and this many packets: chance explains less.
const CHANCE: f64 = 1.5 * PACKET;

/// Ticks blur what arrives in an epoch if they are more than this part of it. Then more is taken to have arrived if no queue shows
/// and not half of it was lost, nor more than this share.
const BLURRED: f64 = 0.15;
const MAX_UNHINDERED_LOSS: f64 = 0.12;

/// Waits tell little of a queue where more than this share of packets is overtaken; it is smoothed over [`LONG`] packets.
const MAX_OVERTAKEN: f64 = 0.005;

/// How much less than the capacity goes out in ProbeRTT: twice what drains the queue if all of it were ours, since
/// of a queue that is shared we drain no more than our part.
const MIN_PROBE_RTT_DEPTH: f64 = 0.3;
const MAX_PROBE_RTT_DEPTH: f64 = 0.75;

/// An epoch is a round trip, but not shorter than this, in seconds.
const MIN_EPOCH: f64 = 0.01;

/// Without an ack for as many round trips and ticks, and as many seconds more, there is an outage.
const OUTAGE_RTTS: f64 = 2.0;
const MIN_OUTAGE: f64 = 0.05;

/// A longer round trip than this, in seconds, counts as none.
const MAX_RTT: f64 = 60.0;

/// Decides how many bytes of bulk may go out, and when. Rates are bytes a second, amounts bytes, and times seconds where they aren't [`Duration`]s.
#[derive(Debug)]
pub(crate) struct Adaptive {
    config: CongestionConfig,
    /// Until a rate is known.
    startup: Option<Startup>,
    delay: Delay,
    clock: PeerClock,
    /// From the newest packet acked, if the peer reports arrival times.
    passage: Option<Passage>,
    epoch: Epoch,
    /// The newest packet acked is of the startup.
    pausing: bool,
    /// From the first epoch on: most connections send no bulk.
    loss: Option<Box<Loss>>,
    competition: Competition,
    pacer: Pacer,
    /// The rate of arrival when the link is full.
    capacity: f64,
    /// Epochs in a row without a queue, or since more stopped arriving.
    epochs_without_queue: u32,
    flight: Flight,
    /// The next packet is bulk that was asked for.
    granted: bool,
    app_limited: bool,
    last_bulk: Instant,
    /// The greatest capacity, forgotten within some hundred epochs.
    best: f64,
    /// When the newest packet acked was sent, and the share of recent packets that came after newer ones.
    newest_acked: Instant,
    overtaken: f64,
    /// When the last outage was over: what was sent before then, and lost, says nothing of the rate.
    resumed: Instant,
    /// An epoch ended since, or the startup: who is silent again and again isn't forgiven each time.
    judged: bool,
}

/// The wait in the queue to aim for at this rate, where nothing blurs it.
fn own_target(rate: f64) -> f64 {
    (TARGET / rate.max(1.0).sqrt()).clamp(2.0 * BLUR, MAX_TARGET)
}

fn startup(config: &CongestionConfig) -> Startup {
    Startup::new(config.initial_bytes, config.max_burst_bytes, config.max_bytes_per_second)
}

impl Adaptive {
    /// A controller that knows nothing of the link. The configuration was checked.
    pub(crate) fn new(config: CongestionConfig) -> Self {
        Adaptive {
            startup: Some(startup(&config)),
            config,
            delay: Delay::default(),
            clock: PeerClock::default(),
            passage: None,
            epoch: Epoch::new(Instant::ZERO, None),
            pausing: true,
            loss: None,
            competition: Competition::default(),
            pacer: Pacer::default(),
            capacity: 0.0,
            epochs_without_queue: 0,
            flight: Flight::default(),
            granted: false,
            app_limited: true,
            last_bulk: Instant::ZERO,
            best: 0.0,
            newest_acked: Instant::ZERO,
            overtaken: 0.0,
            resumed: Instant::ZERO,
            judged: true,
        }
    }

    // --- how fast ----------------------------------------------------------------------------------------

    fn pacing_rate(&self, now: Instant) -> f64 {
        let rate = match &self.startup {
            Some(startup) => startup.pace,
            None => self.steady_rate(now).min(self.max_rate()),
        };
        rate.clamp(self.config.min_bytes_per_second, self.config.max_bytes_per_second)
    }

    fn steady_rate(&self, now: Instant) -> f64 {
        let (base, queue, feedback) = (self.delay.base(), self.delay.queue(), self.delay.feedback());
        if self.competition.in_probe_rtt(now) {
            self.full_rate() * (1.0 - (2.0 * queue / base).clamp(MIN_PROBE_RTT_DEPTH, MAX_PROBE_RTT_DEPTH))
        } else if let Some(cwnd) = self.competition.cwnd() {
            // The window decides; a little faster than it, so that it is filled.
            1.1 * cwnd / (feedback + queue)
        } else {
            let correction = STEERING * (self.target() - queue) / (feedback + self.delay.ticks());
            let mut correction = correction.clamp(-MAX_SLOWER, MAX_FASTER);
            if queue < self.target() {
                // As TCP: much for a slow flow, so that it catches up with a fast one.
                correction += (PACKET / (self.full_rate().max(1.0) * feedback)).min(FIRST_GROWTH);
            }
            self.full_rate()
                * (1.0
                    + if self.epochs_without_queue > 0 { self.growth().max(correction) } else { correction })
        }
    }

    /// The limit set by losses; beside others the window decides.
    fn max_rate(&self) -> f64 {
        let loss = self.loss.as_ref().filter(|_| self.competition.cwnd().is_none());
        loss.map_or(f64::INFINITY, |loss| loss.max_rate())
    }

    /// The rate that fills the link.
    fn full_rate(&self) -> f64 {
        self.capacity / (1.0 - self.loss_share())
    }

    /// The share that the link loses by itself.
    fn loss_share(&self) -> f64 {
        self.loss.as_ref().map_or(0.0, |loss| loss.share)
    }

    fn growth(&self) -> f64 {
        self.first_growth() * f64::from(1u32 << (self.epochs_without_queue - 1).min(MAX_DOUBLINGS))
    }

    fn first_growth(&self) -> f64 {
        (MIN_JITTER / self.delay.feedback()).clamp(0.5 * FIRST_GROWTH, FIRST_GROWTH)
    }

    /// The wait in the queue to aim for.
    fn target(&self) -> f64 {
        let spacing = PACKET / self.capacity.max(20.0 * PACKET);
        own_target(self.capacity)
            + (TARGET_TICKS * self.delay.ticks()).min(MAX_TARGET_TICKS)
            + (TARGET_JITTER * (self.delay.jitter() - spacing).max(0.0)).min(MAX_TARGET_JITTER)
    }

    fn has_room(&self) -> bool {
        let feedback = self.delay.feedback();
        match (&self.startup, self.competition.cwnd()) {
            (Some(startup), _) => startup.has_room(self.flight.bytes),
            (None, Some(cwnd)) => self.flight.in_flight_since_startup < cwnd,
            // Pacing decides; this only bounds losses not yet known, and stops when acks are missing.
            (None, None) => {
                let slack = 0.25 * self.delay.base() + 0.01 + self.delay.ticks() + self.target();
                let window = self.full_rate() * (feedback + slack) + 4.0 * PACKET;
                self.flight.in_flight_since_startup < window
            }
        }
    }

    fn refill(&mut self, now: Instant) {
        let rate = self.pacing_rate(now);
        // A tick that comes late makes up for it; a pause is not made up for.
        let horizon = (2.0 * self.delay.sends.interval).clamp(0.004, MAX_TICK);
        // A round has no pauses, and its ticks aren't known yet.
        let most = self.startup.as_ref().map_or(rate * horizon, |startup| startup.window);
        let most = most.max(2.0 * PACKET).min(f64::from(self.config.max_burst_bytes));
        self.pacer.refill(now, rate, most);
    }

    // --- what is learned ---------------------------------------------------------------------------------

    fn path(&self) -> Path {
        let (send_tick, receive_tick) = (self.delay.sends.interval, self.delay.acks.interval);
        Path { rtt: self.delay.feedback(), send_tick, receive_tick }
    }

    fn learn_startup(&mut self, now: Instant, acked: &[(SentStamp, bool)]) {
        let path = self.path();
        let Some(startup) = &mut self.startup else { return };
        let at = self.passage.map_or(now, |passage| passage.received_at);
        let newest = self.passage.map_or(Instant::ZERO, |passage| passage.sent_at);
        let in_time = acked.iter().filter(|(stamp, late)| stamp.bulk && !late);
        in_time.for_each(|(stamp, _)| startup.on_acked(at, newest, path, stamp));
        let burst = startup.bursting;
        if let Some(rate) = startup.judge(now, path) {
            // The queue is drained first, except after a burst, of which much is lost.
            let full = rate * path.rtt;
            let queued = if burst { 0.0 } else { (self.flight.bytes - full).clamp(0.0, full) };
            self.pacer.grant(-queued);
            self.capacity = rate;
            self.competition.begin(now, rate);
            self.startup = None;
            self.judged = true;
            self.epoch = Epoch::new(now, self.passage);
        }
    }

    fn learn_delay(&mut self, now: Instant, round_trip: RoundTrip, stamp: SentStamp) {
        let sent_in_startup = stamp.sent_in_startup;
        let rtt = round_trip.time.as_secs_f64().min(MAX_RTT);
        let received_at = round_trip.received_at.map(|time| self.clock.read(now, time));
        self.passage = received_at.map(|received_at| Passage { sent_at: stamp.sent_at, received_at });
        let way = received_at.map(|received_at| received_at.as_secs_f64() - stamp.sent_at.as_secs_f64());
        let spacing = PACKET / self.capacity.max(20.0 * PACKET);
        let wait = self.delay.sample(now, rtt, way, spacing, !sent_in_startup);
        if let Some(startup) = &mut self.startup {
            startup.on_wait(stamp.sent_at, wait);
        }
        if wait <= 0.1 * self.target() {
            self.competition.base_seen = now;
        }
        if !sent_in_startup {
            self.epoch.least_queue = self.epoch.least_queue.min(self.delay.queue());
            self.epoch.waits.on_acked(wait);
            self.competition.on_queue(wait);
        }
    }

    /// Whether it counts if this packet is lost: none of the startup does here, nor one of an outage.
    fn counts_if_lost(&self, stamp: &SentStamp) -> bool {
        !stamp.sent_in_startup && stamp.sent_at >= self.resumed
    }

    /// Whether nothing comes for so long only in an outage.
    fn is_long(&self, time: Duration) -> bool {
        let usual = self.delay.feedback() + self.delay.queue() + self.delay.ticks();
        time.as_secs_f64() > OUTAGE_RTTS * usual + MIN_OUTAGE
    }

    /// Whether this ack ends an outage: there was none for long, though packets were in flight, and not because they waited. One
    /// that comes without a round trip is an old one.
    fn ends_outage(&self, now: Instant, round_trip: Option<RoundTrip>) -> bool {
        let silence = now - self.flight.waiting_since;
        self.judged
            && self.is_long(silence)
            && round_trip.is_none_or(|round_trip| round_trip.time < silence / 2)
    }

    /// Whether acks waited for us, because we did nothing for long: what they tell is late, and not the link's doing.
    fn ends_own_pause(&self, now: Instant) -> bool {
        self.is_long(now - self.delay.asked_at())
    }

    /// After an outage or a pause it goes on as before, from this passage on, if that isn't an old one.
    fn resume(&mut self, now: Instant, passage: Option<Passage>) {
        self.resumed = now;
        self.epoch = Epoch::new(now, passage);
    }

    fn end_epoch(&mut self, now: Instant, until: Option<Passage>) {
        let epoch = core::mem::replace(&mut self.epoch, Epoch::new(now, until));
        self.judged = true;
        let (rate, queue, target) = (epoch.rate(now, until), epoch.least_queue, self.target());
        if !self.competition.is_testing() {
            self.best = self.capacity.max(self.best * (1.0 - 1.0 / LONG));
            self.delay.end_epoch(queue, own_target(self.best), self.capacity < LESS * self.best);
        }
        self.competition.end_epoch(queue, target, self.capacity, epoch.lost > 0.0);
        let quiet = queue <= 0.5 * target && self.is_unhindered(&epoch);
        self.judge_losses(now, &epoch, (rate, target), quiet);
        let fruitful = 1.0 + (0.5 * self.first_growth()).min(FRUITFUL);
        let more = rate > (fruitful + CHANCE / epoch.delivered.max(PACKET)) * self.capacity || quiet;
        let testing = self.loss.as_ref().is_some_and(|loss| loss.is_testing());
        if queue < target && testing {
            self.epochs_without_queue = 0;
        } else if epoch.is_app_limited() {
            self.capacity = self.capacity.max(rate);
            self.epochs_without_queue = 0;
        } else if queue > 0.5 * target {
            // A long queue is news, a short one mostly noise.
            let weight = match () {
                () if queue > 2.0 * target => 1.0,
                () if queue < target && rate > self.capacity => 0.5,
                () => 0.25,
            };
            self.capacity += (rate - self.capacity) * weight;
            self.epochs_without_queue = 0;
        } else {
            self.epochs_without_queue = if self.competition.is_testing() {
                // The queue is empty because we made it so.
                0
            } else if more || self.epochs_without_queue == 0 {
                self.epochs_without_queue + 1
            } else {
                1
            };
            self.capacity = rate.max(self.capacity + (rate - self.capacity) / 4.0);
        }
        if self.competition.probe_rtt_is_due(now) {
            let shows = self.delay.feedback() + self.delay.ticks();
            self.competition.begin_probe_rtt(now, self.delay.base(), self.delay.queue(), shows);
        }
    }

    /// Concludes from an epoch's losses whose they are, or that we sent too much.
    fn judge_losses(&mut self, now: Instant, epoch: &Epoch, (rate, target): (f64, f64), quiet: bool) {
        if self.competition.cwnd().is_some() {
            if epoch.lost > 2.0 * self.loss_share() * epoch.delivered {
                self.competition.on_overflow(now, self.delay.feedback() + self.delay.queue());
            }
        } else if epoch.is_app_limited() {
            // What arrived is only what there was to send.
            if let Some(loss) = &mut self.loss {
                loss.abandon_test();
            }
        } else if !self.competition.is_testing() && epoch.least_queue < 2.0 * target {
            let seconds = epoch.delivered.max(1.0) / rate.max(1.0);
            let signs = Signs {
                target,
                rtt: self.delay.feedback(),
                blur: self.delay.jitter(),
                clear: self.is_clear(),
                unhindered: quiet && self.epochs_without_queue > 1,
            };
            self.loss.get_or_insert_default().end_epoch(now, epoch, seconds, signs);
        }
    }

    /// Whether everything beyond what arrived before was neither lost nor, since there is no queue, is waiting: when
    /// ticks blur how much arrives, that shows that more may be sent.
    fn is_unhindered(&self, epoch: &Epoch) -> bool {
        let blur = self.delay.ticks() / self.epoch_length();
        let grown = match self.epochs_without_queue {
            0 => 0.0,
            _ => self.growth(),
        };
        let all = epoch.lost + epoch.delivered;
        let overflow = (0.5 * grown / (1.0 + grown)).min(MAX_UNHINDERED_LOSS) + self.loss_share();
        grown > 0.0 && blur > BLURRED && epoch.lost < overflow * all + 1.5 * PACKET
    }

    /// Whether waits tell of a queue: no packets overtake others, and ticks are much shorter than an epoch.
    fn is_clear(&self) -> bool {
        self.overtaken < MAX_OVERTAKEN && self.delay.ticks() < BLURRED * self.epoch_length()
    }

    fn epoch_length(&self) -> f64 {
        self.delay.feedback().max(2.0 * self.delay.ticks()).max(MIN_EPOCH)
    }
}

impl Adaptive {
    /// Takes other settings, which were checked, and keeps the knowledge of the link.
    pub(crate) fn reconfigure(&mut self, config: CongestionConfig) {
        self.config = config;
        // Its bounds are checked for each packet; the first ones are decided before any is sent.
        if self.startup.is_some() && self.flight.bytes == 0.0 {
            self.startup = Some(startup(&config));
        }
    }

    /// A packet of `bytes`, all headers included, goes out; bulk or not.
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: u32) -> SentStamp {
        self.refill(now);
        self.pacer.spend(f64::from(bytes));
        let bulk = core::mem::take(&mut self.granted);
        let app_limited = self.app_limited || !bulk;
        let stamp =
            SentStamp { sent_at: now, bytes, bulk, sent_in_startup: self.startup.is_some(), app_limited };
        if bulk {
            self.last_bulk = now;
            if let Some(startup) = &mut self.startup {
                startup.on_sent(&stamp);
            }
        }
        self.flight.add(&stamp);
        stamp
    }

    /// Packets acked by one datagram of the peer, oldest first; those with `true` were reported lost before. `round_trip` is
    /// that of the newest, if the datagram is the first to ack it.
    pub(crate) fn on_acked(
        &mut self,
        now: Instant,
        acked: &[(SentStamp, bool)],
        round_trip: Option<RoundTrip>,
    ) {
        let (outage, own_pause) = (self.ends_outage(now, round_trip), self.ends_own_pause(now));
        self.flight.waiting_since = now;
        let was_clocked = self.passage.is_some();
        if let Some((round_trip, (stamp, _))) = round_trip.zip(acked.last()) {
            self.learn_delay(now, round_trip, *stamp);
        }
        let news = round_trip.is_some();
        if self.flight.bytes > 2.0 * PACKET && (news || !was_clocked) {
            self.delay.acks.push(self.passage.map_or(now, |passage| passage.received_at));
        }
        let mut delivered = 0.0;
        for (stamp, late) in acked {
            let bytes = f64::from(stamp.bytes);
            let overtaken = if stamp.sent_at < self.newest_acked { 1.0 } else { 0.0 };
            self.overtaken += (overtaken - self.overtaken) / LONG;
            if !late {
                self.flight.remove(stamp);
            } else if self.counts_if_lost(stamp) {
                self.epoch.lost -= bytes;
            }
            self.epoch.delivered += bytes;
            if stamp.app_limited {
                self.epoch.app_limited += bytes;
            }
            delivered += bytes;
        }
        self.judged &= !outage;
        if outage || own_pause {
            self.resume(now, self.passage.filter(|_| news && !own_pause));
        }
        self.newest_acked =
            acked.iter().map(|(stamp, _)| stamp.sent_at).fold(self.newest_acked, Instant::max);
        self.learn_startup(now, acked);
        if core::mem::replace(&mut self.pausing, acked.last().is_some_and(|(stamp, _)| stamp.sent_in_startup))
        {
            // There are pauses between rounds, and after them.
            self.epoch = Epoch::new(now, self.passage);
        }
        let (target, rtt) = (self.target(), self.delay.feedback() + self.delay.queue());
        let circumstances = Circumstances { target, rtt, in_flight: self.flight.in_flight_since_startup };
        self.competition.on_delivered(now, delivered, circumstances);
        if let Some(longer) = self.competition.judge(now, circumstances) {
            self.delay.rebase(now, longer);
            self.capacity = self.capacity.max(self.competition.capacity_before);
        }
        // An ack without arrival times is a bad end, since others will have them.
        let length = self.epoch_length() * if news || self.passage.is_none() { 1.0 } else { 2.0 };
        if self.startup.is_none() && (now - self.epoch.began).as_secs_f64() >= length {
            self.end_epoch(now, self.passage.filter(|_| news));
        }
    }

    /// A packet counts as lost.
    pub(crate) fn on_lost(&mut self, stamp: SentStamp) {
        self.flight.remove(&stamp);
        if self.counts_if_lost(&stamp) {
            self.epoch.lost += f64::from(stamp.bytes);
            self.epoch.waits.on_lost();
        } else if let Some(startup) = self.startup.as_mut().filter(|_| stamp.bulk) {
            startup.on_lost(&stamp);
        }
    }

    /// There is nothing more to send now, though it might be sent.
    pub(crate) fn on_app_limited(&mut self, now: Instant) {
        self.delay.sends.push(now);
        self.app_limited = true;
    }

    /// Whether a packet of bulk may go out now: asked before each.
    pub(crate) fn can_send(&mut self, now: Instant) -> bool {
        self.delay.sends.push(now);
        if self.startup.is_none() && now - self.last_bulk > BASE_BUCKET * 2 {
            // The round trip without queues isn't known any more.
            self.startup = Some(startup(&self.config));
        }
        // Unsent data isn't made up for.
        self.refill(now);
        let (path, empty) = (self.path(), self.flight.bytes <= 0.0);
        // On a path shorter than the time between two packets, nothing is in flight while the next one waits for its
        // time.
        if let Some(startup) = &mut self.startup
            && let Some(at_once) =
                startup.begin(now, path, empty && (self.app_limited || !startup.is_going_out()))
        {
            self.pacer.grant(at_once);
        }
        self.granted =
            (self.pacer.allows() && self.has_room()) || self.flight.is_stalled(now, self.delay.feedback());
        self.app_limited &= self.granted;
        self.granted
    }

    /// When bulk may go out next unless something is acked earlier: for drivers that can wake then. Called after
    /// [`Adaptive::can_send`] returned false.
    pub(crate) fn next_send(&self) -> Instant {
        let now = self.flight.last_sent;
        let feedback = self.delay.feedback();
        let stalled = self.flight.waiting_since + Duration::from_secs_f64(2.0 * feedback + 0.05);
        if self.has_room() { self.pacer.next(self.pacing_rate(now)).min(stalled) } else { stalled }
    }

    /// The application wants `bytes` of the next chunks at once, at the risk that a slow link drops some.
    pub(crate) fn begin_burst(&mut self, bytes: u32) {
        if let Some(startup) = &mut self.startup {
            startup.burst = f64::from(bytes);
        }
    }

    /// Bytes a second, all headers included, at which bulk goes out.
    pub(crate) fn rate(&self) -> f64 {
        self.pacing_rate(self.flight.last_sent)
    }
}

#[cfg(test)]
mod tests;

//! How far a client runs ahead of the server, so that its inputs arrive just in time.
//!
//! The server reports when each packet of inputs arrived, so the client can compute the lead that the packet would
//! have needed. The lead is what all but one in a hundred recent packets needed, plus a small margin, plus a tick for
//! each repetition that loss requires. It depends on what was needed and not on how early inputs are now, so it
//! doesn't oscillate.
//!
//! Promises: the lead stays within its bounds and changes slowly, so inputs stamped with it have rising ticks.

use crate::time::Instant;

/// How many measured needs are remembered, and for how many seconds.
const NEEDS: usize = 512;
const WINDOW: f64 = 6.0;
/// One in this many needs may exceed the lead.
const QUANTILE: usize = 100;
/// Seconds between two evaluations.
const LOOK_EVERY: f64 = 0.1;
/// Margin above what was needed, in ticks.
const SPARE: f64 = 0.25;
/// The lead falls only once it is this many ticks too long.
const DEAD_BAND: f64 = 0.25;
/// How much faster or slower time may run: gently, because what is drawn runs with it, and urgently while inputs come
/// more than a tick late.
const GENTLE: f64 = 0.02;
const URGENT: f64 = 0.1;
/// The fraction of inputs that may be late because all their first copies were lost.
const MAX_LOST: f64 = 0.004;

/// How many packets the loss is an average of. Over 200, a loss of 5 % crossed the bound of another repetition, which
/// is a tick of lead, several times a minute.
const LOSS_OVER: u32 = 1000;
/// Packets that count as delivered before the first.
const FIRST_FATES: u32 = 100;

/// The bounds of a lead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeadConfig {
    /// The minimum lead, in ticks.
    pub min: f64,
    /// The maximum lead, in ticks: inputs come late if it isn't enough.
    pub max: f64,
    /// Copies sent of each input: the copy after a lost one arrives a tick later.
    pub redundancy: u32,
}

/// How far inputs are ahead of the server's tick.
#[derive(Debug)]
pub struct InputLead {
    config: LeadConfig,
    /// The time of each measurement, and the lead it needed, in ticks.
    needs: Box<[(f64, f64); NEEDS]>,
    count: usize,
    sorted: Vec<f64>,
    target: Option<f64>,
    looked: f64,
    /// The fraction of packets that were lost.
    loss: f64,
    /// How many packets that is of, up to [`LOSS_OVER`].
    fates: u32,
    /// Ticks from one packet of inputs to the next, smoothed.
    interval: f64,
    shown: Option<(f64, f64)>,
}

impl InputLead {
    /// A lead before any measurement.
    pub fn new(config: LeadConfig) -> Self {
        InputLead {
            config,
            needs: Box::new([(0.0, 0.0); NEEDS]),
            count: 0,
            sorted: Vec::with_capacity(NEEDS),
            target: None,
            looked: f64::MIN,
            loss: 0.0,
            // The first loss alone must not count as one of many.
            fates: FIRST_FATES,
            interval: 1.0,
            shown: None,
        }
    }

    /// Sets new bounds; measurements are kept.
    pub fn configure(&mut self, config: LeadConfig) {
        self.config = config;
        self.looked = f64::MIN;
    }

    pub fn config(&self) -> &LeadConfig {
        &self.config
    }

    /// A packet of inputs would have arrived just in time with this lead, in ticks.
    pub fn handle_need(&mut self, now: Instant, need: f64) {
        let local = now.as_secs_f64();
        self.needs[self.count % NEEDS] = (local, need);
        self.count += 1;
        // Late inputs are urgent.
        if self.shown.is_some_and(|(lead, _)| need > lead) && local - self.looked > LOOK_EVERY / 4.0 {
            self.looked = f64::MIN;
        }
        self.look(local);
    }

    /// A packet of inputs was delivered or lost.
    pub fn handle_fate(&mut self, delivered: bool) {
        let sample = if delivered { 0.0 } else { 1.0 };
        self.fates = (self.fates + 1).min(LOSS_OVER);
        self.loss += (sample - self.loss) / f64::from(self.fates);
    }

    /// A packet covers this many more ticks than the one before.
    pub fn note_interval(&mut self, ticks: u32) {
        let off = f64::from(ticks) - self.interval;
        // Too long an estimate is harmless for a while, too short a one isn't.
        self.interval += off / if off > 0.0 { 4.0 } else { 32.0 };
    }

    /// The fraction of packets lost recently.
    pub fn loss(&self) -> f64 {
        self.loss
    }

    /// The lead that it moves towards; None before any measurement.
    pub fn target(&self) -> Option<f64> {
        // The first tick of a packet must be there in time, and the need was measured for its last.
        let wish =
            self.target? + SPARE + (self.interval - 1.0) + f64::from(self.repetitions()) * self.interval;
        Some(wish.clamp(self.config.min, self.config.max))
    }

    /// How many repetitions must have time to arrive so that at most [`MAX_LOST`] of the inputs are late.
    fn repetitions(&self) -> u32 {
        let (mut count, mut all_lost) = (0, self.loss);
        while all_lost > MAX_LOST && count + 1 < self.config.redundancy {
            all_lost *= self.loss;
            count += 1;
        }
        count
    }

    /// Moves towards the target, up to this time.
    pub fn advance(&mut self, now: Instant, rate: f64) {
        let local = now.as_secs_f64();
        self.look(local);
        let Some(target) = self.target() else { return };
        let Some((lead, at)) = &mut self.shown else {
            self.shown = Some((target, local));
            return;
        };
        let ticks = (local - *at) * rate;
        if ticks > 0.0 {
            // Slightly too long a lead is kept: each change shifts the frames against the ticks.
            let off = if (-DEAD_BAND..0.0).contains(&(target - *lead)) { 0.0 } else { target - *lead };
            let quickest = if off > 1.0 { URGENT } else { GENTLE };
            *lead += off.clamp(-GENTLE * ticks, quickest * ticks);
            *at = local;
        }
    }

    /// The lead as of the last [`InputLead::advance`], in ticks.
    pub fn ticks(&self) -> Option<f64> {
        self.shown.map(|(lead, _)| lead)
    }

    /// Starts again at the target: after the clock has.
    pub fn restart(&mut self) {
        self.shown = None;
    }

    fn look(&mut self, local: f64) {
        if local - self.looked < LOOK_EVERY && self.target.is_some() {
            return;
        }
        let known = &self.needs[..self.count.min(NEEDS)];
        self.sorted.clear();
        self.sorted.extend(known.iter().filter(|(at, _)| local - at <= WINDOW).map(|(_, need)| *need));
        if self.sorted.is_empty() {
            // Nothing was measured for long: keep the last target.
            return;
        }
        self.looked = local;
        let above = self.sorted.len() / QUANTILE;
        let place = self.sorted.len() - 1 - above;
        let (_, need, _) = self.sorted.select_nth_unstable_by(place, f64::total_cmp);
        self.target = Some(*need);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: LeadConfig = LeadConfig { min: 0.0, max: 60.0, redundancy: 3 };

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn is_what_nearly_all_needed_and_moves_slowly() {
        let mut lead = InputLead::new(CONFIG);
        for i in 0..300 {
            lead.handle_need(at(i * 16), if i % 150 == 107 { 30.0 } else { 4.0 + (i % 3) as f64 });
            lead.advance(at(i * 16), 60.0);
        }
        assert_eq!(lead.target(), Some(6.25));
        for i in 300..360 {
            lead.handle_need(at(i * 16), 12.0);
        }
        let before = lead.ticks().unwrap();
        lead.advance(at(360 * 16), 60.0);
        let moved = lead.ticks().unwrap() - before;
        assert!((0.0..=0.1 * 60.0 * 61.0 * 0.016 + 1e-9).contains(&moved), "{moved}");
        lead.advance(at(500 * 16), 60.0);
        assert_eq!(lead.ticks(), Some(12.25));
    }

    #[test]
    fn leaves_time_for_repetitions_where_packets_are_lost() {
        let mut lead = InputLead::new(CONFIG);
        lead.handle_need(at(0), 5.0);
        assert_eq!(lead.target(), Some(5.25));
        for i in 0..2_000 {
            lead.handle_fate(i % 20 != 0);
        }
        assert_eq!(lead.target(), Some(6.25), "5 % loss: {}", lead.loss());
        for i in 0..2_000 {
            lead.handle_fate(i % 2 != 0);
        }
        assert_eq!(lead.target(), Some(7.25), "no more than there are copies");
    }

    #[test]
    fn stays_within_its_bounds() {
        let mut lead = InputLead::new(LeadConfig { min: 2.0, max: 8.0, redundancy: 1 });
        lead.handle_need(at(0), 500.0);
        assert_eq!(lead.target(), Some(8.0));
        let mut lead = InputLead::new(LeadConfig { min: 2.0, max: 8.0, redundancy: 1 });
        lead.handle_need(at(0), -500.0);
        lead.advance(at(0), 60.0);
        assert_eq!(lead.ticks(), Some(2.0));
    }
}

//! How far a client runs ahead of the server, so that its inputs arrive just in time.
//!
//! The server says of each packet of inputs when it came, so the client knows how much lead that one would have needed. The lead is
//! what all but one in a hundred of the last seconds needed, a little more, and a tick for each repetition that loss makes
//! necessary. It follows from what was needed and not from how early inputs are now, so it doesn't swing.
//!
//! Promises: it stays within its bounds and moves slowly: what is stamped with it has rising ticks.

use crate::time::Instant;

/// Needs that are remembered, and for how many seconds.
const NEEDS: usize = 512;
const WINDOW: f64 = 6.0;
/// Of this many needs, one may be above the lead.
const QUANTILE: usize = 100;
/// Seconds between two looks at them.
const LOOK_EVERY: f64 = 0.1;
/// Ticks more than what was needed.
const SPARE: f64 = 0.25;
/// By how much time may run quicker while inputs come late, and slower while they come early.
const QUICKER: f64 = 0.1;
const SLOWER: f64 = 0.03;
/// How many inputs may be late for all their first copies being lost: this fraction.
const MAX_LOST: f64 = 0.004;

/// The bounds of a lead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeadConfig {
    /// The least lead, in ticks.
    pub min: f64,
    /// The most, in ticks: inputs come late where it isn't enough.
    pub max: f64,
    /// Copies of an input that are sent: a lost one comes a tick later, with the next.
    pub redundancy: u32,
}

/// How far inputs are ahead of the server's tick.
#[derive(Debug)]
pub struct InputLead {
    config: LeadConfig,
    /// When each was, and what lead it needed, in ticks.
    needs: Box<[(f64, f64); NEEDS]>,
    count: usize,
    sorted: Vec<f64>,
    target: Option<f64>,
    looked: f64,
    /// The fraction of packets that were lost.
    loss: f64,
    /// Ticks from one packet of inputs to the next, smoothed.
    interval: f64,
    shown: Option<(f64, f64)>,
}

impl InputLead {
    /// A lead that nothing is known of.
    pub fn new(config: LeadConfig) -> Self {
        InputLead {
            config,
            needs: Box::new([(0.0, 0.0); NEEDS]),
            count: 0,
            sorted: Vec::with_capacity(NEEDS),
            target: None,
            looked: f64::MIN,
            loss: 0.0,
            interval: 1.0,
            shown: None,
        }
    }

    /// Other bounds than before; what was needed stays known.
    pub fn configure(&mut self, config: LeadConfig) {
        self.config = config;
        self.looked = f64::MIN;
    }

    pub fn config(&self) -> &LeadConfig {
        &self.config
    }

    /// A packet of inputs would have come just in time with this lead, in ticks.
    pub fn handle_need(&mut self, now: Instant, need: f64) {
        let local = now.as_secs_f64();
        self.needs[self.count % NEEDS] = (local, need);
        self.count += 1;
        // What comes late is urgent.
        if self.shown.is_some_and(|(lead, _)| need > lead) && local - self.looked > LOOK_EVERY / 4.0 {
            self.looked = f64::MIN;
        }
        self.look(local);
    }

    /// What became of a packet of inputs.
    pub fn handle_fate(&mut self, delivered: bool) {
        let sample = if delivered { 0.0 } else { 1.0 };
        self.loss += (sample - self.loss) / 200.0;
    }

    /// A packet has the inputs of this many more ticks than the one before.
    pub fn note_interval(&mut self, ticks: u32) {
        let off = f64::from(ticks) - self.interval;
        // Too long a wait is harmless for a while, and too short a one isn't.
        self.interval += off / if off > 0.0 { 4.0 } else { 32.0 };
    }

    /// The fraction of packets that are lost, lately.
    pub fn loss(&self) -> f64 {
        self.loss
    }

    /// The ticks that it goes to; None before anything is known.
    pub fn target(&self) -> Option<f64> {
        // The first tick of a packet must be there in time, and what was needed is of its last.
        let wish =
            self.target? + SPARE + (self.interval - 1.0) + f64::from(self.repetitions()) * self.interval;
        Some(wish.clamp(self.config.min, self.config.max))
    }

    /// Repetitions that must have time to come, or more inputs than [`MAX_LOST`] are lost.
    fn repetitions(&self) -> u32 {
        let (mut count, mut all_lost) = (0, self.loss);
        while all_lost > MAX_LOST && count + 1 < self.config.redundancy {
            all_lost *= self.loss;
            count += 1;
        }
        count
    }

    /// Lets it go on to this time.
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
            *lead += (target - *lead).clamp(-SLOWER * ticks, QUICKER * ticks);
            *at = local;
        }
    }

    /// The lead as of the last [`InputLead::advance`], in ticks.
    pub fn ticks(&self) -> Option<f64> {
        self.shown.map(|(lead, _)| lead)
    }

    /// Begins again at what it goes to: after the clock did.
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
            // Nothing came for long: what was known is all that is.
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

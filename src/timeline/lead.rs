//! How far a client runs ahead of the server, so that its inputs arrive just in time.
//!
//! The server reports when each packet of inputs arrived. An input is in the packet of its own frame and in the packets
//! after it, so the lead that it needed is known from the first of them that arrived. The lead is chosen from the needs
//! of recent inputs: each 60th of a second of it must let at least one more of 200 inputs arrive in time, at any tick
//! rate. So jitter, losses and bursts of losses are bridged as far as that is cheap, and an outage that no lead could bridge doesn't raise it. The lead
//! depends on what was needed and not on how early inputs are now, so it doesn't oscillate.
//!
//! Promises: the lead stays within its bounds and changes slowly, so inputs stamped with it have rising ticks.

use std::collections::VecDeque;

use super::packet::MAX_COPIES;
use crate::time::Instant;

/// How many packets are remembered, as their numbers have 8 bits: 4.3 seconds of 60 ticks each.
const PACKETS: usize = 256;
/// Older packets don't count, in seconds.
const WINDOW: f64 = 6.0;
/// Seconds of lead that all inputs are worth: a 60th of a second for one more of 200 inputs that arrives in time.
const WORTH: f64 = 200.0 / 60.0;
/// Fewer inputs than this count as this many: else a single late one would be worth any lead.
const MIN_INPUTS: f64 = 200.0;
/// Seconds between two evaluations.
const LOOK_EVERY: f64 = 0.1;
/// Margin above what was needed, in ticks.
const SPARE: f64 = 0.25;
/// The lead falls only once it is this many ticks too long.
const DEAD_BAND: f64 = 0.25;
/// The lead is too short by this many ticks, twice its margin, when inputs are certainly late.
const LATE_AFTER: f64 = 2.0 * SPARE;
/// How much faster or slower time may run: gently, because what is drawn runs with it, and urgently while inputs are late.
const GENTLE: f64 = 0.02;
const URGENT: f64 = 0.1;

/// The bounds of a lead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeadConfig {
    /// The minimum lead, in ticks.
    pub min: f64,
    /// The maximum lead, in ticks: inputs come late if it isn't enough.
    pub max: f64,
    /// Packets that carry each input at least: the packet after a lost one arrives a tick later.
    pub redundancy: u32,
}

/// A packet of inputs.
#[derive(Clone, Copy, Debug)]
struct InputPacket {
    /// When it was sent, in seconds.
    at: f64,
    /// The server's tick by our clock when its newest input was stamped; None if that was another time.
    clock: Option<f64>,
    /// How many ticks have their inputs first in this packet.
    ticks: u32,
    /// The tick that would have taken its inputs.
    arrived: Option<f64>,
    /// Whether it was delivered, once that is known.
    fate: Option<bool>,
}

impl InputPacket {
    fn need(&self) -> Option<f64> {
        Some(self.arrived? - self.clock?)
    }

    /// When it arrived, or, if the report of it was lost, probably arrived.
    fn arrival(&self, typical: f64) -> Option<f64> {
        self.arrived.or_else(|| Some(self.clock.filter(|_| self.fate == Some(true))? + typical))
    }
}

/// How far inputs are ahead of the server's tick.
#[derive(Debug)]
pub struct InputLead {
    config: LeadConfig,
    packets: VecDeque<InputPacket>,
    /// The number of the newest packet.
    newest: u8,
    needs: Vec<f64>,
    /// The median lead that packets needed.
    typical: Option<f64>,
    target: Option<f64>,
    looked: f64,
    shown: Option<(f64, f64)>,
    /// The rate of the server, as of the last [`InputLead::advance`].
    rate: f64,
}

impl InputLead {
    /// A lead before any measurement.
    pub fn new(config: LeadConfig) -> Self {
        InputLead {
            config,
            packets: VecDeque::with_capacity(PACKETS),
            newest: u8::MAX,
            needs: Vec::with_capacity(PACKETS),
            typical: None,
            target: None,
            looked: f64::MIN,
            shown: None,
            rate: 60.0,
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

    /// The packet with the next number was sent, with the inputs of this many new ticks. `clock` is the server's tick
    /// when the newest of them was stamped.
    pub fn handle_sent(&mut self, now: Instant, clock: Option<f64>, ticks: u32) {
        if self.packets.len() == PACKETS {
            self.packets.pop_front();
        }
        let at = now.as_secs_f64();
        self.packets.push_back(InputPacket { at, clock, ticks, arrived: None, fate: None });
        self.newest = self.newest.wrapping_add(1);
    }

    /// The clock has started, and has this tick now: what was sent before is measured by it too, so that the first lead needn't wait
    /// for another round trip.
    pub fn note_clock(&mut self, now: Instant, tick: f64, rate: f64) {
        if self.target.is_some() {
            return;
        }
        for packet in self.packets.iter_mut().filter(|packet| packet.clock.is_none()) {
            packet.clock = Some(tick - (now.as_secs_f64() - packet.at) * rate);
        }
    }

    /// The server reported that a packet was in time for this tick.
    pub fn handle_arrival(&mut self, now: Instant, number: u8, tick: f64) {
        let local = now.as_secs_f64();
        let Some(packet) = self.packet_mut(number) else { return };
        packet.arrived = Some(tick);
        let need = packet.need();
        // Late inputs are urgent.
        if self.shown.zip(need).is_some_and(|((lead, _), need)| need > lead)
            && local - self.looked > LOOK_EVERY / 4.0
        {
            self.looked = f64::MIN;
        }
        self.look(local);
    }

    /// A packet was delivered or lost.
    pub fn handle_fate(&mut self, number: u8, delivered: bool) {
        if let Some(packet) = self.packet_mut(number) {
            packet.fate = Some(delivered);
        }
    }

    fn packet_mut(&mut self, number: u8) -> Option<&mut InputPacket> {
        let age = usize::from(self.newest.wrapping_sub(number));
        let place = self.packets.len().checked_sub(age + 1)?;
        self.packets.get_mut(place)
    }

    /// The lead to move towards; None before any measurement.
    pub fn target(&self) -> Option<f64> {
        Some((self.target? + SPARE).clamp(self.config.min, self.config.max))
    }

    /// How many packets should carry each input: as long as it may still be in time, where packets get lost.
    pub fn copies(&self) -> u32 {
        let few = self.config.redundancy;
        let Some((target, typical)) = self.target().zip(self.typical) else { return few };
        if self.packets.iter().all(|packet| packet.fate != Some(false)) {
            return few;
        }
        let useful = (target - typical).ceil().clamp(0.0, MAX_COPIES as f64) as u32 + 1;
        few.max(useful.min(MAX_COPIES as u32))
    }

    /// Moves towards the target, up to this time.
    pub fn advance(&mut self, now: Instant, rate: f64) {
        let local = now.as_secs_f64();
        self.rate = rate;
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
            let quickest = if off > LATE_AFTER { URGENT } else { GENTLE };
            *lead += off.clamp(-GENTLE * ticks, quickest * ticks);
            *at = local;
        }
    }

    /// The lead as of the last [`InputLead::advance`], in ticks.
    pub fn ticks(&self) -> Option<f64> {
        self.shown.map(|(lead, _)| lead)
    }

    /// Starts again at the target, after the clock did: what is in flight was stamped by the clock before.
    pub fn restart(&mut self) {
        self.shown = None;
        for packet in self.packets.iter_mut().filter(|packet| packet.arrived.is_none()) {
            packet.clock = None;
        }
    }

    fn look(&mut self, local: f64) {
        if local - self.looked < LOOK_EVERY && self.target.is_some() {
            return;
        }
        self.needs.clear();
        self.needs.extend(self.packets.iter().filter_map(InputPacket::need));
        if self.needs.is_empty() {
            return;
        }
        let middle = self.needs.len() / 2;
        let typical = *self.needs.select_nth_unstable_by(middle, f64::total_cmp).1;
        self.typical = Some(typical);
        self.needs.clear();
        for (place, packet) in self.packets.iter().enumerate() {
            let is_known = packet.fate.is_some() || packet.arrived.is_some();
            if is_known && local - packet.at <= WINDOW {
                self.needs.extend(self.needed(place, typical));
            }
        }
        self.looked = local;
        self.needs.sort_unstable_by(f64::total_cmp);
        // If nothing was measured for long, the last target stays.
        self.target = cheapest(&self.needs, WORTH * self.rate).or(self.target);
    }

    /// The lead that the inputs which were first in a packet needed; infinite if none of their packets arrived.
    fn needed(&self, place: usize, typical: f64) -> Option<f64> {
        let own = &self.packets[place];
        if own.ticks == 0 {
            // A packet of repeats, or a request for the time: no input is late if it is lost.
            return own.need();
        }
        let (clock, mut first, mut carried) = (own.clock?, f64::INFINITY, 0);
        for packet in self.packets.range(place..) {
            carried += packet.ticks as usize;
            if carried > MAX_COPIES && packet.at > own.at {
                break;
            }
            first = first.min(packet.arrival(typical).unwrap_or(f64::INFINITY));
        }
        // The need was measured for the newest of its ticks, and the oldest must be in time.
        Some(first - clock + f64::from(own.ticks - 1))
    }
}

/// Returns the lead above which more isn't worth it, from sorted needs, if all inputs are worth this many ticks.
fn cheapest(needs: &[f64], worth: f64) -> Option<f64> {
    let count = (needs.len() as f64).max(MIN_INPUTS);
    let late = (0..needs.len()).rev().map(|late| late as f64 / count);
    let costs = needs.iter().zip(late).map(|(need, late)| (need + worth * late, *need));
    let (cost, need) = costs.min_by(|one, other| one.0.total_cmp(&other.0))?;
    cost.is_finite().then_some(need)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: LeadConfig = LeadConfig { min: 0.0, max: 60.0, redundancy: 3 };

    fn at(tick: u32) -> Instant {
        Instant::from_nanos(u64::from(tick) * 1_000_000_000 / 60)
    }

    /// Sends a packet of inputs in each tick; `needs` gives the lead that it needs, or None if it is lost. The fate is
    /// known a tick later.
    fn run(lead: &mut InputLead, ticks: core::ops::Range<u32>, needs: impl Fn(u32) -> Option<f64>) {
        for tick in ticks {
            lead.handle_sent(at(tick), Some(f64::from(tick)), 1);
            match needs(tick) {
                Some(need) => lead.handle_arrival(at(tick), tick as u8, f64::from(tick) + need),
                None => lead.handle_fate(tick as u8, false),
            }
            lead.advance(at(tick), 60.0);
        }
    }

    #[test]
    fn is_what_nearly_all_needed_and_moves_slowly() {
        let mut lead = InputLead::new(CONFIG);
        run(&mut lead, 0..300, |tick| Some(if tick % 150 == 107 { 30.0 } else { 4.0 + f64::from(tick % 3) }));
        assert_eq!(lead.target(), Some(5.25), "the next packet is quicker where one needs 6 or 30");
        run(&mut lead, 300..360, |_| Some(12.0));
        assert_eq!(lead.target(), Some(12.25));
        let before = lead.ticks().unwrap();
        run(&mut lead, 360..361, |_| Some(12.0));
        let moved = lead.ticks().unwrap() - before;
        assert!((0.0..=0.1 + 1e-6).contains(&moved), "{moved}");
        lead.advance(at(500), 60.0);
        assert_eq!(lead.ticks(), Some(12.25));
    }

    #[test]
    fn leaves_time_for_repetitions_where_packets_are_lost() {
        let mut lead = InputLead::new(CONFIG);
        run(&mut lead, 0..400, |_| Some(5.0));
        assert_eq!((lead.target(), lead.copies()), (Some(5.25), 3));
        run(&mut lead, 400..1_000, |tick| (tick % 20 != 0).then_some(5.0));
        assert_eq!((lead.target(), lead.copies()), (Some(6.25), 3), "5 % loss");
        run(&mut lead, 1_000..1_600, |tick| (tick % 20 >= 4).then_some(5.0));
        assert_eq!((lead.target(), lead.copies()), (Some(9.25), 6), "bursts of four");
    }

    #[test]
    fn an_outage_that_no_lead_could_bridge_does_not_raise_it() {
        for (from, to) in [(100, 130), (40, 70), (5, 30)] {
            let mut lead = InputLead::new(CONFIG);
            run(&mut lead, 0..140, |tick| (!(from..to).contains(&tick)).then_some(5.0));
            let target = lead.target().unwrap();
            assert!(target <= 5.25 + 16.0, "{target}");
            run(&mut lead, 140..600, |tick| Some(if tick == 500 { 40.0 } else { 5.0 }));
            assert_eq!(lead.target(), Some(5.25));
        }
    }

    #[test]
    fn a_long_tick_must_let_more_inputs_arrive_in_time() {
        // Bursts of four losses: each tick of lead lets 1 % more inputs arrive in time.
        for (rate, expected) in [(60.0, 9.25), (20.0, 5.25)] {
            let mut lead = InputLead::new(LeadConfig { redundancy: 1, ..CONFIG });
            for tick in 0..600_u32 {
                let now = Instant::from_nanos((f64::from(tick) / rate * 1e9) as u64);
                lead.handle_sent(now, Some(f64::from(tick)), 1);
                if tick % 70 < 4 {
                    lead.handle_fate(tick as u8, false);
                } else {
                    lead.handle_arrival(now, tick as u8, f64::from(tick) + 5.0);
                }
                lead.advance(now, rate);
            }
            assert_eq!(lead.target(), Some(expected), "{rate}");
        }
    }

    #[test]
    fn packets_without_inputs_need_no_repetition() {
        let mut lead = InputLead::new(CONFIG);
        for number in 0..200_u32 {
            let tick = number * 15;
            lead.handle_sent(at(tick), Some(f64::from(tick)), 0);
            match number % 10 {
                0 => lead.handle_fate(number as u8, false),
                _ => lead.handle_arrival(at(tick), number as u8, f64::from(tick) + 5.0),
            }
        }
        assert_eq!(lead.target(), Some(5.25));
    }

    #[test]
    fn a_server_that_lies_about_ticks_makes_no_number_overflow() {
        let mut lead = InputLead::new(LeadConfig { max: f64::MAX, ..CONFIG });
        run(&mut lead, 0..60, |_| Some(f64::from(u32::MAX)));
        run(&mut lead, 60..120, |_| Some(-f64::from(u32::MAX)));
        lead.handle_fate(119, false);
        assert!((3..=16).contains(&lead.copies()));
    }

    #[test]
    fn the_first_of_several_ticks_is_in_time() {
        let mut lead = InputLead::new(CONFIG);
        for frame in 0..50_u32 {
            let tick = frame * 4 + 3;
            lead.handle_sent(at(tick), Some(f64::from(tick)), 4);
            lead.handle_arrival(at(tick), frame as u8, f64::from(tick) + 2.0);
        }
        assert_eq!(lead.target(), Some(5.25));
    }

    #[test]
    fn stays_within_its_bounds() {
        for (need, bound) in [(500.0, 8.0), (-500.0, 2.0)] {
            let mut lead = InputLead::new(LeadConfig { min: 2.0, max: 8.0, redundancy: 1 });
            run(&mut lead, 0..1, |_| Some(need));
            assert_eq!((lead.target(), lead.ticks()), (Some(bound), Some(bound)));
        }
    }
}

//! The limits on sending: the game's budget, the window that messages yield to, the congestion controller of bulk, and
//! when packets last went out.

use super::KEEP_ALIVE;
use super::config::ConnectionConfig;
use crate::limits::ConfigError;
use crate::time::{Duration, Instant};
use crate::transport::congestion::{Adaptive, CongestionConfig, RoundTrip, SentStamp};
use crate::transport::message_window::MessageWindow;
use crate::transport::pacing::{Budget, BudgetConfig};
use crate::transport::protocol::Protocol;

/// If the application has not flushed for this long, queued messages are sent without it.
const MAX_TICK: Duration = Duration::from_millis(100);

/// The limits on what a connection sends.
#[derive(Debug)]
pub(super) struct Outbound {
    pub(super) budget: Budget,
    /// Messages also yield to the line: see [`MessageWindow`].
    is_adaptive: bool,
    pub(super) window: MessageWindow,
    /// None if there are no chunks.
    controller: Option<Box<Adaptive>>,
    /// The bits of a packet that one datagram holds.
    pub(super) datagram_bits: usize,
    /// Bytes that the layers below add to each datagram.
    pub(super) datagram_overhead: usize,
    /// When the application queued the first message of the tick that it hasn't flushed.
    tick_open: Option<Instant>,
    ticks: TickLength,
    /// When the last packet with all control sections went out.
    pub(super) last_sent: Option<Instant>,
}

/// The length of a tick: the least time between two of the last 8 to 16 ticks. A replayed capture shows only the ticks that
/// had packets, and the least time is the same there.
#[derive(Debug)]
struct TickLength {
    last: Instant,
    /// The least times, in microseconds, in these ticks and in the 8 before them.
    least: [u32; 2],
    count: u8,
}

impl Default for TickLength {
    fn default() -> Self {
        TickLength { last: Instant::ZERO, least: [u32::MAX; 2], count: 0 }
    }
}

impl TickLength {
    fn note(&mut self, now: Instant) {
        let length = (now - core::mem::replace(&mut self.last, now)).as_micros();
        self.least[0] = self.least[0].min(length.min(u128::from(u32::MAX)) as u32);
        self.count += 1;
        if self.count == 8 {
            (self.least, self.count) = ([u32::MAX, self.least[0]], 0);
        }
    }

    fn least(&self) -> Duration {
        Duration::from_micros(self.least[0].min(self.least[1]).into())
    }
}

impl Outbound {
    /// The limits of a new connection.
    ///
    /// # Errors
    /// When a setting is out of its bounds.
    pub(super) fn new(
        config: &ConnectionConfig,
        protocol: &Protocol,
        datagram_bytes: usize,
    ) -> Result<Self, ConfigError> {
        config.congestion.check()?;
        Ok(Outbound {
            budget: Budget::new(config.budget.rate),
            is_adaptive: config.budget.adaptive,
            window: MessageWindow::default(),
            controller: protocol.has_chunks().then(|| Box::new(Adaptive::new(config.congestion))),
            datagram_bits: datagram_bytes * 8,
            datagram_overhead: config.packets.overhead as usize,
            tick_open: None,
            ticks: TickLength::default(),
            last_sent: None,
        })
    }

    /// Brings the limits up to date.
    pub(super) fn update(&mut self, now: Instant) {
        self.budget.refill(now);
        self.window.update(now);
    }

    /// Whether a packet with a slice may go out.
    pub(super) fn allows_slice(&mut self, now: Instant) -> bool {
        self.controller.as_mut().is_some_and(|controller| controller.can_send(now))
    }

    /// Whether the line has room for messages, as far as is known. Asked when messages are due, because the window notes
    /// that they wait.
    pub(super) fn line_has_room(&mut self) -> bool {
        !self.is_adaptive || self.window.allows()
    }

    /// How many bits of messages may go out now, before packet headers.
    pub(super) fn message_bits(&mut self, now: Instant) -> usize {
        self.budget.refill(now);
        let line = if self.is_adaptive { self.window.room() } else { f64::INFINITY };
        (self.budget.pacer.credit.min(line).max(0.0) * 8.0) as usize
    }

    /// When budget and line may have room for messages.
    pub(super) fn next_messages(&self) -> Instant {
        let line = if self.is_adaptive { self.window.next() } else { Instant::ZERO };
        self.budget.next().max(line)
    }

    /// When the controller may allow the next packet of bulk.
    pub(super) fn next_bulk(&self) -> Instant {
        self.controller.as_ref().map_or(Instant::ZERO, |controller| controller.next_send())
    }

    /// When the next keep-alive is due: `KEEP_ALIVE` or `patience` after the last packet with all sections, whichever is
    /// longer.
    pub(super) fn keep_alive_at(&self, patience: Duration) -> Option<Instant> {
        self.last_sent.map(|sent| sent + KEEP_ALIVE.max(patience))
    }

    /// The application queued a message.
    pub(super) fn open_tick(&mut self, now: Instant) {
        self.tick_open.get_or_insert(now);
    }

    /// A tick sends packets.
    pub(super) fn note_tick(&mut self, now: Instant) {
        self.ticks.note(now);
    }

    /// Half of a tick; zero if it isn't known, or too long for a game's.
    pub(super) fn half_tick(&self) -> Duration {
        let tick = self.ticks.least();
        if tick > MAX_TICK { Duration::ZERO } else { tick / 2 }
    }

    /// The tick's messages are being sent.
    pub(super) fn end_tick(&mut self) {
        self.tick_open = None;
    }

    /// When the tick that the application has begun counts as over.
    pub(super) fn tick_over(&self) -> Instant {
        self.tick_open.map_or(Instant::ZERO, |since| since + MAX_TICK)
    }

    /// A packet of this many bytes on the wire went out, `message_bytes` of them charged to messages. Returns the
    /// controller's stamp for the packet.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u32, message_bytes: u32) -> Option<SentStamp> {
        self.budget.pacer.spend(message_bytes.into());
        self.window.on_sent(now, message_bytes);
        self.controller.as_mut().map(|controller| controller.on_sent(now, bytes))
    }

    /// A packet with this many bytes of messages was acked; `late` if it was lost before.
    pub(super) fn on_messages_acked(&mut self, message_bytes: u32, late: bool) {
        if message_bytes > 0 {
            self.window.on_acked(message_bytes, late);
        }
    }

    /// The packets of these stamps were acked, with the round trip of the newest one.
    pub(super) fn on_acked(
        &mut self,
        now: Instant,
        stamps: &[(SentStamp, bool)],
        round_trip: Option<RoundTrip>,
    ) {
        if let Some(controller) = self.controller.as_mut().filter(|_| !stamps.is_empty()) {
            controller.on_acked(now, stamps, round_trip);
        }
        if let Some(round_trip) = round_trip {
            self.window.on_round_trip(now, round_trip.time);
        }
        self.window.judge(now);
    }

    /// A packet counts as lost.
    pub(super) fn on_lost(&mut self, stamp: Option<SentStamp>, message_bytes: u32) {
        if let Some((stamp, controller)) = stamp.zip(self.controller.as_mut()) {
            controller.on_lost(stamp);
        }
        if message_bytes > 0 {
            self.window.on_lost(message_bytes);
        }
    }

    /// Chunks have nothing more to send now.
    pub(super) fn on_app_limited(&mut self, now: Instant) {
        if let Some(controller) = &mut self.controller {
            controller.on_app_limited(now);
        }
    }

    /// All of a small chunk may go out at once.
    pub(super) fn begin_burst(&mut self, bytes: u32) {
        if let Some(controller) = &mut self.controller {
            controller.begin_burst(bytes);
        }
    }

    /// Bytes a second at which chunks may go out now, all headers included.
    pub(super) fn bulk_rate(&self) -> f64 {
        self.controller.as_ref().map_or(0.0, |controller| controller.rate())
    }

    /// How much may be sent in messages.
    pub(super) fn budget(&self) -> BudgetConfig {
        BudgetConfig { rate: self.budget.config, adaptive: self.is_adaptive }
    }

    /// Changes how much may be sent in messages, from now on.
    ///
    /// # Errors
    /// When a number is out of its bounds. The old settings stay then.
    pub(super) fn set_budget(&mut self, budget: BudgetConfig) -> Result<(), ConfigError> {
        budget.rate.check()?;
        self.budget.reconfigure(budget.rate);
        self.is_adaptive = budget.adaptive;
        Ok(())
    }

    /// Changes the congestion control of chunks, which keeps what is known of the link.
    ///
    /// # Errors
    /// When a number is out of its bounds. The old settings stay then.
    pub(super) fn set_congestion(&mut self, congestion: CongestionConfig) -> Result<(), ConfigError> {
        congestion.check()?;
        if let Some(controller) = &mut self.controller {
            controller.reconfigure(congestion);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::protocol::{Body, ChannelConfig, ChannelKind, MessageType};
    use crate::wire::{Kind, Schema};

    fn outbound(channel: ChannelConfig) -> Outbound {
        let schema = Schema::new([("on", Kind::Bool)]).unwrap();
        let types = vec![MessageType { name: "Switch".into(), body: Body::Declared(schema) }];
        let protocol = Protocol::new(types, vec![channel, ChannelConfig::new(ChannelKind::Chunks)]).unwrap();
        let mut config = ConnectionConfig { budget: BudgetConfig::new(1000.0, 500.0), ..Default::default() };
        config.budget.adaptive = false;
        Outbound::new(&config, &protocol, 1200).unwrap()
    }

    #[test]
    fn an_empty_budget_stops_messages_alone() {
        let mut outbound = outbound(ChannelConfig::reliable_ordered());
        let at = Instant::from_millis;
        outbound.update(at(0));
        assert!(outbound.budget.pacer.allows());
        outbound.on_sent(at(0), 700, 700);
        assert!(!outbound.budget.pacer.allows() && outbound.allows_slice(at(0)));
        assert_eq!((outbound.next_messages(), outbound.message_bits(at(0))), (at(200), 0));
        outbound.update(at(300));
        assert!(outbound.budget.pacer.allows());
        assert_eq!(outbound.message_bits(at(300)), 800);
    }

    #[test]
    fn slices_spend_the_rate_and_not_the_budget() {
        let mut outbound = outbound(ChannelConfig::reliable_ordered());
        let at = Instant::from_millis;
        outbound.update(at(0));
        let sent = (0..10_000).take_while(|_| {
            let allowed = outbound.allows_slice(at(0));
            if allowed {
                outbound.on_sent(at(0), 1200, 0);
            }
            allowed
        });
        assert!(sent.count() < 10_000, "the rate has an end");
        assert!(outbound.next_bulk() > at(0));
        assert!(outbound.budget.pacer.allows());
    }

    #[test]
    fn ticks_without_packets_do_not_change_the_length_of_a_tick() {
        let mut outbound = outbound(ChannelConfig::unreliable());
        let note = |outbound: &mut Outbound, tick: u64| {
            outbound.note_tick(Instant::from_millis(1000 + 20 * tick));
            outbound.half_tick().as_millis()
        };
        assert_eq!(note(&mut outbound, 0), 0, "one tick has no length");
        assert_eq!([1, 2, 5, 6, 9, 12, 13, 17, 21].map(|tick| note(&mut outbound, tick)), [10; 9]);
        assert_eq!((3..30).map(|n| note(&mut outbound, 10 * n)).last(), Some(0), "too long to matter");
    }

    #[test]
    fn a_tick_that_the_game_leaves_open_is_over_in_the_end() {
        let mut outbound = outbound(ChannelConfig::unreliable());
        let at = Instant::from_millis;
        assert_eq!(outbound.tick_over(), Instant::ZERO);
        outbound.open_tick(at(50));
        outbound.open_tick(at(90));
        assert_eq!(outbound.tick_over(), at(150));
        outbound.end_tick();
        assert_eq!(outbound.tick_over(), Instant::ZERO);
        assert_eq!(outbound.keep_alive_at(Duration::ZERO), None);
        outbound.last_sent = Some(at(100));
        assert_eq!(outbound.keep_alive_at(Duration::ZERO), Some(at(200)));
        assert_eq!(outbound.keep_alive_at(Duration::from_secs(1)), Some(at(1100)), "features keep it alive");
    }
}

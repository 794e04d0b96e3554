//! The world at a time between ticks: a client's as shown, and a server's as it was.
//!
//! Promises: a client's time never runs back unless the application asks for an earlier tick; a view of the past shows
//! which of its ghosts are still there, and which a client had.

use std::sync::Arc;

use crate::endpoint::PeerHandle;
use crate::replication::{
    ACKED_AFTER, Frames, GhostClass, HISTORY, LONG_LOSS, MAX_IN_FLIGHT, Mirror, Publisher, Rule, TickArrival,
    WorldFrames, WorldTime,
};
use crate::time::{Duration, Instant};
use crate::timeline::{Player, Playout, PlayoutConfig};

/// After this many seconds without data, no time is found any more.
const MAX_AHEAD: f64 = 3600.0;

/// Ticks by which an ack may be later than the round trip: on each side it waits for the next one.
const ACK_TICKS: f64 = 2.0;

/// The time without acks, beside a round trip, after which the server hasn't heard the client.
const UNHEARD_AFTER: Duration = Duration::from_millis(50);

/// A program that shows nothing for longer than this stands still.
const PAUSE: Duration = Duration::from_millis(250);

/// The ticks after a pause of this program until the longest of the last round trips no longer contains it: more than twice as many
/// as round trips are looked at, since one whose packet is lost stays.
const TICKS_AFTER_PAUSE: f64 = 300.0;

/// How a client's view chooses its time, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Playing {
    /// The time between arrival and display; None: as short as the network allows.
    pub delay: Option<f64>,
    /// How long velocities go on without data.
    pub extrapolation: f64,
    /// The silence that is drawn as motion.
    pub rest: f64,
}

/// The line to a client's server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    /// The newest packet, if nothing changed since the newest tick.
    pub heard: Option<u64>,
    /// The longest of the last round trips.
    pub round_trip: Duration,
    /// When the newest packet that the server acked was sent.
    pub acked_sent_at: Instant,
}

/// A view of a client's world.
#[derive(Debug)]
pub struct ClientView {
    frames: Option<Box<WorldFrames>>,
    playout: Playout,
    playing: Playing,
    /// Time goes on without data, because some properties have a velocity.
    reckons: bool,
    /// The epoch of the server's world.
    epoch: u32,
    /// The newest packet, if nothing changed since the newest tick.
    heard: Option<u64>,
    /// Ticks were left out since the last arrival, because ghosts that move were missing.
    leaves_out: bool,
    /// The longest of the last round trips, without pauses of this program.
    round_trip: Duration,
    /// Until this time, round trips contain a pause of this program.
    paused_until: Instant,
}

/// A view of an earlier tick of a server's world. All lists are by class, then by row.
#[derive(Debug)]
pub struct PastView {
    frames: Vec<Frames>,
    /// Whether the client had the row's ghost. None if it is no client's view.
    shown: Option<Vec<Vec<u8>>>,
    /// The rows whose ghost is gone by now, rising, with the tick of its end.
    gone: Vec<Vec<(usize, u32)>>,
}

/// A view of a world.
#[derive(Debug)]
pub enum View {
    Client(Box<ClientView>),
    Past(PastView),
}

impl View {
    /// The frames of a class; None if nothing was shown yet.
    pub fn frames(&self, class: usize) -> Option<&Frames> {
        match self {
            View::Client(view) => view.frames.as_ref().map(|frames| frames.class(class)),
            View::Past(view) => view.frames.get(class),
        }
    }

    /// The tick in which a row's ghost ended, if the world no longer has it. It tells ghosts apart that had one row.
    pub fn end_of(&self, class: usize, row: usize) -> Option<u32> {
        let gone = match self {
            View::Client(view) => view.frames.as_ref().map_or(&[][..], |frames| frames.gone(class)),
            View::Past(view) => &view.gone[class],
        };
        gone.binary_search_by_key(&row, |(row, _)| *row).ok().map(|index| gone[index].1)
    }

    /// Whether the client of a view of the past had a row's ghost; true of other views.
    pub fn has_shown(&self, class: usize, row: usize) -> bool {
        let View::Past(PastView { shown: Some(shown), .. }) = self else { return true };
        shown[class].get(row) == Some(&1)
    }

    /// The time of a client's view.
    pub fn playout(&self) -> Option<&Playout> {
        if let View::Client(view) = self { Some(&view.playout) } else { None }
    }
}

impl ClientView {
    /// A view of ghosts of these classes; `rate` is the protocol's, until the server's is measured.
    pub fn new<'a>(mut classes: impl Iterator<Item = &'a Arc<GhostClass>>, rate: Option<u32>) -> Self {
        let is_reckoned = |rule: &Rule| matches!(rule, Rule::Reckoned { .. });
        let reckons = classes.any(|class| class.rules.iter().any(is_reckoned));
        let usual = PlayoutConfig::default();
        let period = rate.map_or(usual.period, |rate| 1.0 / f64::from(rate));
        let playout = Playout::new(PlayoutConfig {
            period,
            history: HISTORY.into(),
            long_stall: LONG_LOSS.into(),
            acked_after: ACKED_AFTER,
            ..usual
        });
        let mut view = ClientView {
            frames: None,
            playout,
            playing: Playing::default(),
            reckons,
            epoch: 0,
            heard: None,
            leaves_out: false,
            round_trip: Duration::ZERO,
            paused_until: Instant::ZERO,
        };
        view.set_playing(view.playing);
        view
    }

    /// The shortest and the longest delay that can be set, in seconds, at the protocol's tick rate.
    pub fn delay_bounds(&self) -> (f64, f64) {
        self.playout.config().delay_bounds()
    }

    /// Sets how the time is chosen from now on.
    pub fn set_playing(&mut self, playing: Playing) {
        self.playing = playing;
        let extrapolation = if self.reckons { MAX_AHEAD } else { playing.extrapolation };
        let Playing { delay, rest, .. } = playing;
        let config = PlayoutConfig { delay, rest, extrapolation, ..*self.playout.config() };
        match self.playout.tick() {
            None => self.playout = Playout::new(config),
            Some(_) => self.playout.set_config(config),
        }
    }

    /// Shows the world at `now`, or at a tick that the application asks for. Returns the tick that is shown, if any is.
    pub(super) fn show<'a, C: AsMut<[&'a mut [u8]]>>(
        &mut self,
        (mirror, player): (&mut Mirror, Option<&mut Player>),
        Line { heard, round_trip, acked_sent_at }: Line,
        now: Option<Instant>,
        tick: Option<f64>,
        columns: &mut [C],
    ) -> Option<f64> {
        if core::mem::replace(&mut self.epoch, mirror.epoch()) != mirror.epoch() {
            self.playout.reset();
            self.paused_until = Instant::ZERO;
        }
        let is_unheard = now.is_some_and(|now| {
            self.note_round_trip(now, round_trip);
            now.since(acked_sent_at) > self.round_trip + UNHEARD_AFTER
        });
        self.handle_arrivals(mirror.take_received(), is_unheard);
        if now.is_some() && core::mem::replace(&mut self.heard, heard) != heard && heard.is_some() {
            self.playout.handle_quiet();
        }
        let played = now.and_then(|now| self.playout.advance(now));
        let ahead = self.playing.extrapolation / self.playout.period();
        let turns = mirror.tick_offset() as f64;
        let asked = tick.map(|tick| (tick - turns).clamp(0.0, f64::from(mirror.tick()) + ahead));
        let shown = asked.or(played).or_else(|| self.playout.tick())?;
        let frames = self.frames.get_or_insert_with(|| Box::new(WorldFrames::new(mirror.classes())));
        // On a longer line the server waits for acks, and meanwhile it sends nothing of a ghost that moves.
        let in_flight = (self.round_trip.as_secs_f64() / self.playout.period()).ceil() + ACK_TICKS;
        let waits = if in_flight > f64::from(MAX_IN_FLIGHT) { MAX_IN_FLIGHT.into() } else { 0 };
        let spread = waits.max((self.playing.rest / self.playout.period()) as u32);
        let stalled = self.playout.stalled_ticks();
        mirror.show(WorldTime { tick: shown, ahead, spread, stalled }, frames, columns);
        // A fixed delay may begin before the server's first tick.
        let shown = (shown + turns).max(0.0);
        if let Some(player) = player.filter(|_| tick.is_none()) {
            player.see(shown);
        }
        Some(shown)
    }

    /// Notes the longest of the last round trips. After a pause of this program, the one from before it counts.
    fn note_round_trip(&mut self, now: Instant, round_trip: Duration) {
        if self.playout.shown_at().is_some_and(|at| now.since(at) > PAUSE) {
            self.paused_until = now + Duration::from_secs_f64(TICKS_AFTER_PAUSE * self.playout.period());
        }
        if now >= self.paused_until {
            self.round_trip = round_trip;
        }
    }

    /// Notes when ticks arrived. In one that a server without acks sent, only ghosts that rarely move are new: if that isn't
    /// usual on this line, such ticks are left out, so the others don't stand still beside them.
    fn handle_arrivals(&mut self, arrivals: impl Iterator<Item = TickArrival>, is_unheard: bool) {
        for TickArrival { tick, at, lost, has_waited, waits } in arrivals {
            if waits && is_unheard {
                self.leaves_out = true;
                continue;
            }
            if core::mem::take(&mut self.leaves_out) || has_waited {
                self.playout.note_wait(tick);
            }
            self.playout.handle_arrival(tick, at, lost);
        }
    }
}

impl PastView {
    /// A view of ghosts of these classes.
    pub fn new<'a>(classes: impl Iterator<Item = &'a Arc<GhostClass>>) -> Self {
        let frames: Vec<_> = classes.map(|class| Frames::new(class.clone())).collect();
        PastView { gone: vec![Vec::new(); frames.len()], shown: None, frames }
    }

    /// Shows a server's world as it was at a tick, and as this client saw it.
    pub fn rewind<'a, C: AsMut<[&'a mut [u8]]>>(
        &mut self,
        publisher: &Publisher,
        tick: f64,
        client: Option<PeerHandle>,
        columns: &mut [C],
    ) {
        publisher.show_past(tick, &mut self.frames, columns);
        // Ghosts come and go in whole ticks.
        let whole = tick as u32;
        self.gone = (0..self.frames.len()).map(|class| publisher.gone_at(class, whole)).collect();
        self.shown = client.map(|client| {
            let mut all = vec![Vec::new(); self.frames.len()];
            let each = all.iter_mut().enumerate();
            each.for_each(|(class, shown)| publisher.shown_at(client, class, whole, shown));
            all
        });
    }
}

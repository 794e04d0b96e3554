//! Inputs and the server's time in a session: a server has its clients' inputs by tick, a client its clock.
//!
//! Promises: a session has one tick number, the one that ghosts' packets carry. Malformed payloads, and payloads that
//! only the other side may write, end the connection; merely unexpected ones are counted.

use std::sync::Arc;

use super::feature::{Feature, Moment, succeeds};
use super::protocol::{ServerTime, TIME};
use super::view::Line;
use crate::endpoint::{Event, Host, PeerHandle};
use crate::replication::{Mirror, PacketTime, Publisher};
use crate::store::sequence::ahead;
use crate::time::Instant;
use crate::timeline::packet::{self, InputFault, Report, VIEW_STEPS};
use crate::timeline::referee::TickTime;
use crate::timeline::{InputState, LeadConfig, MissingPolicy, Player, PlayerConfig, Referee};
use crate::transport::{Connection, Notification, OpaqueBody, Received};
use crate::wire::{BitReader, BitWriter};

/// By default, a missing input is replaced by the one before it for this many ticks.
const DEFAULT_REPEAT: u32 = 8;

/// By default, how many packets carry each input.
const DEFAULT_REDUNDANCY: u32 = 3;

/// By default, how many seconds a client may run ahead.
const DEFAULT_MAX_LEAD: f64 = 1.0;

/// How many numbers before one are checked for losses: more than any loss that matters to what is shown, and than a large
/// packet has fragments.
const MAX_CHECKED: i64 = 320;

/// When a packet with a tick arrived, and how many were lost since the packet with a tick before it.
pub(super) fn packet_time(
    host: &Host,
    mirror: &Mirror,
    peer: PeerHandle,
    (at, sequence): (Instant, u64),
) -> PacketTime {
    let lost = mirror.newest_packet().map_or(0, |before| missing_between(host, peer, before, sequence));
    let acks_until = host.connection(peer).map_or(Instant::ZERO, Connection::acked_sent_at);
    PacketTime { at, sequence, lost, acks_until }
}

/// The line to a client's server.
pub(super) fn line_to(host: &Host, mirror: &mut Mirror, server: PeerHandle, now: Option<Instant>) -> Line {
    let Some(connection) = host.connection(server) else { return Line::default() };
    let heard = newest_in_rest(host, mirror, server, now);
    Line { heard, round_trip: connection.longest_rtt(), acked_sent_at: connection.acked_sent_at() }
}

/// The newest packet of a peer, if all packets since the newest one with a tick arrived, and the server didn't wait for acks:
/// nothing changed since then.
fn newest_in_rest(host: &Host, mirror: &mut Mirror, peer: PeerHandle, now: Option<Instant>) -> Option<u64> {
    let sequence = host.connection(peer)?.newest_received()?;
    let time = packet_time(host, mirror, peer, (now?, sequence));
    let is_known = !mirror.may_server_wait(time) && time.lost == 0 && mirror.newest_packet().is_some();
    is_known.then_some(sequence)
}

/// How many packets of a peer between these two haven't arrived: the last 320 numbers are checked, and one counts for
/// earlier packets, which aren't.
fn missing_between(host: &Host, peer: PeerHandle, before: u64, sequence: u64) -> u32 {
    let all = ahead(sequence, before).saturating_sub(1);
    let between = all.min(MAX_CHECKED);
    let Some(connection) = host.connection(peer) else { return 0 };
    let is_missing = |ago: &i64| connection.is_missing(sequence.wrapping_sub(*ago as u64));
    (1..=between).filter(is_missing).count() as u32 + u32::from(all > between)
}

/// An endpoint's role in inputs and time.
#[derive(Debug, Default)]
pub enum Timing {
    /// The protocol has no inputs and no time.
    #[default]
    None,
    /// A server's: its time counts.
    Server(Box<ServerTiming>),
    /// A client's: it follows a server's time.
    Client(Box<ClientTiming>),
}

/// A client's input for the current tick.
#[derive(Clone, Copy, Debug)]
pub struct TakenInput {
    pub peer: PeerHandle,
    tick: u32,
    pub state: InputState,
    /// The place of the input among all bodies of its tick, if there is one.
    body: Option<(usize, usize)>,
    /// The tick that the player saw, in 1/256.
    pub view: Option<u64>,
}

impl TakenInput {
    /// Whether there is an input: the client's own for the tick, or its last one again.
    pub fn has_body(&self) -> bool {
        self.body.is_some()
    }
}

/// A server's inputs, by client.
#[derive(Debug)]
pub struct ServerTiming {
    about: ServerTime,
    // By slot.
    players: Vec<Option<(PeerHandle, Box<Referee>)>>,
    policy: MissingPolicy,
    /// The offsets of presses in an input's row.
    presses: Arc<[usize]>,
    /// Counts flushes, for protocols without ghosts to count ticks.
    flushes: u32,
    /// The last tick whose inputs were taken, and when.
    taken_tick: u32,
    taken_at: Instant,
    taken: Vec<TakenInput>,
    bodies: Vec<u8>,
    changes: Vec<u32>,
    // Lent buffers to read payloads into.
    read: Vec<u8>,
    ends: Vec<usize>,
}

/// A client's time, which follows a server's.
#[derive(Debug)]
pub struct ClientTiming {
    /// The server whose time this is.
    server: Option<PeerHandle>,
    player: Player,
}

impl Timing {
    /// A server's role in a protocol's time, if it has any.
    pub fn server(about: Option<&ServerTime>) -> Self {
        let Some(about) = about else { return Timing::None };
        Timing::Server(Box::new(ServerTiming {
            about: about.clone(),
            players: Vec::new(),
            policy: MissingPolicy::Repeat { limit: DEFAULT_REPEAT },
            presses: about.input.as_ref().map(|(_, schema)| schema.presses()).unwrap_or_default().into(),
            flushes: 0,
            taken_tick: 0,
            taken_at: Instant::ZERO,
            taken: Vec::new(),
            bodies: Vec::new(),
            changes: Vec::new(),
            read: Vec::new(),
            ends: Vec::new(),
        }))
    }

    /// A client's role in a protocol's time, if it has any.
    pub fn client(about: Option<&ServerTime>) -> Self {
        let Some(about) = about else { return Timing::None };
        let rate = f64::from(about.rate);
        let lead = LeadConfig { min: 0.0, max: DEFAULT_MAX_LEAD * rate, redundancy: DEFAULT_REDUNDANCY };
        let input = about.input.as_ref().map(|(_, schema)| schema.clone());
        let player = Player::new(rate, PlayerConfig { delay: 0, lead }, input);
        Timing::Client(Box::new(ClientTiming { server: None, player }))
    }

    /// The inputs, on a server.
    pub fn inputs(&mut self) -> Option<&mut ServerTiming> {
        if let Timing::Server(timing) = self { Some(timing) } else { None }
    }

    /// The clock, on a client.
    pub fn player(&mut self) -> Option<&mut Player> {
        if let Timing::Client(timing) = self { Some(&mut timing.player) } else { None }
    }

    /// The clock, on a client that has a server.
    pub fn connected_player(&mut self) -> Option<&mut Player> {
        if let Timing::Client(timing) = self { timing.server.map(|_| &mut timing.player) } else { None }
    }

    /// Ends the time of a client's server, which is gone.
    pub(super) fn forget_server(&mut self) {
        if let Timing::Client(timing) = self {
            timing.server = None;
            timing.player.reset();
        }
    }

    /// Counts a tick if no ghosts count it, and otherwise notes which ghosts changed.
    pub(super) fn begin_flush(&mut self, publisher: Option<&mut Publisher>) {
        let Timing::Server(timing) = self else { return };
        match publisher {
            Some(publisher) => publisher.owned_changes(&mut timing.changes),
            None => timing.flushes += 1,
        }
    }
}

impl Feature for Timing {
    fn name(&self) -> &'static str {
        TIME
    }

    fn read(
        &mut self,
        moment: Moment,
        host: &Host,
        peer: PeerHandle,
        _: usize,
        received: Received,
    ) -> Result<Option<u16>, String> {
        let reader = OpaqueBody::read(&received.body).reader();
        let read = match self {
            Timing::Server(timing) => timing.read(moment, host, peer, reader).map(|()| None),
            Timing::Client(timing) => timing.read(moment.now, host, peer, reader),
            Timing::None => Err(InputFault::Forged),
        };
        read.map_err(|fault| fault.to_string())
    }

    /// A packet of ghosts arrived.
    fn note_tick(&mut self, _: &Host, peer: PeerHandle, (at, _): (Instant, u64), low: u16) {
        if let Timing::Client(timing) = self
            && timing.server == Some(peer)
        {
            timing.player.handle_ghosts(at, low);
        }
    }

    fn note_fate(&mut self, peer: PeerHandle, fate: &Notification) {
        match self {
            Timing::Server(timing) if fate.delivered && fate.tag == 1 => {
                if let Some(player) = timing.player_mut(peer) {
                    player.note_high_delivered();
                }
            }
            Timing::Client(timing) if timing.server == Some(peer) => {
                timing.player.handle_fate(fate.tag as u8, fate.delivered);
            }
            _ => {}
        }
    }

    /// Admits peers that the application now knows, and removes those that left.
    fn note_events(&mut self, moment: Moment, host: &Host, events: &[Event]) {
        for event in events {
            match (&mut *self, event) {
                (Timing::Server(timing), Event::Accepted { peer, .. }) => timing.add(*peer, moment.tick),
                (Timing::Server(timing), Event::Disconnected { peer, .. }) => timing.remove(*peer),
                (Timing::Client(timing), Event::Dialled { peer, .. }) => timing.follow(host, *peer),
                _ => {}
            }
        }
    }

    fn want(&mut self, now: Instant, host: &mut Host, channel: usize) {
        let mut want = |peer, bits| {
            // A peer that is about to leave gets nothing more.
            host.connection_mut(peer).is_some_and(|connection| connection.want(channel, bits).is_ok())
        };
        match self {
            Timing::Server(timing) => {
                let due = timing.players.iter().flatten().filter(|(_, referee)| referee.has_news());
                due.for_each(|(peer, _)| _ = want(*peer, Report::MAX_BITS));
            }
            Timing::Client(timing) => {
                timing.player.advance(now);
                if let (Some(server), Some(bits)) = (timing.server, timing.player.wants(now)) {
                    want(server, bits);
                }
            }
            Timing::None => {}
        }
    }

    fn fill(
        &mut self,
        moment: Moment,
        peer: PeerHandle,
        _: usize,
        bits: usize,
        writer: &mut BitWriter,
    ) -> Option<u32> {
        match self {
            Timing::Server(timing) => timing.fill(moment, peer, bits, writer),
            Timing::Client(timing) if timing.server == Some(peer) => {
                timing.player.write(moment.now, bits, writer).map(u32::from)
            }
            _ => None,
        }
    }
}

impl ServerTiming {
    /// Flushes, if no ghosts count ticks.
    pub(super) fn flushes(&self) -> u32 {
        self.flushes
    }

    /// Sets what ticks without an input get from now on.
    pub fn set_policy(&mut self, policy: MissingPolicy) {
        self.policy = policy;
        for (_, referee) in self.players.iter_mut().flatten() {
            referee.buffer().set_policy(policy);
        }
    }

    /// Takes the inputs for the tick after `last`, once: by slot, of clients that have ever sent any.
    pub(super) fn take(&mut self, now: Instant, last: u32) {
        let tick = last + 1;
        if self.taken_tick >= tick {
            return;
        }
        (self.taken_tick, self.taken_at) = (tick, now);
        self.taken.clear();
        self.bodies.clear();
        for (peer, referee) in self.players.iter_mut().flatten() {
            let taken = referee.buffer().take(tick);
            let body = taken.input.map(|input| {
                let start = self.bodies.len();
                self.bodies.extend_from_slice(input);
                (start, self.bodies.len())
            });
            let (state, view) = (taken.state, taken.view);
            if referee.inputs().has_begun() {
                self.taken.push(TakenInput { peer: *peer, tick, state, body, view });
            }
        }
    }

    /// The tick whose inputs were taken last: the current one.
    pub fn tick(&self) -> u32 {
        self.taken_tick
    }

    pub fn rate(&self) -> f64 {
        self.about.rate.into()
    }

    /// Whether clients have inputs to send.
    pub fn has_inputs(&self) -> bool {
        self.about.input.is_some()
    }

    /// The inputs of the current tick.
    pub fn taken(&self) -> &[TakenInput] {
        &self.taken
    }

    fn taken_of(&self, peer: PeerHandle) -> Option<&TakenInput> {
        // Sorted by slot.
        let place = self.taken.binary_search_by_key(&peer.slot, |taken| taken.peer.slot).ok()?;
        self.taken.get(place).filter(|taken| taken.peer == peer)
    }

    /// An input of the current tick, as a row of its schema. None if there is none, or if the tick is over.
    pub fn body(&self, taken: &TakenInput) -> Option<&[u8]> {
        let (start, end) = taken.body.filter(|_| taken.tick == self.taken_tick)?;
        self.bodies.get(start..end)
    }

    /// A client's input of the current tick, as a row of its schema.
    pub fn body_of(&self, peer: PeerHandle) -> Option<&[u8]> {
        self.body(self.taken_of(peer)?)
    }

    /// The tick that a client's player saw when giving the input of the current tick, if the client reported it.
    pub fn seen_by(&self, peer: PeerHandle) -> Option<f64> {
        Some(self.taken_of(peer)?.view? as f64 / VIEW_STEPS)
    }

    /// The state of a client's inputs.
    pub fn player(&self, peer: PeerHandle) -> Option<&Referee> {
        let (handle, referee) = self.players.get(peer.slot as usize)?.as_ref()?;
        (*handle == peer).then_some(&**referee)
    }

    fn player_mut(&mut self, peer: PeerHandle) -> Option<&mut Referee> {
        let (handle, referee) = self.players.get_mut(peer.slot as usize)?.as_mut()?;
        (*handle == peer).then_some(&mut **referee)
    }

    fn add(&mut self, peer: PeerHandle, tick: u32) {
        let slot = peer.slot as usize;
        if self.players.len() <= slot {
            self.players.resize_with(slot + 1, || None);
        }
        let last = tick.max(self.taken_tick);
        self.players[slot] = Some((peer, Box::new(Referee::new(last, self.policy, self.presses.clone()))));
    }

    fn remove(&mut self, peer: PeerHandle) {
        if self.player(peer).is_some() {
            self.players[peer.slot as usize] = None;
            self.taken.retain(|taken| taken.peer != peer);
        }
    }

    /// The current tick, or the last one, and when its inputs were taken.
    fn time(&self, tick: u32) -> TickTime {
        TickTime { tick: tick.max(self.taken_tick), taken_at: self.taken_at, rate: self.rate() }
    }

    fn read(
        &mut self,
        Moment { now, tick }: Moment,
        host: &Host,
        peer: PeerHandle,
        mut reader: BitReader<'_>,
    ) -> Result<(), InputFault> {
        if host.dialled(peer).is_some() {
            return Err(InputFault::Forged);
        }
        let schema = self.about.input.as_ref().map(|(_, schema)| &**schema);
        let (header, low) = packet::read_inputs(&mut reader, schema, &mut self.read, &mut self.ends)?;
        let time = self.time(tick);
        // The application may not know this client yet; the client repeats its inputs.
        if let Some((handle, referee)) = self.players.get_mut(peer.slot as usize).and_then(Option::as_mut)
            && *handle == peer
        {
            referee.handle_payload(now, &time, &header, low, &self.read, &self.ends);
        }
        Ok(())
    }

    /// Writes a report about this tick.
    fn fill(
        &mut self,
        Moment { now, tick }: Moment,
        peer: PeerHandle,
        bits: usize,
        writer: &mut BitWriter,
    ) -> Option<u32> {
        // If nobody took the tick's inputs, it has just begun.
        let taken_at = if self.taken_tick == tick { self.taken_at } else { now };
        let time = TickTime { tick, taken_at, rate: self.rate() };
        let changed = self.changes.get(peer.slot as usize).copied();
        let referee = self.player_mut(peer)?;
        if !referee.has_news() || bits < Report::MAX_BITS {
            return None;
        }
        let report = referee.report(now, &time, changed);
        report.write(writer);
        Some(u32::from(report.high.is_some()))
    }
}

impl ClientTiming {
    /// Follows the time of the server that was dialled, and of another one once the connection to the first is over.
    fn follow(&mut self, host: &Host, peer: PeerHandle) {
        if succeeds(host, self.server, peer) && self.server.replace(peer).is_some() {
            self.player.reset();
        }
    }

    /// Reads a report; returns the low bits of its tick if it is from the server that is followed.
    fn read(
        &mut self,
        now: Instant,
        host: &Host,
        peer: PeerHandle,
        mut reader: BitReader<'_>,
    ) -> Result<Option<u16>, InputFault> {
        if host.dialled(peer).is_none() {
            return Err(InputFault::Forged);
        }
        let report = Report::read(&mut reader)?;
        if self.server != Some(peer) {
            return Ok(None);
        }
        self.player.handle_report(now, &report);
        Ok(Some(report.tick))
    }
}

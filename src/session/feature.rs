//! The seam between a session and the features whose packets it carries.
//!
//! A packet feature has channels of its own, which no message of the game uses. It shares packets with the game's messages:
//! the endpoint asks it to fill the room that the scheduler gives it, packet by packet, and reports each packet as delivered
//! or lost. Ghosts, inputs and the server's time, the messages of peers, and the cores that peers run (lockstep, rollback,
//! the hosted game) are packet features.
//!
//! Calls, rooms, retained values and views are not. Calls are messages of the game's channels, so that both keep one order.
//! A room is a set of peers to which the game sends its messages, and a retained value is a message that is sent to newcomers
//! again: both are plain values over the endpoint's `send`. A view only reads what ghosts have received. None of the four has
//! bytes of its own, so none has anything to fill, to read or to refuse, and a common trait would be empty for them.

use crate::endpoint::{Event, Host, PeerHandle};
use crate::time::Instant;
use crate::transport::{Notification, Received};
use crate::wire::BitWriter;

/// The moment of a call: now, and the server's newest tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub now: Instant,
    pub tick: u32,
}

/// Whether a client turns to the server `peer`, because it dialled it and its connection to the one that it has
/// followed so far, if any, is over.
pub(super) fn succeeds(host: &Host, followed: Option<PeerHandle>, peer: PeerHandle) -> bool {
    let is_here = |server| host.dialled(server).is_some_and(|dial| dial.end().is_none());
    followed != Some(peer) && host.dialled(peer).is_some() && !followed.is_some_and(is_here)
}

/// A feature with channels of its own. Its part of the protocol is an [`Extension`](crate::transport::protocol::Extension).
pub(super) trait Feature {
    /// The feature's name in the protocol, and in violations.
    fn name(&self) -> &'static str;

    /// Reads a payload that arrived on one of its channels. Returns the low bits of the server's tick, if the payload has them.
    ///
    /// # Errors
    /// How the peer broke the protocol: its connection ends with this reason.
    fn read(
        &mut self,
        moment: Moment,
        host: &Host,
        peer: PeerHandle,
        channel: usize,
        received: Received,
    ) -> Result<Option<u16>, String>;

    /// Another feature's payload had these low bits of the server's tick. It arrived then, in the packet with that number.
    fn note_tick(&mut self, _host: &Host, _peer: PeerHandle, _arrived: (Instant, u64), _low: u16) {}

    /// A packet with a payload of the feature was delivered or lost.
    fn note_fate(&mut self, _peer: PeerHandle, _fate: &Notification) {}

    /// The application takes these connection events.
    fn note_events(&mut self, _moment: Moment, _host: &Host, _events: &[Event]) {}

    /// Registers the peers for which it has something to send in this tick. `channel` is the first of its channels.
    fn want(&mut self, now: Instant, host: &mut Host, channel: usize);

    /// Writes at most `bits` bits for a peer, as [`endpoint::Feature::fill`](crate::endpoint::Feature::fill).
    fn fill(
        &mut self,
        moment: Moment,
        peer: PeerHandle,
        channel: usize,
        bits: usize,
        writer: &mut BitWriter,
    ) -> Option<u32>;
}

//! The connections to others, and what is known of who they are.

use core::net::SocketAddr;

use super::message::{Key, Message, Ticket};
use super::roster::{LeaveReason, Players};
use crate::time::Instant;

/// A connection, by the number that the layer above has for it.
pub type LinkId = u64;

/// How a connection ended, or why it never was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// The other side left the game: it said so.
    Left,
    /// The other side is done with us, in whatever part of the game it is.
    Parted,
    /// It fell silent, or nobody was there.
    Lost,
    /// It was ended for what the other side sent.
    Violation,
    /// The two speak different protocols.
    Mismatch,
    /// All connections that the other side has are taken.
    Full,
}

impl LinkEnd {
    pub(super) fn reason(self) -> LeaveReason {
        match self {
            LinkEnd::Left => LeaveReason::Left,
            LinkEnd::Parted | LinkEnd::Lost => LeaveReason::Lost,
            LinkEnd::Violation => LeaveReason::Violation,
            LinkEnd::Mismatch => LeaveReason::Mismatch,
            LinkEnd::Full => LeaveReason::Full,
        }
    }
}

/// A newcomer, as the master sees it.
#[derive(Clone, Debug)]
pub(super) struct Joiner {
    pub(super) player: u8,
    pub(super) joined: u32,
    pub(super) name: String,
    /// Said once it was welcomed; without it nobody could be let in later.
    pub(super) key: Option<Key>,
    pub(super) addresses: Vec<SocketAddr>,
    /// Whom it was told to dial, and whom it has reached: with this joining of each.
    pub(super) introduced: Vec<(u8, u32)>,
    pub(super) reached: Players,
}

/// Who is at the other end.
#[derive(Clone, Debug)]
pub(super) enum Role {
    /// Whoever dialled; perhaps with a ticket that the master will tell of.
    Stranger { ticket: Option<Ticket> },
    /// The one that is asked to be let in.
    Contact,
    /// Someone that the master lets in, seen by the master.
    Joiner(Box<Joiner>),
    /// A player, or someone that is about to be one.
    Player { player: u8, joined: u32 },
    /// Nobody any more: it is about to end.
    Over,
}

/// A connection, and who is at its other end.
#[derive(Clone, Debug)]
pub struct Link {
    pub(super) id: LinkId,
    /// Where the other side is.
    pub(super) address: Option<SocketAddr>,
    pub(super) since: Instant,
    pub(super) is_up: bool,
    pub(super) role: Role,
    /// What it said before it is known who says it, or before its time.
    pub(super) deferred: Vec<Message>,
    pub(super) deferred_since: Instant,
}

impl Link {
    pub(super) fn new(id: LinkId, address: Option<SocketAddr>, since: Instant, role: Role) -> Self {
        Link { id, address, since, is_up: true, role, deferred: Vec::new(), deferred_since: since }
    }

    /// Which player it is, with its joining.
    pub(super) fn player(&self) -> Option<(u8, u32)> {
        match &self.role {
            Role::Player { player, joined } => Some((*player, *joined)),
            Role::Joiner(joiner) => Some((joiner.player, joiner.joined)),
            _ => None,
        }
    }
}

/// A newcomer that will dial.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) player: u8,
    pub(super) joined: u32,
    pub(super) ticket: Ticket,
    pub(super) since: Instant,
}

/// There is no master: who is to be the next one.
#[derive(Clone, Debug)]
pub(super) struct Election {
    /// When to claim next.
    pub(super) next_at: Instant,
    /// When to give up.
    pub(super) until: Instant,
    /// The epoch of our claim, and who is for it.
    pub(super) claim: Option<(u32, Players)>,
}

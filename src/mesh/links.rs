//! The connections to other peers, and what is known about who they are.

use core::net::SocketAddr;

use super::message::{Key, Message, Ticket};
use super::roster::{Identity, LeaveReason, Players};
use crate::time::Instant;

/// A connection, by the number that the layer above gave it.
pub type LinkId = u64;

/// How a connection ended, or why it was never made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// The other side left the game and said so.
    Left,
    /// The other side removed us, or ended the connection for another reason of its own.
    Parted,
    /// It fell silent, or nobody answered.
    Lost,
    /// It was ended because of what the other side sent.
    Violation,
    /// The other side ended it because of what this side sent, it says.
    Accused,
    /// The two speak different protocols.
    Mismatch,
    /// The other side has no free connection.
    Full,
    /// It was dialled by a code, and no game has that code.
    UnknownCode,
}

impl LinkEnd {
    pub(super) fn reason(self) -> LeaveReason {
        match self {
            LinkEnd::Left => LeaveReason::Left,
            LinkEnd::Parted | LinkEnd::Lost => LeaveReason::Lost,
            LinkEnd::Violation | LinkEnd::Accused => LeaveReason::Violation,
            LinkEnd::Mismatch => LeaveReason::Mismatch,
            LinkEnd::Full => LeaveReason::Full,
            LinkEnd::UnknownCode => LeaveReason::UnknownCode,
        }
    }
}

/// A newcomer, from the master's point of view.
#[derive(Clone, Debug)]
pub(super) struct Joiner {
    pub(super) who: Identity,
    pub(super) name: String,
    /// Said once it was welcomed; without it nobody could be let in later.
    pub(super) key: Option<Key>,
    pub(super) addresses: Vec<SocketAddr>,
    /// The players (with their joinings) that it was told to dial, and those it has reached.
    pub(super) introduced: Vec<Identity>,
    pub(super) reached: Players,
}

/// Who is at the other end of a link.
#[derive(Clone, Debug)]
pub(super) enum Role {
    /// A peer that dialled us, perhaps with a ticket that the master will announce.
    Stranger { ticket: Option<Ticket> },
    /// A peer that we ask to let us in, or that has sent us on to the master.
    Contact,
    /// A newcomer that was sent on to the master. It is answered again once there is another one.
    SentOn { name: String, addresses: Vec<SocketAddr> },
    /// A newcomer that this master lets in.
    Joiner(Box<Joiner>),
    /// A player, or a newcomer that is proposed as one.
    Player(Identity),
    /// Nobody any more: the link is about to end.
    Over,
}

/// A connection, and who is at its other end.
#[derive(Clone, Debug)]
pub struct Link {
    pub(super) id: LinkId,
    /// The other side's address.
    pub(super) address: Option<SocketAddr>,
    pub(super) since: Instant,
    pub(super) is_up: bool,
    pub(super) role: Role,
    /// Messages that came before the sender was known, or before their time.
    pub(super) deferred: Vec<Message>,
    pub(super) deferred_since: Instant,
    /// The newest token for the player's server, which counts once that player is the master here.
    pub(super) seat: Option<Vec<u8>>,
}

impl Link {
    pub(super) fn new(id: LinkId, address: Option<SocketAddr>, since: Instant, role: Role) -> Self {
        let (deferred, deferred_since) = (Vec::new(), since);
        Link { id, address, since, is_up: true, role, deferred, deferred_since, seat: None }
    }

    /// The player and its joining.
    pub(super) fn player(&self) -> Option<Identity> {
        match &self.role {
            Role::Player(who) => Some(*who),
            Role::Joiner(joiner) => Some(joiner.who),
            _ => None,
        }
    }
}

/// A newcomer that will dial this member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) who: Identity,
    pub(super) ticket: Ticket,
    pub(super) since: Instant,
}

/// An election, while there is no master.
#[derive(Clone, Debug)]
pub(super) struct Election {
    /// The next time to claim.
    pub(super) next_at: Instant,
    /// The time to give up.
    pub(super) until: Instant,
    /// The epoch of our claim, and the votes for it.
    pub(super) claim: Option<(u32, Players)>,
}

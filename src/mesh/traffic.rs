//! What the machine does with its links: looks them up, sends on them, keeps early messages, and loses patience.

use super::links::{Link, LinkEnd, LinkId, Role};
use super::machine::Mesh;
use super::message::Message;
use super::output::{Action, MeshFault};
use super::roster::{LeaveReason, Players, bit};
use super::{ELECTION_GRACE, FAREWELL, HELLO_TIMEOUT, JOIN_TIMEOUT, MAX_DEFERRED};
use crate::time::{Duration, Instant};

impl Mesh {
    pub(super) fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.id == id)
    }

    /// The link to a player.
    pub(super) fn link_of(&self, player: u8) -> Option<&Link> {
        let is_it = |link: &&Link| {
            matches!(link.role, Role::Player { player: other, .. } if other == player) && link.is_up
        };
        self.links.iter().find(is_it)
    }

    /// The roster's players that are reached from here, this one included.
    pub(super) fn reached(&self) -> Players {
        let known = |player, joined| {
            self.stable.has(player, joined)
                || self.pending.as_ref().is_some_and(|pending| pending.has(player, joined))
        };
        // A newcomer that is proposed is one of them: to the master it is none of the players yet.
        let up = self.links.iter().filter(|link| link.is_up).filter_map(Link::player);
        let players = up.filter(|(player, joined)| known(*player, *joined));
        players.fold(bit(self.me.0), |all, (player, _)| all | bit(player))
    }

    pub(super) fn send(&mut self, link: LinkId, message: Message) {
        self.actions.push_back(Action::Send { link, message });
    }

    /// Sends to all members of both rosters.
    pub(super) fn send_all(&mut self, message: &Message) {
        let all: Vec<LinkId> = self.member_links().map(|link| link.id).collect();
        for link in all {
            self.send(link, message.clone());
        }
    }

    /// The links to the players of both rosters.
    pub(super) fn member_links(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().filter(|link| {
            link.player().is_some_and(|(player, joined)| {
                link.is_up
                    && (self.stable.has(player, joined)
                        || self.pending.as_ref().is_some_and(|pending| pending.has(player, joined)))
            })
        })
    }

    /// Keeps a message until its sender is known, or its time has come.
    pub(super) fn defer(&mut self, now: Instant, id: LinkId, message: Message) -> Result<(), MeshFault> {
        let Some(link) = self.link_mut(id) else { return Ok(()) };
        if link.deferred.len() >= MAX_DEFERRED {
            return Err(MeshFault::Flood);
        }
        if link.deferred.is_empty() {
            link.deferred_since = now;
        }
        link.deferred.push(message);
        Ok(())
    }

    /// Handles the kept messages, of all players or of one link.
    pub(super) fn replay(&mut self, now: Instant, only: Option<LinkId>) {
        let ready: Vec<LinkId> = self
            .links
            .iter()
            .filter(|link| !link.deferred.is_empty() && matches!(link.role, Role::Player { .. }))
            .filter(|link| only.is_none_or(|only| only == link.id))
            .map(|link| link.id)
            .collect();
        for id in ready {
            let Some(link) = self.link_mut(id) else { continue };
            for message in core::mem::take(&mut link.deferred) {
                if let Err(fault) = self.handle_message(now, id, message, Duration::ZERO) {
                    self.actions.push_back(Action::Refuse { link: id, fault });
                    break;
                }
            }
        }
    }

    /// How long this link may stay in its state.
    pub(super) fn patience(&self, link: &Link) -> Instant {
        let deferred = if link.deferred.is_empty() {
            Instant::NEVER
        } else {
            link.deferred_since + self.config.timeout + ELECTION_GRACE
        };
        let role = match &link.role {
            Role::Stranger { ticket: None } => link.since + HELLO_TIMEOUT,
            Role::Stranger { ticket: Some(_) } | Role::SentOn { .. } | Role::Joiner(_) => {
                link.since + JOIN_TIMEOUT
            }
            Role::Player { player, joined } => {
                let known = self.stable.has(*player, *joined)
                    || self.pending.as_ref().is_some_and(|pending| pending.has(*player, *joined));
                let waits = link.is_up && !known && self.is_member();
                if waits { link.since + JOIN_TIMEOUT } else { Instant::NEVER }
            }
            Role::Contact if link.is_up => link.since + JOIN_TIMEOUT,
            Role::Contact => Instant::NEVER,
            Role::Over => link.since + FAREWELL,
        };
        role.min(deferred)
    }

    pub(super) fn lose_patience(&mut self, now: Instant, id: LinkId) {
        let Some(link) = self.link_mut(id) else { return };
        match link.role {
            Role::Joiner(_) => self.refuse(now, id, LeaveReason::Unreachable),
            Role::Contact => {
                self.drop_link(id, LeaveReason::NoAnswer);
                self.lose_contact(now, LinkEnd::Lost);
            }
            Role::Player { .. } if !link.deferred.is_empty() => {
                // There was a master all along: the sender only claims to be one.
                link.deferred.clear();
                self.actions.push_back(Action::Refuse { link: id, fault: MeshFault::NotTheMaster });
            }
            _ => self.drop_link(id, LeaveReason::NoAnswer),
        }
    }
}

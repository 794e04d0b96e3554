//! The machine's links: it accepts and ends them, looks them up, sends on them, keeps early messages, and ends those that are silent
//! for too long.

use core::net::SocketAddr;

use super::links::{Link, LinkEnd, LinkId, Role};
use super::machine::{Mesh, Phase};
use super::message::{Message, Ticket};
use super::output::{Action, MeshFault};
use super::roster::{Identity, LeaveReason, Players, bit};
use super::{ASK_AGAIN, ELECTION_GRACE, FAREWELL, HELLO_TIMEOUT, JOIN_TIMEOUT, MAX_DEFERRED};
use crate::time::{Duration, Instant};

impl Mesh {
    /// A peer has dialled; it brings a ticket if the master has introduced it.
    pub fn handle_accepted(&mut self, now: Instant, id: LinkId, from: SocketAddr, ticket: Option<Ticket>) {
        if let Phase::Ended(_) = self.phase {
            return self.actions.push_back(Action::End { link: id, reason: LeaveReason::NoAnswer });
        }
        let mut link = Link::new(id, Some(from), now, Role::Stranger { ticket });
        let expected = self.expected.iter().position(|expected| Some(expected.ticket) == ticket);
        if let Some(place) = expected {
            link.role = Role::Player(self.expected.remove(place).who);
        }
        self.links.push(link);
        self.after_links(now);
    }

    /// The layer above has dialled for [`Action::Ask`], or for [`Action::Dial`] of `player`.
    pub fn note_dialling(&mut self, now: Instant, id: LinkId, player: Option<Identity>) {
        if player.is_none() && self.answer_by == Instant::NEVER {
            self.answer_by = now + self.config.timeout + ASK_AGAIN;
        }
        let role = player.map_or(Role::Contact, Role::Player);
        self.links.push(Link { is_up: false, ..Link::new(id, None, now, role) });
    }

    /// The layer above couldn't dial.
    pub fn note_undialled(&mut self, player: Option<u8>) {
        match player {
            Some(player) => self.say_unreached(player),
            None => self.end(LeaveReason::NoAnswer),
        }
    }

    /// A dialled link is up; the other side has this address.
    pub fn handle_dialled(&mut self, now: Instant, id: LinkId, address: SocketAddr) {
        let Some(link) = self.link_mut(id) else { return };
        (link.is_up, link.since, link.address) = (true, now, Some(address));
        match link.role {
            Role::Contact => self.say_hello(id),
            Role::Player(_) => self.say_reached(),
            _ => {}
        }
    }

    /// A link ended, or could not be made.
    pub fn handle_end(&mut self, now: Instant, id: LinkId, how: LinkEnd) {
        let Some(place) = self.links.iter().position(|link| link.id == id) else { return };
        let link = self.links.remove(place);
        self.admitted.retain(|other| *other != id);
        if let Phase::Ended(_) = self.phase {
            return;
        }
        match link.role {
            Role::Contact => self.lose_contact(now, how),
            Role::Player(who) => self.lose_player(now, who, link.is_up, how),
            Role::Stranger { .. } | Role::SentOn { .. } | Role::Joiner(_) | Role::Over => {}
        }
        self.after_links(now);
    }

    pub(super) fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.id == id)
    }

    /// The player at the other end of a link.
    pub(super) fn player_at(&self, id: LinkId) -> Option<Identity> {
        self.links.iter().find(|link| link.id == id).and_then(Link::player)
    }

    /// The link to the master, if there is one.
    pub(super) fn master_link(&self) -> Option<&Link> {
        self.master.and_then(|master| self.link_of(master))
    }

    /// Sends to the master, if it is reached.
    pub(super) fn send_to_master(&mut self, message: Message) {
        if let Some(link) = self.master_link().map(|link| link.id) {
            self.send(link, message);
        }
    }

    /// Whether the player is in the roster that was agreed on, or in the proposed one.
    pub(super) fn knows(&self, who: Identity) -> bool {
        self.stable.has(who) || self.pends(who)
    }

    /// The link to a player.
    pub(super) fn link_of(&self, player: u8) -> Option<&Link> {
        let is_it = |link: &&Link| matches!(link.role, Role::Player((it, _)) if it == player && link.is_up);
        self.links.iter().find(is_it)
    }

    /// The roster's players that are reached from here, this one included.
    pub(super) fn reached(&self) -> Players {
        // A newcomer that is proposed is one of them: to the master it is none of the players yet.
        self.member_links()
            .filter_map(Link::player)
            .fold(bit(self.me.0), |all, (player, _)| all | bit(player))
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
        self.links.iter().filter(|link| link.is_up && link.player().is_some_and(|who| self.knows(who)))
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
            .filter(|link| !link.deferred.is_empty() && matches!(link.role, Role::Player(_)))
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
            Role::Player(who) => {
                let waits = link.is_up && !self.knows(*who) && self.is_member();
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
            Role::Player(_) if !link.deferred.is_empty() => {
                // There was a master all along: the sender only claims to be one.
                link.deferred.clear();
                self.actions.push_back(Action::Refuse { link: id, fault: MeshFault::NotTheMaster });
            }
            _ => self.drop_link(id, LeaveReason::NoAnswer),
        }
    }
}

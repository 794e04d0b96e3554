//! Who is let in, where the application wants to be asked about each newcomer.
//!
//! Promises: of a client that the application has not decided about, nothing can be taken: no event, message, notification
//! or chunk; its chunks get no place either, in memory or in a store. The connection itself works: it is acked and kept
//! alive. A client that leaves before the decision stays to be decided about, with all that it sent; nothing of it is lost
//! when it is admitted, and nothing is left of it when it is refused.

use super::{Server, ServerEvent};
use crate::endpoint::Detail;
use crate::endpoint::DisconnectReason;
use crate::netcode::ClientHandle;
use crate::store::Datagrams;
use crate::time::Instant;
use crate::transport::CloseReason;

impl Server {
    /// From now on, newcomers wait for [`Server::admit`] or [`Server::refuse`].
    pub fn ask_admission(&mut self) {
        self.asks_admission = true;
    }

    /// The [`ServerEvent::Connected`] of those that must be decided about, in the order in which they came.
    pub fn newcomers(&self) -> impl Iterator<Item = &ServerEvent> {
        let events = self.events.iter().filter(|_| self.asks_admission);
        let connected = events.filter(|event| matches!(event, ServerEvent::Connected { .. }));
        connected.filter(|event| self.is_undecided(event.client()))
    }

    /// Lets a newcomer in: what it did and sent can be taken from now on.
    pub fn admit(&mut self, client: ClientHandle) {
        if let Some(session) = self.session(client) {
            session.account.is_held = false;
        } else if let Some(place) = self.left_undecided.iter().position(|session| session.client == client) {
            let mut session = self.left_undecided.remove(place);
            session.account.is_held = false;
            self.conclude(session);
        }
    }

    /// Ends a newcomer's connection; the application hears nothing of it. Does nothing to those that were admitted.
    pub fn refuse(
        &mut self,
        now: Instant,
        client: ClientHandle,
        detail: Option<&Detail>,
        out: &mut Datagrams,
    ) {
        if !self.is_undecided(client) {
            return;
        }
        if self.session(client).is_some() {
            self.leave(now, client, Some(CloseReason::Kicked), detail.map(Detail::as_str), out);
            self.report(client, DisconnectReason::Kicked, None, None);
        }
        self.left_undecided.retain(|session| session.client != client);
        self.events.retain(|event| event.client() != client);
    }

    /// Whether this is a newcomer that the application has not decided about.
    pub(super) fn is_undecided(&self, client: ClientHandle) -> bool {
        self.live(client).is_some_and(|session| !session.is_admitted())
            || self.left_undecided.iter().any(|session| session.client == client)
    }
}

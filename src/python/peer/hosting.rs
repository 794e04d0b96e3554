//! What a peer does for the game that players host, once a tick.

use crate::python::prelude::*;

use super::events::HostChanged;
use super::hosted::HostedGame;
use crate::rendezvous::member_address;
use crate::session::hosting::{MAX_WORLD_BYTES, News, WorldBytes};
use crate::session::{PeerPart, Standing};

impl Peer {
    /// Does what the hosted game needs, once a tick; returns its events.
    pub(super) fn host_game(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let mut events = Vec::new();
        let Some(game) = &self.hosted else { return Ok(events) };
        while let Some(next) = self.part(|part, _| part.poll_hosted())? {
            match next {
                News::Begin { world } => self.begin_hosting(py, game, world)?,
                News::Changed { host, age } => {
                    let Some(host) = self.player(py, host) else { continue };
                    log(py, Level::Info, || {
                        format!("the peer at {}: {} hosts", self.endpoint.address.0, host.get().__repr__())
                    });
                    let age = age.map(|age| age.as_secs_f64());
                    events.push(Py::new(py, HostChanged { host, age })?.into_any());
                }
            }
        }
        let Standing { serves, end, seat } = self.part(|part, _| part.take_standing())?;
        if let Some(seat) = seat {
            seat.place(&mut lock(&game.seat));
        }
        if !serves {
            game.stop(py)?;
        }
        end.map_or(Ok(()), |end| game.client.get().end_hosted(py, end))?;
        self.seat_players(py, game)?;
        self.save_world(py, PeerPart::is_save_due)?;
        Ok(events)
    }

    fn begin_hosting(&self, py: Python<'_>, game: &HostedGame, world: Option<WorldBytes>) -> PyResult<()> {
        game.stop(py)?;
        let (me, places) = self.part(|part, _| (part.mesh().identity(), part.mesh().roster().places))?;
        let Some((player, joined)) = me else { return Ok(()) };
        let given = Given::new(py, "Peer", Some(game.settings.bind(py).clone()))?;
        let protocol = self.endpoint.protocol.clone_ref(py);
        let at = (&self.endpoint, member_address(player, joined), usize::from(places.max(1)));
        let bytes = world.as_ref().map(|world| world.bytes.as_slice());
        let is_fine = match Server::hosted(py, protocol, given, bytes, at) {
            Ok(server) => {
                *lock(&game.serving) = Some(Py::new(py, server)?);
                true
            }
            Err(error) if error.is_instance_of::<BadWorldError>(py) => {
                log(py, Level::Warning, || format!("the peer at {}: {error}", self.endpoint.address.0));
                false
            }
            Err(error) => return Err(error),
        };
        self.part(|part, now| part.note_begun(now, is_fine))
    }

    /// Saves the world of this peer's server, if that is due: the next hosts get it.
    pub(super) fn save_world(
        &self,
        py: Python<'_>,
        is_due: fn(&mut PeerPart, Instant) -> bool,
    ) -> PyResult<()> {
        let Some(game) = &self.hosted else { return Ok(()) };
        let is_due = self.part(is_due)?;
        let has_ghosts = !self.endpoint.protocol.get().ghosts.is_empty();
        let Some(server) = game.server(py).filter(|_| is_due && has_ghosts) else { return Ok(()) };
        let world = server.get().save(py)?;
        let bytes = world.len();
        let is_kept = self.part(|part, now| part.keep_world(now, world))?;
        if !is_kept && !game.warned.swap(true, Ordering::Relaxed) {
            log(py, Level::Warning, || {
                format!(
                    "the peer at {}: the world takes {bytes} bytes and the maximum is {MAX_WORLD_BYTES}: \
                     the next host starts with an older world, or with an empty world",
                    self.endpoint.address.0
                )
            });
        }
        Ok(())
    }

    /// Sends the players of the game tokens for this peer's server, and ends the connections of the players who left.
    // The lock of a server is taken before that of its peer, never the other way round.
    fn seat_players(&self, py: Python<'_>, game: &HostedGame) -> PyResult<()> {
        let Some(server) = game.server(py) else { return Ok(()) };
        let mut state = server.get().endpoint.state.lock()?;
        let parts = state.carrier.parts().filter(|(session, _)| !session.is_lingering());
        let Some((session, driver)) = parts else { return Ok(()) };
        let unix = driver.unix();
        self.part(|part, _| part.seat_players(unix, session.change()))
    }
}

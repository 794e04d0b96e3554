//! The bindings' access to the core's ghosts, behind the endpoint's lock. Does nothing if the protocol has no
//! ghosts.

use super::*;

use crate::replication::{Classes, GhostName, Mirror, Named, Publisher, PublisherConfig, ServedWorld};
use crate::session::Ghosts;
use crate::session::protocol::ghost_channel;
use crate::transport;

/// The ghosts' half of an endpoint with this core's protocol: a server's publisher, whose visits have numbers by `seed`, or a
/// client's mirror.
pub(in crate::python) fn part(
    classes: Option<&Arc<Classes>>,
    protocol: &transport::Protocol,
    is_server: bool,
    seed: u64,
) -> Ghosts {
    let (Some(classes), Some(channel)) = (classes, ghost_channel(protocol)) else { return Ghosts::None };
    if is_server {
        Ghosts::World(Box::new(ServedWorld::new(classes.clone(), PublisherConfig { channel, seed })))
    } else {
        Ghosts::Mirror(Box::new(Mirror::new(classes.clone())))
    }
}

pub(super) fn world(state: &mut State) -> Option<&mut ServedWorld> {
    state.carrier.session.ghosts().world()
}

pub(super) fn publisher(state: &mut State) -> Option<&mut Publisher> {
    state.carrier.session.ghosts().publisher()
}

pub(super) fn mirror(state: &mut State) -> Option<&mut Mirror> {
    state.carrier.session.mirror()
}

/// Sets a property without words to a checked value.
pub(super) fn set_value(state: &mut State, class: usize, row: u32, property: usize, body: &[u8]) {
    if let Some(publisher) = publisher(state) {
        let _ = publisher.set_cell(class, row, property, body);
    }
}

/// Of the newest tick that arrived, the low bits. Then two ages in ticks, counted back from it: of the state
/// of a ghost that the client owns (None if it doesn't own it), and of the newest state of all ghosts it
/// owns.
pub(in crate::python) fn owned_ages(
    state: &mut State,
    population: &Population,
    ghost: &Bound<'_, Ghost>,
) -> PyResult<Option<(u16, u32, u32)>> {
    let live = population.live(ghost)?;
    let Some(mirror) = mirror(state) else { return Ok(None) };
    let ages = mirror.owned_ages(live.rows.index, live.row);
    Ok(ages.map(|(age, newest)| (mirror.tick() as u16, age, newest)))
}

/// What a number refers to.
pub(in crate::python) enum Found<'py> {
    Here(Bound<'py, Ghost>),
    Gone,
    /// It may still arrive.
    Awaited,
}

/// Returns the number that a client, or the server if there is none, knows a ghost by. None if the client isn't to have
/// it.
pub(in crate::python) fn number_for(
    state: &mut State,
    client: Option<PeerHandle>,
    live: &Live,
) -> Option<u32> {
    let Some(client) = client else {
        return mirror(state).map(|mirror| mirror.name(live.row).number());
    };
    world(state)?.name(client, live.rows.index, live.row).map(GhostName::number)
}

impl Population {
    /// Finds what a client, or the server if there is none, calls by a number.
    pub(in crate::python) fn named_by<'py>(
        &self,
        py: Python<'py>,
        shared: &Shared<State>,
        client: Option<PeerHandle>,
        class: usize,
        number: u32,
    ) -> PyResult<Found<'py>> {
        let (rows, name) = (&self.classes[class], GhostName::from_number(number));
        let named = {
            let mut state = shared.lock()?;
            match client {
                Some(client) => {
                    let row = publisher(&mut state).and_then(|it| it.named(client, class, name));
                    row.map_or(Some(Named::Gone), |id| Some(Named::Here { id }))
                }
                None => mirror(&mut state).map(|mirror| mirror.named(class, name)),
            }
        };
        Ok(match named {
            Some(Named::Here { id }) if client.is_some() || rows.cells.is_alive(id) => {
                Found::Here(rows.object(py, id)?)
            }
            Some(Named::Gone) => Found::Gone,
            _ => Found::Awaited,
        })
    }
}

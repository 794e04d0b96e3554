//! The bindings' access to the core's ghosts, behind the endpoint's lock. Does nothing if the protocol has no
//! ghosts.

use pyo3::prelude::*;

use super::ghost::Ghost;
use super::population::Population;
use crate::endpoint::PeerHandle;
use crate::python::protocol::Protocol;
use crate::python::state::State;
use crate::replication::{
    Column, Costs, GhostName, Interests, Mirror, Publisher, PublisherConfig, Relevancy, RelevancyError, Wrong,
};
use crate::session::Ghosts;

/// The ghosts' half that an endpoint has: a server's publisher or a client's mirror.
pub(in crate::python) fn part(protocol: &Protocol, is_server: bool) -> Ghosts {
    let (Some(classes), Some(channel)) = (&protocol.ghost_classes, protocol.core.ghost_channel()) else {
        return Ghosts::None;
    };
    if is_server {
        Ghosts::Publisher(Box::new(Publisher::new(classes.clone(), PublisherConfig { channel })))
    } else {
        Ghosts::Mirror(Box::new(Mirror::new(classes.clone())))
    }
}

/// The relevancy of a server's world.
pub(in crate::python) fn interests(protocol: &Protocol, is_server: bool) -> Option<Interests> {
    protocol.ghost_classes.as_ref().filter(|_| is_server).map(|classes| Interests::new(classes))
}

pub(super) fn publisher(state: &mut State) -> Option<&mut Publisher> {
    state.carrier.session.ghosts().publisher()
}

pub(super) fn mirror(state: &mut State) -> Option<&mut Mirror> {
    state.carrier.session.mirror()
}

pub(super) fn spawn(state: &mut State, class: usize, owner: Option<PeerHandle>) -> Option<u32> {
    let row = publisher(state)?.spawn(class, owner).ok()?;
    if let Some(interests) = &mut state.interests {
        interests.forget(class, row);
    }
    Some(row)
}

pub(super) fn despawn(state: &mut State, class: usize, row: u32) -> bool {
    publisher(state).is_some_and(|publisher| publisher.despawn(class, row))
}

/// Sets a property without words to a checked value.
pub(super) fn set_value(state: &mut State, class: usize, row: u32, property: usize, body: &[u8]) {
    if let Some(publisher) = publisher(state) {
        let _ = publisher.set_cell(class, row, property, body);
    }
}

pub(super) fn set_owner(state: &mut State, class: usize, row: u32, owner: Option<PeerHandle>) {
    if let Some(publisher) = publisher(state) {
        publisher.set_owner(class, row, owner);
    }
}

pub(super) fn owner(state: &mut State, class: usize, row: u32) -> Option<PeerHandle> {
    publisher(state)?.owner(class, row)
}

/// The class and row of each ghost whose owner left since the last call, if it has no new owner.
pub(super) fn take_orphans(state: &mut State) -> Vec<(usize, u32)> {
    let Some(publisher) = publisher(state) else { return Vec::new() };
    let orphans: Vec<_> = publisher.take_orphans().collect();
    orphans.into_iter().filter(|(class, row)| publisher.owner(*class, *row).is_none()).collect()
}

pub(super) fn set_relevancy(state: &mut State, class: usize, rule: Relevancy) -> Result<(), RelevancyError> {
    let Some(classes) = publisher(state).map(|publisher| publisher.classes().clone()) else { return Ok(()) };
    state.interests.as_mut().map_or(Ok(()), |interests| interests.set_rule(&classes, class, rule))
}

/// Whether the rule of a class satisfies `is_it`.
pub(super) fn has_rule(state: &State, class: usize, is_it: impl FnOnce(Relevancy) -> bool) -> bool {
    state.interests.as_ref().is_some_and(|interests| is_it(interests.rule(class)))
}

pub(super) fn look_from(state: &mut State, client: PeerHandle, class: usize, places: Vec<[f64; 3]>) {
    if let Some(interests) = &mut state.interests {
        interests.set_viewpoints(client, class, places);
    }
}

pub(super) fn show(state: &mut State, client: PeerHandle, class: usize, mask: Vec<u8>) {
    if let Some(interests) = &mut state.interests {
        interests.set_mask(client, class, mask);
    }
}

/// Says of which rows a client is sent what only some are.
pub(super) fn set_chosen(state: &mut State, client: PeerHandle, class: usize, mask: Vec<u8>) {
    if let Some(interests) = &mut state.interests {
        interests.set_chosen(client, class, mask);
    }
}

/// The network id by which a client knows a row.
pub(super) fn name(state: &mut State, client: PeerHandle, class: usize, row: u32) -> Option<GhostName> {
    // An endpoint with interests has a publisher.
    let Ghosts::Publisher(publisher) = state.carrier.session.ghosts() else { return None };
    state.interests.as_mut()?.name(publisher, client, class, row)
}

pub(super) fn set_weights(state: &mut State, class: usize, weights: &[f32]) {
    if let Some(publisher) = publisher(state) {
        publisher.set_weights(class, weights);
    }
}

pub(super) fn set_must_know(state: &mut State, class: usize, rows: Vec<u8>) {
    if let Some(publisher) = publisher(state) {
        publisher.set_must_know(class, rows);
    }
}

pub(super) fn costs(state: &mut State) -> Costs {
    publisher(state).map(|publisher| publisher.costs()).unwrap_or_default()
}

pub(super) fn client_bits(state: &mut State, client: PeerHandle) -> u64 {
    publisher(state).map_or(0, |publisher| publisher.peer_bits(client))
}

/// The protocol's ticks a second, if it has a tick rate.
pub(super) fn tick_rate(state: &mut State) -> Option<u32> {
    state.carrier.session.host().protocol().time().map(|time| time.rate)
}

/// Sets how many ticks of the world are remembered.
pub(super) fn remember(state: &mut State, ticks: u32) {
    if let Some(publisher) = publisher(state) {
        publisher.remember(ticks);
    }
}

pub(super) fn past_bytes(state: &mut State) -> usize {
    publisher(state).map_or(0, |publisher| publisher.past_bytes())
}

pub(super) fn server_tick(state: &mut State) -> u32 {
    publisher(state).map_or(0, |publisher| publisher.tick())
}

/// The oldest and newest remembered tick.
pub(super) fn past_ticks(state: &mut State) -> Option<(u32, u32)> {
    let publisher = publisher(state)?;
    Some((publisher.oldest_past()?, publisher.tick()))
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

/// Begins the world's next tick with these columns.
pub(in crate::python) fn begin_tick(
    state: &mut State,
    columns: &[Vec<Column<'_>>],
    wrong: &mut Vec<(usize, Wrong)>,
) {
    if let Some(publisher) = publisher(state) {
        publisher.begin_tick(columns, wrong);
        // An endpoint with interests has a publisher.
        let Ghosts::Publisher(publisher) = state.carrier.session.ghosts() else { return };
        if let Some(interests) = &mut state.interests {
            interests.update(publisher);
        }
    }
}

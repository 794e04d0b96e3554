//! What a server's world was when a client saw it.

use super::*;

impl World {
    /// A view of an earlier tick, with its `Past` object.
    pub(super) fn past<'py>(
        slf: &Bound<'py, Self>,
        client: Option<&Bound<'py, ClientHandle>>,
        claim: Option<f64>,
    ) -> PyResult<Object<'py>> {
        let (py, world) = (slf.py(), slf.get());
        if let Some(seen) = claim.filter(|seen| !seen.is_finite()) {
            let name = if client.is_some() { "seen" } else { "tick" };
            refuse!(PyValueError, "{name} must be a tick of the server, not {seen}");
        }
        let peer = client.map_or(Ok(None), |client| world.peer_of("client", client))?;
        let Some((oldest, newest)) = world.publish(|it| Some((it.oldest_past()?, it.tick())))? else {
            return Err(GhostError::new_err(
                "the world must have a record to be rewound: call server.world.remember(1.0) when it is \
                 made, and rewind after a tick was sent",
            ));
        };
        let claimed = claim.unwrap_or(newest.into());
        let tick = claimed.clamp(oldest.into(), newest.into());
        let view = Bound::new(py, WorldView::of_past(py, &world.population)?)?;
        world.with(|state| view.get().rewind(state, tick, peer))?;
        view.get().show_alive(py);
        let clamped = match () {
            () if claim.is_none() => "unsaid",
            () if claimed > tick => "future",
            () if claimed < tick => "too old",
            () => "",
        };
        let past = py.import("tickwire._past")?.getattr("Past")?;
        past.call1((slf, view, client, claimed, newest, clamped))
    }
}

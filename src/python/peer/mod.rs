//! A peer of a game without a server, for Python: it hosts or joins, and is connected to all other players.

mod events;
mod hosted;
mod hosting;
mod open;

use crate::python::inbox::EVENTS;
use crate::python::prelude::*;

pub(super) use self::events::numbers_of;
pub(crate) use self::events::{
    GameEnded, HostChanged, MasterChanged, Player, PlayerJoined, PlayerLeft, PlayerPath, Started,
};
use self::hosted::{HostedGame, HostedSettings};
use self::open::{open, opening};
use super::kind::PEER;
use super::rendezvous::{self, Rendezvous};
use crate::driver::files;
use crate::mesh::{Happening, LeaveReason, MAX_PLAYERS, Phase, Start};
use crate::rendezvous::{PathKind, member_of};
use crate::session::{Carried, Opening, PeerPart};
use crate::transport::chunks::ChunkEvent;

/// The longest countdown, in seconds.
const MAX_COUNTDOWN: f64 = 60.0;

#[pyclass(frozen, generic, module = "tickwire.peers")]
pub(crate) struct Peer {
    /// Tells the peers of a process apart.
    id: u64,
    pub(super) endpoint: Endpoint,
    players: Mutex<Known>,
    /// The game that players host, if the protocol is of such a game.
    hosted: Option<Box<HostedGame>>,
}

/// The players that events have told the game of.
#[derive(Default)]
struct Known {
    by_number: HashMap<u8, Py<Player>>,
    by_handle: HashMap<PeerHandle, Py<Player>>,
}

#[pymethods]
impl Peer {
    #[staticmethod]
    fn host<'py>(
        py: Python<'py>,
        protocol: Py<Protocol>,
        name: &str,
        #[within(1, MAX_PLAYERS as u8)] players: u8,
        key: Option<&Object<'py>>,
        ghosts: Option<&Object<'py>>,
        settings: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let hosted = hosted::settings_of(py, settings.as_ref(), ghosts, protocol.get())?;
        let given = Given::new(py, "Peer.host", settings)?;
        let rendezvous = given.settings("rendezvous")?;
        let opening = opening(protocol.get(), (name, players, None), key, rendezvous.get())?;
        let peer = Self::open(py, protocol, given, opening, rendezvous.get(), hosted)?;
        peer.host_game(py)?;
        Ok(peer)
    }

    #[staticmethod]
    fn join<'py>(
        py: Python<'py>,
        address: &Object<'py>,
        protocol: Py<Protocol>,
        name: &str,
        key: Option<&Object<'py>>,
        ghosts: Option<&Object<'py>>,
        settings: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let hosted = hosted::settings_of(py, settings.as_ref(), ghosts, protocol.get())?;
        let given = Given::new(py, "Peer.join", settings)?;
        let meeting = given.settings::<Rendezvous>("rendezvous")?;
        let meeting = meeting.get();
        let address = match meeting.server() {
            Some(_) => rendezvous::code_address(address, "address")?,
            None => address.extract::<Address>()?.0,
        };
        if address.port() == 0 || address.ip().is_unspecified() {
            return Err(value_error(format!(
                "address must be a player's address with its port, not {address}"
            )));
        }
        let opening = opening(protocol.get(), (name, 1, Some(address)), key, meeting)?;
        Self::open(py, protocol, given, opening, meeting, hosted)
    }

    properties! {
        is_master: PyResult<bool> =
            self.part(|part, _| part.mesh().is_master() && part.mesh().master() == part.mesh().me());
        time: PyResult<f64> = self.part(|_, now| now.as_secs_f64());
        code: PyResult<Option<String>> = rendezvous::code(&self.endpoint.state);
        code_error: PyResult<Option<String>> = rendezvous::code_error(&self.endpoint.state);
    }

    #[getter]
    fn players(&self, py: Python<'_>) -> Vec<Py<Player>> {
        let known = lock(&self.players);
        let mut players: Vec<_> = known.by_number.values().map(|player| player.clone_ref(py)).collect();
        players.sort_by_key(|player| player.get().number);
        players
    }

    #[getter]
    fn me(&self, py: Python<'_>) -> PyResult<Option<Py<Player>>> {
        let me = self.part(|part, _| part.mesh().me())?;
        Ok(me.and_then(|me| self.player(py, me)))
    }

    #[getter]
    fn master(&self, py: Python<'_>) -> PyResult<Option<Py<Player>>> {
        let master = self.part(|part, _| part.mesh().master())?;
        Ok(master.and_then(|master| self.player(py, master)))
    }

    #[getter]
    fn server(&self, py: Python<'_>) -> PyResult<Option<Py<Server>>> {
        let Some(game) = &self.hosted else { return Ok(None) };
        let is_host = !self.closed()? && self.part(|part, now| part.is_host(now))?;
        Ok(game.server(py).filter(|_| is_host))
    }

    #[getter]
    fn client(&self, py: Python<'_>) -> PyResult<Py<Client>> {
        let game = self.hosted.as_ref().ok_or_else(|| {
            value_error("protocol must have ghosts, calls, inputs or a tick_rate for peers to have clients")
        })?;
        Ok(game.client.clone_ref(py))
    }

    #[getter]
    fn ended(&self) -> PyResult<Option<LeaveReason>> {
        match self.part(|part, _| part.mesh().phase())? {
            Phase::Ended(reason) => Ok(Some(reason)),
            _ => Ok(None),
        }
    }

    fn start(
        &self,
        #[seconds(MAX_COUNTDOWN)] countdown: Duration,
        #[within(0, u64::MAX)] seed: Option<u64>,
        #[truth] late_joining: bool,
    ) -> PyResult<bool> {
        let countdown = countdown.as_micros() as u32;
        let seed = seed.unwrap_or_else(|| random(&mut *entropy(self.endpoint.virtual_network())));
        self.part(|part, now| {
            part.mesh_mut().start(now, Start { seed, countdown, players: 0, late: late_joining })
        })
    }

    fn kick(&self, player: &Bound<'_, Player>) -> PyResult<bool> {
        let player = self.check(player.get())?;
        self.part(|part, now| {
            let is_here = part.mesh().roster().has((player.number, player.joined));
            is_here && part.mesh_mut().kick(now, player.number)
        })
    }

    fn path(&self, py: Python<'_>, player: &Bound<'_, Player>) -> PyResult<Option<PlayerPath>> {
        let player = self.check(player.get())?;
        let who = (player.number, player.joined);
        let found = {
            let mut state = self.endpoint.state.lock()?;
            let (session, driver) = state.carrier.parts().ok_or_else(|| self.endpoint.closed_error())?;
            let address = session.peers().and_then(|part| part.address_of(who));
            address.map(|address| path_of(driver, address))
        };
        Ok(found.map(|(kind, through)| PlayerPath {
            kind: kind.name(),
            through: through.and_then(|number| self.player(py, number)),
        }))
    }

    fn broadcast(
        &self,
        message: &Object<'_>,
        channel: Option<&Object<'_>>,
        key: Option<&Object<'_>>,
        tag: Option<&Object<'_>>,
        #[truth] notify: bool,
    ) -> PyResult<Vec<Py<Player>>> {
        let py = message.py();
        let outgoing = self.endpoint.encode(Sending { message, channel, key, tag, notify })?;
        let (channel, messages) = outgoing.messages();
        let mut others: Vec<(PeerHandle, Py<Player>)> = {
            let known = lock(&self.players);
            known.by_handle.iter().map(|(handle, player)| (*handle, player.clone_ref(py))).collect()
        };
        others.sort_by_key(|(_, player)| player.get().number);
        let left_out = self.endpoint.with(|core, driver| {
            let handles = others.iter().map(|(handle, _)| *handle);
            let mut left_out = core.send_all(driver.now(), handles, channel, messages)?;
            left_out.retain(|handle| core.is_connected(*handle));
            Ok(left_out)
        })?;
        let left_out =
            left_out.map_err(|error| self.endpoint.send_error(&class_name(message), channel, error))?;
        Ok(others.into_iter().filter_map(|(handle, it)| left_out.contains(&handle).then_some(it)).collect())
    }

    fn stats(&self, player: &Bound<'_, Player>) -> PyResult<ConnectionStats> {
        let handle = self.handle_of(self.check(player.get())?)?;
        self.endpoint.stats(handle, None)
    }

    fn __repr__(&self) -> String {
        let (Ok(phase), Ok(closed)) = (self.part(|part, _| part.mesh().phase()), self.endpoint.closed())
        else {
            return "<Peer (unusable after fork)>".into();
        };
        let count = lock(&self.players).by_number.len();
        let state = match phase {
            _ if closed => "closed".into(),
            Phase::Asking { .. } | Phase::Joining => "joining".into(),
            Phase::Member => format!("{count} players"),
            Phase::Ended(reason) => format!("ended: {reason:?}"),
        };
        format!("<Peer at {}, {state}>", self.endpoint.address.0)
    }

    traverses!(self.players, self.hosted, self.endpoint);

    endpoint!(player: Player);
}

holds!(Known: by_number, by_handle);

impl Facade for Peer {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn make_objects(&self, py: Python<'_>, pending: &mut Pending, ends: Vec<Event>) -> PyResult<()> {
        for event in &ends {
            let Event::Disconnected { peer, violation: Some(how), .. } = event else {
                continue;
            };
            let who = lock(&self.players).by_handle.get(peer).map(|player| player.get().__repr__());
            if let Some(who) = who {
                let here = self.endpoint.address.0;
                log(py, Level::Warning, || {
                    format!(
                        "the peer at {here}: the connection to {who} was ended because the peer broke the \
                         rules: {how}"
                    )
                });
            }
        }
        for happening in core::mem::take(&mut pending.tick.players) {
            let event = self.make_event(py, happening)?;
            pending.lists[EVENTS].extend(event);
        }
        pending.lists[EVENTS].append(&mut self.host_game(py)?);
        self.keep_states(&mut pending.tick.chunks)?;
        let player_of =
            |handle| lock(&self.players).by_handle.get(&handle).map(|player| player.clone_ref(py));
        pending.make_received(py, &self.endpoint, |handle| Some(Some(player_of(handle)?.into_any())))
    }

    fn prepare_close(&self, py: Python<'_>) -> PyResult<()> {
        if self.endpoint.closed()? { Ok(()) } else { self.save_world(py, PeerPart::is_host) }
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let closed = self.hosted.as_ref().map_or(Ok(()), |game| game.close(py));
        self.endpoint.end_calls(py).and(closed)
    }

    fn has_own_news(&self) -> PyResult<bool> {
        self.part(|part, _| part.has_news())
    }
}

impl Peer {
    fn open<'py>(
        py: Python<'py>,
        protocol: Py<Protocol>,
        given: Given<'py>,
        opening: Opening<'_>,
        rendezvous: &Rendezvous,
        hosted: Option<HostedSettings<'py>>,
    ) -> PyResult<Self> {
        static PEERS: AtomicU64 = AtomicU64::new(0);
        let settings = Settings::new(given, &PEER, protocol.get(), Vec::new())?;
        let opening = Opening { timeout: settings.tuning.get().timeout, ..opening };
        let endpoint = open(py, protocol, &opening, rendezvous, settings)?;
        let hosted = hosted.map(|settings| HostedGame::new(py, &endpoint, settings)).transpose()?;
        Ok(Peer {
            id: PEERS.fetch_add(1, Ordering::Relaxed),
            endpoint,
            players: Mutex::default(),
            hosted: hosted.map(Box::new),
        })
    }

    /// Runs `work` on the mesh part at the current time.
    pub(super) fn part<T>(&self, work: impl FnOnce(&mut PeerPart, Instant) -> T) -> PyResult<T> {
        let mut state = self.endpoint.state.lock()?;
        let now = state.carrier.now();
        let part = state.carrier.session.peers().ok_or_else(|| self.endpoint.closed_error())?;
        Ok(work(part, now))
    }

    /// Sets the core of a game that all players run. Returns the former one, to be dropped without a lock.
    ///
    /// # Errors
    /// A player hosts the game.
    pub(super) fn set_core(&self, core: Box<dyn Carried>) -> PyResult<Option<Box<dyn Carried>>> {
        if self.hosted.is_some() {
            return Err(value_error(
                "peer must have a protocol without ghosts, calls, inputs and tick_rate for this game, \
                 because with them a player hosts the game",
            ));
        }
        self.part(|part, now| part.set_core(now, Some(core)))
    }

    /// The player with this number, if the game knows it.
    pub(super) fn player(&self, py: Python<'_>, number: u8) -> Option<Py<Player>> {
        lock(&self.players).by_number.get(&number).map(|player| player.clone_ref(py))
    }

    /// The core's handle of a player: see `endpoint!()`.
    fn peer(&self, player: &Bound<'_, Player>) -> PyResult<PeerHandle> {
        self.handle_of(self.check(player.get())?)
    }

    /// Checks that a player belongs to this peer's game.
    fn check<'a>(&self, player: &'a Player) -> PyResult<&'a Player> {
        if player.peer == self.id {
            return Ok(player);
        }
        Err(value_error(format!(
            "player must belong to this peer, and {} belongs to another peer",
            player.__repr__()
        )))
    }

    /// The connection to a player; a handle without a connection if the player is gone.
    fn handle_of(&self, player: &Player) -> PyResult<PeerHandle> {
        let (is_me, handle) = self.part(|part, _| {
            let is_here = part.mesh().roster().has((player.number, player.joined));
            let handle = part.handle_of(player.number).filter(|_| is_here);
            (is_here && part.mesh().me() == Some(player.number), handle)
        })?;
        if is_me {
            return Err(value_error("player must be another player, not the peer's own"));
        }
        Ok(handle.unwrap_or(PeerHandle { slot: u32::MAX, generation: u32::MAX }))
    }

    fn make_event(&self, py: Python<'_>, happening: Happening) -> PyResult<Option<Py<PyAny>>> {
        let say = |line: String| {
            log(py, Level::Info, || format!("the peer at {}: {line}", self.endpoint.address.0));
        };
        Ok(match happening {
            Happening::Joined { player: number, joined } => {
                let (handle, name, address) = self.part(|part, _| {
                    let member = part.mesh().roster().member(number).filter(|member| member.joined == joined);
                    let (name, address) = member.map_or((String::new(), None), |member| {
                        (member.name.clone(), member.addresses.first().copied())
                    });
                    let is_me = part.mesh().me() == Some(number);
                    let handle = part.handle_of(number).filter(|_| !is_me);
                    (handle, name, address.filter(|_| !is_me))
                })?;
                let data = ObjectCell::default();
                let address = address.map(Address);
                let player = Player { peer: self.id, number, joined, name, address, data };
                let player = Py::new(py, player)?;
                say(format!("{} joined", player.get().__repr__()));
                let mut known = lock(&self.players);
                let before = known.by_number.insert(number, player.clone_ref(py));
                let its = handle.map(|handle| known.by_handle.insert(handle, player.clone_ref(py)));
                drop(known);
                drop((before, its));
                Some(Py::new(py, PlayerJoined { player })?.into_any())
            }
            Happening::Left { player: number, joined, reason } => {
                let mut known = lock(&self.players);
                let is_it =
                    |player: &Py<Player>| (player.get().number, player.get().joined) == (number, joined);
                let player =
                    known.by_number.get(&number).filter(|player| is_it(player)).map(|it| it.clone_ref(py));
                let left = known.by_number.extract_if(|_, player| is_it(player)).map(|(_, player)| player);
                let mut left: Vec<_> = left.collect();
                left.extend(known.by_handle.extract_if(|_, player| is_it(player)).map(|(_, player)| player));
                drop(known);
                drop(left);
                let Some(player) = player else { return Ok(None) };
                say(format!("{} left: {reason:?}", player.get().__repr__()));
                Some(Py::new(py, PlayerLeft { player, reason })?.into_any())
            }
            Happening::Master { player } => {
                let Some(player) = self.player(py, player) else { return Ok(None) };
                say(format!("{} is the master", player.get().__repr__()));
                Some(Py::new(py, MasterChanged { player })?.into_any())
            }
            Happening::Starts { seed, players } => {
                let at = self.part(|part, now| part.mesh().start_at().unwrap_or(now))?.as_secs_f64();
                Some(Py::new(py, Started { seed, at, players })?.into_any())
            }
            Happening::Ended { reason } => {
                say(format!("the game is over for it: {reason:?}"));
                Some(Py::new(py, GameEnded { reason })?.into_any())
            }
        })
    }
}

impl Peer {
    /// Takes worlds out of what came.
    pub(super) fn keep_states(&self, chunks: &mut Vec<(PeerHandle, ChunkEvent)>) -> PyResult<()> {
        let unread = self.part(|part, _| part.take_lockstep_worlds(chunks))?;
        unread.iter().for_each(files::discard);
        Ok(())
    }

    /// The next world that came, and from whom. One in a file that can't be read is left out.
    pub(in crate::python) fn take_state(&self) -> Option<(u8, Vec<u8>)> {
        loop {
            let (player, stored) = self.part(|part, _| part.poll_lockstep_world()).ok()??;
            if let Some(bytes) = files::take(stored) {
                return Some((player, bytes));
            }
        }
    }
}

/// How the peer at this address is reached, and the number of the player who carries.
fn path_of(driver: &mut Driver, address: SocketAddr) -> (PathKind, Option<u8>) {
    if let Some((player, joined)) = member_of(address) {
        let through = driver.member_relay().and_then(|relay| relay.through(player, joined));
        return (PathKind::Relayed, through);
    }
    let found = driver.rendezvous().and_then(|client| client.kind_of(address));
    (found.unwrap_or(PathKind::Direct), None)
}

//! Inputs and the server's time for Python: a client's clock, a server's inputs.

use core::ops::Range;

use crate::python::prelude::*;
use pyo3::types::PyRange;

use super::arrays::received_rows;
use super::ghosts::owned_ages;
use crate::driver::Carrier;
use crate::session::Timing;
use crate::session::timing::{ServerTiming, TakenInput};
use crate::store::sequence::nearest;
use crate::timeline::packet::MAX_COPIES;
use crate::timeline::{InputCounters, InputState, LeadConfig, MissingPolicy, Player, PlayerConfig};
use crate::wire::Encoded;

/// The maximum of ticks by which inputs may be delayed, and for which a missing one is replaced.
const MAX_TICKS: u32 = 64;

/// The maximum of seconds that a client may run ahead.
const MAX_LEAD: f64 = 10.0;

fn no_time() -> PyErr {
    PyValueError::new_err(
        "protocol must have a tick_rate for that: give Protocol(..., tick_rate=60), on both sides",
    )
}

fn no_inputs() -> PyErr {
    PyValueError::new_err(
        "protocol must have inputs for that: give Protocol(..., inputs=Move, tick_rate=60), on both sides",
    )
}

/// The endpoint's timing, and the current time.
fn timing<T>(
    endpoint: &Endpoint,
    work: impl FnOnce(&mut Timing, u32, Instant) -> PyResult<T>,
) -> PyResult<T> {
    let mut state = endpoint.state.lock()?;
    if state.is_closed() {
        return Err(endpoint.closed_error());
    }
    let now = Carrier::now(&state.carrier);
    let tick = state.carrier.session.tick();
    work(state.carrier.session.timing(), tick, now)
}

fn player<T>(client: &Client, work: impl FnOnce(&mut Player, Instant) -> T) -> PyResult<T> {
    timing(&client.endpoint, |timing, _, now| {
        let player = timing.player().ok_or_else(no_time)?;
        player.advance(now);
        Ok(work(player, now))
    })
}

/// Sends an input, and gives its ticks and what each of them carries: [`Client::send_input`].
fn stamp(client: &Client, input: &Object<'_>) -> PyResult<(Range<u32>, Vec<Encoded>)> {
    let protocol = client.endpoint.protocol.get();
    let class = protocol.input_class.as_ref().ok_or_else(no_inputs)?;
    if !input.get_type().is(class.class()) {
        let (class, given) = (class.name(), class_name(input));
        refuse!(PyTypeError, "input must be of the protocol's inputs, {class}, not {given}");
    }
    let encoded = class.encode(input)?;
    timing(&client.endpoint, |timing, _, now| {
        // Without a server, an input is for no tick, and its presses must not wait for a later connection.
        let Some(player) = timing.connected_player() else { return Ok((0..0, Vec::new())) };
        let ticks = player.stamp(now, &encoded);
        let carried = player.newest(ticks.len()).cloned().collect();
        Ok((ticks, carried))
    })
}

#[pymethods]
impl Client {
    #[getter]
    fn latency(&self, py: Python<'_>) -> PyResult<Latency> {
        let view = self.world.get().view_delay(py);
        let mut state = self.endpoint.state.lock()?;
        let line = state.host().connection(self.server()).map_or(0.0, |it| it.stats().rtt / 1000.0);
        let player = state.carrier.session.timing().player();
        let lead = player.and_then(|player| Some(player.lead().ticks()? / player.clock().rate()));
        Ok(Latency::new(line, lead.unwrap_or(0.0), view))
    }

    #[getter]
    fn clock(slf: Py<Self>) -> Clock {
        Clock(slf)
    }

    fn send_input<'py>(&self, input: &Object<'py>) -> PyResult<Bound<'py, PyRange>> {
        let (ticks, _) = stamp(self, input)?;
        PyRange::new(input.py(), ticks.start as isize, ticks.end as isize)
    }

    /// As ``send_input``, and what the server reads for each of the ticks: inputs rounded to their fields, and only the
    /// first with presses.
    fn _send_input<'py>(&self, input: &Object<'py>) -> PyResult<(Bound<'py, PyRange>, Vec<Object<'py>>)> {
        let py = input.py();
        let (ticks, carried) = stamp(self, input)?;
        let class = self.endpoint.protocol.get().input_class.as_ref().ok_or_else(no_inputs)?;
        let schema = class.schema().ok_or_else(no_inputs)?;
        let read = |encoded: &Encoded| {
            let mut body = Vec::new();
            let read = schema.get().fields.core.read(&mut BitReader::new(encoded.bytes()), &mut body);
            read.map_err(value_error)?;
            class.decode(py, &body, None, None)
        };
        let inputs = carried.iter().map(read).collect::<PyResult<_>>()?;
        Ok((PyRange::new(py, ticks.start as isize, ticks.end as isize)?, inputs))
    }

    /// The predicted tick to draw now, with its fraction; None: the newest, as after the end of the connection.
    fn _drawn_tick(&self) -> PyResult<Option<f64>> {
        if self.endpoint.closed()? { Ok(None) } else { player(self, |player, now| player.drawn_tick(now)) }
    }

    fn set_seen(&self, #[number] tick: f64) -> PyResult<()> {
        if !(0.0..4_294_967_296.0).contains(&tick) {
            refuse!(PyValueError, "tick must be 0 to 4294967295, not {}", short(tick));
        }
        player(self, |player, _| player.see(tick))
    }

    fn set_inputs(
        &self,
        #[within(0, MAX_TICKS)] delay: u32,
        #[span(0.0, MAX_LEAD)] min_lead: f64,
        #[span(0.0, MAX_LEAD)] max_lead: f64,
        #[within(1, MAX_COPIES as u32)] redundancy: u32,
    ) -> PyResult<()> {
        if max_lead < min_lead {
            refuse!(PyValueError, "max_lead must be min_lead ({min_lead}) or more, not {max_lead}");
        }
        player(self, |player, _| {
            let rate = player.clock().rate();
            let lead = LeadConfig { min: min_lead * rate, max: max_lead * rate, redundancy };
            player.configure(PlayerConfig { delay, lead });
        })
    }

    fn tick_of(&self, ghost: &Bound<'_, Ghost>) -> PyResult<Option<u32>> {
        let mut state = self.endpoint.state.lock()?;
        let ages = owned_ages(&mut state, &self.endpoint.population, ghost)?;
        let player = state.carrier.session.timing().player().ok_or_else(no_time)?;
        let (Some((low, age, newest_age)), Some((tick, changed))) = (ages, player.owned_changes()) else {
            return Ok(None);
        };
        let Some(arrived) = nearest(low, tick) else { return Ok(None) };
        let (of, newest) = (arrived.saturating_sub(age), arrived.saturating_sub(newest_age));
        // Nothing that the client owns has changed since the newest state arrived.
        Ok(Some(if newest >= changed { tick.max(of) } else { of }))
    }
}

#[pyclass(frozen, get_all, module = "tickwire.predict")]
pub(crate) struct Latency {
    line: f64,
    lead: f64,
    view: f64,
    total: f64,
}

impl Latency {
    pub(super) fn new(line: f64, lead: f64, view: f64) -> Self {
        Latency { line, lead, view, total: lead + line / 2.0 + view }
    }
}

#[pymethods]
impl Latency {
    fn __repr__(&self) -> String {
        let [line, lead, view, total] =
            [self.line, self.lead, self.view, self.total].map(|seconds| (seconds * 1000.0).round());
        format!("<Latency of {total} ms: lead {lead}, half of the line's {line}, view {view}>")
    }
}

#[pyclass(frozen, module = "tickwire.predict")]
pub(crate) struct Clock(pub(super) Py<Client>);

#[pymethods]
impl Clock {
    properties! {
        tick: PyResult<Option<f64>> = player(self.0.get(), |player, now| player.clock().tick(now));
        input_tick: PyResult<Option<u32>> = player(self.0.get(), |player, now| player.input_tick(now));
        error: PyResult<Option<f64>> = player(self.0.get(), |player, now| player.clock().error(now));
        settled: PyResult<bool> = player(self.0.get(), |player, now| player.clock().is_settled(now));
        rate: PyResult<f64> = player(self.0.get(), |player, _| player.clock().rate());
        speed: PyResult<f64> = player(self.0.get(), |player, _| player.clock().speed());
        drift: PyResult<f64> = player(self.0.get(), |player, _| player.clock().drift());
        lead: PyResult<Option<f64>> = player(self.0.get(), |player, _| player.lead().ticks());
        delay: PyResult<u32> = player(self.0.get(), |player, _| player.config().delay);
        server_tick: PyResult<Option<u32>> = player(self.0.get(), |player, _| player.server_tick());
        acked: PyResult<Option<u32>> = player(self.0.get(), |player, _| player.acked());
        restarts: PyResult<u64> = player(self.0.get(), |player, _| player.clock().restarts());
    }

    fn __repr__(&self) -> PyResult<String> {
        player(self.0.get(), |player, now| match player.clock().tick(now) {
            Some(tick) => format!("<Clock at tick {tick:.2}>"),
            None => "<Clock that knows nothing yet>".into(),
        })
    }
}

columns_class! {
    InputColumns of InputTable {
        slot: u32,
        client: u64,
        here: bool,
        present: bool,
        seen_tick: u32,
        seen_fraction: u8,
    }
}

#[pyclass(frozen, module = "tickwire.predict")]
pub(crate) struct InputStatus {
    state: Option<&'static str>,
    early: Option<f64>,
    counters: InputCounters,
}

#[pymethods]
impl InputStatus {
    properties! {
        state: Option<&'static str> = self.state;
        early: Option<f64> = self.early;
        here, missing, repeated, late, duplicates, far_ahead, far_behind, skipped: u64 of
            self.counters;
    }

    fn __repr__(&self) -> String {
        let InputCounters { here, missing, late, .. } = &self.counters;
        format!("<InputStatus: {here} here, {missing} missing, {late} late>")
    }
}

#[pyclass(frozen, module = "tickwire.predict")]
pub(crate) struct Inputs(pub(super) Py<Server>);

impl Inputs {
    fn asked<T>(&self, work: impl FnOnce(&mut ServerTiming) -> PyResult<T>) -> PyResult<T> {
        timing(&self.0.get().endpoint, |timing, _, _| work(timing.inputs().ok_or_else(no_time)?))
    }

    /// Peers with their inputs, if there are any.
    fn taken(&self) -> PyResult<Vec<(PeerHandle, Option<Vec<u8>>)>> {
        self.asked(|timing| {
            let body = |taken: &TakenInput| timing.body(taken).map(<[u8]>::to_vec);
            Ok(timing.taken().iter().map(|taken| (taken.peer, body(taken))).collect())
        })
    }

    fn protocol(&self) -> &Protocol {
        self.0.get().endpoint.protocol.get()
    }
}

#[pymethods]
impl Server {
    #[getter]
    fn inputs(slf: Py<Self>) -> Inputs {
        Inputs(slf)
    }
}

#[pymethods]
impl Inputs {
    #[getter]
    fn tick(&self) -> PyResult<u32> {
        timing(&self.0.get().endpoint, |timing, tick, _| {
            timing.inputs().ok_or_else(no_time)?;
            Ok(tick + 1)
        })
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let class = self.protocol().input_class.as_ref().ok_or_else(no_inputs)?;
        let pairs = PyList::empty(py);
        for (peer, body) in self.taken()? {
            let Some(client) = self.0.get().handle_of(py, peer) else { continue };
            let input = body.map(|body| class.decode(py, &body, None, None)).transpose()?;
            pairs.append((client, input))?;
        }
        pairs.try_iter()
    }

    properties! {
        __len__: PyResult<usize> = self.asked(|timing| Ok(timing.taken().len()));
        __repr__: PyResult<String> = Ok(format!("<Inputs of {} clients>", self.__len__()?));
    }

    fn get<'py>(&self, py: Python<'py>, client: &ClientHandle) -> PyResult<Option<Object<'py>>> {
        let class = self.protocol().input_class.as_ref().ok_or_else(no_inputs)?;
        let peer = self.0.get().core_handle("client", client)?;
        let body = self.asked(|timing| Ok(timing.body_of(peer).map(<[u8]>::to_vec)))?;
        body.map(|body| class.decode(py, &body, None, None)).transpose()
    }

    fn seen(&self, client: &ClientHandle) -> PyResult<Option<f64>> {
        let peer = self.0.get().core_handle("client", client)?;
        self.asked(|timing| Ok(timing.seen_by(peer)))
    }

    fn status(&self, client: &ClientHandle) -> PyResult<InputStatus> {
        let peer = self.0.get().core_handle("client", client)?;
        self.asked(|timing| {
            let tick = timing.tick();
            let referee = timing.player(peer);
            let counters = referee.map(|referee| referee.inputs().counters()).unwrap_or_default();
            let begun = referee.filter(|referee| referee.inputs().has_begun());
            let state = begun.and_then(|referee| referee.state(tick)).map(|state| match state {
                InputState::Here => "here",
                InputState::Late => "late",
                InputState::Missing => "missing",
            });
            Ok(InputStatus { state, early: begun.and_then(|referee| referee.early()), counters })
        })
    }

    fn set_policy(
        &self,
        #[either("repeat", "none")] missing: String,
        #[within(1, MAX_TICKS)] ticks: u32,
    ) -> PyResult<()> {
        let policy =
            if missing == "none" { MissingPolicy::None } else { MissingPolicy::Repeat { limit: ticks } };
        self.asked(|timing| {
            timing.set_policy(policy);
            Ok(())
        })
    }

    fn columns(&self) -> PyResult<InputColumns> {
        self.asked(|timing| {
            let rows = timing.taken().iter().map(|it| {
                let (is_here, view) = (it.state == InputState::Here, it.view.unwrap_or_default());
                let (slot, client, present) = (it.peer.slot, it.peer.number(), it.has_body());
                (slot, client, is_here, present, (view >> 8) as u32, view as u8)
            });
            Ok(InputColumns(Arc::new(rows.collect())))
        })
    }

    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let class = self.protocol().input_class.as_ref().ok_or_else(no_inputs)?;
        let schema = class.schema().ok_or_else(no_inputs)?.bind(py).clone();
        let (mut rows, mut arena) = (Vec::new(), Vec::new());
        let taken = self.taken()?;
        let core = &schema.get().fields.core;
        for (_, body) in &taken {
            match body {
                Some(body) => core.split_body(body, &mut rows, &mut arena),
                None => rows.resize(rows.len() + core.row_size(), 0),
            }
        }
        received_rows(&schema, rows, taken.len(), arena)
    }
}

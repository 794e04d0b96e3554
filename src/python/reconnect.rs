//! Reconnecting for Python: settings from `tickwire._reconnect`, events in place of the ends that aren't final, and a token
//! for each attempt. [`Reconnector`] decides when to dial, and when to give up.
//!
//! Promises: no lock is held while the game's function runs, and that function may close the client.

use crate::python::prelude::*;

use super::token::ConnectToken;
use crate::endpoint::{Attempt, ConnectionEnd, Development, ReconnectConfig, Reconnector, TokenAnswer};
use crate::netcode;
use crate::session::Seat;

/// The place of the seat at the host's server, until the client dials with its token.
pub(super) type SeatSlot = Arc<Mutex<Option<Seat>>>;

/// Where tokens come from.
pub(super) enum Tokens {
    /// A `TokenRequest`.
    Game(Py<PyAny>),
    Development(Box<Development>),
    Seat(SeatSlot),
}

/// How a client dials again.
pub(super) struct Reconnecting {
    tokens: Tokens,
    core: Mutex<Reconnector>,
    /// Events for the next tick.
    events: Mutex<Vec<Py<PyAny>>>,
}

/// Reads the argument `reconnect`; a client in development mode makes its own tokens.
pub(super) fn tokens(
    reconnect: &Object<'_>,
    development: Option<Development>,
) -> PyResult<(Tokens, ReconnectConfig)> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = reconnect.py();
    if !reconnect.is_instance(CLASS.import(py, "tickwire._reconnect", "Reconnect")?)? {
        refuse!(PyTypeError, "reconnect must be a Reconnect or None, not {}", class_name(reconnect));
    }
    let seconds = |name| reconnect.getattr(name)?.extract::<f64>();
    let config = ReconnectConfig {
        first_delay: Duration::from_secs_f64(seconds("first_delay")?),
        max_delay: Duration::from_secs_f64(seconds("max_delay")?),
        jitter: seconds("jitter")?,
        give_up_after: reconnect
            .getattr("give_up_after")?
            .extract::<Option<f64>>()?
            .map(Duration::from_secs_f64),
    };
    let source = reconnect.getattr("token")?;
    let tokens = match (development, source.is_none()) {
        (Some(development), true) => Tokens::Development(Box::new(development)),
        (None, false) => {
            let request = py.import("tickwire._reconnect")?.getattr("TokenRequest")?.call1((source,))?;
            Tokens::Game(request.unbind())
        }
        (Some(_), false) => {
            return Err(PyValueError::new_err(
                "reconnect must have no token source with Client.connect, which makes its own tokens",
            ));
        }
        (None, true) => {
            return Err(PyValueError::new_err(
                "reconnect must have a token source, because a token makes one connection: give \
                 Reconnect(ask_backend)",
            ));
        }
    };
    Ok((tokens, config))
}

impl Reconnecting {
    pub(super) fn new(tokens: Tokens, config: ReconnectConfig, seed: u64, now: Instant) -> Self {
        let core = match tokens {
            Tokens::Seat(_) => Reconnector::waiting(config, seed, now),
            _ => Reconnector::new(config, seed, now),
        };
        Reconnecting { tokens, core: Mutex::new(core), events: Mutex::default() }
    }

    /// The decisions about attempts.
    pub(super) fn core(&self) -> MutexGuard<'_, Reconnector> {
        lock(&self.core)
    }

    /// If another player hosts the game by now, how the connection to the server before ends.
    pub(super) fn end_by_other_server(&self) -> Option<DisconnectReason> {
        let Tokens::Seat(seat) = &self.tokens else { return None };
        let end = lock(seat).as_ref().map(|seat| seat.end);
        end.filter(|_| !self.core().is_waiting())
    }

    /// Whether events wait for the next tick.
    pub(super) fn has_events(&self) -> bool {
        !lock(&self.events).is_empty()
    }

    pub(super) fn take_events(&self) -> Vec<Py<PyAny>> {
        core::mem::take(&mut lock(&self.events))
    }

    /// The event for the game in place of the end of a connection.
    pub(super) fn note_end(
        &self,
        endpoint: &Endpoint,
        py: Python<'_>,
        now: Instant,
        end: ConnectionEnd,
    ) -> PyResult<Py<PyAny>> {
        let attempt = self.core().note_end(now, end.clone());
        match attempt {
            Some(attempt) => announce(endpoint, py, attempt, end, None),
            None => Disconnected::event(py, None, end.reason, end.detail),
        }
    }

    /// Ends all attempts.
    pub(super) fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.core().stop();
        match &self.tokens {
            Tokens::Game(request) => request.call_method0(py, "cancel").map(drop),
            Tokens::Development(_) | Tokens::Seat(_) => Ok(()),
        }
    }

    /// No server follows the present one. Without a connection, or an attempt at one, the game gets its last event now.
    pub(super) fn end(&self, py: Python<'_>, reason: DisconnectReason) -> PyResult<()> {
        let is_last = self.core().end(reason);
        if is_last { self.give_up(py) } else { self.stop(py) }
    }

    /// Dials with a token if it is time and there is one.
    ///
    /// # Errors
    /// An exception that ends the program; the attempt is made again if it doesn't.
    pub(super) fn poll(
        &self,
        endpoint: &Endpoint,
        py: Python<'_>,
        dial: impl FnOnce(netcode::ConnectToken) -> PyResult<()>,
    ) -> PyResult<()> {
        let now = endpoint.now()?;
        if !self.core().poll(now) {
            return Ok(());
        }
        let answer = self.token(endpoint, py);
        if endpoint.closed()? || self.core().is_over() {
            // Closed while the token was made.
            let stopped = self.stop(py);
            return match answer {
                Err(error) if !error.is_instance_of::<PyException>(py) => Err(error),
                _ => stopped,
            };
        }
        let dialled = answer.and_then(|answer| match answer {
            Some(Some(token)) => dial(token).map(|()| TokenAnswer::Dialled),
            Some(None) => Ok(TokenAnswer::Never),
            None => Ok(TokenAnswer::Later),
        });
        match dialled {
            Ok(answer) => {
                let goes_on = self.core().note_answer(now, answer);
                if goes_on { Ok(()) } else { self.give_up(py) }
            }
            // The next attempt follows the answer, however long the game took for it.
            Err(error) if error.is_instance_of::<PyException>(py) => self.fail(endpoint, py, error),
            Err(error) => {
                let goes_on = self.core().note_answer(now, TokenAnswer::Later);
                if !goes_on {
                    self.give_up(py)?;
                }
                Err(error)
            }
        }
    }

    /// A token for the attempt: None while it is being made, Some(None) if the game gives up.
    fn token(&self, endpoint: &Endpoint, py: Python<'_>) -> PyResult<Option<Option<netcode::ConnectToken>>> {
        let request = match &self.tokens {
            Tokens::Development(development) => {
                let unix = endpoint.with(|_, driver| driver.unix())?;
                let token = development.token(unix, &mut *entropy(endpoint.virtual_network()));
                return token.map(|token| Some(Some(token))).map_err(value_error);
            }
            Tokens::Seat(seat) => return Ok(lock(seat).take().map(|seat| Some(seat.token))),
            Tokens::Game(request) => request.bind(py),
        };
        let (answered, token): (bool, Object<'_>) = request.call_method0("poll")?.extract()?;
        if !answered {
            return Ok(None);
        }
        if token.is_none() {
            return Ok(Some(None));
        }
        let token: Bound<'_, ConnectToken> = argument("token", &token, "a ConnectToken")?;
        token.get().again().map(|token| Some(Some(token)))
    }

    fn give_up(&self, py: Python<'_>) -> PyResult<()> {
        let last = self.core().last_end().cloned();
        if let Some(ConnectionEnd { reason, detail }) = last {
            let event = Disconnected::event(py, None, reason, detail)?;
            lock(&self.events).push(event);
        }
        self.stop(py)
    }

    /// An attempt failed before it asked a server.
    fn fail(&self, endpoint: &Endpoint, py: Python<'_>, error: PyErr) -> PyResult<()> {
        let now = endpoint.now()?;
        log(py, Level::Warning, || format!("{} can't reconnect: {error}", endpoint.described()));
        let (attempt, last) = {
            let mut core = self.core();
            (core.note_failure(now), core.last_end().cloned())
        };
        let (Some(attempt), Some(last)) = (attempt, last) else { return self.give_up(py) };
        let event = announce(endpoint, py, attempt, last, Some(error))?;
        lock(&self.events).push(event);
        Ok(())
    }
}

holds!(Reconnecting: tokens, events);

impl Traverse for Tokens {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Tokens::Game(request) => visit.call(request),
            Tokens::Development(_) | Tokens::Seat(_) => Ok(()),
        }
    }
}

/// The event of an attempt to come.
fn announce(
    endpoint: &Endpoint,
    py: Python<'_>,
    attempt: Attempt,
    ConnectionEnd { reason, detail }: ConnectionEnd,
    error: Option<PyErr>,
) -> PyResult<Py<PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let Attempt { number, delay } = attempt;
    let delay = delay.as_secs_f64();
    let reason = reason.into_pyobject(py)?;
    log(py, Level::Info, || {
        format!("{} reconnects in {delay:.1} s, attempt {number}: {reason}", endpoint.described())
    });
    let class = CLASS.import(py, "tickwire._connection", "Reconnecting")?;
    let error = error.map(|error| error.into_value(py));
    Ok(class.call1((number, delay, reason, detail.as_deref(), error))?.unbind())
}

//! Reconnecting for Python: settings from `tickwire._reconnect`, events in place of the ends that aren't final, and a token
//! for each attempt. When to dial is decided by [`Reconnector`].
//!
//! Promises: no lock is held while the game's function runs, and that function may close the client.

use crate::python::prelude::*;

use super::token::ConnectToken;
use crate::driver::Development;
use crate::endpoint::{Attempt, ReconnectConfig, Reconnector};
use crate::netcode;

/// How often a token that is being fetched is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The reason and the text of an end.
type End = (DisconnectReason, Option<Box<str>>);

/// A game that players host sends tokens to its client whenever another player hosts it: it dials at once.
pub(super) const AT_ONCE: ReconnectConfig = ReconnectConfig {
    first_delay: Duration::ZERO,
    max_delay: Duration::ZERO,
    jitter: 0.0,
    give_up_after: None,
};

/// The place of the newest token for the host's server, until the client dials with it.
pub(super) type Seat = Arc<Mutex<Option<netcode::ConnectToken>>>;

/// Where tokens come from.
pub(super) enum Tokens {
    /// A `TokenRequest`.
    Game(Py<PyAny>),
    Development(Box<Development>),
    Seat(Seat),
}

/// How a client dials again.
pub(super) struct Reconnecting {
    tokens: Tokens,
    policy: Mutex<Reconnector>,
    /// The end of the last connection or dial.
    last: Mutex<Option<End>>,
    /// Events for the next tick.
    events: Mutex<Vec<Py<PyAny>>>,
    /// The game is being asked for a token.
    asking: AtomicBool,
}

/// Reads the argument `reconnect`; a client in development mode makes its own tokens.
pub(super) fn tokens(
    reconnect: &Bound<'_, PyAny>,
    development: Option<Development>,
) -> PyResult<(Tokens, ReconnectConfig)> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = reconnect.py();
    if !reconnect.is_instance(CLASS.import(py, "tickwire._reconnect", "Reconnect")?)? {
        let kind = reconnect.get_type().name()?;
        return Err(PyTypeError::new_err(format!("reconnect must be a Reconnect or None, not {kind}")));
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
        let policy = match tokens {
            Tokens::Seat(_) => Reconnector::waiting(config, seed, now),
            _ => Reconnector::new(config, seed, now),
        };
        Reconnecting {
            tokens,
            policy: Mutex::new(policy),
            last: Mutex::default(),
            events: Mutex::default(),
            asking: AtomicBool::new(false),
        }
    }

    /// Whether there is no connection, and none is being dialled.
    pub(super) fn is_waiting(&self) -> bool {
        lock(&self.policy).is_waiting()
    }

    /// Whether another player hosts the game by now.
    pub(super) fn has_other_server(&self) -> bool {
        let Tokens::Seat(seat) = &self.tokens else { return false };
        lock(seat).is_some() && !self.is_waiting()
    }

    /// Whether the end of the last connection is final.
    pub(super) fn is_over(&self) -> bool {
        lock(&self.policy).is_over()
    }

    /// The reason of the last end.
    pub(super) fn last_reason(&self) -> Option<DisconnectReason> {
        lock(&self.last).as_ref().map(|(reason, _)| *reason)
    }

    /// Whether events wait for the next tick.
    pub(super) fn has_events(&self) -> bool {
        !lock(&self.events).is_empty()
    }

    pub(super) fn take_events(&self) -> Vec<Py<PyAny>> {
        core::mem::take(&mut lock(&self.events))
    }

    /// How long an event loop may sleep, at most.
    pub(super) fn next_poll(&self, now: Instant) -> Option<Duration> {
        let policy = lock(&self.policy);
        let preparing = policy.is_waiting().then_some(POLL_INTERVAL);
        policy.next_attempt().map(|at| at - now).or(preparing)
    }

    pub(super) fn note_connected(&self, now: Instant) {
        lock(&self.policy).note_connected(now);
    }

    /// The event for the game in place of the end of a connection.
    pub(super) fn note_end(
        &self,
        client: &Client,
        py: Python<'_>,
        now: Instant,
        (reason, detail): End,
    ) -> PyResult<Py<PyAny>> {
        let attempt = lock(&self.policy).note_end(now, reason);
        *lock(&self.last) = Some((reason, detail.clone()));
        match attempt {
            Some(attempt) => announce(client, py, attempt, (reason, detail), None),
            None => Disconnected::event(py, None, reason, detail),
        }
    }

    /// Ends all attempts.
    pub(super) fn stop(&self, py: Python<'_>) -> PyResult<()> {
        lock(&self.policy).stop();
        match &self.tokens {
            Tokens::Game(request) => request.call_method0(py, "cancel").map(drop),
            Tokens::Development(_) | Tokens::Seat(_) => Ok(()),
        }
    }

    /// No server follows the present one. Without a connection, or an attempt at one, the game gets its last event now.
    pub(super) fn end(&self, py: Python<'_>, reason: DisconnectReason) -> PyResult<()> {
        if !self.is_waiting() {
            return self.stop(py);
        }
        *lock(&self.last) = Some((reason, None));
        self.give_up(py)
    }

    /// Dials if it is time and there is a token.
    ///
    /// # Errors
    /// An exception that ends the program; the attempt is made again if it doesn't.
    pub(super) fn poll(&self, client: &Client, py: Python<'_>) -> PyResult<()> {
        let now = client.now()?;
        if !lock(&self.policy).poll(now) || self.asking.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let answer = self.token(client, py);
        self.asking.store(false, Ordering::Relaxed);
        if client.endpoint.closed()? || self.is_over() {
            // Closed while the token was made.
            return self.stop(py);
        }
        match answer.and_then(|token| match token {
            Some(Some(token)) => client.dial_again(py, token).map(|()| Some(true)),
            Some(None) => Ok(Some(false)),
            None => Ok(None),
        }) {
            Ok(Some(true)) => lock(&self.policy).note_dialled(),
            Ok(Some(false)) => self.give_up(py)?,
            Ok(None) if lock(&self.policy).is_too_late(now) => self.give_up(py)?,
            Ok(None) => {}
            // The next attempt follows the answer, however long the game took for it.
            Err(error) if error.is_instance_of::<PyException>(py) => {
                self.fail(client, py, client.now()?, error)?;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// A token for the attempt: None while it is being made, Some(None) if the game gives up.
    fn token(&self, client: &Client, py: Python<'_>) -> PyResult<Option<Option<netcode::ConnectToken>>> {
        let request = match &self.tokens {
            Tokens::Development(development) => {
                return client.development_token(development).map(|it| Some(Some(it)));
            }
            Tokens::Seat(seat) => return Ok(lock(seat).take().map(Some)),
            Tokens::Game(request) => request.bind(py),
        };
        let (answered, token): (bool, Bound<'_, PyAny>) = request.call_method0("poll")?.extract()?;
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
        let last = lock(&self.last).clone();
        if let Some((reason, detail)) = last {
            let event = Disconnected::event(py, None, reason, detail)?;
            lock(&self.events).push(event);
        }
        self.stop(py)
    }

    /// An attempt failed before it asked a server.
    fn fail(&self, client: &Client, py: Python<'_>, now: Instant, error: PyErr) -> PyResult<()> {
        log(py, Level::Warning, || format!("{} can't reconnect: {error}", client.endpoint.described()));
        let attempt = lock(&self.policy).note_failure(now);
        let last = lock(&self.last).clone();
        let (Some(attempt), Some(last)) = (attempt, last) else { return self.give_up(py) };
        let event = announce(client, py, attempt, last, Some(error))?;
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
    client: &Client,
    py: Python<'_>,
    attempt: Attempt,
    (reason, detail): End,
    error: Option<PyErr>,
) -> PyResult<Py<PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let Attempt { number, delay } = attempt;
    let delay = delay.as_secs_f64();
    let reason = reason.into_pyobject(py)?;
    log(py, Level::Info, || {
        format!("{} reconnects in {delay:.1} s, attempt {number}: {reason}", client.endpoint.described())
    });
    let class = CLASS.import(py, "tickwire._connection", "Reconnecting")?;
    let error = error.map(|error| error.into_value(py));
    Ok(class.call1((number, delay, reason, detail.as_deref(), error))?.unbind())
}

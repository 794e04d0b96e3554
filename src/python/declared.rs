//! The calls of a protocol, as `tickwire._calls` declared them, looked up once.
//!
//! Promises: their classes follow the protocol's messages, each once, so a protocol made of another's messages and
//! calls is the same.

use crate::python::prelude::*;

use super::codec::Class;
use super::ghosts::Properties;
use crate::calls::Rate;

/// The side that runs a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Server,
    Client,
    All,
}

/// A parameter whose type is a ghost class.
#[derive(Debug)]
pub(super) struct GhostParameter {
    pub(super) name: Py<PyString>,
    /// The index of the class in the protocol.
    pub(super) class: usize,
    /// Whether it may be None.
    pub(super) optional: bool,
}

/// The declaration of a call, by `tickwire._calls`. It is read and not kept: its ghost classes are the protocol's.
#[derive(FromPyObject)]
struct CallSpec {
    message: Py<PyType>,
    reply: Option<Py<PyType>>,
    positional: Vec<Py<PyString>>,
    keywords: Vec<Py<PyString>>,
    ghosts: Vec<(Py<PyString>, Py<PyType>, bool)>,
    owned: bool,
    rate: f64,
    burst: f64,
    disconnects: bool,
    timeout: f64,
}

/// A call as the core knows it.
#[derive(Debug)]
pub(super) struct Declared {
    /// The object that `tw.call` made of the function.
    pub(super) call: Py<PyAny>,
    pub(super) function: Py<PyAny>,
    pub(super) name: String,
    pub(super) direction: Direction,
    /// The class of its arguments, whose constructor has the function's signature.
    pub(super) message: Py<PyType>,
    /// The class of its reply, if it has one.
    pub(super) reply: Option<Py<PyType>>,
    pub(super) positional: Vec<Py<PyString>>,
    pub(super) keywords: Vec<Py<PyString>>,
    pub(super) ghosts: Vec<GhostParameter>,
    /// Whether only the owner of its first ghost may call it.
    pub(super) owned: bool,
    pub(super) rate: Rate,
    /// Whether callers that call too often are disconnected.
    pub(super) disconnects: bool,
    pub(super) timeout: Duration,
}

/// The role of a message type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The game's own.
    Message,
    /// A call, by index.
    Call(u16),
    /// The reply of a call.
    Reply(u16),
    /// The notice that a request gets no value.
    Unanswered,
}

/// All calls of a protocol.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) declared: Vec<Declared>,
    /// By message type; empty where all messages are the game's own.
    roles: Vec<Role>,
    /// The class of that notice.
    pub(super) unanswered: Option<Py<PyType>>,
}

impl Direction {
    fn of(given: &Object<'_>) -> PyResult<Self> {
        Ok(match given.getattr("name")?.extract::<String>()?.as_str() {
            "TO_SERVER" => Direction::Server,
            "TO_CLIENT" => Direction::Client,
            _ => Direction::All,
        })
    }
}

/// The messages of a protocol, followed by the classes of its calls.
pub(super) fn with_calls<'py>(
    py: Python<'py>,
    mut messages: Vec<Object<'py>>,
    calls: &[Object<'py>],
    ghosts: &[(Py<PyType>, Py<Properties>)],
) -> PyResult<(Vec<Object<'py>>, Calls)> {
    let mut made = Calls::default();
    let mut classes: Vec<(Object<'py>, Role)> = Vec::new();
    if !calls.is_empty() {
        let module = py.import("tickwire._calls")?;
        let base = module.getattr("Call")?;
        for (place, call) in (0_u16..).zip(calls) {
            if !call.is_instance(&base)? {
                let shown = call.repr()?;
                let sentence =
                    format!("calls[{place}]: {shown} is not a call: make it one by @tw.call(tw.to_server)");
                return Err(PyTypeError::new_err(sentence));
            }
            let declared = Declared::new(call, ghosts)?;
            if made.declared.iter().any(|other| other.call.is(call)) {
                refuse!(PyTypeError, "calls must be different, and {} appears twice", declared.name);
            }
            classes.push((declared.message.bind(py).clone().into_any(), Role::Call(place)));
            if let Some(reply) = &declared.reply {
                classes.push((reply.bind(py).clone().into_any(), Role::Reply(place)));
            }
            made.declared.push(declared);
        }
        if made.declared.iter().any(|declared| declared.reply.is_some()) {
            let class = module.getattr("UNANSWERED")?.cast_into::<PyType>()?;
            made.unanswered = Some(class.clone().unbind());
            classes.push((class.into_any(), Role::Unanswered));
        }
    }
    for (place, message) in messages.iter().enumerate() {
        let known = classes.iter().any(|(class, _)| class.is(message));
        if !known && message.hasattr(intern!(py, "__tickwire_call__"))? {
            return Err(PyTypeError::new_err(format!(
                "messages[{place}]: {} belongs to a call: put the call into calls=[...]",
                message.getattr("__name__")?
            )));
        }
    }
    for (class, _) in &classes {
        if !messages.iter().any(|given| given.is(class)) {
            messages.push(class.clone());
        }
    }
    if !classes.is_empty() {
        let role = |message: &Object<'py>| {
            let found = classes.iter().find(|(class, _)| class.is(message));
            found.map_or(Role::Message, |(_, role)| *role)
        };
        made.roles = messages.iter().map(role).collect();
    }
    Ok((messages, made))
}

impl Declared {
    fn new(call: &Object<'_>, classes: &[(Py<PyType>, Py<Properties>)]) -> PyResult<Self> {
        let spec: CallSpec = call.getattr("_declared")?.extract()?;
        let name: String = spec.message.bind(call.py()).name()?.extract()?;
        let mut ghosts = Vec::new();
        for (parameter, class, optional) in &spec.ghosts {
            let found = classes.iter().position(|(known, _)| known.is(class)).ok_or_else(|| {
                let class = name_of(class.bind(call.py()));
                PyValueError::new_err(format!(
                    "{name}.{parameter}: {class} must be among the protocol's ghosts: add it to ghosts=[...]"
                ))
            })?;
            let name = parameter.clone_ref(call.py());
            ghosts.push(GhostParameter { name, class: found, optional: *optional });
        }
        Ok(Declared {
            call: call.clone().unbind(),
            function: call.getattr("function")?.unbind(),
            rate: Rate::new(spec.rate, spec.burst)
                .map_err(|error| value_error(format!("{name}: {error}")))?,
            name,
            direction: Direction::of(&call.getattr("direction")?)?,
            message: spec.message,
            reply: spec.reply,
            positional: spec.positional,
            keywords: spec.keywords,
            ghosts,
            owned: spec.owned,
            disconnects: spec.disconnects,
            timeout: Duration::from_secs_f64(spec.timeout),
        })
    }

    /// Refuses calls that are for one client only.
    pub(super) fn check_for_all(&self) -> PyResult<()> {
        if self.direction == Direction::All {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "{} is for one client at a time: declare it @tw.call(tw.to_all) to call it for several",
            self.name
        )))
    }

    /// Whether a server runs it.
    pub(super) fn runs_on_server(&self) -> bool {
        self.direction == Direction::Server
    }
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.declared.is_empty()
    }

    /// The role of this message type.
    #[inline]
    pub(super) fn role(&self, message_type: u16) -> Role {
        self.roles.get(usize::from(message_type)).copied().unwrap_or(Role::Message)
    }

    /// The index of a call that `tw.call` made.
    ///
    /// # Errors
    /// It is something else, or not a call of this protocol.
    pub(super) fn place(&self, call: &Object<'_>) -> PyResult<u16> {
        let found = (0_u16..).zip(&self.declared).find(|(_, declared)| declared.call.is(call));
        found.map(|(place, _)| place).ok_or_else(|| self.unknown(call))
    }

    #[cold]
    fn unknown(&self, call: &Object<'_>) -> PyErr {
        // The repr of a function contains its address.
        let is_function = call.get_type().name().is_ok_and(|name| name == "function");
        let shown =
            if is_function { call.getattr("__name__").and_then(|name| name.str()) } else { call.repr() };
        let shown = shown.map_or_else(|_| "it".into(), |shown| shown.to_string());
        let names: Vec<&str> = self.declared.iter().map(|declared| declared.name.as_str()).collect();
        let known = if names.is_empty() { "which has none".into() } else { names.join(", ") };
        UnregisteredMessageError::new_err(format!(
            "{shown} is not among the protocol's calls ({known}): make it a call by @tw.call(...) and add it to \
             calls=[...], on both sides"
        ))
    }

    /// The call with an index, if this side runs it: `on_server` says which side this is.
    pub(super) fn check(&self, place: u16, on_server: bool) -> PyResult<&Declared> {
        let declared = &self.declared[usize::from(place)];
        if declared.runs_on_server() == on_server {
            return Ok(declared);
        }
        let (runs, other) =
            if declared.runs_on_server() { ("the server", "clients") } else { ("clients", "the server") };
        Err(PyValueError::new_err(format!(
            "{} runs on {runs} and is called by {other}: declare another call for the other direction",
            declared.name
        )))
    }

    /// Refuses channels that don't carry calls.
    pub(super) fn check_channel(&self, class: &Class, kind: ChannelKind) -> PyResult<()> {
        let found = self.declared.iter().find(|declared| declared.message.is(class.class()));
        let has_none = kind.is_payload() || matches!(kind, ChannelKind::Latest { .. } | ChannelKind::Chunks);
        let Some(declared) = found.filter(|_| has_none) else { return Ok(()) };
        Err(PyValueError::new_err(format!(
            "{}: its channel must deliver every message, and this is a {} channel: choose another with \
             @tw.call(..., channel=...)",
            declared.name,
            kind.name()
        )))
    }
}

holds!(Calls: declared);
holds!(Declared: call, function, message, reply);

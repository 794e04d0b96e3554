//! A protocol, shared by both sides: message classes and channels, compiled once.

use crate::python::prelude::*;

use super::channel::{Channel, channels_of, check_names, named, names};
use super::checks::not_bool;
use super::codec::Class;
use super::declared::{Calls, with_calls};
use super::ghosts::{Properties, references};
use super::yojimbo;
use crate::netcode::UpperProtocol;
use crate::replication::{Classes, References};
use crate::session::protocol::{self, ServerTime};
use crate::timeline::packet::MAX_INPUT_BITS;
use crate::transport::{self, ChannelConfig, Framing};

/// The maximum of a server's ticks a second.
const MAX_RATE: u32 = 1_000;

#[pyclass(frozen, generic, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct Protocol {
    pub(super) id: u64,
    pub(super) core: Arc<transport::Protocol>,
    classes: Vec<Class>,
    /// The type objects' addresses in rising order, with their numbers; `classes` keeps the objects alive.
    by_type: Vec<(usize, u16)>,
    channels: Vec<Py<Channel>>,
    /// The default channel of each class's messages.
    own_channels: Vec<usize>,
    pub(super) ghosts: Vec<(Py<PyType>, Py<Properties>)>,
    pub(super) ghost_classes: Option<Arc<Classes>>,
    pub(super) references: Arc<References>,
    pub(super) calls: Calls,
    /// The server's time, if it has one.
    pub(super) time: Option<ServerTime>,
    /// The class of clients' inputs, if any.
    pub(super) input_class: Option<Class>,
}

#[pymethods]
impl Protocol {
    #[new]
    fn new(
        py: Python<'_>,
        #[within(0, u64::MAX)] id: u64,
        messages: Option<&Object<'_>>,
        channels: Option<&Object<'_>>,
        ghosts: Option<&Object<'_>>,
        calls: Option<&Object<'_>>,
        inputs: Option<&Object<'_>>,
        #[within(1, MAX_RATE)] tick_rate: Option<u32>,
        #[truth] peers: bool,
        yojimbo: Option<&Object<'_>>,
    ) -> PyResult<Self> {
        if let Some(Ok(class)) = messages.map(|given| given.cast::<PyType>()) {
            let class = class.name()?;
            refuse!(
                PyTypeError,
                "messages must be a list of message classes, such as [{class}], not a single class"
            );
        }
        let messages = listed("messages", messages, "a list of message classes")?;
        let channels = channels_of(py, channels)?;
        let mut ghosts = ghost_classes(&listed("ghosts", ghosts, "a list of ghost classes")?)?;
        let references = references(py, &mut ghosts)?;
        let calls = listed("calls", calls, "a list of calls")?;
        let (messages, calls) = with_calls(py, messages, &calls, &ghosts)?;
        let classes = messages.iter().enumerate().map(|(position, class)| Class::new(class, position));
        let classes = classes.collect::<PyResult<Vec<Class>>>()?;
        check_names(&channels)?;
        let (framing, fold_hash) = framing_of(yojimbo, &classes)?;
        let (time, input_class) = server_time(inputs, tick_rate)?.unzip();
        let input_class = input_class.flatten();
        check_inputs(input_class.as_ref(), &classes)?;
        let ghost_classes = cores_of(py, &mut ghosts, time.as_ref().map(|time| time.rate))?;
        let layers = (ghost_classes.as_deref(), time.as_ref(), peers);
        let configs = channels.iter().map(|channel| channel.get().config.clone()).collect();
        let core = core_of(&classes, configs, framing, layers)?;
        let id = if fold_hash { id ^ core.hash() } else { id };
        let by_type = numbers_of(&classes)?;
        let own_channels = classes.iter().map(|class| {
            let channel = own_channel(py, class, &channels)?;
            calls.check_channel(class, channels[channel].get().config.kind)?;
            Ok(channel)
        });
        let own_channels: Vec<usize> = own_channels.collect::<PyResult<_>>()?;
        Ok(Protocol {
            id,
            core: Arc::new(core),
            classes,
            by_type,
            channels,
            own_channels,
            ghosts,
            ghost_classes,
            references,
            calls,
            time,
            input_class,
        })
    }

    properties! {
        id: u64 = self.id;
        hash: u64 = self.core.hash();
        description: String = self.core.describe();
        messages: Vec<Py<PyType>> = self.classes.iter().map(|class| class.class().clone_ref(py)).collect();
        ghosts: Vec<Py<PyType>> = self.ghosts.iter().map(|(class, _)| class.clone_ref(py)).collect();
        calls: Vec<Py<PyAny>> =
            self.calls.declared.iter().map(|declared| declared.call.clone_ref(py)).collect();
        inputs: Option<Py<PyType>> = self.input_class.as_ref().map(|class| class.class().clone_ref(py));
        tick_rate: Option<u32> = self.time.as_ref().map(|time| time.rate);
        channels: Vec<Py<Channel>> = self.channels.iter().map(|channel| channel.clone_ref(py)).collect();
        __repr__: String = format!("Protocol(id={:#x}, messages=[{}])", self.id, self.class_names());
    }

    #[getter]
    fn framing(&self) -> &'static str {
        match self.core.framing() {
            Framing::Native => "native",
            Framing::Yojimbo(_) => "yojimbo",
        }
    }

    methods! {
        channel_number(name: &str) -> PyResult<usize> =
            named(&self.channels, name).ok_or_else(|| self.no_channel(name));
    }

    fn encode<'py>(&self, message: &Object<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let py = message.py();
        let number = self.number_of(message)?;
        let class = &self.classes[usize::from(number)];
        if let Some(mut writer) = transport::begin_alone(&self.core, number) {
            class.write(message, &mut writer)?;
            return Ok(PyBytes::new(py, writer.as_bytes()));
        }
        let message = Message::new(number, class.encode(message)?);
        Ok(PyBytes::new(py, &transport::write_alone(&self.core, &message)))
    }

    fn decode<'py>(&self, data: &Bound<'py, PyBytes>) -> PyResult<Object<'py>> {
        let mut raised = None;
        let mut extent = |number, bytes: &[u8], start| {
            self.extent(data.py(), number, bytes, start).map_err(|error| {
                raised = Some(error);
                String::new()
            })
        };
        let read = transport::read_alone(&self.core, data.as_bytes(), &mut extent);
        let (number, body) =
            read.map_err(|refusal| raised.unwrap_or_else(|| StreamError::new_err(refusal.to_string())))?;
        self.decode_message(data.py(), number, &body, None, None)
    }

    fn measure(&self, message: &Object<'_>) -> PyResult<usize> {
        let number = self.number_of(message)?;
        let body = self.classes[usize::from(number)].measure(message)?;
        Ok(transport::alone_bits(&self.core, number, body))
    }

    traverses!(self.ghosts, self.calls, self.input_class, self.classes);
}

impl Protocol {
    /// Encodes the object, with its type.
    pub(super) fn encode_message(&self, message: &Object<'_>) -> PyResult<Message> {
        let message_type = self.number_of(message)?;
        let class = &self.classes[usize::from(message_type)];
        Ok(Message { message_type, encoded: class.encode(message)?, block: class.block(message)? })
    }

    /// Makes an object of a received body.
    pub(super) fn decode_message<'py>(
        &self,
        py: Python<'py>,
        message_type: u16,
        body: &[u8],
        block: Option<&[u8]>,
        factory: Option<&Py<PyAny>>,
    ) -> PyResult<Object<'py>> {
        self.classes[usize::from(message_type)].decode(py, body, block, factory)
    }

    /// Where a body ends that a class's own `serialize` reads, from this bit of these bytes on.
    ///
    /// # Errors
    /// The exception of `serialize`.
    pub(super) fn extent(
        &self,
        py: Python<'_>,
        message_type: u16,
        bytes: &[u8],
        start: usize,
    ) -> PyResult<usize> {
        self.class_of(message_type).extent(py, bytes, start)
    }

    /// The index of a channel given by index or name; without one, the default of messages of this type.
    pub(super) fn channel(&self, given: Option<&Object<'_>>, message_type: Option<u16>) -> PyResult<usize> {
        let Some(given) = given else {
            let own = message_type.and_then(|number| self.own_channels.get(usize::from(number)));
            return Ok(own.copied().unwrap_or_default());
        };
        if let Ok(name) = given.cast::<PyString>() {
            let name = name.to_str()?;
            return named(&self.channels, name).ok_or_else(|| self.no_channel(name));
        }
        let count = self.channels.len();
        match not_bool::<i128>("channel", given, "an int or a str") {
            Ok(number) if (0..count as i128).contains(&number) => Ok(number as usize),
            Err(error) if !error.is_instance_of::<PyValueError>(given.py()) => Err(error),
            _ => Err(ChannelError::new_err(format!("channel must be 0 to {}, not {given}", count - 1))),
        }
    }

    #[cold]
    fn no_channel(&self, name: &str) -> PyErr {
        ChannelError::new_err(format!("channel must be {}, not '{name}'", names(&self.channels)))
    }

    /// Whether messages of a class go on a reliable channel.
    pub(super) fn is_reliable(&self, class: &Bound<'_, PyType>) -> bool {
        let number = self.number_of_class(class.as_any());
        let channel = number.and_then(|number| self.channel(None, Some(number)));
        channel
            .is_ok_and(|channel| matches!(self.core.channels()[channel].kind, ChannelKind::Reliable { .. }))
    }

    /// The protocol's description for a server in development mode, if both sides compare hashes.
    pub(super) fn upper_protocol(&self) -> Option<UpperProtocol> {
        let Framing::Native = self.core.framing() else { return None };
        Some(UpperProtocol { hash: self.core.hash(), note: self.core.digest() })
    }

    /// Whether a game of peers with it has a server, which a player hosts.
    pub(super) fn is_hosted(&self) -> bool {
        !self.ghosts.is_empty() || self.time.is_some() || !self.calls.is_empty()
    }

    /// How many bytes of a channel's values are retained for newcomers, if any.
    pub(super) fn retains(&self, channel: usize) -> Option<usize> {
        self.channels[channel].get().retain
    }

    /// The number of a class made by `@tickwire.message`.
    pub(super) fn number_of_class(&self, class: &Object<'_>) -> PyResult<u16> {
        self.number_at(class.as_ptr() as usize).ok_or_else(|| self.not_registered(&repr_of(class)))
    }

    /// The class of this number.
    pub(super) fn class_of(&self, number: u16) -> &Class {
        &self.classes[usize::from(number)]
    }

    fn class_names(&self) -> String {
        let names: Vec<&str> = self.classes.iter().map(Class::name).collect();
        names.join(", ")
    }

    fn number_of(&self, message: &Object<'_>) -> PyResult<u16> {
        self.number_at(message.get_type_ptr() as usize).ok_or_else(|| self.unregistered(message))
    }

    /// The number of the class whose type object is at this address.
    fn number_at(&self, address: usize) -> Option<u16> {
        let place = self.by_type.binary_search_by_key(&address, |(address, _)| *address).ok()?;
        self.by_type.get(place).map(|(_, number)| *number)
    }

    #[cold]
    fn unregistered(&self, message: &Object<'_>) -> PyErr {
        if let Ok(class) = message.cast::<PyType>() {
            return UnregisteredMessageError::new_err(format!(
                "a message must be an object of the class, {}(...), not the class itself",
                name_of(class)
            ));
        }
        if message.is_instance_of::<ClientHandle>() {
            return UnregisteredMessageError::new_err(
                "message must be of a class in messages, not a ClientHandle: a server calls send(client, message), a \
                 client send(message), and a room broadcast(message)",
            );
        }
        let (class, shown) = (message.get_type(), class_name(message));
        let hint = if self.input_class.as_ref().is_some_and(|inputs| inputs.class().is(&class)) {
            "the class of inputs: a client sends it with send_input"
        } else if Properties::of(&class).is_some() {
            "a ghost: a server sends it with world.spawn"
        } else {
            return self.not_registered(&shown);
        };
        UnregisteredMessageError::new_err(format!(
            "message must be of a class in messages, not {shown}, {hint}"
        ))
    }

    #[cold]
    fn not_registered(&self, shown: &str) -> PyErr {
        const MAX_SHOWN: usize = 8;
        let names: Vec<&str> = self.classes.iter().take(MAX_SHOWN).map(Class::name).collect();
        let more = if self.classes.len() > MAX_SHOWN { ", ..." } else { "" };
        UnregisteredMessageError::new_err(format!(
            "{shown} is not among the protocol's messages ({}{more}): add it to the list, on both sides",
            names.join(", ")
        ))
    }
}

/// Reads a protocol's tick rate and class of inputs.
///
/// # Errors
/// Names the argument that is wrong.
fn server_time(
    inputs: Option<&Object<'_>>,
    rate: Option<u32>,
) -> PyResult<Option<(ServerTime, Option<Class>)>> {
    let Some(rate) = rate else {
        return match inputs {
            Some(_) => Err(PyValueError::new_err(
                "tick_rate must be given with inputs: the server's ticks per second, such as tick_rate=60",
            )),
            None => Ok(None),
        };
    };
    let Some(inputs) = inputs else { return Ok(Some((ServerTime { rate, input: None }, None))) };
    let (class, name, schema) = Class::of_inputs(inputs, "")?;
    let bits = schema.max_bits();
    if bits > MAX_INPUT_BITS {
        return Err(PyValueError::new_err(format!(
            "inputs must take at most {} bytes, because a packet has several, and {name} may take {}",
            MAX_INPUT_BITS / 8,
            bits.div_ceil(8)
        )));
    }
    if let Some(path) = schema.misplaced_press() {
        refuse!(
            PyTypeError,
            "inputs must have presses as fields of their own, in nested messages or in tuples, and {name}.{path} has one \
             in another part: the server couldn't clear it"
        );
    }
    let input = Some((name, Arc::new(schema)));
    Ok(Some((ServerTime { rate, input }, Some(class))))
}

/// Refuses a class of inputs that is a message too: `send` would send it as a message, which has no tick.
fn check_inputs(inputs: Option<&Class>, classes: &[Class]) -> PyResult<()> {
    let Some(inputs) = inputs else { return Ok(()) };
    if classes.iter().any(|class| class.class().is(inputs.class())) {
        let name = inputs.name();
        refuse!(
            PyTypeError,
            "inputs must not be among the messages, and {name} is: list it only as inputs={name}, and send it with \
             send_input"
        );
    }
    Ok(())
}

fn listed<'py>(name: &str, given: Option<&Object<'py>>, what: &str) -> PyResult<Vec<Object<'py>>> {
    given.map_or(Ok(Vec::new()), |given| argument(name, given, what))
}

/// The framing, and whether the id depends on the protocol's hash.
fn framing_of(profile: Option<&Object<'_>>, classes: &[Class]) -> PyResult<(Framing, bool)> {
    let mut blocks = (0..=u16::MAX).zip(classes).filter(|(_, class)| class.has_block());
    let Some(profile) = profile else {
        return match blocks.next() {
            None => Ok((Framing::Native, false)),
            Some((_, class)) => Err(PyTypeError::new_err(format!(
                "{} has a block, which needs yojimbo=tickwire.yojimbo.Profile(): give it, or declare the \
                 message without a block",
                class.name()
            ))),
        };
    };
    let (config, fold_hash) = yojimbo::read(profile, blocks.map(|(number, _)| number).collect())?;
    Ok((Framing::Yojimbo(config), fold_hash))
}

/// The core's protocol, with layers of ghosts, time and peers.
fn core_of(
    classes: &[Class],
    configs: Vec<ChannelConfig>,
    framing: Framing,
    (ghosts, time, peers): (Option<&Classes>, Option<&ServerTime>, bool),
) -> PyResult<transport::Protocol> {
    let types: Vec<_> = classes.iter().map(Class::message_type).collect();
    let has_layers = ghosts.is_some() || time.is_some() || peers;
    let core = if types.is_empty() && has_layers && framing == Framing::Native {
        transport::Protocol::of_layers(configs).map_err(value_error)?
    } else {
        transport::Protocol::with_framing(types, configs, framing).map_err(value_error)?
    };
    let ghosts = ghosts.map(|classes| protocol::ghosts(classes.describe()));
    let features = [ghosts, time.map(protocol::time), peers.then(protocol::peers)];
    features.into_iter().flatten().try_fold(core, transport::Protocol::extended).map_err(value_error)
}

/// The number of each class by its address, sorted.
fn numbers_of(classes: &[Class]) -> PyResult<Vec<(usize, u16)>> {
    let address = |class: &Class| class.class().as_ptr() as usize;
    let mut by_type: Vec<(usize, u16)> = classes.iter().map(address).zip(0..=u16::MAX).collect();
    by_type.sort_unstable();
    if let Some(twice) = by_type.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let class = classes[usize::from(twice[1].1)].name();
        refuse!(PyTypeError, "messages must be different classes, and {class} appears twice");
    }
    Ok(by_type)
}

/// Classes made by `@tickwire.ghost`, without repeats.
fn ghost_classes(given: &[Object<'_>]) -> PyResult<Vec<(Py<PyType>, Py<Properties>)>> {
    let mut classes: Vec<(Py<PyType>, Py<Properties>)> = Vec::new();
    for (position, class) in given.iter().enumerate() {
        let Some(properties) = Properties::of(class) else {
            let shown = repr_of(class);
            refuse!(PyTypeError, "ghosts[{position}]: {shown} is not a class made by @tickwire.ghost");
        };
        if classes.iter().any(|(other, _)| other.is(class)) {
            let sentence =
                format!("ghosts must be different classes, and {} appears twice", properties.get().name());
            return Err(PyTypeError::new_err(sentence));
        }
        classes.push((class.cast::<PyType>()?.clone().unbind(), properties.unbind()));
    }
    Ok(classes)
}

/// The core's classes, with their rules at the protocol's tick rate.
fn cores_of(
    py: Python<'_>,
    ghosts: &mut [(Py<PyType>, Py<Properties>)],
    rate: Option<u32>,
) -> PyResult<Option<Arc<Classes>>> {
    if ghosts.is_empty() {
        return Ok(None);
    }
    if let Some(rate) = rate {
        for (_, properties) in &mut *ghosts {
            *properties = Py::new(py, properties.get().at_rate(py, rate.into()))?;
        }
    }
    let cores = ghosts.iter().map(|(_, properties)| properties.get().class.clone());
    Classes::new(cores).map(|classes| Some(Arc::new(classes))).map_err(value_error)
}

/// The channel that a class names as its own, otherwise the first.
fn own_channel(py: Python<'_>, class: &Class, channels: &[Py<Channel>]) -> PyResult<usize> {
    let given = class.class().bind(py).getattr_opt(intern!(py, "__tickwire_channel__"))?;
    let Some(given) = given.filter(|given| !given.is_none()) else { return Ok(0) };
    let found = match given.cast::<PyString>() {
        Ok(name) => named(channels, name.to_str()?),
        Err(_) => given.extract::<usize>().ok().filter(|number| *number < channels.len()),
    };
    let shown = given.repr()?;
    let Some(number) = found else {
        refuse!(PyValueError, "{}: its channel must be {}, not {shown}", class.name(), names(channels));
    };
    let kind = channels[number].get().config.kind;
    if kind.is_payload() || matches!(kind, ChannelKind::Chunks) {
        return Err(PyValueError::new_err(format!(
            "{}: its channel must be one of messages, and {shown} is a {} channel",
            class.name(),
            kind.name()
        )));
    }
    Ok(number)
}

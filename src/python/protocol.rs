//! What both sides share: message classes and channels, compiled once.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyType};

use super::channel::Channel;
use super::codec::{Class, Failure};
use super::errors::{ChannelError, StreamError, UnregisteredMessageError, value_error};
use super::fields::bounded;
use crate::time::Duration;
use crate::transport::{self, ChannelConfig, Message};

/// An argument in seconds, from 0 to `high`.
pub(super) fn seconds(name: &str, value: f64, high: f64) -> PyResult<Duration> {
    if (0.0..=high).contains(&value) {
        Ok(Duration::from_secs_f64(value))
    } else {
        Err(PyValueError::new_err(format!("{name} must be 0 to {high} seconds, not {value}")))
    }
}

/// What both sides must share: an id, the message classes in order, the channels in order.
///
/// Args:
///     id: 64-bit netcode protocol id: a number of your game (and its version).
///     messages: classes made by :func:`tickwire.message` or derived from :class:`tickwire.Message`.
///     channels: 1 to 64 channels; the index in this list is the ``channel`` argument of ``send``.
///
/// Raises:
///     TypeError, ValueError: naming the class or argument, its value and its bound.
#[pyclass(frozen, module = "tickwire")]
#[derive(Debug)]
pub(crate) struct Protocol {
    pub(super) id: u64,
    pub(super) core: Arc<transport::Protocol>,
    classes: Vec<Class>,
    /// By the address of the type object, which `classes` keeps alive.
    by_type: HashMap<usize, u16>,
    channels: Vec<Py<Channel>>,
}

#[pymethods]
impl Protocol {
    #[new]
    #[pyo3(signature = (id, messages, channels = None))]
    #[pyo3(text_signature = "(id, messages, channels=...)")]
    fn new(
        py: Python<'_>,
        id: &Bound<'_, PyAny>,
        messages: Vec<Bound<'_, PyAny>>,
        channels: Option<Vec<Py<Channel>>>,
    ) -> PyResult<Self> {
        let id = bounded("id", id, u64::MIN, u64::MAX)?;
        let channels = match channels {
            Some(channels) => channels,
            None => vec![
                Py::new(py, Channel { config: ChannelConfig::reliable_ordered() })?,
                Py::new(py, Channel { config: ChannelConfig::unreliable() })?,
            ],
        };
        let classes = messages.iter().enumerate().map(|(position, class)| Class::new(class, position));
        let classes = classes.collect::<PyResult<Vec<Class>>>()?;
        let configs = channels.iter().map(|channel| channel.get().config.clone()).collect();
        let core = transport::Protocol::new(classes.iter().map(Class::message_type).collect(), configs)
            .map_err(value_error)?;
        let mut by_type = HashMap::new();
        for (number, class) in (0..=u16::MAX).zip(&classes) {
            if by_type.insert(class.class().as_ptr() as usize, number).is_some() {
                return Err(PyTypeError::new_err(format!("{} is in messages twice", class.name())));
            }
        }
        Ok(Protocol { id, core: Arc::new(core), classes, by_type, channels })
    }

    /// The 64-bit netcode protocol id.
    #[getter]
    fn id(&self) -> u64 {
        self.id
    }

    /// 64 bits over messages and channels, compared by the two sides when they connect.
    #[getter]
    fn hash(&self) -> u64 {
        self.core.hash()
    }

    /// The message classes, in order.
    #[getter]
    fn messages(&self, py: Python<'_>) -> Vec<Py<PyType>> {
        self.classes.iter().map(|class| class.class().clone_ref(py)).collect()
    }

    /// The channels, in order.
    #[getter]
    fn channels(&self, py: Python<'_>) -> Vec<Py<Channel>> {
        self.channels.iter().map(|channel| channel.clone_ref(py)).collect()
    }

    /// One message with its type, as it rides in a packet, padded with zero bits to whole bytes.
    ///
    /// Raises:
    ///     FieldError, UnregisteredMessageError, MessageTooLargeError
    #[pyo3(signature = (message, /))]
    fn encode<'py>(&self, message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let py = message.py();
        let number = self.number_of(message)?;
        let class = &self.classes[usize::from(number)];
        if let Some(mut writer) = transport::begin_alone(&self.core, number) {
            class.write(message, &mut writer)?;
            return Ok(PyBytes::new(py, writer.as_bytes()));
        }
        let message = Message { message_type: number, encoded: class.encode(message)? };
        Ok(PyBytes::new(py, &transport::write_alone(&self.core, &message)))
    }

    /// Reads what :meth:`encode` wrote.
    ///
    /// Raises:
    ///     StreamError: saying what is refused.
    #[pyo3(signature = (data, /))]
    fn decode<'py>(&self, data: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyAny>> {
        let (number, body) = transport::read_alone(&self.core, data.as_bytes())
            .map_err(|refusal| StreamError::new_err(refusal.to_string()))?;
        Ok(self.decode_message(data.py(), number, &body, None)?)
    }

    /// An upper bound of the bits that :meth:`encode` would take (7 bits for each alignment).
    #[pyo3(signature = (message, /))]
    fn measure(&self, message: &Bound<'_, PyAny>) -> PyResult<usize> {
        let number = self.number_of(message)?;
        let body = self.classes[usize::from(number)].measure(message)?;
        Ok(transport::alone_bits(&self.core, number, body))
    }

    fn __repr__(&self) -> String {
        format!("Protocol(id={:#x}, messages=[{}])", self.id, self.class_names())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.classes.iter().try_for_each(|class| class.traverse(visit))
    }
}

impl Protocol {
    /// The object encoded, with its type.
    pub(super) fn encode_message(&self, message: &Bound<'_, PyAny>) -> PyResult<Message> {
        let message_type = self.number_of(message)?;
        let encoded = self.classes[usize::from(message_type)].encode(message)?;
        Ok(Message { message_type, encoded })
    }

    /// An object made of what the core received.
    pub(super) fn decode_message<'py>(
        &self,
        py: Python<'py>,
        message_type: u16,
        body: &[u8],
        factory: Option<&Py<PyAny>>,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        self.classes[usize::from(message_type)].decode(py, body, factory)
    }

    /// A channel's number, if there is such a channel.
    pub(super) fn channel(&self, number: i64) -> PyResult<usize> {
        let count = self.channels.len();
        usize::try_from(number).ok().filter(|number| *number < count).ok_or_else(|| {
            ChannelError::new_err(format!("there is no channel {number}; channels are 0 to {}", count - 1))
        })
    }

    /// The number of a class made by `@tickwire.message`.
    pub(super) fn number_of_class(&self, class: &Bound<'_, PyAny>) -> PyResult<u16> {
        let number = self.by_type.get(&(class.as_ptr() as usize));
        number.copied().ok_or_else(|| {
            let shown = class.repr().map_or_else(|_| "it".into(), |text| text.to_string());
            UnregisteredMessageError::new_err(format!(
                "{shown} is not among the protocol's messages: {}",
                self.class_names()
            ))
        })
    }

    fn class_names(&self) -> String {
        let names: Vec<&str> = self.classes.iter().map(Class::name).collect();
        names.join(", ")
    }

    fn number_of(&self, message: &Bound<'_, PyAny>) -> PyResult<u16> {
        let number = self.by_type.get(&(message.get_type_ptr() as usize));
        number.copied().ok_or_else(|| self.unregistered(message))
    }

    #[cold]
    fn unregistered(&self, message: &Bound<'_, PyAny>) -> PyErr {
        let kind = message.get_type();
        let shown = kind.name().unwrap_or_else(|_| PyString::new(message.py(), "it"));
        UnregisteredMessageError::new_err(format!(
            "{shown} is not among the protocol's messages: {}",
            self.class_names()
        ))
    }
}

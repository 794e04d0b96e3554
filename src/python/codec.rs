//! Message objects to bits and back, for one registered class.
//!
//! Promises: a declared class is converted without running Python code; a class with its own `serialize` is
//! called once.
//!
//! The core checks the bodies of declared classes whole. Of a class with its own `serialize` it hands over a
//! bounded number of bits that only the class can judge, and must use up. [`Endpoint::judge`] judges what
//! `serialize` raises.

use std::cell::Cell;

use crate::python::prelude::*;

use super::slots::Slots;
use super::stream::{Stream, while_reading};
use crate::transport::protocol::MAX_MESSAGE_BYTES;
use crate::transport::{Block, Body, MessageType, OpaqueBody};
use crate::wire::{self, Encoded};

/// Bytes of the buffer that a thread keeps for its next message.
const MAX_KEPT: usize = 4096;

thread_local! {
    /// The thread's buffer for writing; empty while a message uses it.
    static WRITER: Cell<Option<BitWriter>> = const { Cell::new(None) };
}

/// One class of a protocol.
#[derive(Debug)]
pub(super) struct Class {
    slots: Slots,
    name: Arc<str>,
    kind: Kind,
    /// Whether its objects have a block.
    block: bool,
}

#[derive(Debug)]
enum Kind {
    Declared(Py<Schema>),
    Own { max_bytes: u32 },
}

impl Class {
    /// A class of inputs, with its name and schema; `or` says what else may be given.
    pub(super) fn of_inputs(inputs: &Object<'_>, or: &str) -> PyResult<(Self, String, wire::Schema)> {
        let class = Class::new(inputs, 0).map_err(|error| {
            let sentence = error.value(inputs.py()).to_string().replace("messages[0]", "inputs");
            PyTypeError::new_err(sentence)
        })?;
        let MessageType { name, body } = class.message_type();
        let Body::Declared(schema) = body else {
            refuse!(
                PyTypeError,
                "inputs must be {or}a class made by @tickwire.message, and {name} has a serialize of its own"
            );
        };
        if class.has_block() {
            refuse!(PyTypeError, "inputs must be a class without a block, and {name} has one");
        }
        Ok((class, name, schema))
    }

    /// A class made by `@message` or derived from `Message`; `position` is its index in the list of messages.
    pub(super) fn new(class: &Object<'_>, position: usize) -> PyResult<Self> {
        let py = class.py();
        let refuse =
            |why: &str| PyTypeError::new_err(format!("messages[{position}]: {} {why}", repr_of(class)));
        let Ok(class) = class.cast::<PyType>() else { return Err(refuse("is not a class")) };
        let name: Arc<str> = class.name()?.to_str()?.into();
        let own = class.getattr(intern!(py, "__dict__"))?.get_item("__tickwire_schema__");
        let (kind, slots) = if let Ok(schema) = own {
            let schema = schema.cast_into::<Schema>()?;
            let slots = schema.get().fields.slots(class)?;
            (Kind::Declared(schema.unbind()), slots)
        } else {
            let base = py.import("tickwire._message")?.getattr("Message")?.cast_into::<PyType>()?;
            if !class.is_subclass(&base)? {
                return Err(refuse(
                    "is neither made by @tickwire.message nor derived from tickwire.messages.Message",
                ));
            }
            if class.getattr("serialize")?.is(&base.getattr("serialize")?) {
                return Err(refuse("must define serialize(self, stream)"));
            }
            let what = format!("{name}.max_bytes");
            let most = u32::try_from(MAX_MESSAGE_BYTES).unwrap_or(u32::MAX);
            let max_bytes = bounded(&what, &class.getattr("max_bytes")?, 1, most)?;
            (Kind::Own { max_bytes }, Slots::new(class, core::iter::empty())?)
        };
        let block = class.getattr_opt(intern!(py, "__tickwire_block__"))?.is_some();
        Ok(Class { slots, name, kind, block })
    }

    pub(super) fn class(&self) -> &Py<PyType> {
        self.slots.class()
    }

    /// The fields of a declared class.
    pub(super) fn schema(&self) -> Option<&Py<Schema>> {
        if let Kind::Declared(schema) = &self.kind { Some(schema) } else { None }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether its objects have a block.
    pub(super) fn has_block(&self) -> bool {
        self.block
    }

    /// The object's block, if it has one.
    pub(super) fn block(&self, message: &Object<'_>) -> PyResult<Option<Block>> {
        if !self.block {
            return Ok(None);
        }
        let block = message.getattr(intern!(message.py(), "block"))?;
        let refuse = |refusal: Refusal| Err(refusal.raise(&self.name, "block", &block));
        match block.cast::<PyBytes>() {
            Ok(bytes) if bytes.as_bytes().is_empty() => refuse(Refusal::of_type("bytes, at least one")),
            Ok(bytes) => Ok(Some(bytes.as_bytes().to_vec().into())),
            Err(_) => refuse(Refusal::of_type("bytes")),
        }
    }

    /// The core's description of the class.
    pub(super) fn message_type(&self) -> MessageType {
        let body = match &self.kind {
            Kind::Declared(schema) => Body::Declared(schema.get().fields.core.clone()),
            Kind::Own { max_bytes } => Body::Opaque { max_bytes: *max_bytes },
        };
        MessageType { name: self.name.to_string(), body }
    }

    /// The object's body, ready for any packet.
    pub(super) fn encode(&self, message: &Object<'_>) -> PyResult<Encoded> {
        match &self.kind {
            Kind::Declared(schema) => {
                // A message that the object's own code writes meanwhile gets another writer.
                let mut writer = WRITER.take().unwrap_or_default();
                writer.clear();
                let written = schema.get().fields.write(message, Some(&self.slots), &mut writer);
                let encoded = written.map(|()| writer.encoded());
                if writer.byte_len() <= MAX_KEPT {
                    WRITER.set(Some(writer));
                }
                encoded
            }
            Kind::Own { max_bytes } => {
                let wire::Stream::Write(mut writer) = self.run(message, wire::Stream::writing())? else {
                    return Err(PyValueError::new_err("a writing stream writes"));
                };
                let encoded = writer.encoded();
                let bytes = encoded.max_bits().div_ceil(8);
                if bytes > *max_bytes as usize {
                    return Err(MessageTooLargeError::new_err(format!(
                        "{} must take at most {max_bytes} bytes, its max_bytes, not {bytes}",
                        self.name
                    )));
                }
                Ok(encoded)
            }
        }
    }

    /// Appends the fields of a declared class's object.
    pub(super) fn write(&self, message: &Object<'_>, writer: &mut BitWriter) -> PyResult<()> {
        match &self.kind {
            Kind::Declared(schema) => schema.get().fields.write(message, Some(&self.slots), writer),
            Kind::Own { .. } => Err(PyValueError::new_err("the class declares no fields")),
        }
    }

    /// An upper bound of the bits of the object's body.
    pub(super) fn measure(&self, message: &Object<'_>) -> PyResult<usize> {
        match &self.kind {
            Kind::Declared(schema) => {
                let mut measure = wire::Measure::new();
                schema.get().fields.write(message, Some(&self.slots), &mut measure)?;
                Ok(measure.bits_bound())
            }
            Kind::Own { .. } => Ok(self.run(message, wire::Stream::measuring())?.position()),
        }
    }

    /// Makes an object from a body that the core received.
    ///
    /// # Errors
    /// What the factory or `serialize` raised.
    pub(super) fn decode<'py>(
        &self,
        py: Python<'py>,
        body: &[u8],
        block: Option<&[u8]>,
        factory: Option<&Py<PyAny>>,
    ) -> PyResult<Object<'py>> {
        let message = match factory {
            None => self.slots.make(py)?,
            Some(factory) => factory.bind(py).call_method1(intern!(py, "create"), (self.class(),))?,
        };
        match &self.kind {
            Kind::Declared(schema) => {
                schema.get().fields.load::<true>(body, 0, &message, Some(&self.slots))?;
            }
            Kind::Own { .. } => {
                let body = OpaqueBody::read(body);
                self.read(&message, body)?;
            }
        }
        if self.block {
            let block = PyBytes::new(py, block.unwrap_or_default());
            message.setattr(intern!(py, "block"), block)?;
        }
        Ok(message)
    }

    /// Lets the object's own `serialize` read the body, which it must use up.
    fn read(&self, message: &Object<'_>, body: OpaqueBody<'_>) -> PyResult<()> {
        let start = body.start_bit as usize;
        let source = self.run_reading(message, wire::Stream::reading(body.bytes, start, body.bits))?;
        if source.position() == start + body.bits {
            return Ok(());
        }
        let name = &self.name;
        Err(StreamError::new_err(format!("{name}: serialize() leaves bits of the message unread")))
    }

    /// Where the body that begins at bit `start` ends. Its own `serialize` reads it, into an object that is
    /// dropped.
    ///
    /// # Errors
    /// What `serialize` raised.
    pub(super) fn extent(&self, py: Python<'_>, bytes: &[u8], start: usize) -> PyResult<usize> {
        let Kind::Own { max_bytes } = self.kind else {
            return Err(PyValueError::new_err("the class declares its fields"));
        };
        let (first, phase) = (start / 8, start % 8);
        let bits = (bytes.len() * 8 - start).min(max_bytes as usize * 8);
        let held = &bytes[first..(start + bits).div_ceil(8)];
        let message = self.slots.make(py)?;
        let source = self.run_reading(&message, wire::Stream::reading(held, phase, bits))?;
        Ok(first * 8 + source.position())
    }

    /// [`Class::run`] for a reading stream; attributes that the object hasn't got yet are None meanwhile.
    fn run_reading(&self, message: &Object<'_>, source: wire::Stream) -> PyResult<wire::Stream> {
        while_reading(message, || self.run(message, source))
    }

    /// Calls the object's own `serialize` with a stream, and returns the stream.
    fn run(&self, message: &Object<'_>, core: wire::Stream) -> PyResult<wire::Stream> {
        let py = message.py();
        let stream = Bound::new(py, Stream::new(self.name.clone(), core))?;
        let result = message.call_method1(intern!(py, "serialize"), (&stream,));
        // Taken after an exception too: a stream that the game kept must not be used any more.
        let core = stream.get().take();
        result?;
        core.ok_or_else(|| PyValueError::new_err("a stream is taken once"))
    }
}

holds!(Class: slots);

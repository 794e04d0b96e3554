//! The bit reader.

use std::borrow::Cow;

use crate::python::prelude::*;

use crate::python::stream::{Stream, primitives};
use crate::wire::{self, MAX_LENGTH, MAX_RELATIVE};

#[pyclass(frozen, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct BitReader {
    stream: Stream,
    bits: usize,
}

impl BitReader {
    fn position(&self) -> PyResult<usize> {
        self.stream.ask(|core| core.position())
    }
}

/// The value given to a reading stream where a writing one takes one.
fn none(py: Python<'_>) -> Object<'_> {
    py.None().into_bound(py)
}

macro_rules! reading {
    ($($name:ident($($(#[$check:meta])* $parameter:ident: $Type:ty),*) -> $Read:ty = $pass:expr;)*) => {
        #[pymethods]
        impl BitReader {
            $(
                fn $name<'py>(
                    &self,
                    py: Python<'py>,
                    $($(#[$check])* $parameter: $Type),*
                ) -> PyResult<$Read> {
                    self.stream.$name(&none(py), $($parameter),*)
                }
            )*

            #[new]
            fn new(data: &[u8]) -> Self {
                let bits = data.len() * 8;
                BitReader { stream: Stream::alone("BitReader", wire::Stream::reading(data, 0, bits)), bits }
            }

            properties! {
                bits_read: PyResult<usize> = Ok(self.position()?.min(self.bits));
                bits_left: PyResult<usize> = Ok(self.bits.saturating_sub(self.position()?));
                __repr__: PyResult<String> =
                    Ok(format!("<BitReader with {} of {} bits left>", self.bits_left()?, self.bits));
            }

            fn bytes(
                &self,
                py: Python<'_>,
                #[within(0, MAX_LENGTH)] count: u32,
            ) -> PyResult<Cow<'static, [u8]>> {
                self.stream.bytes(&none(py), count)
            }

            fn align(&self, py: Python<'_>) -> PyResult<()> {
                self.stream.run("align", &none(py), wire::Stream::align)
            }

            fn finish(&self, py: Python<'_>) -> PyResult<()> {
                self.stream.run("finish", &none(py), wire::Stream::finish)
            }
        }
    };
}

primitives!(reading!);

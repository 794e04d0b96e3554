//! The bit writer, and the measure, which takes the same calls and writes nothing.

use crate::python::prelude::*;

use crate::python::stream::{Stream, data, primitives};
use crate::wire::{self, MAX_LENGTH, MAX_RELATIVE};

#[pyclass(frozen, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct BitWriter(Stream);

#[pyclass(frozen, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct BitMeasure(Stream);

/// Defines the methods of a class that takes values: every primitive, and its own.
macro_rules! taking {
    ($Class:ident over $new:expr, { $($own:tt)* } $(
        $name:ident($($(#[$check:meta])* $parameter:ident: $Type:ty),*) -> $Read:ty = $pass:expr;
    )*) => {
        #[pymethods]
        impl $Class {
            #[new]
            fn new() -> Self {
                $Class(Stream::alone(stringify!($Class), $new))
            }

            $(
                fn $name(
                    &self,
                    value: &Object<'_>,
                    $($(#[$check])* $parameter: $Type),*
                ) -> PyResult<()> {
                    self.0.$name(value, $($parameter),*).map(drop)
                }
            )*

            fn bytes(&self, value: &Object<'_>) -> PyResult<()> {
                bytes(&self.0, value)
            }

            fn align(slf: &Bound<'_, Self>) -> PyResult<()> {
                slf.get().0.run("align", slf.as_any(), wire::Stream::align)
            }

            $($own)*
        }
    };
}

primitives!(taking! BitWriter over wire::Stream::writing(), {
    #[getter]
    fn bits_written(slf: &Bound<'_, Self>) -> PyResult<usize> {
        slf.get().0.ask(|core| core.position())
    }

    fn to_bytes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = slf.get().0.ask(|core| match core {
            wire::Stream::Write(writer) => Some(writer.as_bytes().to_vec()),
            wire::Stream::Read(_) | wire::Stream::Measure(_) => None,
        })?;
        let bytes = bytes.ok_or_else(|| PyRuntimeError::new_err("a writer writes"))?;
        Ok(PyBytes::new(slf.py(), &bytes))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!("<BitWriter of {} bits>", Self::bits_written(slf)?))
    }
});

primitives!(taking! BitMeasure over wire::Stream::measuring(), {
    #[getter]
    fn max_bits(slf: &Bound<'_, Self>) -> PyResult<usize> {
        slf.get().0.ask(|core| core.position())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!("<BitMeasure of at most {} bits>", Self::max_bits(slf)?))
    }
});

fn bytes(stream: &Stream, value: &Object<'_>) -> PyResult<()> {
    stream.pass("bytes", value, data, |core, it| match u32::try_from(it.len()) {
        Ok(count) if count <= MAX_LENGTH => core.bytes(&it, count).map(drop),
        _ => Err(ValueError::TooLong { length: it.len(), max: MAX_LENGTH, unit: "bytes" }.into()),
    })
}

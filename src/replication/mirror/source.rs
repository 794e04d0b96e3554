//! The sources of records' properties: plain bits, or a coder.

use super::super::class::GhostClass;
use super::super::coding::States;
use super::super::packet::Violation;
use crate::wire::BitReader;

/// A payload positioned at the properties of a record.
pub(super) trait RecordSource {
    /// Reads the words of a create's properties.
    ///
    /// # Errors
    /// A word has no value; the other methods fail in the same way.
    fn created(&mut self, class: &GhostClass, mask: u64, words: &mut [u64]) -> Result<(), Violation>;

    /// Reads the properties of a mask that have no words.
    fn others<R: Default>(
        &mut self,
        mask: u64,
        read: impl FnOnce(&mut BitReader<'_>) -> Result<R, Violation>,
    ) -> Result<R, Violation>;
}

/// A payload positioned at the properties of a coded record.
pub(super) trait CodedSource: RecordSource {
    /// Reads the words of an update's properties, which has this many states before the base; without states, skips them.
    ///
    /// # Errors
    /// As those of [`RecordSource::created`].
    fn read(
        &mut self,
        class: &GhostClass,
        mask: u64,
        run: u8,
        into: Option<(States<'_>, &mut [u64])>,
    ) -> Result<(), Violation>;
}

/// Plain bits, without a coder.
pub(super) struct Plain<'s, 'a>(pub(super) &'s mut BitReader<'a>);

impl RecordSource for Plain<'_, '_> {
    #[inline]
    fn created(&mut self, class: &GhostClass, mask: u64, words: &mut [u64]) -> Result<(), Violation> {
        for (i, property) in class.properties.of(mask) {
            property.read(self.0, &mut words[class.properties.word_range(i)])?;
        }
        Ok(())
    }

    #[inline]
    fn others<R: Default>(
        &mut self,
        mask: u64,
        read: impl FnOnce(&mut BitReader<'_>) -> Result<R, Violation>,
    ) -> Result<R, Violation> {
        if mask == 0 { Ok(R::default()) } else { read(self.0) }
    }
}

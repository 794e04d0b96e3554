//! The sources of records' properties: plain bits, or a coder.

use super::super::class::GhostClass;
use super::super::packet::Violation;
use crate::wire::BitReader;

/// The states that an update's words are predicted from, and the ticks between the first two and from the first on.
#[derive(Debug)]
pub(super) struct Bases<'b> {
    /// The words of one state after the other, the newest first. Scratch memory: the source may change it.
    pub(super) states: &'b mut [u64],
    pub(super) past: u16,
    pub(super) ahead: u16,
}

/// A payload positioned at the properties of a record.
pub(super) trait RecordSource {
    /// Reads the words of a create's properties.
    ///
    /// # Errors
    /// A word has no value; the other methods fail in the same way.
    fn created(&mut self, class: &GhostClass, mask: u64, words: &mut [u64]) -> Result<(), Violation>;

    /// Reads the words of an update's properties, with this many states before the newest, whose words are in `words`.
    fn updated(
        &mut self,
        class: &GhostClass,
        mask: u64,
        depth: u8,
        bases: Bases<'_>,
        words: &mut [u64],
    ) -> Result<(), Violation>;

    /// Skips the words of an update's properties.
    fn pass_over(&mut self, class: &GhostClass, mask: u64, depth: u8) -> Result<(), Violation>;

    /// Reads the properties of a mask that have no words.
    fn others<R: Default>(
        &mut self,
        mask: u64,
        read: impl FnOnce(&mut BitReader<'_>) -> Result<R, Violation>,
    ) -> Result<R, Violation>;
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
    fn updated(
        &mut self,
        class: &GhostClass,
        mask: u64,
        depth: u8,
        bases: Bases<'_>,
        words: &mut [u64],
    ) -> Result<(), Violation> {
        let goes_on = depth > 0 && self.0.bool()?;
        let (newest, older) = bases.states.split_at_mut(words.len());
        for (i, property) in class.properties.of(mask) {
            let range = class.properties.word_range(i);
            let (words, newest) = (&mut words[range.clone()], &mut newest[range.clone()]);
            if goes_on {
                property.read_ahead(&older[range], (bases.past, bases.ahead), self.0, words, newest)?;
            } else {
                property.read_delta(newest, self.0, words)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn pass_over(&mut self, class: &GhostClass, mask: u64, depth: u8) -> Result<(), Violation> {
        if depth > 0 {
            self.0.bool()?;
        }
        Ok(class.properties.skip(self.0, mask, true)?)
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

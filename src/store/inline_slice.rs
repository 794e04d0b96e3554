//! Slices whose length is set once: short ones are stored inline, and only longer ones are allocated.

use core::ops::{Deref, DerefMut};

/// Values of a fixed number; up to `N` of them need no allocation.
#[derive(Clone, Debug)]
pub(crate) struct InlineSlice<T, const N: usize>(Repr<T, N>);

#[derive(Clone, Debug)]
enum Repr<T, const N: usize> {
    Inline { len: u16, values: [T; N] },
    Allocated(Box<[T]>),
}

impl<T: Copy, const N: usize> InlineSlice<T, N> {
    /// This many times the same value.
    pub(crate) fn new(value: T, len: usize) -> Self {
        InlineSlice(if len <= N {
            // At most `N`, which is far below 65,536.
            Repr::Inline { len: len as u16, values: [value; N] }
        } else {
            Repr::Allocated(vec![value; len].into())
        })
    }
}

impl<T, const N: usize> Deref for InlineSlice<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Repr::Inline { len, values } => values.get(..usize::from(*len)).unwrap_or_default(),
            Repr::Allocated(values) => values,
        }
    }
}

impl<T, const N: usize> DerefMut for InlineSlice<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Repr::Inline { len, values } => values.get_mut(..usize::from(*len)).unwrap_or_default(),
            Repr::Allocated(values) => values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_length_holds_what_is_put_into_it() {
        for len in [0, 1, 4, 5, 1000] {
            let mut slice = InlineSlice::<usize, 4>::new(7, len);
            assert!(slice.len() == len && slice.iter().all(|value| *value == 7));
            slice.iter_mut().enumerate().for_each(|(n, value)| *value = n);
            assert!(slice.clone().iter().copied().eq(0..len));
            assert_eq!(matches!(slice.0, Repr::Inline { .. }), len <= 4);
        }
    }
}

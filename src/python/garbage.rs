//! What the garbage collector visits: the Python objects that a value holds, through its containers and locks.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::shared::lock;
use crate::endpoint::PeerHandle;
use crate::time::Instant;

/// Holds Python objects, or may.
pub(super) trait Traverse {
    /// Visits the objects.
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError>;
}

impl<T> Traverse for Py<T> {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self)
    }
}

impl<T: Traverse> Traverse for Mutex<T> {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A locked mutex is in use, so its objects are reachable anyway.
        self.try_lock().map_or(Ok(()), |held| held.traverse(visit))
    }
}

impl<A: Traverse, B: Traverse> Traverse for (A, B) {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.traverse(visit)?;
        self.1.traverse(visit)
    }
}

impl<A: Traverse, B: Traverse, C: Traverse> Traverse for (A, B, C) {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.traverse(visit)?;
        self.1.traverse(visit)?;
        self.2.traverse(visit)
    }
}

impl<T: Traverse, const N: usize> Traverse for [T; N] {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.iter().try_for_each(|held| held.traverse(visit))
    }
}

impl<K, V: Traverse> Traverse for HashMap<K, V> {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.values().try_for_each(|held| held.traverse(visit))
    }
}

impl<K, V: Traverse> Traverse for BTreeMap<K, V> {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.values().try_for_each(|held| held.traverse(visit))
    }
}

macro_rules! inside {
    ($($Container:ty => $held:ident $inside:expr),* $(,)?) => {
        $(impl<T: Traverse> Traverse for $Container {
            fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
                let $held = self;
                $inside.try_for_each(|held| held.traverse(visit))
            }
        })*
    };
}

inside! {
    Option<T> => it it.iter(),
    Vec<T> => it it.iter(),
    VecDeque<T> => it it.iter(),
    OnceLock<T> => it it.get().into_iter(),
    Arc<T> => it core::iter::once(&**it),
}

impl<T: Traverse + ?Sized> Traverse for Box<T> {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        (**self).traverse(visit)
    }
}

/// A place for an object of the game's.
#[derive(Debug, Default)]
pub(super) struct ObjectCell(Mutex<Option<Py<PyAny>>>);

impl ObjectCell {
    pub(super) fn get(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        lock(&self.0).as_ref().map(|object| object.clone_ref(py))
    }

    /// Dropping the former object may run code of the game, which may come back here: not under the lock.
    pub(super) fn set(&self, object: Option<Py<PyAny>>) {
        let before = core::mem::replace(&mut *lock(&self.0), object);
        drop(before);
    }
}

impl Traverse for ObjectCell {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.traverse(visit)
    }
}

macro_rules! without_objects {
    ($($Type:ty),*) => {
        $(impl Traverse for $Type {
            fn traverse(&self, _: &PyVisit<'_>) -> Result<(), PyTraverseError> {
                Ok(())
            }
        })*
    };
}

without_objects!(usize, PeerHandle, Instant);

/// Says which fields of a type hold objects.
macro_rules! holds {
    ($Type:ty: $($field:tt),*) => {
        impl $crate::python::garbage::Traverse for $Type {
            fn traverse(
                &self,
                visit: &pyo3::gc::PyVisit<'_>,
            ) -> Result<(), pyo3::gc::PyTraverseError> {
                let _ = visit;
                $($crate::python::garbage::Traverse::traverse(&self.$field, visit)?;)*
                Ok(())
            }
        }
    };
}

pub(super) use holds;

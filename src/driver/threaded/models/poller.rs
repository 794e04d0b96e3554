//! A poller without a socket, and without a longest wait: a model in which a ring is lost never ends, and fails.

use loom::sync::{Arc, Condvar, Mutex};

use crate::time::Duration;

/// What only a ring ends the waits at.
#[derive(Debug, Default)]
pub struct Poller(Arc<Rung>);

#[derive(Debug, Default)]
struct Rung {
    rung: Mutex<bool>,
    changed: Condvar,
}

#[derive(Clone, Debug)]
pub(in super::super) struct PollWaker(Arc<Rung>);

impl Poller {
    pub(in super::super) fn waker(&self) -> PollWaker {
        PollWaker(Arc::clone(&self.0))
    }

    pub(in super::super) fn wait(&mut self, _: Duration) {
        let mut rung = self.0.rung.lock().unwrap();
        while !*rung {
            rung = self.0.changed.wait(rung).unwrap();
        }
        *rung = false;
    }
}

impl PollWaker {
    pub(in super::super) fn ring(&self) {
        *self.0.rung.lock().unwrap() = true;
        self.0.changed.notify_one();
    }
}

//! A poller without a socket, and without a longest wait: a model in which a ring is lost never ends, and fails.

use std::io;

use loom::sync::{Arc, Condvar, Mutex};

use crate::time::Duration;

/// A flag that ends waits.
#[derive(Debug, Default)]
pub struct Poller(Arc<Signal>);

#[derive(Debug, Default)]
struct Signal {
    is_set: Mutex<bool>,
    changed: Condvar,
}

#[derive(Clone, Debug)]
pub(in super::super) struct PollWaker(Arc<Signal>);

impl Poller {
    /// For what isn't modelled, and has a socket.
    pub fn new(_: std::net::UdpSocket) -> io::Result<Self> {
        Ok(Self::default())
    }

    pub(in super::super) fn waker(&self) -> PollWaker {
        PollWaker(Arc::clone(&self.0))
    }

    pub(in super::super) fn wait(&mut self, _: Duration) -> io::Result<()> {
        let mut is_set = self.0.is_set.lock().unwrap();
        while !*is_set {
            is_set = self.0.changed.wait(is_set).unwrap();
        }
        *is_set = false;
        Ok(())
    }
}

impl PollWaker {
    pub(in super::super) fn ring(&self) {
        *self.0.is_set.lock().unwrap() = true;
        self.0.changed.notify_one();
    }
}

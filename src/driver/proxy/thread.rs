//! A proxy that works on a thread of its own.
//!
//! Promises: the thread ends with the [`ProxyThread`]; questions are answered between two turns.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

use mio::Waker;

use super::{Both, Proxy, ProxyCounters};
use crate::netsim::conditions::{Conditions, ConditionsError};
use crate::time::Duration;

/// How long the thread waits for datagrams at a time; a command ends the wait.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// A [`Proxy`] at work. Dropping it ends the proxy.
#[derive(Debug)]
pub struct ProxyThread {
    address: SocketAddr,
    waker: Arc<Waker>,
    /// None once the thread was asked to end, by dropping the sender.
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<ProxyCounters>>,
}

enum Command {
    Counters(SyncSender<ProxyCounters>),
    SetConditions(Box<Both<Conditions>>, SyncSender<Result<(), ConditionsError>>),
}

impl ProxyThread {
    /// Lets the proxy work.
    ///
    /// # Errors
    /// When the system has no thread to spare.
    pub fn start(proxy: Proxy) -> std::io::Result<Self> {
        let (address, waker) = (proxy.address(), proxy.waker());
        let (commands, receiver) = channel();
        let thread = Builder::new().name("tickwire-proxy".into()).spawn(move || run(proxy, &receiver))?;
        Ok(ProxyThread { address, waker, commands: Some(commands), thread: Some(thread) })
    }

    /// Where clients send to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything counted since the start.
    pub fn counters(&self) -> ProxyCounters {
        self.ask(Command::Counters)
    }

    /// Changes the conditions, as [`Proxy::set_conditions`].
    ///
    /// # Errors
    /// When they can't be met. The old ones stay then.
    pub fn set_conditions(&self, conditions: Both<Conditions>) -> Result<(), ConditionsError> {
        self.ask(|reply| Command::SetConditions(Box::new(conditions), reply))
    }

    /// Ends the proxy with everything in flight, and returns its final counts.
    pub fn stop(mut self) -> ProxyCounters {
        let thread = self.tell_to_end().expect("it is told once");
        thread.join().expect("the proxy's thread doesn't panic")
    }

    fn ask<T>(&self, command: impl FnOnce(SyncSender<T>) -> Command) -> T {
        let (reply, answer) = sync_channel(1);
        let commands = self.commands.as_ref().expect("there until the proxy ends");
        commands.send(command(reply)).expect("the proxy's thread runs until it is told to end");
        self.wake();
        answer.recv().expect("the proxy's thread answers")
    }

    fn tell_to_end(&mut self) -> Option<JoinHandle<ProxyCounters>> {
        self.commands = None;
        self.wake();
        self.thread.take()
    }

    fn wake(&self) {
        // If that fails, the thread checks for commands when its wait ends.
        let _sooner = self.waker.wake();
    }
}

impl Drop for ProxyThread {
    fn drop(&mut self) {
        if let Some(thread) = self.tell_to_end() {
            // If it panicked, its message was printed, and nobody is left to be told.
            let _counters = thread.join();
        }
    }
}

fn run(mut proxy: Proxy, commands: &Receiver<Command>) -> ProxyCounters {
    loop {
        match commands.try_recv() {
            Ok(Command::Counters(reply)) => {
                let _asker_gone = reply.send(proxy.counters());
            }
            Ok(Command::SetConditions(conditions, reply)) => {
                let _asker_gone = reply.send(proxy.set_conditions(*conditions));
            }
            Err(TryRecvError::Empty) => proxy.turn(MAX_WAIT),
            Err(TryRecvError::Disconnected) => return proxy.counters(),
        }
    }
}

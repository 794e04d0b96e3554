//! A UDP socket by itself.

use std::io;
use std::net::SocketAddr;

use crate::python::prelude::*;

use crate::driver::Poller;
use crate::driver::udp::{UdpConfig, UdpCounters, UdpSocket};

/// The longest datagram that UDP over IPv4 carries.
const MAX_DATAGRAM: usize = 65_507;

/// The maximum of datagrams that one call of `receive_many` reads.
const MAX_BOUND: usize = 1 << 20;

/// The maximum of a kernel buffer in bytes: the system's sizes are C ints.
const MAX_KERNEL_BUFFER: usize = 1 << 30;

/// The longest wait, in seconds: a day.
const MAX_WAIT: f64 = 86_400.0;

/// How often a wait checks for signals, and whether the socket was closed.
const WAIT_SLICE: Duration = Duration::from_millis(100);

#[pyclass(frozen, module = "tickwire.articles")]
#[derive(Debug)]
pub(crate) struct Socket {
    address: Address,
    send_buffer: usize,
    receive_buffer: usize,
    max_datagram: usize,
    state: Mutex<SocketState>,
}

#[derive(Debug)]
struct SocketState {
    /// None once closed.
    socket: Option<UdpSocket>,
    /// What the last wait used, for the next one. Taken by a thread that waits.
    poller: Option<Poller>,
    /// The closed socket's counters.
    counted: UdpCounters,
}

#[pymethods]
impl Socket {
    #[new]
    fn new(
        py: Python<'_>,
        address: Address,
        #[within(1, MAX_KERNEL_BUFFER)] send_buffer: usize,
        #[within(1, MAX_KERNEL_BUFFER)] receive_buffer: usize,
        #[within(1, MAX_DATAGRAM)] max_datagram: usize,
    ) -> PyResult<Self> {
        let config =
            UdpConfig { send_buffer, receive_buffer, max_datagram, gro: false, ..UdpConfig::default() };
        let socket = UdpSocket::bind(address.0, config).map_err(|error| os_error(py, &error, address.0))?;
        Ok(Socket {
            address: Address(socket.local_address()),
            send_buffer: socket.send_buffer(),
            receive_buffer: socket.receive_buffer(),
            max_datagram: config.max_datagram,
            state: Mutex::new(SocketState {
                socket: Some(socket),
                poller: None,
                counted: UdpCounters::default(),
            }),
        })
    }

    properties! {
        address: Address = self.address;
        send_buffer, receive_buffer, max_datagram: usize of self;
        closed: bool = lock(&self.state).socket.is_none();
    }

    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = {
            let state = lock(&self.state);
            state.socket.as_ref().map_or(state.counted, UdpSocket::counters)
        };
        counts(py, counters.iter())
    }

    fn send(&self, to: Address, data: &Bound<'_, PyBytes>) -> PyResult<bool> {
        self.check(to.0, data)?;
        let sent = self.with(|socket| socket.send(to.0, data.as_bytes()))?;
        sent.map_err(|error| os_error(data.py(), &error, to.0))
    }

    fn send_many(&self, datagrams: &Object<'_>) -> PyResult<u64> {
        let mut batch = Datagrams::new();
        let iterable = |_| {
            let class = class_name(datagrams);
            PyTypeError::new_err(format!("datagrams must be (address, bytes) pairs, not {class}"))
        };
        for pair in datagrams.try_iter().map_err(iterable)? {
            let pair = pair?;
            if !pair.cast::<PyTuple>().is_ok_and(|pair| pair.len() == 2) {
                let shown = pair.repr()?;
                refuse!(PyTypeError, "datagrams must be (address, bytes) pairs, not {shown}");
            }
            let (to, data): (Address, Bound<'_, PyBytes>) = pair.extract()?;
            self.check(to.0, &data)?;
            batch.push(to.0, data.as_bytes());
        }
        self.with(|socket| {
            let before = socket.counters().sent;
            socket.send_batch(&batch);
            socket.counters().sent - before
        })
    }

    fn receive(&self, py: Python<'_>) -> PyResult<Option<(Vec<u8>, Address)>> {
        let received = self.with(|socket| {
            Ok(socket.receive()?.map(|(from, datagram)| (datagram.to_vec(), Address(from))))
        })?;
        received.map_err(|error| os_error(py, &error, self.address.0))
    }

    fn receive_many(
        &self,
        py: Python<'_>,
        #[within(1, MAX_BOUND)] bound: usize,
    ) -> PyResult<Vec<(Vec<u8>, Address)>> {
        let mut batch = Vec::new();
        let received = self.with(|socket| {
            let push = |(), from, datagram: &mut [u8]| batch.push((datagram.to_vec(), Address(from)));
            socket.receive_each(bound, || (), push)
        })?;
        match received {
            // A lasting error comes again with the next call, when nothing is left to hand over.
            Err(error) if batch.is_empty() => Err(os_error(py, &error, self.address.0)),
            _ => Ok(batch),
        }
    }

    fn wait(&self, py: Python<'_>, #[seconds(MAX_WAIT)] timeout: Duration) -> PyResult<bool> {
        let poller = self.poller()?;
        let mut poller = poller.map_err(|error| os_error(py, &error, self.address.0))?;
        let waited = self.wait_with(py, &mut poller, timeout);
        let mut state = lock(&self.state);
        if state.socket.is_some() {
            state.poller = Some(poller);
        }
        waited
    }

    methods! {
        fileno() -> PyResult<i64> = self.with(|socket| socket.number());
    }

    fn close(&self) {
        let mut state = lock(&self.state);
        if let Some(socket) = state.socket.take() {
            state.counted = socket.counters();
            // Its handle would keep the port.
            state.poller = None;
        }
    }

    closes!();

    fn __repr__(&self) -> String {
        let closed = if self.closed() { ", closed" } else { "" };
        format!("<Socket at {}{closed}>", self.address.0)
    }
}

impl Socket {
    /// Uses the socket, unless it is closed. No Python code runs meanwhile.
    fn with<T>(&self, operation: impl FnOnce(&mut UdpSocket) -> T) -> PyResult<T> {
        lock(&self.state).socket.as_mut().map(operation).ok_or_else(closed)
    }

    /// The last wait's poller, or a new one if there was none or another thread waits with it.
    fn poller(&self) -> PyResult<io::Result<Poller>> {
        let mut state = lock(&self.state);
        let kept = state.poller.take();
        let socket = state.socket.as_ref().ok_or_else(closed)?;
        // A duplicated handle: another thread may close the socket, and its number be reused for another file.
        Ok(kept.map_or_else(|| Poller::new(socket.handle()?), Ok))
    }

    fn wait_with(&self, py: Python<'_>, poller: &mut Poller, timeout: Duration) -> PyResult<bool> {
        let deadline = std::time::Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            let waited = py.detach(|| poller.wait(left.min(WAIT_SLICE)));
            py.check_signals()?;
            if self.closed() {
                return Err(closed());
            }
            let is_ready = waited.map_err(|error| os_error(py, &error, self.address.0))?;
            if is_ready || left.is_zero() {
                return Ok(is_ready);
            }
        }
    }

    fn check(&self, to: SocketAddr, data: &Bound<'_, PyBytes>) -> PyResult<()> {
        let (bytes, most, own) = (data.as_bytes().len(), self.max_datagram, self.address.0);
        let complaint = if bytes > most {
            format!("data must be at most {most} bytes, not {bytes}")
        } else if to.port() == 0 {
            format!("to must have a port to send to, not {to}")
        } else if to.is_ipv6() != own.is_ipv6() {
            format!("to must have the socket's address family: {to} can't be reached from {own}")
        } else {
            return Ok(());
        };
        Err(PyValueError::new_err(complaint))
    }
}

fn closed() -> PyErr {
    ClosedError::new_err("the socket is closed: make a new one to continue")
}

//! The link between a server and a client, in ticks.

/// The delays and losses of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// The ticks that a packet takes to the client. A packet with 0 arrives in the tick that sent it.
    pub(crate) down: u32,
    /// The ticks that an ack takes to the server; at least 1, because the server handles acks at the start of a tick.
    pub(crate) up: u32,
    /// The share of packets that is lost, each way.
    pub(crate) loss: f64,
}

impl Path {
    /// A link on which the server knows of a packet's arrival this many ticks after it was sent; at least 1.
    pub(crate) const fn with_ack_age(ticks: u32, loss: f64) -> Path {
        let down = ticks / 2;
        Path { down, up: ticks - down, loss }
    }

    /// The age of the newest acked packet when the server sends the next one, in ticks.
    pub(crate) const fn ack_age(self) -> u32 {
        self.down + self.up
    }
}

//! A relayed peer: its virtual address, and the header around its datagrams.

use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::rendezvous::relay::{RelayPacket, RelayToken};
use crate::rendezvous::secrets::{ShortTag, TAG_BYTES};
use crate::store::Datagrams;
use crate::time::{Duration, Instant};

/// The network of virtual addresses: a unique local one (RFC 4193) with random bits, never seen outside this process.
const NETWORK: [u16; 4] = [0xFD3C, 0x9A57, 0xE1D4, 0x7277];

/// The port of all virtual addresses.
const PORT: u16 = 7777;

/// Between two binds until one is answered.
const BIND_INTERVAL: Duration = Duration::from_millis(120);

/// Between two binds afterwards, which keep the NAT's mapping alive or find a new one.
const REBIND_INTERVAL: Duration = Duration::from_secs(8);

/// The address that stands for the peer at the other end of a channel.
pub(super) fn virtual_address(channel: u64) -> SocketAddr {
    let [a, b, c, d] = NETWORK;
    let low = |shift: u32| (channel >> shift) as u16;
    SocketAddr::new(Ipv6Addr::new(a, b, c, d, low(48), low(32), low(16), low(0)).into(), PORT)
}

/// Whether an address stands for a relayed peer.
pub(super) fn is_relayed(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V6(ip) if ip.segments()[..4] == NETWORK)
}

pub(super) struct RelayLine {
    pub(super) session: u64,
    pub(super) relay: SocketAddr,
    pub(super) channel: u64,
    token: RelayToken,
    cookie: ShortTag,
    pub(super) is_bound: bool,
    bind_at: Instant,
    /// A cookie was taken and used at once. A relay that sends only cookies doesn't make us ask faster.
    has_hurried: bool,
}

impl RelayLine {
    pub(super) fn new(now: Instant, session: u64, relay: SocketAddr, token: RelayToken) -> Self {
        RelayLine {
            session,
            relay,
            channel: token.channel(),
            token,
            cookie: [0; TAG_BYTES],
            is_bound: false,
            bind_at: now,
            has_hurried: false,
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        virtual_address(self.channel)
    }

    pub(super) fn handle_challenge(&mut self, now: Instant, cookie: ShortTag) {
        self.cookie = cookie;
        if !core::mem::replace(&mut self.has_hurried, true) {
            self.bind_at = now;
        }
    }

    pub(super) fn handle_bound(&mut self, now: Instant) {
        (self.is_bound, self.has_hurried) = (true, false);
        self.bind_at = now + REBIND_INTERVAL;
    }

    pub(super) fn transmit(&mut self, now: Instant, out: &mut Datagrams) {
        if now < self.bind_at {
            return;
        }
        self.bind_at = now + BIND_INTERVAL;
        let bind = RelayPacket::Bind { cookie: self.cookie, token: self.token };
        out.push_with(self.relay, |out| bind.write(out));
    }

    pub(super) fn next_deadline(&self) -> Instant {
        self.bind_at
    }

    pub(super) fn wrap(&self, payload: &[u8], out: &mut Datagrams) {
        out.push_with(self.relay, |out| {
            RelayPacket::Data { channel: self.channel }.write(out);
            out.extend_from_slice(payload);
        });
    }
}

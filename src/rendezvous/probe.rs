//! The probes by which two introduced peers find an open path.
//!
//! Promises: only peers with the session's key can write one that is accepted; a reply is as long as its probe.

use super::bytes::MAGIC;
use super::secrets::{TAG_BYTES, same, short_tag};
use crate::wire::packet::{from_bytes, packet, to_bytes};

packet! {
    pub(super) enum ProbeKind: u8 {
        /// Asks whether the other peer is there.
        Ask = 0x41,
        /// The reply, with the probe's number.
        Reply = 0x42,
        /// Chooses this path; only the leading side sends it.
        Take = 0x43,
        /// The other side takes this path too.
        Taken = 0x44,
    }
}

packet! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct Probe {
        pub(super) kind: ProbeKind,
        pub(super) session: u64,
        pub(super) number: u32,
    }
}

impl Probe {
    /// Writes the probe, marked as the leading side's or the other's: a peer doesn't accept its own.
    pub(super) fn write(&self, key: &[u8; 16], leads: bool, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(MAGIC);
        out.extend(to_bytes::<Probe>(self));
        let tag = short_tag(key, &[b"probe", &[u8::from(leads)], &out[start..]]);
        out.extend_from_slice(&tag);
    }

    /// Reads a probe that isn't proven yet.
    pub(super) fn read(datagram: &[u8]) -> Option<Self> {
        let (said, _) = datagram.strip_prefix(&[MAGIC])?.split_last_chunk::<TAG_BYTES>()?;
        from_bytes::<Probe>(said).ok()
    }

    /// Whether the leading side, or the other, wrote it.
    pub(super) fn is_of(datagram: &[u8], key: &[u8; 16], leads: bool) -> bool {
        let Some((said, tag)) = datagram.split_last_chunk::<TAG_BYTES>() else { return false };
        same(tag, &short_tag(key, &[b"probe", &[u8::from(leads)], said]))
    }
}

//! What two peers who were introduced say to each other, to find out which way is open.
//!
//! Promises: only who was given the session's key writes one that is read; an answer is as long as its question.

use super::bytes::{Fields, MAGIC};
use super::secrets::{TAG_BYTES, same, short_tag};

const PROBE_BYTES: usize = 2 + 8 + 4 + TAG_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ProbeKind {
    /// Asks whether the other one is there.
    Ask = 0x41,
    /// The answer, with the number of the question.
    Reply = 0x42,
    /// This is the way: only who leads says so.
    Take = 0x43,
    /// The other one takes it too.
    Taken = 0x44,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) kind: ProbeKind,
    pub(super) session: u64,
    pub(super) number: u32,
}

impl Probe {
    /// Writes it, as who leads or the other one: a peer doesn't take its own for the other's.
    pub(super) fn write(&self, key: &[u8; 16], leads: bool, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[MAGIC, self.kind as u8]);
        out.extend_from_slice(&self.session.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        let tag = short_tag(key, &[b"probe", &[u8::from(leads)], &out[start..]]);
        out.extend_from_slice(&tag);
    }

    /// What a datagram says, not proven yet.
    pub(super) fn read(datagram: &[u8]) -> Option<Self> {
        let mut fields = Fields((datagram.len() == PROBE_BYTES).then_some(datagram)?);
        let [magic, kind] = fields.array()?;
        let kind = match kind {
            0x41 => ProbeKind::Ask,
            0x42 => ProbeKind::Reply,
            0x43 => ProbeKind::Take,
            0x44 => ProbeKind::Taken,
            _ => return None,
        };
        (magic == MAGIC).then_some(Probe { kind, session: fields.u64()?, number: fields.u32()? })
    }

    /// Whether who leads, or who doesn't, wrote it.
    pub(super) fn is_of(datagram: &[u8], key: &[u8; 16], leads: bool) -> bool {
        let Some((said, tag)) = datagram.split_last_chunk::<TAG_BYTES>() else { return false };
        same(tag, &short_tag(key, &[b"probe", &[u8::from(leads)], said]))
    }
}

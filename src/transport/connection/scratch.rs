//! Memory that packets are read and composed in.

use crate::transport::chunks::Selection;
use crate::transport::congestion::SentStamp;
use crate::transport::framing::native::{Control, Packet};
use crate::transport::ledger::acks::Acked;
use crate::transport::ledger::{Notification, Reported};
use crate::transport::message::Bodies;
use crate::transport::stream::{CreditMark, Draft};
use crate::wire::BitWriter;

/// Memory that each packet, of any connection, reuses: its contents are meaningless afterwards. Empty before a
/// connection uses it.
#[derive(Debug, Default)]
pub struct Scratch(Option<Box<Memory>>);

impl Scratch {
    /// Asked for some fifteen times a packet: all but the first time it is a load.
    #[inline]
    pub(super) fn get(&mut self) -> &mut Memory {
        match &mut self.0 {
            Some(memory) => memory,
            empty => empty.insert(Memory::boxed()),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) draft: Draft,
    pub(super) writer: BitWriter,
    pub(super) control: Control,
    pub(super) packet: Packet,
    pub(super) bodies: Bodies,
    pub(super) acked: Vec<Acked>,
    pub(super) lost: Vec<u64>,
    pub(super) credits: Vec<(u8, CreditMark)>,
    pub(super) notifications: Vec<Notification>,
    pub(super) stamps: Vec<(SentStamp, bool)>,
    pub(super) chunk: Selection,
    /// The runs reported by the ack ranges of the packet being composed.
    pub(super) reported: Reported,
}

impl Memory {
    #[cold]
    fn boxed() -> Box<Self> {
        Box::default()
    }
}

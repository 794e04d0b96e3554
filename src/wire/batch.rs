//! Messages encoded one after the other, for queues.

use std::sync::Arc;

use super::BitWriter;
use super::encoded::{Bytes, Encoded, INLINE};

/// Messages encoded one after the other, in one shared block of memory that lives as long as any of them: for
/// messages that end together.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    messages: Vec<Encoded>,
    /// Where the bytes will be.
    place: Arc<Vec<u8>>,
}

impl Batch {
    /// Adds the written bits as a message of their own, and returns the most bits that it takes: see
    /// [`Encoded::max_bits`].
    pub fn push(&mut self, writer: &mut BitWriter) -> usize {
        let (bits, first_align) = (writer.bit_len(), writer.first_align());
        let (start, bytes) = (self.bytes.len(), writer.as_bytes());
        // A place beyond 4 GiB can't be stored.
        let encoded = match u32::try_from(start) {
            Ok(start) if bytes.len() > INLINE => {
                self.bytes.extend_from_slice(bytes);
                Encoded { bytes: Bytes::Part(self.place.clone(), start), bits, first_align }
            }
            _ => Encoded::new(bytes, bits, first_align),
        };
        let max_bits = encoded.max_bits();
        self.messages.push(encoded);
        max_bits
    }

    /// The messages, in order.
    pub fn finish(self) -> Vec<Encoded> {
        let bytes = Arc::new(self.bytes);
        let mut messages = self.messages;
        for message in &mut messages {
            if let Bytes::Part(own, _) = &mut message.bytes {
                *own = bytes.clone();
            }
        }
        messages
    }
}

//! What rides in the payloads of the inputs' channel.
//!
//! From a client:
//!
//! | part | bits |
//! |---|---|
//! | sequence | 8, rising by one with each payload |
//! | view | 0; or 1 and 24: the low ones of the tick that the player saw, in 1/256 |
//! | count | 5: inputs, at most 31 |
//! | tick | 16, where there are inputs: the low ones of the tick that the newest is for |
//! | inputs | newest first, each for the tick before; behind the first one 1 where it is as the one in front of it, or 0 and the input |
//!
//! From a server:
//!
//! | part | bits |
//! |---|---|
//! | tick | 16: the low ones of the tick that this tick's states are of; 0; or 1 and the high 16 |
//! | busy | 6: 1/16 ticks between when inputs were taken for it and now; 63 or more |
//! | payloads | 3: how many, at most 4; each its sequence in 8 bits, and in 8 how many 1/16 ticks it has been here; 255 or more |
//! | newest | 0; or 1 and 16: the low bits of the newest tick whose input came |
//! | changed | 8: how many ticks ago anything changed that the client owns; 255 or more |

use core::fmt;

use crate::wire::{BitReader, BitSink, BitWriter, Encoded, ReadError, Schema};

/// Inputs in a payload, at most.
pub const MAX_INPUTS: usize = 31;
/// Payloads that carry an input, at most, unless one with a press was lost.
pub const MAX_COPIES: usize = 16;
/// Bits of an input, at most: some must fit into a packet with everything else.
pub const MAX_INPUT_BITS: usize = 1024;
/// Payloads that a report can echo.
pub const MAX_ECHOES: usize = 4;
/// Held for this long or longer, or for an unknown time.
pub const MAX_HELD: u8 = 255;

/// Steps of a tick in which a client reports the tick that its player saw.
pub const VIEW_STEPS: f64 = 256.0;

const SEQUENCE_BITS: u32 = 8;
const VIEW_BITS: u32 = 24;
const COUNT_BITS: u32 = 5;
const TICK_BITS: u32 = 16;
const BUSY_BITS: u32 = 6;
/// Changed this many ticks ago, or longer.
pub const MAX_CHANGED: u8 = 255;
/// This long or longer, or for an unknown time.
pub const MAX_BUSY: u8 = 63;
const ECHO_BITS: u32 = 3;

/// Bits of a payload before its inputs, at most.
pub const HEADER_BITS: usize = (SEQUENCE_BITS + 1 + VIEW_BITS + COUNT_BITS + TICK_BITS) as usize;

/// How a peer breaks the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFault {
    /// Only clients may send inputs, and only servers may report.
    Forged,
    /// It ends too early, or a value is invalid.
    Read(ReadError),
    /// More inputs than a payload may have.
    Count {
        /// This many there were.
        count: usize,
    },
    /// It has inputs, and the protocol has none.
    NoInputs,
    /// Bits after the end.
    Trailing {
        /// This many there were.
        bits: usize,
    },
}

impl fmt::Display for InputFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputFault::Forged => write!(f, "a payload that the peer may not send"),
            InputFault::Read(error) => write!(f, "{error}"),
            InputFault::Count { count } => write!(f, "{count} inputs, more than the maximum of {MAX_INPUTS}"),
            InputFault::NoInputs => write!(f, "inputs that the protocol doesn't have"),
            InputFault::Trailing { bits } => write!(f, "{bits} bits after the end"),
        }
    }
}

impl core::error::Error for InputFault {}

impl From<ReadError> for InputFault {
    fn from(error: ReadError) -> Self {
        InputFault::Read(error)
    }
}

/// The header of a client's payload, before its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputHeader {
    /// Its number modulo 256.
    pub sequence: u8,
    /// The low 24 bits of the tick that the player saw, in 1/256.
    pub view: Option<u32>,
}

/// Writes a client's payload in at most this many bits; `inputs` are newest first. Returns how many of them fit.
pub fn write_inputs<'a>(
    header: &InputHeader,
    tick: u32,
    inputs: impl ExactSizeIterator<Item = &'a Encoded> + Clone,
    bits: usize,
    writer: &mut BitWriter,
) -> usize {
    let (mut left, mut count) = (bits.saturating_sub(HEADER_BITS), 0);
    let mut before: Option<&Encoded> = None;
    for input in inputs.clone().take(MAX_INPUTS) {
        let cost = if before == Some(input) { 1 } else { usize::from(before.is_some()) + input.max_bits() };
        if cost > left {
            break;
        }
        left -= cost;
        count += 1;
        before = Some(input);
    }
    writer.bits(u64::from(header.sequence), SEQUENCE_BITS);
    writer.bool(header.view.is_some());
    if let Some(view) = header.view {
        writer.bits(u64::from(view & 0xFF_FFFF), VIEW_BITS);
    }
    writer.bits(count as u64, COUNT_BITS);
    if count == 0 {
        return 0;
    }
    writer.bits(u64::from(tick & 0xFFFF), TICK_BITS);
    let mut before: Option<&Encoded> = None;
    for input in inputs.take(count) {
        match before {
            Some(before) if before == input => writer.bool(true),
            Some(_) => {
                writer.bool(false);
                writer.append(input);
            }
            None => writer.append(input),
        }
        before = Some(input);
    }
    count
}

/// Reads a client's payload. Returns its header, the low bits of the newest input's tick and the number of inputs;
/// appends the inputs to `bodies`, newest first, and the end of each to `ends`.
///
/// # Errors
///
/// How the payload breaks the protocol.
pub fn read_inputs(
    reader: &mut BitReader<'_>,
    schema: Option<&Schema>,
    bodies: &mut Vec<u8>,
    ends: &mut Vec<usize>,
) -> Result<(InputHeader, u16), InputFault> {
    bodies.clear();
    ends.clear();
    let sequence = reader.bits(SEQUENCE_BITS)? as u8;
    let view = if reader.bool()? { Some(reader.bits(VIEW_BITS)? as u32) } else { None };
    let count = reader.bits(COUNT_BITS)? as usize;
    if count > MAX_INPUTS {
        return Err(InputFault::Count { count });
    }
    let mut tick = 0;
    if count > 0 {
        let schema = schema.ok_or(InputFault::NoInputs)?;
        tick = reader.bits(TICK_BITS)? as u16;
        let mut start = 0;
        for i in 0..count {
            if i > 0 && reader.bool()? {
                let (from, to) = (start, bodies.len());
                bodies.extend_from_within(from..to);
                start = to;
            } else {
                start = bodies.len();
                // Tails are relative to the start of the body.
                schema.read(reader, bodies)?;
            }
            ends.push(bodies.len());
        }
    }
    finish(reader)?;
    Ok((InputHeader { sequence, view }, tick))
}

/// A server's report to a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The low bits of its tick, and the high bits in some reports.
    pub tick: u16,
    pub high: Option<u16>,
    /// 1/16 ticks between taking the tick's inputs and sending this.
    pub busy: u8,
    /// Payloads received since the last report: their numbers, and for how many 1/16 ticks each has been held.
    pub echoes: [(u8, u8); MAX_ECHOES],
    pub echo_count: u8,
    /// The low bits of the newest tick with an input.
    pub newest: Option<u16>,
    /// How many ticks ago anything last changed that the client owns.
    pub changed: u8,
}

impl Report {
    /// The maximum size of a report in bits.
    pub const MAX_BITS: usize =
        TICK_BITS as usize * 3 + 2 + (BUSY_BITS + ECHO_BITS) as usize + 8 + 16 * MAX_ECHOES;

    pub fn write(&self, writer: &mut BitWriter) {
        writer.bits(u64::from(self.tick), TICK_BITS);
        writer.bool(self.high.is_some());
        if let Some(high) = self.high {
            writer.bits(u64::from(high), TICK_BITS);
        }
        writer.bits(u64::from(self.busy.min(MAX_BUSY)), BUSY_BITS);
        writer.bits(u64::from(self.echo_count), ECHO_BITS);
        for (sequence, held) in &self.echoes[..usize::from(self.echo_count)] {
            writer.bits(u64::from(*sequence), 8);
            writer.bits(u64::from(*held), 8);
        }
        writer.bool(self.newest.is_some());
        if let Some(newest) = self.newest {
            writer.bits(u64::from(newest), TICK_BITS);
        }
        writer.bits(u64::from(self.changed), 8);
    }

    /// Reads a server's payload.
    ///
    /// # Errors
    ///
    /// How the payload breaks the protocol.
    pub fn read(reader: &mut BitReader<'_>) -> Result<Self, InputFault> {
        let mut report = Report { tick: reader.bits(TICK_BITS)? as u16, ..Report::default() };
        if reader.bool()? {
            report.high = Some(reader.bits(TICK_BITS)? as u16);
        }
        report.busy = reader.bits(BUSY_BITS)? as u8;
        let count = reader.bits(ECHO_BITS)? as usize;
        if count > MAX_ECHOES {
            return Err(InputFault::Count { count });
        }
        report.echo_count = count as u8;
        for echo in &mut report.echoes[..count] {
            *echo = (reader.bits(8)? as u8, reader.bits(8)? as u8);
        }
        if reader.bool()? {
            report.newest = Some(reader.bits(TICK_BITS)? as u16);
        }
        report.changed = reader.bits(8)? as u8;
        finish(reader)?;
        Ok(report)
    }
}

fn finish(reader: &BitReader<'_>) -> Result<(), InputFault> {
    match reader.remaining_bits() {
        0 => Ok(()),
        bits => Err(InputFault::Trailing { bits }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::wire::Kind;

    fn schema() -> Schema {
        Schema::new([("x", Kind::Bits { bits: 11 }), ("jump", Kind::Bool)]).unwrap()
    }

    fn input(x: u64) -> Encoded {
        let mut writer = BitWriter::new();
        writer.bits(x, 11);
        writer.bool(x % 2 == 1);
        writer.encoded()
    }

    #[test]
    fn inputs_come_as_they_were_written() {
        let inputs: Vec<Encoded> = [5, 5, 7, 7, 7, 1].map(input).into();
        let header = InputHeader { sequence: 200, view: Some(0xABCDEF) };
        let mut writer = BitWriter::new();
        assert_eq!(write_inputs(&header, 70_000, inputs.iter(), 4_000, &mut writer), 6);
        let bits = writer.bit_len();
        assert_eq!(bits, HEADER_BITS + 12 + 1 + 13 + 1 + 1 + 13);
        let bytes = writer.into_bytes();
        let (mut bodies, mut ends) = (Vec::new(), Vec::new());
        let mut reader = BitReader::with_range(&bytes, 0, bits);
        let read = read_inputs(&mut reader, Some(&schema()), &mut bodies, &mut ends).unwrap();
        assert_eq!(read, (header, (70_000 & 0xFFFF) as u16));
        assert_eq!(ends.len(), 6);
        assert_eq!(bodies[..ends[0]], bodies[ends[0]..ends[1]]);
        assert_ne!(bodies[..ends[0]], bodies[ends[1]..ends[2]]);
        let mut reader = BitReader::with_range(&bytes, 0, bits);
        let refused = read_inputs(&mut reader, None, &mut bodies, &mut ends);
        assert_eq!(refused, Err(InputFault::NoInputs));
    }

    #[test]
    fn as_many_go_in_as_there_is_room_for() {
        let inputs: Vec<Encoded> = [1, 2, 3].map(input).into();
        let header = InputHeader { sequence: 0, view: None };
        for (bits, count) in [(HEADER_BITS, 0), (HEADER_BITS + 12, 1), (HEADER_BITS + 26, 2)] {
            let mut writer = BitWriter::new();
            assert_eq!(write_inputs(&header, 9, inputs.iter(), bits, &mut writer), count);
            assert!(writer.bit_len() <= bits);
        }
    }

    #[test]
    fn reports_come_as_they_were_written() {
        let echoes = [(255, 0), (0, 255), (9, 8), (7, 6)];
        let whole = Report {
            tick: 9,
            high: Some(3),
            busy: 63,
            echoes,
            echo_count: 4,
            newest: Some(12),
            changed: 255,
        };
        let small = Report { tick: 65_535, ..Report::default() };
        for report in [whole, small] {
            let mut writer = BitWriter::new();
            report.write(&mut writer);
            let bits = writer.bit_len();
            assert!(bits <= Report::MAX_BITS);
            let bytes = writer.into_bytes();
            assert_eq!(Report::read(&mut BitReader::with_range(&bytes, 0, bits)), Ok(report));
            let short = Report::read(&mut BitReader::with_range(&bytes, 0, bits - 1));
            assert!(matches!(short, Err(InputFault::Read(_))));
        }
    }

    #[test]
    fn garbage_is_refused_or_read_and_never_more() {
        let mut rng = Rng::seeded(5);
        let (mut bodies, mut ends) = (Vec::new(), Vec::new());
        let (schema, mut refused) = (schema(), 0);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..rng.next_u64() % 40).map(|_| rng.next_u64() as u8).collect();
            let bits = bytes.len() * 8;
            let inputs = read_inputs(
                &mut BitReader::with_range(&bytes, 0, bits),
                Some(&schema),
                &mut bodies,
                &mut ends,
            );
            let report = Report::read(&mut BitReader::with_range(&bytes, 0, bits));
            refused += usize::from(inputs.is_err()) + usize::from(report.is_err());
            assert!(ends.len() <= MAX_INPUTS && bodies.len() <= MAX_INPUTS * schema.row_size());
        }
        assert!(refused > 30_000);
    }
}

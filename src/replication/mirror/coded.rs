//! Reads the part of a packet with the coded classes.
//!
//! Promises: a record is read whether its ghost exists or not, so a packet's meaning never depends on another packet's
//! fate. A payload has at most [`MAX_RECORDS`] records, whatever its bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::class::{Classes, GhostClass};
use super::super::coding::{
    AGE_BITS, Coder, Decoder, GhostList, Guess, Layout, Listing, MAX_PACKETS, MAX_READ_ENTRIES, MAX_RECORDS,
    Models, Motion, Note, OLDER_TICKS, Off, Op, Place, READ_TICKS, Sample, States,
};
use super::super::packet::Violation;
use super::Mirror;
use super::ghosts::{Against, Ghosts};
use super::staged::{Staged, StagedOp};
use crate::wire::{BitReader, BitSink, BitWriter, ReadError};

/// The state to read coded packets.
#[derive(Debug)]
pub(super) struct CodedReader {
    motions: Box<[Motion]>,
    models: Models,
    /// The last ticks, in rising order.
    ticks: VecDeque<ReadTick>,
    /// The newest tick that isn't kept any more, or 0.
    forgotten: u32,
    lent: Lent,
}

/// A tick of which coded packets have arrived.
#[derive(Debug)]
struct ReadTick {
    tick: u32,
    packets: Vec<Arc<Sample>>,
    /// The sample of the tick, if it is known.
    sample: Option<Arc<Sample>>,
    /// How many entries the packets have.
    entries: usize,
}

impl ReadTick {
    fn sample(&mut self) -> Arc<Sample> {
        self.sample.get_or_insert_with(|| Sample::of_tick(&self.packets)).clone()
    }

    /// Adds a packet, if it isn't a duplicate. A tick of too many isn't named.
    fn push(&mut self, packet: Arc<Sample>) {
        if self.packets.len() < MAX_PACKETS && !self.packets.contains(&packet) {
            self.entries += packet.entries();
            self.packets.push(packet);
            self.sample = None;
        }
    }
}

/// Scratch memory for each packet.
#[derive(Debug, Default)]
struct Lent {
    bytes: Vec<u8>,
    seen: Vec<[u16; 2]>,
    /// The words of the last create, and of a property.
    created: Vec<u64>,
    guessed: Vec<u64>,
    bodies: BitWriter,
    /// The ghosts that the section updated or created.
    listing: Listing,
    named: Vec<Arc<Sample>>,
}

impl CodedReader {
    /// None if no class is coded.
    pub(super) fn of(classes: &Classes) -> Option<Box<Self>> {
        let has_coded = classes.iter().any(|class| class.coded);
        let new = || CodedReader {
            motions: classes.iter().map(|class| Motion::new(class)).collect(),
            models: Models::first(classes.iter().map(|class| class.as_ref())),
            ticks: VecDeque::new(),
            forgotten: 0,
            lent: Lent::default(),
        };
        has_coded.then(|| Box::new(new()))
    }

    fn sample(&mut self, tick: u32) -> Option<Arc<Sample>> {
        let at = self.ticks.partition_point(|read| read.tick < tick);
        self.ticks.get_mut(at).filter(|read| read.tick == tick).map(ReadTick::sample)
    }

    /// Reads which ticks a packet names, and changes to its models. False if a tick isn't known any more.
    fn read_names(&mut self, tick: u32, reader: &mut BitReader<'_>) -> Result<bool, Violation> {
        let mut named = core::mem::take(&mut self.lent.named);
        named.clear();
        // Six bits, and fifteen.
        let age = reader.bits(AGE_BITS)? as u32;
        let newest = tick.saturating_sub(age);
        let mut missing = false;
        if age > 0 {
            let older = if reader.bool()? { None } else { Some(reader.bits(OLDER_TICKS)? as u32) };
            let wanted = older.map_or(0, |older| older << 1) | 1;
            // Which of these there were isn't known any more.
            missing =
                older.is_none() && self.forgotten > 0 && newest.saturating_sub(OLDER_TICKS) <= self.forgotten;
            for back in 0..=OLDER_TICKS {
                let is_wanted = wanted >> back & 1 == 1;
                if is_wanted || older.is_none() {
                    let sample = newest.checked_sub(back).and_then(|tick| self.sample(tick));
                    missing |= is_wanted && sample.is_none();
                    named.extend(sample);
                }
            }
        }
        if missing && self.ticks.back().is_none_or(|newest| newest.tick <= tick) {
            return Err(Violation::Form);
        }
        if !missing {
            self.models.name(&named);
        }
        self.lent.named = named;
        Ok(!missing)
    }

    /// Keeps the sample of a packet.
    fn keep(&mut self, tick: u32, packet: Sample) {
        let at = self.ticks.partition_point(|read| read.tick < tick);
        if self.ticks.get(at).is_none_or(|read| read.tick != tick) {
            self.ticks.insert(at, ReadTick { tick, packets: Vec::new(), sample: None, entries: 0 });
        }
        self.ticks[at].push(Arc::new(packet));
        let newest = self.ticks.back().map_or(0, |newest| newest.tick);
        let mut entries = 0;
        let kept = self.ticks.iter().rev().take_while(|read| {
            entries += read.entries;
            newest - read.tick < READ_TICKS && entries <= MAX_READ_ENTRIES
        });
        let dropped = self.ticks.len() - kept.count();
        if let Some(last) = self.ticks.drain(..dropped).next_back() {
            self.forgotten = self.forgotten.max(last.tick);
        }
    }
}

impl Mirror {
    /// Reads the rest of a packet.
    pub(super) fn handle_coded(
        &mut self,
        tick: u32,
        reader: &mut BitReader<'_>,
        staged: &mut Staged,
    ) -> Result<(), Violation> {
        let Some(mut coded) = self.coded.take() else { return Ok(()) };
        let result = match coded.read_names(tick, reader) {
            Ok(true) => self.read_coded(tick, reader, &mut coded, staged),
            // Too many packets overtook it: the ticks that it names are forgotten.
            Ok(false) => {
                staged.skipped += 1;
                Ok(None)
            }
            Err(violation) => Err(violation),
        };
        let result = result.map(|sample| sample.into_iter().for_each(|sample| coded.keep(tick, sample)));
        self.coded = Some(coded);
        result
    }

    fn read_coded(
        &mut self,
        tick: u32,
        reader: &mut BitReader<'_>,
        coded: &mut CodedReader,
        staged: &mut Staged,
    ) -> Result<Option<Sample>, Violation> {
        let CodedReader { motions, models, lent, .. } = coded;
        let Lent { bytes, seen, created, guessed, bodies, listing, .. } = lent;
        bytes.clear();
        bytes.resize(reader.remaining_bits() / 8, 0);
        for bytes in bytes.chunks_mut(8) {
            // At most 64 bits.
            let word = reader.bits(8 * bytes.len() as u32)?.to_le_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
        if reader.remaining_bits() > 0 {
            return Err(Violation::Trailing { bits: reader.remaining_bits() });
        }
        let mut decoder = Decoder::new(bytes, seen);
        let (mut packet, mut least, mut records) = (Sample::new(tick, self.ghosts.len()), 0, 0);
        while decoder.raw(0, 1) == 1 {
            let class = decoder.raw(0, self.classes.class_bits()) as u32;
            let ghosts = self.ghosts.get_mut(class as usize).filter(|ghosts| ghosts.class().coded);
            let Some(ghosts) = ghosts.filter(|_| class >= least) else {
                return Err(Violation::Class { class });
            };
            least = class + 1;
            let words = ghosts.class().properties.word_count();
            listing.clear(words);
            created.clear();
            created.resize(words, 0);
            decoder.load(models.of(class as usize));
            let mut source = Coded {
                decoder: &mut decoder,
                layout: Layout::new(ghosts.class()),
                motion: &motions[class as usize],
                created,
                guessed,
                bodies,
                listing,
                note: None,
                whole: false,
                deviated: 0,
            };
            let listed = models.listed(class as usize);
            source.read_section((class, ghosts), tick, listed, &mut records, staged)?;
            packet.keep(class as usize, decoder.seen(), listing);
        }
        match decoder.left() {
            0 if !decoder.is_beyond() => Ok(Some(packet)),
            0 => Err(past_end()),
            left => Err(Violation::Trailing { bits: left * 8 }),
        }
    }
}

fn past_end() -> Violation {
    ReadError::PastEnd { needed: 1, remaining: 0 }.into()
}

/// A coder, as the source of the records of a section.
struct Coded<'s, 'a> {
    decoder: &'s mut Decoder<'a>,
    layout: Layout,
    motion: &'s Motion,
    created: &'s mut [u64],
    guessed: &'s mut Vec<u64>,
    bodies: &'s mut BitWriter,
    /// The ghosts so far; the last is the record's.
    listing: &'s mut Listing,
    /// What is known of the record's ghost, if it is listed.
    note: Option<Note>,
    /// Whether an update's words are whole.
    whole: bool,
    /// The properties of an update that don't do what is likely.
    deviated: u64,
}

impl Coded<'_, '_> {
    /// Reads a class's records.
    fn read_section(
        &mut self,
        (class, ghosts): (u32, &mut Ghosts),
        tick: u32,
        listed: GhostList<'_>,
        records: &mut usize,
        staged: &mut Staged,
    ) -> Result<(), Violation> {
        let of = ghosts.class();
        let (allowed, capacity) = (of.updated_for_any(), of.capacity);
        let mut place = Place::new(tick, of.properties.each().len() as u32, of.is_chosen(), listed.notes());
        loop {
            let Some((at, op)) = place.code(self.decoder, None) else {
                if !place.is_listed() {
                    return Ok(());
                }
                place.leave_list();
                continue;
            };
            let (id, trails) = match place.is_listed() {
                false => (at, &[][..]),
                true => (*listed.ids.get(at as usize).ok_or(Violation::Form)?, listed.trails(at as usize)),
            };
            *records += 1;
            if self.decoder.is_beyond() || *records > MAX_RECORDS {
                return Err(past_end());
            }
            if id >= capacity {
                return Err(Violation::Id { class, id });
            }
            let (id, op) = (id as usize, op.ok_or(Violation::Form)?);
            if op != Op::Destroy {
                self.listing.push(id as u32, trails);
            }
            self.note = place.note(at).copied();
            match op {
                Op::Update { mask, .. } if mask == 0 || mask & !allowed != 0 => {
                    return Err(Violation::Mask { class, mask });
                }
                Op::Update { base, whole, mask } => {
                    (self.whole, self.deviated) = (whole, 0);
                    let against = Against { tick, base };
                    ghosts.read_coded_update(id, against, mask, staged, |class, mask, into| {
                        self.read(class, mask, base.depth(), into)
                    })?;
                    self.read_others(mask, ghosts, staged)?;
                    self.listing.note(Note::of_update(self.note, (tick, base, mask), self.deviated));
                }
                Op::Create(audience) => {
                    let mask = ghosts.read_create(id, audience, staged, |class, mask, words| {
                        self.created(class, mask, words)
                    })?;
                    self.read_others(mask, ghosts, staged)?;
                    self.listing.note(Note::of_create(mask, tick));
                }
                Op::Destroy => staged.push(class, id, StagedOp::Destroy),
            }
        }
    }

    /// Reads the words of an update's properties, which has this many states before the base; without states, skips them.
    fn read(
        &mut self,
        class: &GhostClass,
        mask: u64,
        run: u8,
        mut into: Option<(States<'_>, &mut [u64])>,
    ) -> Result<(), Violation> {
        let Coded { decoder, layout, motion, guessed, listing, note, deviated, .. } = self;
        let (properties, trails, mut off) = (&class.properties, listing.trails(), Off::default());
        for (i, property) in properties.of(mask) {
            let range = properties.word_range(i);
            guessed.clear();
            guessed.resize(range.len(), 0);
            if self.whole {
                layout.code_whole(*decoder, property, guessed);
            } else {
                let deviates = layout.code_deviates(*decoder, i, (run, note.as_ref()), false);
                *deviated |= u64::from(deviates) << i;
                let mut guess = Guess::default();
                if let Some((states, _)) = &into {
                    let goes = states.is_moving(property, &range) != deviates;
                    guess = motion.predict((i, property), range.clone(), *states, goes, guessed);
                }
                off.begin(run, deviates);
                let largest_at = motion.largest_at(i).filter(|_| into.is_some());
                for (at, of) in property.words().iter().enumerate() {
                    let word = range.start + at;
                    let residual = layout.code_residual(*decoder, word, &mut off, &mut trails[word], 0);
                    if residual > of.last() {
                        return Err(ReadError::OutOfRange { offset: residual, span: of.last() }.into());
                    }
                    guessed[at] = of.word(residual, guessed[at]);
                    if largest_at == Some(at) {
                        motion.turn(i, guess, guessed);
                    }
                }
            }
            if let Some((_, words)) = &mut into {
                if !property.has_value(guessed) {
                    return Err(ReadError::NotFinite.into());
                }
                words[range].copy_from_slice(guessed);
            }
        }
        Ok(())
    }

    /// Reads the words of a create's properties.
    fn created(&mut self, class: &GhostClass, mask: u64, words: &mut [u64]) -> Result<(), Violation> {
        for (i, property) in class.properties.of(mask) {
            let range = class.properties.word_range(i);
            let words = &mut words[range.clone()];
            self.layout.code_created(
                self.decoder,
                property,
                range.start,
                &self.created[range.clone()],
                words,
            );
            if !property.has_value(words) {
                return Err(ReadError::NotFinite.into());
            }
            self.created[range].copy_from_slice(words);
        }
        Ok(())
    }

    /// Reads the properties of a mask that have no words.
    fn read_others(&mut self, mask: u64, ghosts: &Ghosts, staged: &mut Staged) -> Result<(), Violation> {
        if mask & !ghosts.class().properties.with_words() == 0 {
            return Ok(());
        }
        let mut left = self.layout.code_length(self.decoder, 0);
        let remaining = 8 * self.decoder.left() as u64;
        // Nothing is made of bytes that don't exist; the decoder has read some ahead.
        if left > remaining + 64 {
            return Err(ReadError::PastEnd { needed: left, remaining }.into());
        }
        let needed = left as usize;
        self.bodies.clear();
        while left > 0 {
            // At most 16.
            let part = left.min(16) as u32;
            self.bodies.bits(self.decoder.raw(0, part), part);
            left -= u64::from(part);
        }
        let mut reader = BitReader::with_range(self.bodies.as_bytes(), 0, needed);
        ghosts.read_bodies(mask, &mut reader, staged)?;
        match reader.remaining_bits() {
            0 => Ok(()),
            bits => Err(Violation::Trailing { bits }),
        }
    }
}

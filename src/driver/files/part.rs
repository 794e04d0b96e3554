//! A file that is being received, with a record of its own progress.
//!
//! After the space for the content comes a note: eight magic bytes, the size of the content and of its slices, and a
//! bit for each received slice. The note is removed when the file is complete.
//!
//! Promises: a partial file is used by one chunk at a time, also among processes; the bytes written to it are its own
//! or were in a file of the same name with a matching note. Refuses every other file, which stays as it is.
//!
//! If a note is wrong (a disk that kept the note and not the slices, a manual change), the content's hash shows it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::failed;
use super::room::{Room, remove};
use crate::store::BitSet;
use crate::transport::chunks::{Offer, Sink, StorageError, Stored};

const MARK: [u8; 8] = *b"tickpart";

/// Bytes of a note before the bits.
const HEAD_BYTES: usize = MARK.len() + 8 + 2;

/// Parts of the same content for the same peer.
const MAX_PARTS: usize = 1024;

/// Bytes that a disk allocates together: a slice in the middle of a hole takes all of them.
const BLOCK_BYTES: u64 = 4096;

/// After this many new slices the note is updated: that many may be lost when a process is killed.
const NOTED_EVERY: u32 = 256;

/// A file that is being received. If it is dropped unfinished, it stays, so that its chunk can be resumed.
#[derive(Debug)]
pub(super) struct PartFile {
    file: File,
    path: PathBuf,
    whole: PathBuf,
    size: u64,
    slice_bytes: u16,
    /// A bit for each received slice, lowest first.
    bits: Vec<u8>,
    /// Which bytes of the bits are not in the note yet, and of how many slices.
    unnoted: Range<usize>,
    unnoted_slices: u32,
    /// Other processes can see that it is in use, so it may be resumed.
    stays: bool,
    /// It was renamed or removed.
    over: bool,
    /// Bytes of all blocks with a received slice.
    written: u64,
    room: Room,
}

/// A partial file that is created with its first slice: until then it takes no room.
#[derive(Debug)]
pub(super) struct NewPart {
    pub(super) whole: PathBuf,
    pub(super) client_id: u64,
    pub(super) offer: Offer,
    pub(super) room: Room,
    pub(super) file: Option<Box<PartFile>>,
}

impl NewPart {
    fn file(&mut self) -> io::Result<&mut PartFile> {
        let NewPart { whole, client_id, offer, room, file } = self;
        match file {
            Some(file) => Ok(file),
            none @ None => {
                let paths = part_paths(whole, *client_id);
                let created = paths.map(|path| PartFile::create(&path, whole, offer, room).transpose());
                let taken = || io::Error::new(ErrorKind::AlreadyExists, "all names for its parts are taken");
                let part = created.flatten().next().unwrap_or_else(|| Err(taken()))?;
                Ok(none.insert(Box::new(part)))
            }
        }
    }
}

/// The paths for parts of a content for a client: more than it may have open, as clients may share a directory.
pub(super) fn part_paths(whole: &Path, client_id: u64) -> impl Iterator<Item = PathBuf> {
    (0..MAX_PARTS).map(move |number| whole.with_extension(format!("{client_id:x}.{number}.part")))
}

/// What exists under a name.
pub(super) enum Found {
    /// A partial file to resume, and its received slices.
    Part(Box<PartFile>, BitSet),
    Nothing,
    /// Something that is in use, or not a part of this chunk.
    Other,
}

impl PartFile {
    /// Creates a new partial file; None if the name is taken.
    pub(super) fn create(path: &Path, whole: &Path, offer: &Offer, room: &Room) -> io::Result<Option<Self>> {
        let file = match OpenOptions::new().read(true).write(true).create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
            file => file?,
        };
        let locked = match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            // Without file locks, this file is ours because we created it, and none is ever resumed.
            Err(TryLockError::Error(_)) => false,
            Ok(()) => true,
        };
        let bits = vec![0; offer.slices().div_ceil(8) as usize];
        room.take_file(least_taken(offer));
        let mut part = Self::new(file, path, whole, offer, bits, room.clone());
        part.stays = locked;
        // On an error, remove the file.
        part.file.set_len(part.note_at() + part.bits.len() as u64)?;
        part.file.seek(SeekFrom::Start(part.size))?;
        part.file.write_all(&head(offer))?;
        Ok(Some(part))
    }

    /// Looks for a partial file to resume.
    pub(super) fn reopen(path: &Path, whole: &Path, offer: &Offer, room: Room) -> Found {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Found::Nothing,
            Err(_) => return Found::Other,
        };
        // First: the holder of the lock may be about to finish it, after which it has no note.
        if file.try_lock().is_err() {
            return Found::Other;
        }
        let Some(bits) = read_note(&file, offer) else { return Found::Other };
        let mut there = BitSet::new(offer.slices() as usize);
        for index in 0..8 * bits.len() {
            if bits[index / 8] >> (index % 8) & 1 == 1 {
                if index >= there.bound() {
                    return Found::Other;
                }
                there.insert(index);
            }
        }
        let mut part = Self::new(file, path, whole, offer, bits, room);
        part.written = blocks(0..part.size, part.size).filter(|block| part.has_any(block)).map(length).sum();
        Found::Part(Box::new(part), there)
    }

    fn new(file: File, path: &Path, whole: &Path, offer: &Offer, bits: Vec<u8>, room: Room) -> Self {
        let Offer { size, slice_bytes, .. } = *offer;
        let (path, whole) = (path.to_owned(), whole.to_owned());
        PartFile {
            file,
            path,
            whole,
            size,
            slice_bytes,
            bits,
            unnoted: 0..0,
            unnoted_slices: 0,
            stays: true,
            over: false,
            written: 0,
            room,
        }
    }

    /// Whether a slice of this block has arrived.
    fn has_any(&self, block: &Range<u64>) -> bool {
        let slice = u64::from(self.slice_bytes);
        let mut slices = block.start / slice..block.end.div_ceil(slice);
        slices.any(|index| self.bits[(index / 8) as usize] >> (index % 8) & 1 == 1)
    }

    /// Bytes of the room that it takes with this many written ones: those or its note, whichever is more. The sum would
    /// leave no room for the last slices of a file as large as the directory.
    fn taken(&self, written: u64) -> u64 {
        written.max(note_bytes(self.size, self.bits.len()))
    }

    /// The written bytes with a new slice: those of the blocks that it starts are added.
    fn written_with(&self, offset: u64, bytes: usize) -> u64 {
        let started = blocks(offset..offset + bytes as u64, self.size);
        self.written + started.filter(|block| !self.has_any(block)).map(length).sum::<u64>()
    }

    /// Bytes of the room that a new slice takes.
    fn needs(&self, offset: u64, bytes: usize) -> u64 {
        self.taken(self.written_with(offset, bytes)) - self.taken(self.written)
    }

    /// Where the bits are.
    fn note_at(&self) -> u64 {
        self.size + HEAD_BYTES as u64
    }

    fn note(&mut self) -> io::Result<()> {
        let bits = std::mem::take(&mut self.unnoted);
        self.unnoted_slices = 0;
        self.file.seek(SeekFrom::Start(self.note_at() + bits.start as u64))?;
        self.file.write_all(&self.bits[bits])
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.room.take(self.needs(offset, bytes.len()));
        self.written = self.written_with(offset, bytes.len());
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(bytes)?;
        let index = (offset / u64::from(self.slice_bytes)) as usize;
        let at = index / 8;
        self.bits[at] |= 1 << (index % 8);
        let known = &mut self.unnoted;
        *known =
            if known.start == known.end { at..at + 1 } else { known.start.min(at)..known.end.max(at + 1) };
        self.unnoted_slices += 1;
        if self.unnoted_slices < NOTED_EVERY { Ok(()) } else { self.note() }
    }

    fn read(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(out)
    }

    fn end(&mut self) {
        // If it can't be removed, nobody is left to be told.
        if !std::mem::replace(&mut self.over, true) && remove(&self.file, &self.path) {
            self.room.free(self.taken(self.written));
        }
    }
}

/// Bytes of a note, counted up to the file's size.
fn note_bytes(size: u64, bits: usize) -> u64 {
    size.min((HEAD_BYTES + bits) as u64)
}

/// Bytes of the room that an offer's partial file takes before anything is written to it.
fn least_taken(offer: &Offer) -> u64 {
    note_bytes(offer.size, offer.slices().div_ceil(8) as usize)
}

/// The beginning of a note.
fn head(offer: &Offer) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(&MARK);
    head[8..16].copy_from_slice(&offer.size.to_le_bytes());
    head[16..].copy_from_slice(&offer.slice_bytes.to_le_bytes());
    head
}

/// The bits of a note that fits an offer.
fn read_note(mut file: &File, offer: &Offer) -> Option<Vec<u8>> {
    let mut bits = vec![0; offer.slices().div_ceil(8) as usize];
    if file.metadata().ok()?.len() != offer.size + (HEAD_BYTES + bits.len()) as u64 {
        return None;
    }
    let mut found = [0; HEAD_BYTES];
    file.seek(SeekFrom::Start(offer.size)).ok()?;
    file.read_exact(&mut found).ok()?;
    file.read_exact(&mut bits).ok()?;
    (found == head(offer)).then_some(bits)
}

/// The blocks of a file of this size that a range of it lies in, the last one cut off at the file's end.
fn blocks(range: Range<u64>, size: u64) -> impl Iterator<Item = Range<u64>> {
    let numbers = range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES);
    numbers.map(move |number| number * BLOCK_BYTES..((number + 1) * BLOCK_BYTES).min(size))
}

fn length(block: Range<u64>) -> u64 {
    block.end - block.start
}

impl Sink for PartFile {
    fn make_room(&self, offset: u64, bytes: usize) -> bool {
        self.room.make_room(false, self.needs(offset, bytes))
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        self.write(offset, bytes).map_err(|error| failed("write", &self.path, &error))
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), StorageError> {
        self.read(offset, out).map_err(|error| failed("read", &self.path, &error))
    }

    fn finish(mut self: Box<Self>) -> Result<Stored, StorageError> {
        // The note goes before the rename, so that a process that has the partial file open finds none.
        let replaced = std::fs::metadata(&self.whole).map(|file| file.len());
        let finished = self.file.set_len(self.size).and_then(|()| std::fs::rename(&self.path, &self.whole));
        finished.map_err(|error| failed("rename", &self.path, &error))?;
        self.over = true;
        replaced.iter().for_each(|bytes| self.room.free_whole(*bytes));
        self.room.note_whole(&self.whole);
        Ok(Stored::File(self.whole.clone()))
    }

    fn discard(mut self: Box<Self>) {
        self.end();
    }
}

impl Sink for NewPart {
    fn make_room(&self, offset: u64, bytes: usize) -> bool {
        if let Some(file) = &self.file {
            return file.make_room(offset, bytes);
        }
        let written = blocks(offset..offset + bytes as u64, self.offer.size).map(length).sum::<u64>();
        self.room.make_room(true, written.max(least_taken(&self.offer)))
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        let created = self.file().map(|file| file.write_at(offset, bytes));
        created.map_err(|error| failed("create a part of", &self.whole, &error))?
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), StorageError> {
        let none = || StorageError("no slice has arrived".into());
        self.file.as_mut().ok_or_else(none)?.read_at(offset, out)
    }

    fn finish(self: Box<Self>) -> Result<Stored, StorageError> {
        let none = || StorageError("no slice has arrived".into());
        self.file.ok_or_else(none)?.finish()
    }

    fn discard(self: Box<Self>) {
        if let Some(file) = self.file {
            file.discard();
        }
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let empty = self.bits.iter().all(|bits| *bits == 0);
        // Without its note when it couldn't be finished.
        let noted = || self.file.metadata().is_ok_and(|file| file.len() > self.size);
        if empty || !self.stays || !noted() || self.note().is_err() {
            self.end();
        }
    }
}

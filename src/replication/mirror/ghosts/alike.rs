//! Updates in a row of a class whose words are narrow, with the same base and mask: most of a packet.
//!
//! Promises: what becomes of them is what becomes of each by itself ([`Ghosts::read_update`]).

use super::super::super::packet::{Heads, Violation};
use super::super::pages::Pages;
use super::super::staged::{Alike, Staged, StagedOp};
use super::{Against, Ghosts, check_skip};
use crate::wire::{BitReader, MaskWords, Narrow};

/// By how many updates making words of residuals comes after reading them. So what is known of a ghost is fetched by then, and
/// the processor does both at once: where a residual begins depends on all before it, and little else can be done meanwhile.
const LAG: usize = 8;

/// How the words of updates in a row are made of their residuals.
#[derive(Clone, Copy)]
struct Resolver<'g> {
    against: Against,
    class: u32,
    pages: &'g Pages,
    narrow: &'g Narrow,
    mask_words: &'g MaskWords,
}

impl Ghosts {
    /// Reads an update whose head was read, and those after it that are like it: first what they have, then the states that
    /// they are against. False for a class that isn't narrow.
    pub(in super::super) fn read_alike(
        &mut self,
        id: u32,
        against: Against,
        mask: u64,
        (heads, reader): (&mut Heads, &mut BitReader<'_>),
        staged: &mut Staged,
    ) -> Result<bool, Violation> {
        let Some(narrow) = &self.narrow else { return Ok(false) };
        self.mask_words.set(mask, narrow);
        let (pages, size, capacity) = (&self.pages, self.pages.form().size(), self.class.capacity);
        let resolver =
            Resolver { against, class: self.id_of_class, pages, narrow, mask_words: &self.mask_words };
        let has_older = against.base.has_older();
        let goes_on = has_older && reader.bool()?;
        let (from, record) = (staged.alike.len(), staged.records.len());
        staged.push(self.id_of_class, id as usize, StagedOp::Alike { mask, from, to: from });
        let mut words = staged.used();
        narrow.read_residuals(&self.mask_words, reader, staged.spare(size))?;
        staged.push_alike(id, goes_on, size);
        let (mut resolved, mut last) = (from, id);
        loop {
            let at = reader.position();
            let Some(bits) = reader.look(at) else { break };
            let Some((id, head)) = heads.look(bits, capacity) else { break };
            let goes_on = has_older && bits >> head & 1 == 1;
            let head = head + u32::from(has_older);
            let first = (bits >> head, head, at + head as usize);
            let room = staged.spare(size);
            let Some(end) = narrow.look_residuals(&self.mask_words, reader, first, room) else { break };
            reader.skip_to(end);
            heads.pass(id);
            staged.push_alike(id, goes_on, size);
            if id != last + 1 {
                pages.fetch(id as usize);
            }
            last = id;
            if staged.alike.len() > resolved + LAG {
                resolver.resolve(staged, resolved, words)?;
                (resolved, words) = (resolved + 1, words + size);
            }
        }
        while resolved < staged.alike.len() {
            resolver.resolve(staged, resolved, words)?;
            (resolved, words) = (resolved + 1, words + size);
        }
        staged.records[record].op = StagedOp::Alike { mask, from, to: resolved };
        Ok(true)
    }
}

impl Resolver<'_> {
    /// Makes an update's words of its residuals, which are this far among those of the packet.
    #[inline]
    fn resolve(&self, staged: &mut Staged, at: usize, words: usize) -> Result<(), Violation> {
        let Alike { id, goes_on, .. } = staged.alike[at];
        let words = staged.state_mut(words, self.pages.form().size());
        let is_skipped = !self.resolve_words(id, goes_on, words)?;
        staged.alike[at].is_skipped = is_skipped;
        Ok(())
    }

    /// False for an update that is skipped.
    #[inline(always)]
    fn resolve_words(&self, id: u32, goes_on: bool, words: &mut [u32]) -> Result<bool, Violation> {
        let Against { tick, base } = self.against;
        if let Some((state, older)) = self.pages.states_of(id as usize, tick, base) {
            let (past, ahead) = base.ages(tick);
            let older = older.filter(|_| goes_on).map(|older| (older, past, ahead));
            self.narrow.resolve(self.mask_words, state, older, words);
            return Ok(true);
        }
        check_skip((self.class, id), (tick, self.pages.head(id as usize).tick)).map(|()| false)
    }
}

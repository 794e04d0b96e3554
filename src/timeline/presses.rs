//! Key presses: fields of an input that are true in one tick only, however often the input is sent or repeated.
//!
//! Promises: a kept press is released once. A sent press is sent again from a loss on until it arrives, while it is among the newest
//! [`MAX_INPUTS`] inputs. If the loss would be known too late, because of a long round trip or an outage, it is also sent again now
//! and then before.

use core::ops::Range;
use std::collections::VecDeque;
use std::sync::Arc;

use super::packet::MAX_INPUTS;

/// Where an input's presses are in its row, and presses that wait for the next inputs.
#[derive(Clone, Debug)]
pub(super) struct Presses {
    places: Arc<[usize]>,
    /// By place, how many wait, and how many may.
    waiting: Box<[u8]>,
    max_waiting: u8,
}

impl Presses {
    /// No press waits; the places are offsets in an input's row. At most `max_waiting` presses of each kind will wait.
    pub(super) fn new(places: Arc<[usize]>, max_waiting: u8) -> Self {
        Presses { waiting: vec![0; places.len()].into(), places, max_waiting }
    }

    /// Whether inputs have no presses.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Keeps an input's presses for the next inputs.
    pub(super) fn keep(&mut self, input: &[u8]) {
        for (waiting, place) in self.waiting.iter_mut().zip(&*self.places) {
            *waiting = (*waiting + u8::from(input[*place] != 0)).min(self.max_waiting);
        }
    }

    /// Adds a waiting press of each kind to an input that lacks it.
    pub(super) fn release(&mut self, input: &mut [u8]) {
        for (waiting, place) in self.waiting.iter_mut().zip(&*self.places) {
            if input[*place] == 0 && *waiting > 0 {
                *waiting -= 1;
                input[*place] = 1;
            }
        }
    }

    /// Clears an input's presses.
    pub(super) fn clear(&self, input: &mut [u8]) {
        for place in &*self.places {
            input[*place] = 0;
        }
    }
}

/// A press in an input that was stamped.
#[derive(Debug)]
struct SentPress {
    tick: u32,
    /// A payload with it was lost.
    is_lost: bool,
}

/// The presses that the server may lack.
#[derive(Debug, Default)]
pub(super) struct SentPresses {
    /// The presses whose arrival isn't known, by rising tick.
    presses: VecDeque<SentPress>,
    /// The payloads with presses that have no fate yet, one for each number, and the ticks of their inputs.
    payloads: VecDeque<(u8, Range<u32>)>,
}

impl SentPresses {
    /// The input of this tick has a press.
    pub(super) fn push(&mut self, tick: u32) {
        self.presses.push_back(SentPress { tick, is_lost: false });
    }

    /// The tick of the oldest press that the server may lack.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.presses.front().map(|press| press.tick)
    }

    /// How many inputs there are from the oldest press to send again to the newest input; 0 if there is no such press.
    /// Presses of this many ticks before the newest one count even if they aren't known to be lost.
    pub(super) fn reach(&self, newest: u32, overdue: u32) -> usize {
        let again = self.presses.iter().find(|press| press.is_lost || newest - press.tick >= overdue);
        again.map_or(0, |press| (newest - press.tick) as usize + 1)
    }

    /// Notes a payload with this many inputs up to the newest.
    pub(super) fn note_sent(&mut self, number: u8, newest: u32, count: usize) {
        // No payload reaches further back.
        self.presses.retain(|press| newest - press.tick < MAX_INPUTS as u32);
        self.payloads.retain(|(other, _)| *other != number);
        let ticks = (newest + 1).saturating_sub(count as u32)..newest + 1;
        if self.presses.iter().any(|press| ticks.contains(&press.tick)) {
            self.payloads.push_back((number, ticks));
        }
    }

    /// The payload with this number was delivered or lost.
    pub(super) fn handle_fate(&mut self, number: u8, delivered: bool) {
        let Some(at) = self.payloads.iter().position(|(other, _)| *other == number) else { return };
        let Some((_, ticks)) = self.payloads.remove(at) else { return };
        if delivered {
            self.presses.retain(|press| !ticks.contains(&press.tick));
        } else {
            let lost = self.presses.iter_mut().filter(|press| ticks.contains(&press.tick));
            lost.for_each(|press| press.is_lost = true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_press_is_sent_again_until_it_arrives() {
        let mut sent = SentPresses::default();
        sent.push(10);
        for (number, newest) in (0..).zip(10..14) {
            sent.note_sent(number, newest, 3);
            assert_eq!((sent.reach(newest, u32::MAX), sent.oldest()), (0, Some(10)));
        }
        sent.handle_fate(3, false);
        assert_eq!((sent.reach(14, u32::MAX), sent.reach(14, 4)), (0, 5), "the press wasn't in that payload");
        sent.handle_fate(0, false);
        assert_eq!(sent.reach(14, u32::MAX), 5);
        sent.note_sent(4, 14, 5);
        assert_eq!(sent.reach(15, u32::MAX), 6, "until it has arrived");
        sent.handle_fate(4, true);
        assert_eq!((sent.reach(15, u32::MAX), sent.oldest()), (0, None));
    }

    #[test]
    fn a_press_out_of_reach_is_forgotten() {
        let mut sent = SentPresses::default();
        sent.push(10);
        sent.note_sent(0, 10 + MAX_INPUTS as u32 - 1, 3);
        assert_eq!(sent.oldest(), Some(10));
        sent.note_sent(1, 10 + MAX_INPUTS as u32, 3);
        assert_eq!(sent.oldest(), None);
    }
}

//! Requests of one side that wait for the other side's replies.
//!
//! Promises: each request ends once: by its reply, by its timeout, or when all are taken out. Its number isn't reused
//! while it waits.

use std::collections::BTreeMap;

use crate::time::Instant;

/// How many requests may wait on one connection: more than a game needs, and little memory.
pub const MAX_REQUESTS: usize = 256;

#[derive(Debug)]
struct Waiting<T> {
    call: u16,
    deadline: Instant,
    what: T,
}

/// The requests that wait on one connection, by number.
#[derive(Debug)]
pub struct Requests<T> {
    last: u16,
    waiting: BTreeMap<u16, Waiting<T>>,
}

impl<T> Default for Requests<T> {
    fn default() -> Self {
        Requests { last: 0, waiting: BTreeMap::new() }
    }
}

impl<T> Requests<T> {
    /// Whether another request has no room.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= MAX_REQUESTS
    }

    /// Begins a request for this call and returns its number, or None when there is no room.
    pub fn begin(&mut self, call: u16, deadline: Instant, what: T) -> Option<u16> {
        if self.is_full() {
            return None;
        }
        loop {
            self.last = self.last.wrapping_add(1);
            if !self.waiting.contains_key(&self.last) {
                break;
            }
        }
        self.waiting.insert(self.last, Waiting { call, deadline, what });
        Some(self.last)
    }

    /// The call of the request with this number.
    pub fn call(&self, number: u16) -> Option<u16> {
        self.waiting.get(&number).map(|waiting| waiting.call)
    }

    /// Takes out the request with this number.
    pub fn end(&mut self, number: u16) -> Option<T> {
        self.waiting.remove(&number).map(|waiting| waiting.what)
    }

    /// Takes out the requests that timed out, by number.
    pub fn expire(&mut self, now: Instant) -> Vec<T> {
        self.take_out(|waiting| waiting.deadline <= now)
    }

    /// When the first request times out.
    pub fn deadline(&self) -> Instant {
        self.waiting.values().map(|waiting| waiting.deadline).min().unwrap_or(Instant::NEVER)
    }

    /// Takes out the requests for which `is_over` is true.
    pub fn discard(&mut self, is_over: impl Fn(&T) -> bool) -> Vec<T> {
        self.take_out(|waiting| is_over(&waiting.what))
    }

    fn take_out(&mut self, is_over: impl Fn(&Waiting<T>) -> bool) -> Vec<T> {
        let over = self.waiting.iter().filter(|(_, waiting)| is_over(waiting)).map(|(number, _)| *number);
        let over: Vec<u16> = over.collect();
        over.into_iter().filter_map(|number| self.end(number)).collect()
    }

    /// All that wait, by number.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.waiting.values().map(|waiting| &waiting.what)
    }

    /// Takes all of them out at once.
    pub fn take_all(&mut self) -> Vec<T> {
        core::mem::take(&mut self.waiting).into_values().map(|waiting| waiting.what).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ends_once() {
        let mut requests = Requests::default();
        let early = requests.begin(3, Instant::from_millis(10), "early").unwrap();
        let late = requests.begin(4, Instant::from_millis(20), "late").unwrap();
        assert_eq!((requests.call(early), requests.call(late)), (Some(3), Some(4)));
        assert_eq!(requests.deadline(), Instant::from_millis(10));
        assert_eq!(requests.end(early), Some("early"));
        assert_eq!(requests.end(early), None);
        assert!(requests.expire(Instant::from_millis(19)).is_empty());
        assert_eq!(requests.expire(Instant::from_millis(20)), ["late"]);
        assert_eq!((requests.end(late), requests.deadline()), (None, Instant::NEVER));
    }

    #[test]
    fn numbers_that_wait_are_not_given_again() {
        let mut requests = Requests::default();
        let kept = requests.begin(0, Instant::NEVER, 0).unwrap();
        for round in 0..70_000 {
            let number = requests.begin(0, Instant::NEVER, round).unwrap();
            assert_ne!(number, kept);
            assert_eq!(requests.end(number), Some(round));
        }
    }

    #[test]
    fn there_is_a_bound() {
        let mut requests = Requests::default();
        let begun = (0..1000).filter_map(|what| requests.begin(0, Instant::NEVER, what)).count();
        assert_eq!((begun, requests.is_full()), (MAX_REQUESTS, true));
        assert_eq!(requests.discard(|what| what % 2 == 0).len(), MAX_REQUESTS / 2);
        assert_eq!(requests.take_all().len(), MAX_REQUESTS / 2);
    }
}

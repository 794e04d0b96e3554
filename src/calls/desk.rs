//! Received calls until the application runs them, and its own requests until they are answered.
//!
//! Promises: calls run in the order of arrival, those that waited for ghosts before a tick's own. Each request ends once: by its
//! reply, by its timeout, or with its connection. What a peer can make wait is bounded. Nothing that the application gave is
//! dropped here: it is handed back.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{CallCounts, CallOutcome, Rate, Requests};
use crate::store::Bucket;
use crate::time::{Duration, Instant};

/// How many calls may wait for their ghosts: more than a server makes while a ghost is in flight.
pub const MAX_WAITING: usize = 256;

/// After this wait, what happened to the ghost is of no interest any more.
pub const MAX_WAIT: Duration = Duration::from_secs(10);

/// What the desk knows of a call.
#[derive(Clone, Copy, Debug)]
pub struct CallRules {
    /// Whether this side runs it.
    pub runs_here: bool,
    /// How often a peer may make it. None: as often as it likes.
    pub rate: Option<Rate>,
    /// Whether peers that call too often are disconnected.
    pub disconnects: bool,
    /// Whether it may wait for its ghosts: what came before it on its channel is on its way.
    pub waits: bool,
    /// How long a request waits for its reply.
    pub timeout: Duration,
}

/// A received call that hasn't run yet.
#[derive(Debug)]
pub struct Arrived<P, T> {
    /// How many of the tick's messages arrived before it.
    pub place: usize,
    /// The index of the call.
    pub call: u16,
    pub peer: P,
    pub item: T,
}

/// The decision about a received call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Taken,
    Dropped,
    /// Its connection ends for this reason.
    Violation(&'static str),
}

/// What can be found of the ghosts that a waiting call names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    Here,
    Awaited,
    Failed,
}

/// The calls and requests of an endpoint; `T` are the application's objects.
#[derive(Debug)]
pub struct Desk<P, T> {
    rules: Vec<CallRules>,
    counts: Arc<CallCounts>,
    /// The rate limits of peers that have called.
    limits: BTreeMap<P, Vec<Bucket>>,
    requests: BTreeMap<P, Requests<T>>,
    /// No request expires before this.
    deadline: Instant,
    /// The number of the tick that the application is in, and its calls.
    tick: u64,
    queue: VecDeque<Arrived<P, T>>,
    /// Calls that name ghosts which haven't arrived, with their deadlines.
    waiting: VecDeque<(Instant, Arrived<P, T>)>,
    /// Whether a call is running.
    running: bool,
}

impl<P: Copy + Ord, T> Desk<P, T> {
    /// A desk without calls.
    pub fn new(rules: Vec<CallRules>, counts: Arc<CallCounts>) -> Self {
        Desk {
            rules,
            counts,
            limits: BTreeMap::new(),
            requests: BTreeMap::new(),
            deadline: Instant::NEVER,
            tick: 0,
            queue: VecDeque::new(),
            waiting: VecDeque::new(),
            running: false,
        }
    }

    // --- received calls ----------------------------------------------------------------------------------

    /// Decides about a received call before an object is made of it.
    pub fn admit(&mut self, peer: P, call: u16, now: Instant) -> Admission {
        let CallRules { runs_here, rate, disconnects, .. } = self.rules[usize::from(call)];
        if !runs_here {
            return Admission::Violation("a call that runs on the other side");
        }
        let Some(rate) = rate else { return Admission::Taken };
        let buckets = self.limits.entry(peer).or_default();
        buckets.resize(self.rules.len(), Bucket::default());
        if rate.take(&mut buckets[usize::from(call)], now) {
            return Admission::Taken;
        }
        self.counts.count(CallOutcome::Limited);
        if disconnects {
            Admission::Violation("called more often than its rate allows")
        } else {
            Admission::Dropped
        }
    }

    /// Takes over a tick's calls at its end. Calls left over from the last tick come first. Returns the tick's number.
    pub fn begin_tick(
        &mut self,
        ready: Vec<Arrived<P, T>>,
        calls: impl Iterator<Item = Arrived<P, T>>,
    ) -> u64 {
        self.tick += 1;
        self.queue.extend(ready);
        self.queue.iter_mut().for_each(|call| call.place = 0);
        self.queue.extend(calls);
        self.tick
    }

    /// Whether calls of this tick wait.
    pub fn has_calls(&self, tick: u64) -> bool {
        self.tick == tick && !self.queue.is_empty()
    }

    /// Begins to run calls; false while one is running.
    pub fn begin_run(&mut self) -> bool {
        !core::mem::replace(&mut self.running, true)
    }

    /// No call is running any more.
    pub fn end_run(&mut self) {
        self.running = false;
    }

    /// Takes the next call of a tick (None: of any) that arrived before a message (None: before the end).
    pub fn next(&mut self, before: Option<usize>, tick: Option<u64>) -> Option<Arrived<P, T>> {
        let is_due = |call: &Arrived<P, T>| before.is_none_or(|before| call.place <= before);
        if tick.is_some_and(|tick| tick != self.tick) || !self.queue.front().is_some_and(is_due) {
            return None;
        }
        self.queue.pop_front()
    }

    /// Counts a call that isn't run, because a ghost is gone or another's. Honest callers make such calls, too: the owner may
    /// change while a call is on its way.
    pub fn leave_out(&mut self, is_refused: bool) {
        self.counts.count(if is_refused { CallOutcome::Refused } else { CallOutcome::Gone });
    }

    /// Lets a call wait for its ghosts; gives it back if it can't wait, or there is no room for it.
    pub fn wait(&mut self, now: Instant, arrived: Arrived<P, T>) -> Option<Arrived<P, T>> {
        if !self.rules[usize::from(arrived.call)].waits || self.waiting.len() >= MAX_WAITING {
            return Some(arrived);
        }
        self.waiting.push_back((now + MAX_WAIT, arrived));
        None
    }

    /// Takes the calls that wait for ghosts. Those that still do are handed back by [`Desk::keep_waiting`].
    pub fn take_waiting(&mut self) -> VecDeque<(Instant, Arrived<P, T>)> {
        core::mem::take(&mut self.waiting)
    }

    /// Sorts a call that waited: into `ready` if its ghosts are here, otherwise back to those that wait, for a bounded time.
    /// Gives back a call that is dropped.
    pub fn keep_waiting(
        &mut self,
        now: Instant,
        (until, arrived): (Instant, Arrived<P, T>),
        found: Awaited,
        ready: &mut Vec<Arrived<P, T>>,
    ) -> Option<Arrived<P, T>> {
        match found {
            Awaited::Here => ready.push(arrived),
            Awaited::Awaited if now < until => self.waiting.push_back((until, arrived)),
            Awaited::Awaited | Awaited::Failed => {
                self.counts.count(CallOutcome::Gone);
                return Some(arrived);
            }
        }
        None
    }

    /// Drops the calls of a peer whose connection the application ended: their caller is gone.
    #[must_use]
    pub fn discard_calls(&mut self, peer: P) -> Vec<Arrived<P, T>> {
        let mut theirs = self.discard_waiting(peer);
        let (calls, others): (VecDeque<_>, _) =
            core::mem::take(&mut self.queue).into_iter().partition(|call| call.peer == peer);
        self.queue = others;
        calls.iter().for_each(|_| self.counts.count(CallOutcome::Gone));
        theirs.extend(calls);
        theirs
    }

    /// Drops the calls that wait for a peer's ghosts: on its next connection, the same numbers are other ghosts.
    fn discard_waiting(&mut self, peer: P) -> Vec<Arrived<P, T>> {
        let (theirs, others): (VecDeque<_>, _) =
            core::mem::take(&mut self.waiting).into_iter().partition(|(_, call)| call.peer == peer);
        self.waiting = others;
        theirs.iter().for_each(|_| self.counts.count(CallOutcome::Gone));
        theirs.into_iter().map(|(_, call)| call).collect()
    }

    // --- requests ----------------------------------------------------------------------------------------

    /// Registers a request. None if the maximum is waiting.
    pub fn begin_request(&mut self, peer: P, call: u16, now: Instant, request: T) -> Result<u16, T> {
        let requests = self.requests.entry(peer).or_default();
        if requests.is_full() {
            return Err(request);
        }
        let deadline = now + self.rules[usize::from(call)].timeout;
        let number = requests.begin(call, deadline, request);
        self.deadline = self.deadline.min(deadline);
        Ok(number.unwrap_or_default())
    }

    /// The requests of a peer, if no more fit.
    pub fn full_requests(&self, peer: P) -> impl Iterator<Item = &T> {
        let full = self.requests.get(&peer).filter(|requests| requests.is_full());
        full.into_iter().flat_map(Requests::iter)
    }

    /// Forgets requests that are over by themselves.
    #[must_use]
    pub fn discard_requests(&mut self, peer: P, is_over: impl Fn(&T) -> bool) -> Vec<T> {
        self.requests.get_mut(&peer).map(|requests| requests.discard(is_over)).unwrap_or_default()
    }

    /// Forgets a request that could not be sent.
    #[must_use]
    pub fn forget_request(&mut self, peer: P, number: u16) -> Option<T> {
        let request = self.requests.get_mut(&peer).and_then(|requests| requests.end(number));
        // If the connection is over already, no end event will remove this.
        self.requests.retain(|other, requests| *other != peer || requests.iter().next().is_some());
        request
    }

    /// Ends the request with this number by a reply to a call, or by a notice of no call that there is none. None if it waits no more.
    pub fn answer(&mut self, peer: P, number: u16, call: Option<u16>) -> Option<T> {
        let requests = self.requests.get_mut(&peer)?;
        let own = requests.call(number)?;
        if call.is_none_or(|call| call == own) { requests.end(number) } else { None }
    }

    /// Takes out the requests that timed out.
    #[must_use]
    pub fn expire(&mut self, now: Instant) -> Vec<T> {
        if now < self.deadline {
            return Vec::new();
        }
        let late = self.requests.values_mut().flat_map(|requests| requests.expire(now)).collect();
        let deadlines = self.requests.values().map(Requests::deadline);
        self.deadline = deadlines.min().unwrap_or(Instant::NEVER);
        late
    }

    /// When the next request expires, if there is one.
    pub fn deadline(&self) -> Option<Instant> {
        Some(self.deadline).filter(|deadline| *deadline != Instant::NEVER)
    }

    // --- ends --------------------------------------------------------------------------------------------

    /// Handles the end of a peer's connection: returns its requests, and the dropped calls.
    #[must_use]
    pub fn end_peer(&mut self, peer: P) -> (Vec<T>, Vec<Arrived<P, T>>) {
        self.limits.remove(&peer);
        let requests = self.requests.remove(&peer).map(|mut requests| requests.take_all());
        (requests.unwrap_or_default(), self.discard_waiting(peer))
    }

    /// Ends everything: returns the requests, and the dropped calls.
    #[must_use]
    pub fn close(&mut self) -> (Vec<T>, Vec<Arrived<P, T>>) {
        let requests = core::mem::take(&mut self.requests).into_values();
        let waiting = core::mem::take(&mut self.waiting).into_iter().map(|(_, call)| call);
        let calls = core::mem::take(&mut self.queue).into_iter().chain(waiting).collect();
        self.deadline = Instant::NEVER;
        (requests.flat_map(|mut requests| requests.take_all()).collect(), calls)
    }

    /// Every object of the application's.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        let calls = self.queue.iter().chain(self.waiting.iter().map(|(_, call)| call));
        let requests = self.requests.values().flat_map(Requests::iter);
        calls.map(|call| &call.item).chain(requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Instant = Instant::from_millis(1000);

    fn desk() -> Desk<u8, &'static str> {
        let free = CallRules {
            runs_here: true,
            rate: None,
            disconnects: false,
            waits: true,
            timeout: Duration::from_secs(5),
        };
        let limited = CallRules { rate: Rate::new(1.0, 2.0).ok(), ..free };
        let rules = vec![
            free,
            limited,
            CallRules { disconnects: true, waits: false, ..limited },
            CallRules { runs_here: false, ..free },
        ];
        Desk::new(rules, Arc::default())
    }

    fn arrived(place: usize, peer: u8, item: &'static str) -> Arrived<u8, &'static str> {
        Arrived { place, call: 0, peer, item }
    }

    fn taken(
        desk: &mut Desk<u8, &'static str>,
        before: Option<usize>,
        tick: Option<u64>,
    ) -> Vec<&'static str> {
        core::iter::from_fn(|| desk.next(before, tick)).map(|call| call.item).collect()
    }

    fn count_of(desk: &Desk<u8, &'static str>, name: &str) -> u64 {
        desk.counts.now().iter().find(|(other, _)| *other == name).unwrap().1
    }

    #[test]
    fn a_rate_holds_for_each_peer_and_call() {
        let mut desk = desk();
        let mut admit = |peer, call, now| desk.admit(peer, call, now);
        assert!((0..99).all(|_| admit(0, 0, Instant::ZERO) == Admission::Taken));
        let limited: Vec<_> = (0..3).map(|_| admit(0, 1, Instant::ZERO)).collect();
        assert_eq!(limited, [Admission::Taken, Admission::Taken, Admission::Dropped]);
        assert_eq!(admit(1, 1, Instant::ZERO), Admission::Taken);
        assert_eq!(admit(0, 1, SECOND), Admission::Taken);
        let strict: Vec<_> = (0..3).map(|_| admit(0, 2, Instant::ZERO)).collect();
        assert!(matches!(strict[..], [_, Admission::Taken, Admission::Violation(_)]));
        assert!(matches!(admit(0, 3, Instant::ZERO), Admission::Violation(_)));
        assert_eq!(count_of(&desk, "limited"), 2);
        let _ = desk.end_peer(0);
        assert_eq!(desk.admit(0, 1, Instant::ZERO), Admission::Taken, "a new connection starts anew");
    }

    #[test]
    fn calls_run_in_order_and_before_later_messages() {
        let mut desk = desk();
        let tick = desk.begin_tick(Vec::new(), [arrived(0, 0, "a"), arrived(2, 0, "b")].into_iter());
        assert_eq!(taken(&mut desk, Some(1), Some(tick)), ["a"]);
        // The rest belongs to no later tick's inbox, but comes before its own.
        let next = desk.begin_tick(vec![arrived(7, 0, "w")], [arrived(1, 0, "c")].into_iter());
        assert!(!desk.has_calls(tick) && desk.has_calls(next));
        assert!(taken(&mut desk, None, Some(tick)).is_empty());
        assert_eq!(taken(&mut desk, Some(0), Some(next)), ["b", "w"]);
        assert_eq!(taken(&mut desk, None, None), ["c"]);
    }

    #[test]
    fn one_call_runs_at_a_time() {
        let mut desk = desk();
        assert!(desk.begin_run() && !desk.begin_run());
        desk.end_run();
        assert!(desk.begin_run());
    }

    #[test]
    fn calls_wait_for_ghosts_for_a_bounded_time_and_in_bounded_number() {
        let mut desk = desk();
        for _ in 0..MAX_WAITING {
            assert!(desk.wait(Instant::ZERO, arrived(0, 0, "early")).is_none());
        }
        assert_eq!(desk.wait(Instant::ZERO, arrived(0, 0, "late")).map(|call| call.item), Some("late"));
        let mut ready = Vec::new();
        let waiting = desk.take_waiting();
        let found = [Awaited::Here, Awaited::Awaited, Awaited::Failed];
        let dropped: Vec<_> = waiting
            .into_iter()
            .zip(found.into_iter().cycle())
            .filter_map(|(call, found)| desk.keep_waiting(SECOND, call, found, &mut ready))
            .collect();
        assert_eq!((ready.len(), dropped.len()), (MAX_WAITING.div_ceil(3), MAX_WAITING / 3));
        let over = Instant::ZERO + MAX_WAIT;
        let left = desk.take_waiting();
        assert!(
            left.into_iter()
                .all(|call| desk.keep_waiting(over, call, Awaited::Awaited, &mut ready).is_some())
        );
        assert_eq!(count_of(&desk, "gone") as usize, MAX_WAITING - ready.len());
    }

    #[test]
    fn a_call_that_is_left_out_is_counted() {
        let mut desk = desk();
        [false, true, true].into_iter().for_each(|is_refused| desk.leave_out(is_refused));
        assert_eq!((count_of(&desk, "gone"), count_of(&desk, "refused")), (1, 2));
        let unreliable = Arrived { call: 2, ..arrived(0, 0, "unreliable") };
        assert!(desk.wait(Instant::ZERO, unreliable).is_some(), "what it names may be lost");
    }

    #[test]
    fn a_request_ends_once() {
        let mut desk = desk();
        let answered = desk.begin_request(0, 0, Instant::ZERO, "answered").unwrap();
        assert_eq!(desk.answer(1, answered, Some(0)), None, "another peer has no such request");
        assert_eq!(desk.answer(0, answered, Some(1)), None, "it is no reply to this call");
        assert_eq!(desk.answer(0, answered, Some(0)), Some("answered"));
        assert_eq!(desk.answer(0, answered, None), None);
        let late = desk.begin_request(0, 0, Instant::ZERO, "late").unwrap();
        assert!(desk.expire(SECOND).is_empty());
        assert_eq!(desk.expire(desk.deadline().unwrap()), ["late"]);
        assert_eq!((desk.answer(0, late, None), desk.deadline()), (None, None));
        let lost = desk.begin_request(0, 0, Instant::ZERO, "lost").unwrap();
        assert_eq!(desk.end_peer(0).0, ["lost"]);
        assert_eq!((desk.answer(0, lost, None), desk.forget_request(0, lost)), (None, None));
    }

    #[test]
    fn the_calls_of_a_peer_that_was_disconnected_are_dropped() {
        let mut desk = desk();
        desk.begin_tick(Vec::new(), [arrived(0, 0, "hers"), arrived(0, 1, "his")].into_iter());
        assert!(desk.wait(Instant::ZERO, arrived(0, 0, "hers too")).is_none());
        assert_eq!(desk.discard_calls(0).len(), 2);
        assert_eq!((taken(&mut desk, None, None), count_of(&desk, "gone")), (vec!["his"], 2));
    }

    #[test]
    fn closing_hands_everything_back() {
        let mut desk = desk();
        desk.begin_tick(Vec::new(), [arrived(0, 0, "call")].into_iter());
        assert!(desk.wait(Instant::ZERO, arrived(0, 1, "waiting")).is_none());
        desk.begin_request(2, 0, Instant::ZERO, "request").unwrap();
        assert_eq!(desk.items().count(), 3);
        let (requests, calls) = desk.close();
        assert_eq!((requests, calls.len(), desk.items().count()), (vec!["request"], 2, 0));
    }
}

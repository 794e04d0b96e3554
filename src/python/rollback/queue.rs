//! The requests of one call of `advance`. An exception or a break leaves some over, which the next call yields.

use super::*;

/// The requests of a game, or the steps of a test.
pub(super) struct Queue<R> {
    requests: Vec<R>,
    /// How many requests were handed out.
    given: usize,
    /// Whether a request was asked for since the last call of `advance`.
    is_begun: bool,
    /// Whether the game has the last request, and hasn't asked for another one.
    is_with_game: bool,
    /// The call, for errors.
    call: &'static str,
}

impl<R: Copy> Queue<R> {
    pub(super) fn new(call: &'static str) -> Self {
        Queue { requests: Vec::with_capacity(128), given: 0, is_begun: false, is_with_game: false, call }
    }

    /// Begins a call of `advance`. Returns the list to fill with a new frame's requests. Returns None if requests are
    /// left over, because these come first. The last request comes again if it is repeatable and the game may not have
    /// done it.
    pub(super) fn begin(&mut self, is_repeatable: impl Fn(&R) -> bool) -> PyResult<Option<&mut Vec<R>>> {
        let last = self.given.checked_sub(1).and_then(|last| self.requests.get(last));
        if self.is_with_game && last.is_some_and(is_repeatable) {
            self.put_back();
        }
        let is_over = self.given == self.requests.len();
        if !is_over && !self.is_begun {
            let sentence = "advance() must be iterated before it is called again: for request in";
            return Err(PyRuntimeError::new_err(format!("{sentence} {}", self.call)));
        }
        self.is_begun = false;
        if !is_over {
            return Ok(None);
        }
        self.requests.clear();
        self.given = 0;
        Ok(Some(&mut self.requests))
    }

    /// Hands out the next request; None after the last one.
    pub(super) fn next(&mut self) -> Option<R> {
        self.is_begun = true;
        let request = self.requests.get(self.given).copied();
        self.is_with_game = request.is_some();
        self.given += usize::from(self.is_with_game);
        request
    }

    /// Takes back the request that was handed out last, because carrying it out raised.
    pub(super) fn put_back(&mut self) {
        self.given = self.given.saturating_sub(1);
        self.is_with_game = false;
    }
}

//! The end of a connection at the game's request: at once or lingering, with a reason or without, and waiting
//! for it.
//!
//! Promises: waits for the linger at most, detached from the interpreter, and an interrupt ends the wait. On
//! a simulated network nothing waits: there the game advances time.

use std::thread;

use crate::python::prelude::*;

use super::checks::duration;
use crate::driver::Next;
use crate::endpoint::{Detail, Goodbye, MAX_LINGER};

/// How often a linger checks for arrivals and the thread's end.
const POLL: Duration = Duration::from_millis(2);

/// Reads the arguments `linger` and `reason`.
pub(super) fn goodbye(protocol: &Protocol, linger: f64, reason: Option<&Object<'_>>) -> PyResult<Goodbye> {
    let linger = duration("linger", linger, MAX_LINGER.as_secs_f64())?;
    let text = |reason| argument::<String>("reason", reason, "a str or None");
    let reason = reason.map(text).transpose()?;
    let detail = reason.as_deref().map(Detail::new).transpose().map_err(value_error)?;
    if detail.is_some() && protocol.core.yojimbo().is_some() {
        return Err(value_error(
            "reason must be None with yojimbo's framing, which can't send it: send a message and linger",
        ));
    }
    Ok(Goodbye { linger, detail })
}

impl Endpoint {
    /// Ends the connections and closes the driver, after waiting for the linger unless the game advances time
    /// itself.
    pub(super) fn close(
        &self,
        py: Python<'_>,
        linger: f64,
        reason: Option<&Object<'_>>,
        wait: bool,
    ) -> PyResult<()> {
        let goodbye = goodbye(self.protocol.get(), linger, reason)?;
        // Without the state there is nobody to tell; closing is still fine.
        let begun = self.state.lock().ok().and_then(|mut state| {
            let linger = state.begin_close(goodbye)?;
            let real = state.carrier.driver().is_some_and(|driver| driver.socket().is_some());
            Some((linger, real))
        });
        self.state.wake();
        match begun {
            Some((linger, true)) if wait => self.wait_for_linger(py, linger),
            Some(_) => Ok(()),
            None => {
                self.state.close();
                Ok(())
            }
        }
    }

    fn wait_for_linger(&self, py: Python<'_>, linger: Duration) -> PyResult<()> {
        let end = std::time::Instant::now() + linger;
        let mut interrupted = Ok(());
        while interrupted.is_ok() && std::time::Instant::now() < end && py.detach(|| self.linger_on()) {
            interrupted = py.check_signals();
        }
        self.state.close();
        interrupted
    }

    /// Lingers a little longer; false when it is over.
    fn linger_on(&self) -> bool {
        let Ok(mut state) = self.state.lock() else { return false };
        let turn = match () {
            () if state.is_closed() => Next::Over,
            () if self.state.is_threaded() => Next::Wait(POLL),
            () => state.step(),
        };
        drop(state);
        match turn {
            Next::Over => false,
            Next::Again => true,
            Next::Pause(wait) | Next::Wait(wait) => {
                thread::sleep(wait.min(POLL));
                true
            }
        }
    }
}

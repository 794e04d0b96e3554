//! What happens when the interpreter exits: objects with a thread are closed, and daemon threads in the game's hooks stop.
//!
//! Promises: each object is closed once, if it still exists then. A hook or call that is running doesn't abort the
//! process.

use std::{hint, mem, ptr, thread};

use crate::python::prelude::*;
use pyo3::BoundObject;

use super::forks::Process;

/// An object that has a thread.
pub(super) trait Exit: Send + Sync {
    /// Ends the thread; called at most once.
    fn close(&self, py: Python<'_>);
}

/// What runs on a thread that never enters Python. Its own value is closed.
pub(super) trait Background: Default + Send + 'static {
    /// Ends the thread; called any number of times.
    fn close(&mut self);
}

/// Something on a thread, which ends with its object or with the interpreter, whichever comes first. A fork's child has no
/// thread, and forgets it.
#[derive(Debug)]
pub(super) struct Running<T: Background> {
    state: Mutex<T>,
    process: Process,
}

static OPEN: Mutex<Vec<Weak<dyn Exit>>> = Mutex::new(Vec::new());

impl<T: Background> Running<T> {
    pub(super) fn start(py: Python<'_>, state: T) -> PyResult<Arc<Self>> {
        let running = Arc::new(Running { state: Mutex::new(state), process: Process::current(py)? });
        close_at_exit(py, Arc::downgrade(&running) as _)?;
        Ok(running)
    }

    /// Uses it while detached, as another user may wait for the thread.
    pub(super) fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> R + Send) -> R {
        py.detach(|| work(&mut self.lock()))
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        let mut state = lock(&self.state);
        if !self.process.is_here() {
            mem::forget(mem::take(&mut *state));
        }
        state
    }
}

impl<T: Background> Drop for Running<T> {
    fn drop(&mut self) {
        // Waits for the thread while attached: until its turn ends, some milliseconds at most.
        self.lock().close();
    }
}

impl<T: Background> Exit for Running<T> {
    fn close(&self, py: Python<'_>) {
        self.with(py, T::close);
    }
}

/// Registers an object to be closed when the interpreter exits.
pub(super) fn close_at_exit(py: Python<'_>, closing: Weak<dyn Exit>) -> PyResult<()> {
    static REGISTERED: PyOnceLock<()> = PyOnceLock::new();
    REGISTERED.get_or_try_init(py, || {
        let close_all = wrap_pyfunction!(close_all, py)?;
        py.import("atexit")?.call_method1("register", (close_all,)).map(drop)
    })?;
    let mut open = lock(&OPEN);
    open.retain(|closing| closing.strong_count() > 0);
    open.push(closing);
    Ok(())
}

#[pyfunction]
fn close_all(py: Python<'_>) {
    let open = mem::take(&mut *lock(&OPEN));
    open.iter().filter_map(Weak::upgrade).for_each(|closing| closing.close(py));
}

/// Never lets its thread go on.
struct Park;

impl Drop for Park {
    fn drop(&mut self) {
        loop {
            thread::park();
        }
    }
}

/// Calls a function of the game that may wait. CPython before 3.14 ends a daemon thread that comes back from waiting when
/// the interpreter has exited, and does so by unwinding its stack. Rust aborts the process when that reaches a function of
/// PyO3, so the thread stops here for good, as it does in later versions of CPython.
#[allow(unsafe_code)]
pub(super) fn call<'py, A>(
    function: &Object<'py>,
    args: A,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Object<'py>>
where
    A: IntoPyObject<'py, Target = PyTuple>,
    PyErr: From<A::Error>,
{
    type Call = unsafe extern "C" fn(
        *mut ffi::PyObject,
        *mut ffi::PyObject,
        *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;
    type Unwinding = unsafe extern "C-unwind" fn(
        *mut ffi::PyObject,
        *mut ffi::PyObject,
        *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;
    let args = args.into_pyobject(function.py())?.into_bound();
    // Hidden from the compiler, which takes PyObject_Call for a function that never unwinds.
    let call = hint::black_box(ffi::PyObject_Call as Call);
    // SAFETY: the two ABIs differ in unwinding alone.
    let call = unsafe { mem::transmute::<Call, Unwinding>(call) };
    let park = Park;
    // SAFETY: the thread is attached, and the arguments are a callable or not, a tuple, and a dict or null. The result is a
    // new reference, or null with an exception set.
    let result = unsafe {
        let result =
            call(function.as_ptr(), args.as_ptr(), keywords.map_or(ptr::null_mut(), |given| given.as_ptr()));
        Bound::from_owned_ptr_or_err(function.py(), result)
    };
    mem::forget(park);
    result
}

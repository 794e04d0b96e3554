//! What happens when the interpreter exits: objects with a thread are closed, and daemon threads in the game's hooks
//! stop.
//!
//! Promises: each object is closed once, if it still exists then. A hook or call that is running doesn't abort the
//! process.

use std::{hint, mem, ptr, thread};

use crate::python::prelude::*;
use pyo3::BoundObject;

/// An object that has a thread.
pub(super) trait Exit: Send + Sync {
    /// Ends the thread; called at most once.
    fn close(&self, py: Python<'_>);
}

static OPEN: Mutex<Vec<Weak<dyn Exit>>> = Mutex::new(Vec::new());

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
    function: &Bound<'py, PyAny>,
    args: A,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>>
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

#[pyfunction]
fn close_all(py: Python<'_>) {
    let open = mem::take(&mut *lock(&OPEN));
    open.iter().filter_map(Weak::upgrade).for_each(|closing| closing.close(py));
}

//! Asks the processor to fetch memory that is needed soon: of a thousand connections none is in its cache when its
//! turn comes, and its parts are waited for one after the other unless all were asked for before.
//!
//! Promises: no effect but on time. Elsewhere than on x86-64 it does nothing.

/// Bytes that a cache fetches together.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE: usize = 64;

/// Has a value fetched into the cache, without the memory it points to.
#[inline]
pub(crate) fn prefetch<T: ?Sized>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[allow(unsafe_code)]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

        let start = core::ptr::from_ref(value).cast::<i8>();
        for offset in (0..size_of_val(value)).step_by(LINE) {
            // SAFETY: the address is within the value, and fetching it reads and changes nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(offset)) };
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = value;
}

/// As [`prefetch`], of what may begin in the middle of a line.
#[inline]
pub(crate) fn prefetch_across<T>(values: &[T]) {
    prefetch(values);
    if let Some(last) = values.last() {
        prefetch(last);
    }
}

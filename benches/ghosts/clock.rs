//! The CPU time of this thread, so that what else runs on the machine isn't counted.

/// In seconds.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub(crate) fn cpu_time() -> f64 {
    // SAFETY: the system writes two integers into `time`, for which zeros are valid too.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time);
        time
    };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Elsewhere the time on the wall has to do.
#[cfg(not(target_os = "linux"))]
pub(crate) fn cpu_time() -> f64 {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed().as_secs_f64()
}

/// Adds the CPU time of some work to `times`.
pub(crate) fn timed<T>(times: &mut f64, work: impl FnOnce() -> T) -> T {
    let start = cpu_time();
    let made = std::hint::black_box(work());
    *times += cpu_time() - start;
    made
}

/// The value that this share of all is at most.
pub(crate) fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}

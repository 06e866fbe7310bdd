//! The clocks of benchmarks: the CPU time of a thread, and of the process.

/// The CPU time of this thread, in seconds. The work of other processes is not measured.
#[cfg(target_os = "linux")]
pub(crate) fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The time since the first call, in seconds.
#[cfg(not(target_os = "linux"))]
pub(crate) fn thread_seconds() -> f64 {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed().as_secs_f64()
}

/// The CPU time of the process, in seconds.
#[cfg(target_os = "linux")]
pub(crate) fn process_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Not known here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn process_seconds() -> f64 {
    f64::NAN
}

//! Runs independent parts of a test in several threads.

use parking_lot::Mutex;

/// Calls `work` with each item, in as many threads as there are processors. A panic of one is a panic of the test.
pub(crate) fn each<T: Send>(items: impl IntoIterator<Item = T, IntoIter: Send>, work: impl Fn(T) + Sync) {
    let items = Mutex::new(items.into_iter());
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let next = || items.lock().next();
                std::iter::from_fn(next).for_each(&work);
            });
        }
    });
}

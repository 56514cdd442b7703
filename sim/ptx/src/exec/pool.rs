//! Worker threads, made once, that help launches along.
//!
//! A launch is run by its calling thread; blocks that it does not get to at once are offered to the
//! workers, which go round all launches that want help. So a launch never waits for a free worker,
//! and launches that wait for each other make progress together.

use super::run::Job;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// The pool of the process.
pub struct Pool {
    jobs: Mutex<VecDeque<Arc<Job>>>,
    offered: Condvar,
}

/// Takes a lock; what a panicking thread left behind is still consistent here.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// The pool; its workers start at the first use.
    pub fn get() -> &'static Pool {
        static POOL: OnceLock<Pool> = OnceLock::new();
        static STARTED: OnceLock<()> = OnceLock::new();
        let pool = POOL.get_or_init(|| Pool {
            jobs: Mutex::default(),
            offered: Condvar::new(),
        });
        STARTED.get_or_init(|| {
            // The calling thread works too.
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            for index in 0..cores.saturating_sub(1).max(1) {
                let name = format!("ptx-worker-{index}");
                // Without a worker, launches still run on their own threads.
                let _ = std::thread::Builder::new()
                    .name(name)
                    .spawn(|| pool.serve());
            }
        });
        pool
    }

    /// Asks the workers for help with a launch.
    pub fn offer(&self, job: Arc<Job>) {
        lock(&self.jobs).push_back(job);
        self.offered.notify_all();
    }

    /// The launch needs no more help.
    pub fn withdraw(&self, job: &Arc<Job>) {
        lock(&self.jobs).retain(|other| !Arc::ptr_eq(other, job));
    }

    fn serve(&self) {
        loop {
            let mut jobs = lock(&self.jobs);
            let job = loop {
                match jobs.pop_front() {
                    Some(job) => break job,
                    None => {
                        jobs = self
                            .offered
                            .wait(jobs)
                            .unwrap_or_else(PoisonError::into_inner);
                    }
                }
            };
            // Others may help with the same launch meanwhile.
            jobs.push_back(Arc::clone(&job));
            drop(jobs);
            if !job.help() {
                self.withdraw(&job);
            }
        }
    }
}

//! Threads that live as long as the program and run the same burst at the same time, each on its own
//! streams.

use crate::work::{Measure, Work};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A measure, how often, and the number of the job.
type Job = (String, usize, usize);
type Answer = Result<f64, String>;

/// Such threads; they end with the program.
pub struct Team {
    jobs: Vec<Sender<Job>>,
    answers: Receiver<Answer>,
    given: std::cell::Cell<usize>,
}

/// Where all threads wait for each other, twice in each job: before the warm-up and before the time begins.
struct Start {
    size: usize,
    arrived: AtomicUsize,
}

impl Start {
    /// Waits for the others, for the `nth` time.
    fn together(&self, nth: usize) {
        self.arrived.fetch_add(1, Ordering::SeqCst);
        let all = self.size * nth;
        let mut spins = 0;
        while self.arrived.load(Ordering::SeqCst) < all {
            spins += 1;
            match spins < 100_000 {
                true => std::hint::spin_loop(),
                false => std::thread::sleep(std::time::Duration::from_micros(10)),
            }
        }
    }
}

impl Team {
    /// A team of so many.
    pub fn new(size: usize) -> Team {
        let (answer, answers) = channel();
        let arrived = AtomicUsize::new(0);
        let start = Arc::new(Start { size, arrived });
        // The driver cannot begin a capture while another thread allocates or instantiates, so each
        // prepares alone, and nobody begins before all have.
        let preparing = Arc::new(Mutex::new(()));
        let jobs = (0..size).map(|_| {
            let (give, take) = channel();
            let (answer, start, preparing) = (answer.clone(), start.clone(), preparing.clone());
            std::thread::spawn(move || member(&take, &answer, &start, &preparing));
            give
        });
        Team {
            jobs: jobs.collect(),
            answers,
            given: std::cell::Cell::new(0),
        }
    }

    /// Nanoseconds for one call, the mean of the threads.
    pub fn run(&self, measure: &str, count: usize) -> Answer {
        self.given.set(self.given.get() + 1);
        for give in &self.jobs {
            let job = (measure.to_string(), count, self.given.get());
            give.send(job).map_err(|_| "a thread has ended")?;
        }
        let mut sum = 0.0;
        for _ in &self.jobs {
            sum += self.answers.recv().map_err(|_| "a thread has ended")??;
        }
        Ok(sum / self.jobs.len() as f64)
    }
}

fn member(jobs: &Receiver<Job>, answers: &Sender<Answer>, start: &Start, preparing: &Mutex<()>) {
    let alone = || preparing.lock().unwrap_or_else(|e| e.into_inner());
    let made = alone();
    let work = Work::new();
    drop(made);
    let mut measures: HashMap<String, Measure> = HashMap::new();
    while let Ok((name, count, job)) = jobs.recv() {
        let mut burst = || {
            if !measures.contains_key(&name) {
                let _alone = alone();
                let found = work.as_ref().map_err(String::clone)?.find(&name)?;
                measures.insert(name.clone(), found);
            }
            let measure = measures.get_mut(&name).ok_or("no measure")?;
            start.together(2 * job - 1);
            Ok(time(measure, count, || start.together(2 * job)))
        };
        let answer = burst();
        if answers.send(answer).is_err() {
            return;
        }
    }
}

/// As `burst.ml` does it.
fn time(measure: &mut Measure, count: usize, ready: impl FnOnce()) -> f64 {
    measure.run((count / 10).max(1));
    measure.settle();
    ready();
    let begin = Instant::now();
    measure.run(count);
    let time = begin.elapsed();
    measure.settle();
    time.as_nanos() as f64 / (count * measure.parts) as f64
}

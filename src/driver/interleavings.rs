//! Every order in which threads can meet at what is pending on a stream, and at the freeing of memory;
//! tried by loom. What is alive is checked by what is dropped: a resource that is let go looks whether
//! the work that uses it is done.
//!
//! `make test-loom`

use super::life::{Freeing, Life};
use super::pressure::{Backlog, Crossing};
use super::queue::StreamState;
use super::retain::{Operand, Shared};
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use loom::thread;
use std::sync::Arc;

/// A device that has done what it was told once somebody has waited for it.
struct Device {
    told: AtomicU64,
    done: AtomicU64,
}

impl Device {
    fn new() -> Arc<Device> {
        Arc::new(Device {
            told: AtomicU64::new(0),
            done: AtomicU64::new(0),
        })
    }

    /// The driver call that enqueues.
    fn tell(&self) {
        self.told.fetch_add(1, Ordering::AcqRel);
    }

    /// The driver call that waits, or sees that all is done.
    fn wait(&self) {
        let told = self.told.load(Ordering::Acquire);
        self.done.fetch_max(told, Ordering::AcqRel);
    }
}

/// What the operation of this number uses.
struct Used(Arc<Device>, u64);

impl Drop for Used {
    fn drop(&mut self) {
        let done = self.0.done.load(Ordering::Acquire);
        assert!(
            done >= self.1,
            "let go before operation {} was done",
            self.1
        );
    }
}

fn submit(state: &StreamState, device: &Arc<Device>) {
    let mut queue = state.lock();
    state.enqueue(&mut queue, 1, |pending, sequence| {
        let used: Shared = Arc::new(Used(device.clone(), sequence));
        pending.retain(&Operand::Shared(used), sequence);
        device.tell();
    });
}

fn synchronize(state: &StreamState, device: &Arc<Device>) {
    let idle = state.release_if_idle(|| {
        device.wait();
        Ok(true)
    });
    assert!(idle.is_ok());
}

#[test]
fn nothing_is_let_go_before_its_work_is_done() {
    loom::model(|| {
        let state = StreamState::new(&Arc::new(Backlog::default()));
        let device = Device::new();
        let submitter = {
            let (state, device) = (state.clone(), device.clone());
            thread::spawn(move || {
                submit(&state, &device);
                submit(&state, &device);
            })
        };
        synchronize(&state, &device);
        synchronize(&state, &device);
        submitter.join().unwrap();
        synchronize(&state, &device);
        assert_eq!(state.held(), 0);
    });
}

#[test]
fn two_that_submit_and_one_that_waits() {
    loom::model(|| {
        let state = StreamState::new(&Arc::new(Backlog::default()));
        let device = Device::new();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let (state, device) = (state.clone(), device.clone());
                thread::spawn(move || submit(&state, &device))
            })
            .collect();
        synchronize(&state, &device);
        others.into_iter().for_each(|other| other.join().unwrap());
        synchronize(&state, &device);
        assert_eq!(state.held(), 0);
    });
}

#[test]
fn a_resource_used_again_stays_until_its_last_use() {
    loom::model(|| {
        let state = StreamState::new(&Arc::new(Backlog::default()));
        let device = Device::new();
        // Kept by the second operation of the other thread.
        let used: Shared = Arc::new(Used(device.clone(), 2));
        let submitter = {
            let (state, device) = (state.clone(), device.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    let mut queue = state.lock();
                    let operand = Operand::Shared(used.clone());
                    state.enqueue(&mut queue, 1, |pending, sequence| {
                        pending.retain(&operand, sequence);
                        device.tell();
                    });
                }
            })
        };
        synchronize(&state, &device);
        submitter.join().unwrap();
        synchronize(&state, &device);
        assert_eq!(state.held(), 0);
    });
}

/// Memory that one thread frees while another one uses it for a call: it is given back once, and not
/// during the call.
#[test]
fn memory_goes_back_once_and_not_while_it_is_held() {
    loom::model(|| {
        let life = Arc::new(Life::begin());
        let (in_use, returned) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let user = {
            let (life, in_use, returned) = (life.clone(), in_use.clone(), returned.clone());
            thread::spawn(move || {
                if life.hold() {
                    in_use.store(1, Ordering::Release);
                    assert_eq!(
                        returned.load(Ordering::Acquire),
                        0,
                        "given back during a call"
                    );
                    in_use.store(0, Ordering::Release);
                    life.unhold();
                }
            })
        };
        let free = |life: &Life| {
            if life.free() == Freeing::Now {
                assert_eq!(
                    in_use.load(Ordering::Acquire),
                    0,
                    "given back during a call"
                );
                returned.fetch_add(1, Ordering::AcqRel);
            }
        };
        let other = {
            let (life, returned) = (life.clone(), returned.clone());
            thread::spawn(move || {
                if life.free() == Freeing::Now {
                    returned.fetch_add(1, Ordering::AcqRel);
                }
            })
        };
        free(&life);
        user.join().unwrap();
        other.join().unwrap();
        assert!(life.is_dead() && !life.hold());
        // The last owner gives back what nobody has.
        let mut life = Arc::try_unwrap(life).expect("the last owner");
        if !life.is_returned() {
            returned.fetch_add(1, Ordering::AcqRel);
        }
        assert_eq!(returned.load(Ordering::Acquire), 1);
    });
}

/// Memory that one thread frees while another one launches at once, which holds nothing: it is given back
/// once the launch is over, or the launch sees that it is dead.
#[test]
fn memory_does_not_go_back_during_a_launch_at_once() {
    loom::model(|| {
        let life = Arc::new(Life::begin());
        let crossing = Arc::new(Crossing::<2>::new());
        let returned = Arc::new(AtomicUsize::new(0));
        let launcher = {
            let (life, crossing, returned) = (life.clone(), crossing.clone(), returned.clone());
            thread::spawn(move || {
                let place = crossing.give_place();
                for _ in 0..2 {
                    let Some(_short) = crossing.begin_short(place) else {
                        continue;
                    };
                    if !life.is_dead() {
                        let returned = returned.load(Ordering::Relaxed);
                        assert_eq!(returned, 0, "given back during a launch");
                    }
                }
            })
        };
        assert_eq!(life.free(), Freeing::Now);
        drop(crossing.begin_waiting());
        returned.store(1, Ordering::Relaxed);
        launcher.join().unwrap();
    });
}

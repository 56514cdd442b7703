//! What is pending on a stream, and how far its work is known to be done.

use super::capture::Capture;
use super::context::Context;
use super::error::is_sticky;
use super::gate::ThreadMode;
use super::memory::Allocation;
use super::pressure::Backlog;
use super::retain::{PendingSet, Shared};
use super::sync::atomic::{AtomicU64, Ordering};
use super::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use super::{driver, Result};
use cudarc::driver::sys::{self, CUresult};
use std::collections::VecDeque;
use std::sync::Arc;

/// What is pending on a stream.
///
/// The lock is held from retaining an operation's resources until its driver call has returned, so
/// that a synchronize which ends in between cannot let go what is about to be enqueued.
pub struct StreamState {
    queue: Mutex<Queue>,
    /// Held while the stream is asked or waited for, and alone by what may make it capture: the driver
    /// would break the capture of a stream that is asked.
    asking: RwLock<()>,
    /// The last operation whose driver call has returned.
    enqueued: AtomicU64,
}

impl StreamState {
    /// Of a stream without work; what it enqueues counts in its context's backlog.
    pub fn new(backlog: &Arc<Backlog>) -> Arc<StreamState> {
        Arc::new(StreamState {
            queue: Mutex::new(Queue {
                pending: PendingSet::default(),
                sequence: 0,
                done: 0,
                counted: 0,
                backlog: backlog.clone(),
                markers: Markers::default(),
                capture: None,
            }),
            asking: RwLock::new(()),
            enqueued: AtomicU64::new(0),
        })
    }

    /// Nothing else is enqueued while the guard lives.
    pub fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The same, unless a call is under way.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, Queue>> {
        self.queue.try_lock().ok()
    }

    /// Held while the stream is asked or waited for.
    pub fn asking(&self) -> RwLockReadGuard<'_, ()> {
        self.asking.read().unwrap_or_else(|e| e.into_inner())
    }

    /// The same, unless the stream may come to capture at this moment.
    pub fn try_asking(&self) -> Option<RwLockReadGuard<'_, ()>> {
        self.asking.try_read().ok()
    }

    /// Nobody asks or waits for the stream while this lives: it may come to capture.
    pub fn unasked(&self) -> RwLockWriteGuard<'_, ()> {
        self.asking.write().unwrap_or_else(|e| e.into_inner())
    }

    /// Enqueues an operation that counts as `weight` ordinary ones. It is told its number and is to have
    /// what it uses retained before it makes its driver call.
    #[inline]
    pub fn enqueue<T>(
        &self,
        queue: &mut Queue,
        weight: u64,
        operation: impl FnOnce(&mut PendingSet, u64) -> T,
    ) -> T {
        let sequence = queue.next(weight);
        let result = operation(&mut queue.pending, sequence);
        self.enqueued.store(sequence, Ordering::Release);
        result
    }

    /// Asks or waits whether the stream is idle; if so, lets go what its work so far has used. What is
    /// enqueued meanwhile stays.
    pub fn release_if_idle(&self, is_idle: impl FnOnce() -> Result<bool>) -> Result<bool> {
        let mark = self.mark();
        let idle = is_idle()?;
        if idle {
            self.release_up_to(mark);
        }
        Ok(idle)
    }

    /// Marks a point: once the stream is idle, everything up to it may be released. Taken before
    /// the driver is asked.
    pub fn mark(&self) -> u64 {
        self.enqueued.load(Ordering::Acquire)
    }

    /// Lets go what only work up to `mark` has used, since that is done.
    pub fn release_up_to(&self, mark: u64) {
        let released = self.lock().take_up_to(mark);
        drop(released);
    }

    /// Lets go everything: the stream is gone or known to be idle for good. The events that marked its
    /// progress are the caller's to destroy.
    pub fn release_all(&self) -> Vec<usize> {
        let mut queue = self.lock();
        let released = queue.take_all();
        let events = queue.markers.take();
        drop(queue);
        drop(released);
        events
    }

    /// Whether the markers say that all work is done.
    pub fn is_done_by_markers(&self) -> bool {
        let mut queue = self.lock();
        let released = queue.take_marked();
        let done = queue.markers.is_empty();
        drop(queue);
        drop(released);
        done
    }

    /// Whether an operation is known to be done.
    pub fn is_done(&self, sequence: u64) -> bool {
        self.try_lock().is_some_and(|queue| queue.done >= sequence)
    }

    /// How many resources are held.
    pub fn held(&self) -> usize {
        self.lock().pending.len()
    }

    /// Whether pending work uses `memory`. Waits for a call that is under way.
    pub fn uses(&self, memory: &Arc<Allocation>) -> bool {
        self.lock().pending.holds(memory)
    }

    /// Whether pending work uses memory of one of the contexts.
    pub fn needs(&self, contexts: &[Arc<Context>]) -> bool {
        self.lock().pending.needs(contexts)
    }

    /// Like [`StreamState::uses`], at once; true if nobody can tell at this moment.
    pub fn may_use(&self, memory: &Arc<Allocation>) -> bool {
        self.try_lock()
            .is_none_or(|queue| queue.pending.holds(memory))
    }
}

/// The inside of a [`StreamState`].
pub struct Queue {
    /// What work uses that is not known to be done.
    pub pending: PendingSet,
    /// The number of the last operation that began. A large operation counts as several.
    sequence: u64,
    /// Operations up to this one are done.
    done: u64,
    /// Operations up to this one are in the backlog.
    counted: u64,
    backlog: Arc<Backlog>,
    markers: Markers,
    /// The capture that the stream began; it may have been closed since by somebody else.
    pub capture: Option<Arc<Capture>>,
}

impl Queue {
    /// The number of an operation that is about to be enqueued; `weight` compares it with an ordinary
    /// one.
    fn next(&mut self, weight: u64) -> u64 {
        // Counted ahead: the backlog is shared by all streams of the context.
        const AHEAD: u64 = 8;
        self.sequence += weight;
        if self.sequence > self.counted {
            let counted = self.sequence + AHEAD - 1;
            self.backlog.add((counted - self.counted) as i64);
            self.counted = counted;
        }
        self.sequence
    }

    fn take_up_to(&mut self, mark: u64) -> Vec<Shared> {
        let mark = mark.min(self.sequence);
        if mark > self.done {
            let mut known = mark - self.done;
            if mark == self.sequence {
                // Nothing stays counted of an idle stream: there may be many.
                known += self.counted - self.sequence;
                self.counted = self.sequence;
            }
            self.backlog.add(-(known as i64));
            self.done = mark;
        }
        self.pending.take_up_to(mark)
    }

    /// Takes out what all work used: it is done, and no call is under way since the lock is held.
    pub fn take_all(&mut self) -> Vec<Shared> {
        self.take_up_to(u64::MAX)
    }

    /// Takes out what only work used that markers say is done. The thread's mode is RELAXED: to ask about an
    /// event is unsafe to captures otherwise. `cuEventQuery`
    pub fn take_marked(&mut self) -> Vec<Shared> {
        match self.markers.reached() {
            Some(mark) => self.take_up_to(mark),
            None => Vec::new(),
        }
    }

    /// Whether [`Queue::note_progress`] has something to do.
    #[inline]
    pub fn progress_is_due(&self) -> bool {
        self.sequence - self.markers.last >= Markers::EVERY
    }

    /// Learns which operations are done, and lets go what they used: so a stream that is never waited
    /// for keeps no more than it needs. Work that `must` be marked is waited for if it cannot be.
    /// `cuEventQuery`, `cuEventRecord`
    pub(super) fn note_progress(&mut self, stream: sys::CUstream, must: bool) -> Vec<Shared> {
        let _relaxed = ThreadMode::relaxed();
        let mut released = self.take_marked();
        if !self.markers.set(stream, self.sequence) && must {
            let waited = driver!(cuStreamSynchronize(stream));
            if waited.is_ok() {
                released.extend(self.take_all());
            }
        }
        released
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.backlog.add(-((self.counted - self.done) as i64));
    }
}

/// Events recorded now and then, each with the last operation before it.
#[derive(Default)]
struct Markers {
    set: VecDeque<(usize, u64)>,
    spare: Vec<usize>,
    /// The operation at which one was due.
    last: u64,
}

impl Markers {
    /// Operations from one marker to the next.
    const EVERY: u64 = 128;
    const MOST: usize = 4;

    /// The last operation that a marker says is done.
    fn reached(&mut self) -> Option<u64> {
        let mut reached = None;
        while let Some(&(event, mark)) = self.set.front() {
            // SAFETY: the event is this stream's own and destroyed with it.
            let status = unsafe { sys::cuEventQuery(event as sys::CUevent) };
            // In a context that is broken all work is over, and no other answer will come.
            if status != CUresult::CUDA_SUCCESS && !is_sticky(status) {
                break;
            }
            self.set.pop_front();
            self.spare.push(event);
            reached = Some(mark);
        }
        reached
    }

    /// Marks the place after operation `sequence`; whether it could.
    fn set(&mut self, stream: sys::CUstream, sequence: u64) -> bool {
        self.last = sequence;
        let full = self.set.len() >= Markers::MOST;
        // The last marker moves on rather than that the last operation has none.
        let moved = full
            .then(|| self.set.pop_back())
            .flatten()
            .map(|(event, _)| event);
        let event = match moved.or_else(|| self.spare.pop()) {
            Some(event) => event,
            None => {
                let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
                let mut event = std::ptr::null_mut();
                // SAFETY: writes a handle to a local; the stream's context is current.
                let status = unsafe { sys::cuEventCreate(&mut event, flags) };
                if status != CUresult::CUDA_SUCCESS {
                    return false;
                }
                event as usize
            }
        };
        // SAFETY: both handles are alive, and of the same context.
        let status = unsafe { sys::cuEventRecord(event as sys::CUevent, stream) };
        match status {
            CUresult::CUDA_SUCCESS => self.set.push_back((event, sequence)),
            _ => self.spare.push(event),
        }
        status == CUresult::CUDA_SUCCESS
    }

    fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    fn take(&mut self) -> Vec<usize> {
        let set = self.set.drain(..).map(|(event, _)| event);
        set.chain(self.spare.drain(..)).collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// However many streams there are: operations are counted ahead, and none of that may stay.
    #[test]
    fn idle_streams_take_no_room() {
        let backlog = Arc::new(Backlog::default());
        let states: Vec<_> = (0..1000).map(|_| StreamState::new(&backlog)).collect();
        for round in 1..=3 {
            for state in &states {
                assert!(backlog.has_room());
                state.enqueue(&mut state.lock(), 1, |_, _| ());
                assert!(!state.is_done(round));
                state.release_up_to(state.mark());
                assert!(state.is_done(round));
            }
        }
        let busy = &states[0];
        for _ in 0..600 {
            busy.enqueue(&mut busy.lock(), 1, |_, _| ());
        }
        assert!(!backlog.has_room());
        busy.release_up_to(busy.mark() - 1);
        assert!(backlog.has_room());
        drop(states);
        backlog.add(599);
        assert!(backlog.has_room());
    }
}

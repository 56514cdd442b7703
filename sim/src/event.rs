//! Events, and the moments they stand for.

use crate::context::Context;
use crate::ledger::Kind;
use crate::table::{lock, Table};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::Instant;

/// A moment in a stream's work: happens once.
#[derive(Default)]
pub struct Moment {
    at: Mutex<Option<Instant>>,
    happened: Condvar,
}

impl Moment {
    /// It is now, unless it was before.
    pub fn happen(&self) {
        lock(&self.at).get_or_insert_with(Instant::now);
        self.happened.notify_all();
    }

    /// When it was, if it was.
    pub fn at(&self) -> Option<Instant> {
        *lock(&self.at)
    }

    /// Waits for it.
    pub fn wait(&self) {
        let mut at = lock(&self.at);
        while at.is_none() {
            at = self.happened.wait(at).unwrap_or_else(|e| e.into_inner());
        }
    }
}

/// What the latest record of an event has meant.
#[derive(Clone, Default)]
pub enum Recorded {
    /// Never recorded.
    #[default]
    Never,
    /// Recorded in the work of a stream.
    Moment(Arc<Moment>),
    /// Recorded inside the capture with this number, after these nodes.
    Captured(u64, Vec<usize>),
}

/// An event.
pub struct Event {
    /// Its handle.
    pub handle: usize,
    /// The context it is in.
    pub context: Weak<Context>,
    /// Handle of that context.
    pub context_handle: usize,
    /// Flags as given; 2 is without time.
    pub flags: u32,
    recorded: Mutex<Recorded>,
}

/// The live events.
pub static EVENTS: Table<Event> = Table::new(Kind::Event);

impl Event {
    /// A new event: its handle.
    pub fn create(context: &Arc<Context>, flags: u32) -> usize {
        let handle = crate::table::fresh_handle();
        EVENTS.insert_as(
            handle,
            Arc::new(Event {
                handle,
                context: Arc::downgrade(context),
                context_handle: context.handle,
                flags,
                recorded: Mutex::default(),
            }),
        );
        handle
    }

    /// What its latest record has meant.
    pub fn recorded(&self) -> Recorded {
        lock(&self.recorded).clone()
    }

    /// Sets what its latest record means.
    pub fn record(&self, recorded: Recorded) {
        *lock(&self.recorded) = recorded;
    }

    /// Records it at a moment to come.
    pub fn record_moment(&self) -> Arc<Moment> {
        let moment = Arc::new(Moment::default());
        self.record(Recorded::Moment(moment.clone()));
        moment
    }

    /// The moment to wait for, if there is one.
    pub fn moment(&self) -> Option<Arc<Moment>> {
        match self.recorded() {
            Recorded::Moment(moment) => Some(moment),
            _ => None,
        }
    }
}

/// Takes the events of a context that goes.
pub fn remove_context(context: usize) {
    EVENTS.remove_where(|e| e.context_handle == context);
}

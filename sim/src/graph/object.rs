//! User objects: what a program lets a graph keep, with a function to call when nobody needs it.

use crate::callback;
use crate::ledger::{self, Kind};
use crate::status::{Result, INVALID_VALUE};
use crate::table::{fresh_handle, lock};
use crate::work::Host;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

/// A user object: the last one to let go of it makes the driver call its destructor.
pub struct UserObject {
    /// Its handle.
    pub handle: usize,
    destructor: Host,
}

impl Drop for UserObject {
    fn drop(&mut self) {
        if let Some(known) = lock(&KNOWN).as_mut() {
            known.remove(&self.handle);
        }
        ledger::destroyed(Kind::UserObject);
        callback::call_later(self.destructor);
    }
}

/// References of the program, and the object while anybody has one.
struct Entry {
    held: u32,
    object: Option<Arc<UserObject>>,
    weak: Weak<UserObject>,
}

static KNOWN: Mutex<Option<HashMap<usize, Entry>>> = Mutex::new(None);

/// References of a graph: how many of each object.
#[derive(Clone, Default)]
pub struct References(Vec<(Arc<UserObject>, u32)>);

impl References {
    /// The objects, each once.
    pub fn objects(&self) -> Vec<Arc<UserObject>> {
        self.0.iter().map(|(object, _)| object.clone()).collect()
    }

    fn add(&mut self, object: Arc<UserObject>, count: u32) {
        match self.0.iter_mut().find(|(o, _)| Arc::ptr_eq(o, &object)) {
            Some((_, held)) => *held += count,
            None => self.0.push((object, count)),
        }
    }

    /// Gives references back. An error if there are not so many.
    pub fn release(&mut self, handle: usize, count: u32) -> Result<Option<Arc<UserObject>>> {
        let index = self
            .0
            .iter()
            .position(|(object, _)| object.handle == handle);
        let index = index.ok_or(INVALID_VALUE)?;
        let held = &mut self.0[index].1;
        *held = held.checked_sub(count).ok_or(INVALID_VALUE)?;
        // The caller drops the object when it holds no lock: its destructor may be due.
        Ok((*held == 0).then(|| self.0.swap_remove(index).0))
    }
}

/// Makes an object with references of the program.
pub fn create(destructor: Host, references: u32) -> usize {
    let handle = fresh_handle();
    let object = Arc::new(UserObject { handle, destructor });
    ledger::made(Kind::UserObject);
    let entry = Entry {
        held: references,
        weak: Arc::downgrade(&object),
        object: Some(object),
    };
    lock(&KNOWN)
        .get_or_insert_with(HashMap::new)
        .insert(handle, entry);
    handle
}

fn with_entry<R>(handle: usize, f: impl FnOnce(&mut Entry) -> Result<R>) -> Result<R> {
    let mut known = lock(&KNOWN);
    match known.as_mut().and_then(|known| known.get_mut(&handle)) {
        Some(entry) => f(entry),
        None => {
            ledger::bad_handle();
            Err(INVALID_VALUE)
        }
    }
}

/// Adds references of the program.
pub fn retain(handle: usize, count: u32) -> Result<()> {
    with_entry(handle, |entry| {
        entry.held = entry.held.checked_add(count).ok_or(INVALID_VALUE)?;
        if entry.object.is_none() {
            entry.object = entry.weak.upgrade();
        }
        Ok(())
    })
}

/// Gives references of the program back.
pub fn release(handle: usize, count: u32) -> Result<()> {
    let gone = with_entry(handle, |entry| entry.give_back(count))?;
    drop(gone);
    Ok(())
}

impl Entry {
    fn give_back(&mut self, count: u32) -> Result<Option<Arc<UserObject>>> {
        self.held = self.held.checked_sub(count).ok_or_else(|| {
            ledger::bad_handle();
            INVALID_VALUE
        })?;
        Ok(if self.held == 0 {
            self.object.take()
        } else {
            None
        })
    }
}

/// Lets a graph keep references: new ones, or the program's.
pub fn keep(references: &mut References, handle: usize, count: u32, moved: bool) -> Result<()> {
    // No object may go while the table is locked: its end needs the table.
    let (object, program) = with_entry(handle, |entry| {
        let program = if moved { entry.give_back(count)? } else { None };
        Ok((program.clone().or_else(|| entry.weak.upgrade()), program))
    })?;
    let object = object.ok_or(INVALID_VALUE)?;
    references.add(object, count);
    drop(program);
    Ok(())
}

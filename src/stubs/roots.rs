//! OCaml values that Rust keeps alive: numbered slots of arrays that the garbage collector knows.
//!
//! A root may be dropped on any thread, with or without the runtime lock. Its slot is emptied by the next
//! [`sweep`], which is made wherever the lock has been taken again.
//!
//! Boxroots would do, but each belongs to the domain that made it, and the page of a domain that has
//! ended stays for good if its roots go later (16 KiB a domain, measured).

use super::value::UNIT;
use ocaml::sys::{self, Value};
use ocaml_interop::OCamlRuntime;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

extern "C" {
    fn caml_alloc_shr(size: usize, tag: u32) -> Value;
}

/// Slots of the first array; each further one has twice as many.
const FIRST: usize = 256;

/// An array of slots. It is found through a global root, since it may move.
struct Array {
    /// The garbage collector writes it.
    root: UnsafeCell<Value>,
    /// Of each slot the next one in the list that it is in.
    links: Box<[AtomicU32]>,
}

static ARRAYS: [AtomicPtr<Array>; 23] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 23];

/// Slots that hold nothing.
static FREE: List = List(AtomicU64::new(0));
/// Slots whose root is gone.
static DEAD: List = List(AtomicU64::new(0));

#[derive(Clone, Copy)]
struct Slot(u32);

impl Slot {
    /// Its array, and its place there.
    fn place(self) -> (&'static Array, usize) {
        let number = self.0 as usize;
        let array = (number / FIRST + 1).ilog2() as usize;
        let begin = FIRST * ((1 << array) - 1);
        // SAFETY: a slot is made after its array, which stays.
        let array = unsafe { &*ARRAYS[array].load(Ordering::Acquire) };
        (array, number - begin)
    }

    fn link(self) -> &'static AtomicU32 {
        let (array, index) = self.place();
        &array.links[index]
    }

    fn field(self) -> *mut Value {
        let (array, index) = self.place();
        // SAFETY: the array has this field, and stays where it is while the runtime lock is held.
        unsafe { (*array.root.get() as *mut Value).add(index) }
    }

    /// With the runtime lock held.
    fn set(self, v: Value) {
        // SAFETY: a field of a live block.
        unsafe { sys::caml_modify(self.field(), v) }
    }

    /// Lets go of what it holds; for others from now on.
    fn empty(self) {
        self.set(UNIT);
        FREE.push(self);
    }

    /// A slot of a new array. Nothing is moved for it: stubs root one value while they hold others.
    fn grow() -> Slot {
        let made = ARRAYS
            .iter()
            .take_while(|a| !a.load(Ordering::Acquire).is_null());
        let made = made.count();
        let size = FIRST << made;
        let links = (0..size).map(|_| AtomicU32::new(0)).collect();
        // SAFETY: with the runtime lock held; of all allocations only this one runs no collection. The
        // block is filled before the garbage collector hears of it, and the root stays with the array.
        unsafe {
            let block = caml_alloc_shr(size, 0);
            std::slice::from_raw_parts_mut(block as *mut Value, size).fill(UNIT);
            let root = UnsafeCell::new(block);
            let array = Box::into_raw(Box::new(Array { root, links }));
            let root = (*array).root.get();
            sys::caml_register_generational_global_root(root);
            let none = std::ptr::null_mut();
            let order = Ordering::AcqRel;
            if ARRAYS[made]
                .compare_exchange(none, array, order, Ordering::Relaxed)
                .is_err()
            {
                // Another domain was first.
                sys::caml_remove_generational_global_root(root);
                drop(Box::from_raw(array));
                return FREE.pop().unwrap_or_else(Slot::grow);
            }
        }
        let begin = (FIRST * ((1 << made) - 1)) as u32;
        (begin + 1..begin + size as u32).for_each(|number| FREE.push(Slot(number)));
        Slot(begin)
    }
}

/// A list of slots that any thread adds to and takes from: the number of the first slot plus one, and above
/// it how often one was taken, so that the same first slot is not mistaken for the same list.
struct List(AtomicU64);

impl List {
    fn push(&self, slot: Slot) {
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            slot.link().store(head as u32, Ordering::Relaxed);
            let new = head >> 32 << 32 | u64::from(slot.0 + 1);
            match self
                .0
                .compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn pop(&self) -> Option<Slot> {
        let mut head = self.0.load(Ordering::Acquire);
        loop {
            let slot = Slot((head as u32).checked_sub(1)?);
            let next = slot.link().load(Ordering::Relaxed);
            let new = ((head >> 32) + 1) << 32 | u64::from(next);
            match self
                .0
                .compare_exchange_weak(head, new, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return Some(slot),
                Err(now) => head = now,
            }
        }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) as u32 == 0
    }
}

/// A value that the garbage collector must keep and may move.
pub struct Root(Slot);

impl Root {
    /// Keeps `v`, a valid value of the moment. Moves no value.
    pub fn new(runtime: &OCamlRuntime, v: Value) -> Root {
        sweep(runtime);
        let slot = FREE.pop().unwrap_or_else(Slot::grow);
        slot.set(v);
        Root(slot)
    }

    /// The value, valid until something is allocated.
    pub fn get(&self, _runtime: &OCamlRuntime) -> Value {
        // SAFETY: the slot is this root's.
        unsafe { *self.0.field() }
    }

    /// Lets go of the value at once.
    pub fn forget(self, _runtime: &OCamlRuntime) {
        self.0.empty();
        std::mem::forget(self);
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        DEAD.push(self.0);
    }
}

/// Lets go of the values whose roots are gone.
#[inline]
pub fn sweep(_runtime: &OCamlRuntime) {
    if !DEAD.is_empty() {
        while let Some(slot) = DEAD.pop() {
            slot.empty();
        }
    }
}

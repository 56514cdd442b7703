//! What work keeps alive, and the two kinds of set that hold it.
//!
//! Retaining is cloning an `Arc`. A set holds each resource once, so that a million launches of the
//! same kernel need constant memory.

use super::context::Context;
use super::event::Event;
use super::graph::LiveExec;
use super::graph_memory::MemoryNodes;
use super::memory::{Allocation, Held};
use super::module::Module;
use super::Result;
use smallvec::SmallVec;
use std::any::Any;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// Any owner of a driver handle or of host memory.
pub type Shared = Arc<dyn Any + Send + Sync>;

/// A reference to what an `Arc` holds, from which a share can be had: as small as a pointer, and free to
/// make where the `Arc` itself is inside an OCaml value.
pub struct Borrowed<'a, T>(&'a T);

impl<T> Clone for Borrowed<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Borrowed<'_, T> {}

impl<'a, T> Borrowed<'a, T> {
    /// Borrows from an `Arc`.
    pub fn of(owner: &'a Arc<T>) -> Borrowed<'a, T> {
        Borrowed(owner)
    }

    /// Borrows what `Arc::into_raw` has given.
    ///
    /// # Safety
    /// The share behind `raw` must last for `'a`.
    pub unsafe fn from_raw(raw: *const T) -> Borrowed<'a, T> {
        // SAFETY: by the caller.
        Borrowed(unsafe { &*raw })
    }

    /// A share of its own.
    pub fn share(self) -> Arc<T> {
        let raw = std::ptr::from_ref(self.0);
        // SAFETY: the reference is to the inside of an `Arc`, by both constructors, which has a share
        // for `'a`; the count goes up before the new `Arc` takes its share.
        unsafe {
            Arc::increment_strong_count(raw);
            Arc::from_raw(raw)
        }
    }

    /// The reference itself.
    pub fn get(self) -> &'a T {
        self.0
    }
}

impl<T> std::ops::Deref for Borrowed<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0
    }
}

/// Something that a piece of work needs.
pub enum Operand {
    /// Device memory, held against an explicit free while this lives.
    Memory(Held),
    /// A module, event, exec, context...
    Shared(Shared),
    /// Host memory at an address, and what keeps it alive.
    Host(usize, Shared),
}

/// The operands of one operation.
pub type Operands = SmallVec<[Operand; 8]>;

impl Operand {
    /// Device memory as an operand; an error if the user has freed it.
    pub fn memory(allocation: &Arc<Allocation>) -> Result<Operand> {
        Ok(Operand::Memory(Held::new(allocation)?))
    }

    /// [`Operand::memory`] of the argument called `name`.
    pub fn argument(name: &str, allocation: &Arc<Allocation>) -> Result<Operand> {
        Operand::memory(allocation).map_err(|e| e.of_argument(name))
    }

    /// What tells this resource from every other one that is alive.
    fn key(&self) -> usize {
        match self {
            Operand::Memory(held) => Arc::as_ptr(held.allocation()) as usize,
            Operand::Shared(shared) => Arc::as_ptr(shared).cast::<()>() as usize,
            Operand::Host(address, _) => *address,
        }
    }
}

/// Addresses are hashed by a multiplication: they are no one's choice, and launches do it.
fn hash(address: usize) -> u64 {
    (address as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(26)
}

#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("only addresses are hashed");
    }

    fn write_usize(&mut self, address: usize) {
        self.0 = hash(address);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

type ByAddress<T> = HashMap<usize, T, BuildHasherDefault<AddressHasher>>;

/// In front of a set: what was used last has its place here, so that the set need not be searched.
struct Recent<T>([(usize, T); 16]);

/// The key of nothing: host memory may be said to be at 0, if it is empty.
const NO_KEY: usize = usize::MAX;

impl<T: Copy + Default> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent([(NO_KEY, T::default()); 16])
    }
}

impl<T> Recent<T> {
    #[inline]
    fn place(&mut self, key: usize) -> &mut (usize, T) {
        &mut self.0[hash(key) as usize % 16]
    }
}

/// Resources of work that may be pending on a stream, each with the number of the last operation
/// that used it.
#[derive(Default)]
pub struct PendingSet {
    entries: ByAddress<(Shared, u64)>,
    /// Numbers that the entries do not have yet.
    recent: Recent<u64>,
}

impl PendingSet {
    /// Retains an operand of operation number `sequence`.
    pub fn retain(&mut self, operand: &Operand, sequence: u64) {
        self.retain_at(operand.key(), sequence, || match operand {
            Operand::Memory(held) => held.allocation().clone(),
            Operand::Shared(shared) | Operand::Host(_, shared) => shared.clone(),
        });
    }

    /// Retains an owner for operation number `sequence`.
    #[inline]
    pub fn retain_owner<T: Any + Send + Sync>(&mut self, owner: Borrowed<T>, sequence: u64) {
        let key = std::ptr::from_ref(owner.get()) as usize;
        self.retain_at(key, sequence, || owner.share());
    }

    #[inline]
    fn retain_at(&mut self, key: usize, sequence: u64, share: impl FnOnce() -> Shared) {
        let recent = self.recent.place(key);
        if recent.0 == key {
            recent.1 = sequence;
        } else {
            let (before, last) = std::mem::replace(recent, (key, sequence));
            self.note(before, last);
            self.entries.entry(key).or_insert_with(|| (share(), 0));
        }
    }

    /// Notes the last use of an entry, if there is one.
    fn note(&mut self, key: usize, sequence: u64) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.1 = sequence;
        }
    }

    /// Takes out what no operation after number `sequence` has used.
    pub fn take_up_to(&mut self, sequence: u64) -> Vec<Shared> {
        for (key, last) in std::mem::take(&mut self.recent).0 {
            self.note(key, last);
        }
        if self.entries.values().all(|(_, last)| *last <= sequence) {
            return self
                .entries
                .drain()
                .map(|(_, (shared, _))| shared)
                .collect();
        }
        let done: Vec<usize> = self
            .entries
            .iter()
            .filter(|(_, (_, last))| *last <= sequence)
            .map(|(key, _)| *key)
            .collect();
        done.iter()
            .filter_map(|key| self.entries.remove(key))
            .map(|(shared, _)| shared)
            .collect()
    }

    /// Whether `memory` is held.
    pub fn holds(&self, memory: &Arc<Allocation>) -> bool {
        self.entries.contains_key(&(Arc::as_ptr(memory) as usize))
    }

    /// Whether memory of one of the contexts is held, also by an exec.
    pub fn needs(&self, contexts: &[Arc<Context>]) -> bool {
        self.entries.values().any(|(shared, _)| {
            let memory = shared.downcast_ref::<Allocation>().map(|m| m.context());
            let exec = shared.downcast_ref::<LiveExec>();
            let kept = exec.into_iter().flat_map(|exec| exec.kept_contexts());
            memory
                .into_iter()
                .chain(kept)
                .any(|of| contexts.iter().any(|context| Arc::ptr_eq(context, of)))
        })
    }

    /// How many resources are held.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Resources of captured work: held, device memory included, until the last graph or exec that
/// shares the set goes.
#[derive(Default)]
pub struct KeepSet {
    entries: ByAddress<Operand>,
    /// Keys of entries.
    recent: Recent<()>,
    /// The memory that launches of the graph allocate and free.
    pub memory: MemoryNodes,
    /// Of the entries and the streams, but for the work's own: seldom any.
    contexts: SmallVec<[Arc<Context>; 1]>,
    copies_host_memory: bool,
}

impl KeepSet {
    /// For work that another library has captured, which may do anything: what it was given to keep.
    pub fn of_unknown_work(kept: Option<Shared>) -> KeepSet {
        let mut keep = KeepSet {
            copies_host_memory: true,
            ..KeepSet::default()
        };
        keep.retain(kept.into_iter().map(Operand::Shared).collect());
        keep
    }

    /// Whether an owner is held.
    #[inline]
    pub fn holds<T>(&mut self, owner: Borrowed<T>) -> bool {
        let key = std::ptr::from_ref(owner.get()) as usize;
        let recent = self.recent.place(key);
        if recent.0 == key {
            return true;
        }
        let held = self.entries.contains_key(&key);
        if held {
            recent.0 = key;
        }
        held
    }

    /// Whether the work may copy from or to host memory. A launch that copies to ordinary host memory
    /// returns when it is done (measured).
    pub fn copies_host_memory(&self) -> bool {
        self.copies_host_memory
    }

    /// The work is also of this context.
    pub fn note_context(&mut self, context: &Arc<Context>) {
        if !self.contexts.iter().any(|own| Arc::ptr_eq(own, context)) {
            self.contexts.push(context.clone());
        }
    }

    /// All work is captured, in this context.
    pub fn complete(&mut self, own: &Arc<Context>) {
        self.contexts.retain(|context| !Arc::ptr_eq(context, own));
    }

    /// Other contexts than the work's own that it uses something of.
    pub fn contexts(&self) -> &[Arc<Context>] {
        &self.contexts
    }

    /// Whether nothing that the work uses went with another context than its own.
    #[inline]
    pub fn is_alive(&self) -> bool {
        self.contexts.iter().all(|context| context.is_alive())
    }

    /// An error unless [`KeepSet::is_alive`].
    pub fn check_alive(&self) -> Result<()> {
        self.contexts.iter().try_for_each(|c| c.check_alive())
    }

    /// Retains one operand.
    pub fn retain_one(&mut self, operand: Operand) {
        match &operand {
            Operand::Host(..) => self.copies_host_memory = true,
            Operand::Memory(held) => {
                self.note_context(held.context());
            }
            Operand::Shared(shared) => {
                let module = shared.downcast_ref::<Module>().map(Module::context);
                let event = shared.downcast_ref::<Event>().map(Event::context);
                if let Some(context) = module.or(event) {
                    self.note_context(context);
                }
            }
        }
        self.entries.entry(operand.key()).or_insert(operand);
    }

    /// Retains `operands` for as long as the set lives.
    pub fn retain(&mut self, operands: Operands) {
        operands
            .into_iter()
            .for_each(|operand| self.retain_one(operand));
    }

    /// How many resources are held.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_held_once_and_goes_after_its_last_use() {
        let (a, b) = (Arc::new("a".to_string()), Arc::new("b".to_string()));
        let mut pending = PendingSet::default();
        for sequence in 1..=1000 {
            pending.retain_owner(Borrowed::of(&a), sequence);
        }
        pending.retain(&Operand::Shared(b.clone()), 5);
        assert_eq!((pending.len(), Arc::strong_count(&a)), (2, 2));
        drop(pending.take_up_to(999));
        assert_eq!((pending.len(), Arc::strong_count(&b)), (1, 1));
        drop(pending.take_up_to(1000));
        assert_eq!((pending.len(), Arc::strong_count(&a)), (0, 1));
    }

    #[test]
    fn last_uses_are_known_whether_recent_or_not() {
        let owners: Vec<_> = (0..100).map(|n: u64| Arc::new(n)).collect();
        let mut pending = PendingSet::default();
        let mut sequence = 0;
        for round in 0..3 {
            for owner in owners.iter().skip(round * 30) {
                sequence += 1;
                pending.retain_owner(Borrowed::of(owner), sequence);
            }
        }
        // Those of the first round alone go first, and each at its own number.
        drop(pending.take_up_to(29));
        assert_eq!(pending.len(), 71);
        drop(pending.take_up_to(100));
        assert_eq!(pending.len(), 70);
        pending.retain_owner(Borrowed::of(&owners[99]), sequence + 1);
        drop(pending.take_up_to(sequence));
        assert_eq!((pending.len(), Arc::strong_count(&owners[99])), (1, 2));
    }

    #[test]
    fn host_memory_is_told_apart_by_its_address() {
        let root = Arc::new("root".to_string());
        let mut keep = KeepSet::default();
        assert!(!keep.copies_host_memory());
        for address in [64, 64, 128] {
            keep.retain(smallvec::smallvec![Operand::Host(
                address,
                root.clone() as Shared
            )]);
        }
        assert_eq!((keep.len(), Arc::strong_count(&root)), (2, 3));
        assert!(keep.copies_host_memory());
    }
}

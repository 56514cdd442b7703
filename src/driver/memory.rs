//! Device memory: who owns it, and whether it may be used and freed.

use super::context::Context;
use super::foreign::Whose;
use super::gate::{Passing, Shield, ThreadMode};
use super::graph_memory::GraphMemory;
use super::life::{Freeing, Life};
use super::module::Module;
use super::pressure::Waiting;
use super::queue::StreamState;
use super::release::{self, Drain, Release};
use super::stream::Stream;
use super::{driver, library, Error, Result};
use std::sync::Arc;

enum Owner {
    /// Allocated here or taken over; freed when the last holder goes.
    Here,
    /// Managed memory, freed alike.
    Managed,
    /// From the pool, in the order of a stream; given back in that order. The stream's last operation so far:
    /// until it is done, work before the allocation may use the same bytes.
    Stream(Arc<Stream>, u64),
    /// No bytes in the order of a stream: the driver answers the null pointer, and nothing goes back.
    Nothing,
    /// What a graph allocates when it is launched.
    Graph(Arc<GraphMemory>),
    /// A variable of a module; lives as long as the module.
    Module { _module: Arc<Module> },
    /// Another library's.
    Other(#[allow(dead_code)] Whose),
}

/// Device memory with a known extent.
pub struct Allocation {
    address: u64,
    size: usize,
    owner: Owner,
    context: Arc<Context>,
    life: Life,
}

impl Allocation {
    /// Allocates `size` bytes in the current context. `cuMemAlloc`
    pub fn new(size: usize) -> Result<Arc<Allocation>> {
        let context = Context::current()?;
        // An allocation may wait for the device anyway.
        release::drain(Drain::All);
        let _shield = Shield::for_others(Passing::By);
        let _waiting = Waiting::begin();
        let mut address = 0;
        driver!(cuMemAlloc_v2(&mut address, size)).map_err(sized(size))?;
        Ok(Allocation::owned_by(Owner::Here, address, size, context))
    }

    /// Allocates managed memory, which the host may use too; `flags` says by which streams.
    /// `cuMemAllocManaged`
    pub fn managed(size: usize, flags: u32) -> Result<Arc<Allocation>> {
        let context = Context::current()?;
        release::drain(Drain::All);
        let _shield = Shield::for_others(Passing::By);
        let _waiting = Waiting::begin();
        let mut address = 0;
        driver!(cuMemAllocManaged(&mut address, size, flags)).map_err(sized(size))?;
        Ok(Allocation::owned_by(Owner::Managed, address, size, context))
    }

    /// Memory that a stream's work may use from now on. `cuMemAllocAsync`
    pub fn on_stream(stream: &Arc<Stream>, size: usize) -> Result<Arc<Allocation>> {
        let context = stream.context().clone();
        match stream.allocate(size).map_err(sized(size))? {
            (0, _) => Ok(Allocation::owned_by(Owner::Nothing, 0, size, context)),
            (address, None) => {
                let owner = Owner::Stream(stream.clone(), stream.state().mark());
                Ok(Allocation::owned_by(owner, address, size, context))
            }
            (address, Some(memory)) => {
                let owner = Owner::Graph(memory);
                Ok(Allocation::owned_by(owner, address, size, context))
            }
        }
    }

    /// The memory of a module's variable.
    pub fn of_module(address: u64, size: usize, module: Arc<Module>) -> Arc<Allocation> {
        let context = module.context().clone();
        Allocation::owned_by(Owner::Module { _module: module }, address, size, context)
    }

    /// Memory that another library allocated; if it is ours now, `cuMemFree` frees it.
    pub fn foreign(
        address: u64,
        size: usize,
        context: Arc<Context>,
        whose: Whose,
    ) -> Arc<Allocation> {
        let owner = match whose {
            Whose::Ours => Owner::Here,
            theirs => Owner::Other(theirs),
        };
        Allocation::owned_by(owner, address, size, context)
    }

    fn owned_by(owner: Owner, address: u64, size: usize, context: Arc<Context>) -> Arc<Allocation> {
        let allocation = Allocation {
            address,
            size,
            owner,
            context,
            life: Life::begin(),
        };
        allocation.context.pace.allocated(allocation.owned_bytes());
        Arc::new(allocation)
    }

    /// The device address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes that this allocation takes from the device, for the garbage collector's pace.
    fn owned_bytes(&self) -> usize {
        match self.owner {
            Owner::Here | Owner::Managed | Owner::Stream(..) => self.size,
            Owner::Nothing | Owner::Graph(_) | Owner::Module { .. } | Owner::Other(_) => 0,
        }
    }

    /// Whether the host may use it.
    pub fn is_managed(&self) -> bool {
        matches!(self.owner, Owner::Managed)
    }

    /// The allocation node behind it, if a graph allocates it.
    pub fn of_graph(&self) -> Option<&Arc<GraphMemory>> {
        match &self.owner {
            Owner::Graph(memory) => Some(memory),
            _ => None,
        }
    }

    /// Refuses memory that is not allocated at this moment, for work that is not captured.
    pub fn check_allocated(&self) -> Result<()> {
        match self.of_graph() {
            Some(memory) => memory.check_allocated(),
            None => Ok(()),
        }
    }

    /// Whether the user has freed it.
    pub fn is_freed(&self) -> bool {
        self.life.is_dead()
    }

    /// Frees the memory now, or when the last capture, graph or exec that holds it goes. The value
    /// is dead to the user either way. Freeing twice is harmless. `cuMemFree`
    pub fn free(self: &Arc<Self>) -> Result<()> {
        if let Owner::Graph(memory) = &self.owner {
            if memory.is_allocated() {
                return Err(Error::invalid(
                    "the memory was allocated by the launch of a graph; free it with Stream.mem_free, in \
                     the order of a stream",
                ));
            }
        }
        // What `cuMemFree` does not wait for.
        let used = || match &self.owner {
            Owner::Stream(own, made) => self.may_be_used(own, *made, None),
            _ => self.context.outsiders_use(self),
        };
        // Before the memory counts as given back: this may fail.
        let _entered = self.context.enter_if_alive()?;
        self.free_by(used, |address| {
            if !self.context.is_alive() {
                return Ok(());
            }
            let _relaxed = ThreadMode::relaxed();
            let _waiting = Waiting::begin();
            driver!(cuMemFree_v2(address))
        })
    }

    /// [`Allocation::free`] in the order of a stream. `cuMemFreeAsync`
    pub fn free_on(self: &Arc<Self>, stream: &Arc<Stream>) -> Result<()> {
        let outside = || {
            match self.owner {
            Owner::Graph(_) | Owner::Nothing => Ok(()),
            _ => Err(Error::invalid(
                "the memory was allocated outside of any capture, and a graph can free only what a \
                 graph has allocated; free it on a stream that is not capturing",
            )),
        }
        };
        if let Owner::Stream(..) | Owner::Graph(_) = self.owner {
            if self.context.handle() != stream.context().handle() {
                return Err(Error::invalid(
                    "the memory was allocated in another context than that of the stream",
                ));
            }
        }
        if stream.is_capturing()? {
            library::ready()?;
            if self.is_freed() {
                return Ok(());
            }
            outside()?;
            if let Owner::Nothing = self.owner {
                return self.free_by(|| false, |_| Ok(()));
            }
            let held = Held::new(self)?;
            if stream.free_in_capture(&held)? {
                self.life.free_elsewhere();
            }
            return Ok(());
        }
        if matches!(self.owner, Owner::Here | Owner::Managed) {
            return Err(Error::invalid(
                "the memory was not allocated on a stream; free it with Deviceptr.mem_free",
            ));
        }
        let used = || match &self.owner {
            Owner::Stream(own, made) => self.may_be_used(own, *made, Some(stream.state())),
            _ => false,
        };
        let _entered = stream.context().enter()?;
        let mut called = false;
        let give_back = |address| match self.context.is_alive() {
            true => stream.free(address, &mut called),
            // The address may be of other memory by now.
            false => Ok(()),
        };
        self.free_by(used, give_back).inspect_err(|_| {
            if !called && matches!(self.owner, Owner::Stream(..)) {
                // Nobody has given it back: its release will.
                self.context.pace.allocated(self.owned_bytes());
                self.life.not_returned();
            }
        })
    }

    /// Whether pending work may use memory of the pool, or comes before its allocation on its `own` stream. The
    /// work of `one` stream is passed over.
    fn may_be_used(
        self: &Arc<Self>,
        own: &Stream,
        made: u64,
        one: Option<&Arc<StreamState>>,
    ) -> bool {
        let is_own = one.is_some_and(|one| Arc::ptr_eq(own.state(), one));
        !is_own && !own.state().is_done(made) || self.context.others_may_use(self, one)
    }

    /// Marks the memory dead, and calls `give_back` unless something holds it, work that `give_back` does
    /// not wait for may use it, or it goes otherwise.
    fn free_by(
        &self,
        used: impl FnOnce() -> bool,
        give_back: impl FnOnce(u64) -> Result<()>,
    ) -> Result<()> {
        library::ready()?;
        match &self.owner {
            Owner::Module { .. } => {
                return Err(Error::invalid(
                    "the memory is a module's global variable, which goes with its module",
                ))
            }
            Owner::Other(_) => {
                return Err(Error::invalid(
                    "the memory is borrowed; who allocated it frees it",
                ))
            }
            // It comes back with the next launch, so the value stays usable.
            Owner::Graph(memory) => {
                return memory.free_by(|address| {
                    outlast_launches();
                    give_back(address)
                })
            }
            Owner::Nothing => {
                self.life.free();
                return Ok(());
            }
            Owner::Here | Owner::Managed | Owner::Stream(..) => {}
        }
        match self.life.free() {
            Freeing::Now => {
                outlast_launches();
                if used() {
                    self.life.not_returned();
                    return Ok(());
                }
                self.context.pace.freed(self.owned_bytes());
                give_back(self.address)
            }
            Freeing::Later | Freeing::Again => Ok(()),
        }
    }

    /// Whether it is allocated at this moment and not freed by the user. Inside a [`Short`] it stays so:
    /// a free waits for those under way.
    ///
    /// [`Short`]: super::pressure::Short
    #[inline]
    pub fn is_usable(&self) -> bool {
        !self.is_freed() && self.of_graph().is_none_or(|graph| graph.is_allocated())
    }

    /// Checks that `size` bytes from `offset` are inside; `what` names the argument.
    pub fn check_range(&self, what: &str, offset: i64, size: i64) -> Result<u64> {
        let end = offset.checked_add(size);
        match end {
            Some(end) if offset >= 0 && size >= 0 && end <= self.size as i64 => {
                Ok(self.address + offset as u64)
            }
            _ => Err(Error::invalid(format!(
                "{what}: {size} bytes from offset {offset} are not inside the allocation of {} bytes",
                self.size
            ))),
        }
    }

    /// Whether it may be said to belong to a context: of borrowed memory nobody knows for sure.
    pub fn is_in(&self, context: &Context) -> bool {
        matches!(self.owner, Owner::Other(_)) || self.context.handle() == context.handle()
    }

    /// The context that the memory belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.life.is_returned() {
            return;
        }
        // Also where the user has freed it and something held it: it goes back only now that the collector has
        // found the value.
        self.context.pace.collected(self.owned_bytes());
        match &self.owner {
            Owner::Here | Owner::Managed => {
                release::queue(Release::Memory(self.address, self.context.clone()));
            }
            Owner::Stream(stream, _) => {
                release::queue(Release::StreamMemory(self.address, stream.clone()));
            }
            Owner::Nothing | Owner::Graph(_) | Owner::Module { .. } | Owner::Other(_) => {}
        }
    }
}

/// Launches at once hold nothing: those under way end here, and later ones see that the memory is dead.
fn outlast_launches() {
    drop(Waiting::begin());
}

/// Adds the size to the error of an allocation.
fn sized(size: usize) -> impl FnOnce(Error) -> Error {
    move |error| match error.detail.is_empty() {
        true => error.explained(format!("size_in_bytes {size}")),
        false => error,
    }
}

/// A hold on an allocation: while it lives, an explicit free is put off.
pub struct Held(Arc<Allocation>);

impl Held {
    /// Holds live memory; an error if the user has freed it, or it went with its context.
    pub fn new(allocation: &Arc<Allocation>) -> Result<Held> {
        if allocation.context.is_alive() && allocation.life.hold() {
            return Ok(Held(allocation.clone()));
        }
        allocation.context.check_alive()?;
        let address = allocation.address;
        Err(Error::invalid(format!(
            "the device memory at 0x{address:x} was freed"
        )))
    }

    /// What is held.
    pub fn allocation(&self) -> &Arc<Allocation> {
        &self.0
    }
}

impl std::ops::Deref for Held {
    type Target = Allocation;
    fn deref(&self) -> &Allocation {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.life.unhold();
    }
}

/// Free and total bytes of the current context's device.
pub fn info() -> Result<(usize, usize)> {
    let _context = Context::current()?;
    let (mut free, mut total) = (0, 0);
    driver!(cuMemGetInfo_v2(&mut free, &mut total))?;
    Ok((free, total))
}

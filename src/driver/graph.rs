//! Graphs and executable graphs.
//!
//! Both share one set of what the captured work uses, so that either may be destroyed first.

use super::capture;
use super::context::Context;
use super::family::Family;
use super::gate::{Passing, Shield, ThreadMode};
use super::pressure::Waiting;
use super::release::{self, Drain, Release};
use super::retain::{Borrowed, KeepSet, Operand, Shared};
use super::stream::{Stream, Submission};
use super::{driver, library, Error, Result};
use cudarc::driver::sys::{self, CUresult};
use smallvec::smallvec;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Flag of [`Graph::instantiate`]: `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`
pub const AUTO_FREE_ON_LAUNCH: u64 = 1;

/// What a person wants to know about a graph or an exec.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Info {
    /// The driver's handle, 0 once destroyed.
    pub address: usize,
    /// Nodes at the time of the capture.
    pub nodes: usize,
    /// Resources that are kept alive.
    pub held: usize,
}

/// A captured graph. The driver's graph functions are not thread-safe on one graph: the lock is.
pub struct Graph {
    slot: Mutex<Option<LiveGraph>>,
    nodes: usize,
}

struct LiveGraph {
    handle: usize,
    context: Arc<Context>,
    keep: Arc<KeepSet>,
    family: Family,
    /// Whether it is destroyed here; else by another library.
    ours: bool,
}

impl Drop for LiveGraph {
    fn drop(&mut self) {
        if self.handle != 0 && self.ours {
            let (context, family) = (self.context.clone(), self.family.clone());
            release::queue(Release::Graph(self.handle, context, family));
        }
    }
}

/// How many nodes a graph has. `cuGraphGetNodes`
fn count_nodes(handle: usize) -> Result<usize> {
    let mut nodes = 0;
    driver!(cuGraphGetNodes(
        handle as sys::CUgraph,
        std::ptr::null_mut(),
        &mut nodes
    ))?;
    Ok(nodes)
}

impl Graph {
    /// Takes over a graph that the driver has just handed out.
    pub fn new(handle: usize, context: Arc<Context>, mut keep: KeepSet) -> Result<Arc<Graph>> {
        keep.complete(&context);
        // Owned before anything that may fail.
        let live = LiveGraph {
            handle,
            context,
            keep: Arc::new(keep),
            family: Family::of_its_own(),
            ours: true,
        };
        let nodes = count_nodes(handle)?;
        Ok(Graph::holding(live, nodes))
    }

    /// A graph that another library made, and what it and its execs need, if that was given. Where this
    /// fails, it stays that library's.
    pub fn foreign(
        handle: usize,
        context: Arc<Context>,
        ours: bool,
        keep: Option<Shared>,
    ) -> Result<Arc<Graph>> {
        let nodes = count_nodes(handle)?;
        let live = LiveGraph {
            handle,
            context,
            keep: Arc::new(KeepSet::of_unknown_work(keep)),
            family: Family::unknown(),
            ours,
        };
        Ok(Graph::holding(live, nodes))
    }

    fn holding(live: LiveGraph, nodes: usize) -> Arc<Graph> {
        Arc::new(Graph {
            slot: Mutex::new(Some(live)),
            nodes,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<LiveGraph>> {
        self.slot.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Makes an executable graph. `cuGraphInstantiate`
    pub fn instantiate(&self, flags: u64) -> Result<Arc<Exec>> {
        release::drain(Drain::Quick);
        let slot = self.lock();
        let graph = slot
            .as_ref()
            .ok_or_else(|| Error::invalid("the graph was destroyed"))?;
        graph.keep.check_alive()?;
        let _entered = graph.context.enter()?;
        let _shield = Shield::for_others(Passing::By);
        let _waiting = Waiting::begin();
        let mut handle = std::ptr::null_mut();
        let alone = graph.family.alone();
        let made = driver!(cuGraphInstantiateWithFlags(
            &mut handle,
            graph.handle as sys::CUgraph,
            flags
        ));
        drop(alone);
        made.map_err(|e| match graph.keep.memory.exist() {
            true if e.is(CUresult::CUDA_ERROR_NOT_SUPPORTED) => e.explained(
                "a graph that allocates memory can have one exec at a time: destroy the other one first",
            ),
            _ => e,
        })?;
        let live = LiveExec {
            handle: AtomicUsize::new(handle as usize),
            warm: AtomicBool::new(false),
            weight: 1 + self.nodes as u64 / 1000,
            context: graph.context.clone(),
            keep: graph.keep.clone(),
            family: graph.family.clone(),
            auto_free: flags & AUTO_FREE_ON_LAUNCH != 0,
            ours: true,
        };
        live.context
            .pace
            .allocated(live.keep.memory.reserved_bytes());
        Ok(Arc::new(Exec {
            slot: Mutex::new(Some(Arc::new(live))),
            nodes: self.nodes,
        }))
    }

    /// Destroys the graph now; again is harmless. `cuGraphDestroy`
    pub fn destroy(&self) -> Result<()> {
        library::ready()?;
        let mut slot = self.lock();
        if slot.as_ref().is_some_and(|graph| !graph.ours) {
            return Err(Error::invalid(
                "the graph is borrowed; its owner destroys it",
            ));
        }
        let entered = slot.as_ref().map(|graph| graph.context.enter_if_alive());
        // Gone for the program only once nothing but the driver can refuse.
        let _entered = entered.transpose()?;
        let Some(mut graph) = slot.take() else {
            return Ok(());
        };
        drop(slot);
        let handle = std::mem::take(&mut graph.handle);
        if !graph.context.is_alive() {
            return Ok(());
        }
        let _relaxed = ThreadMode::relaxed();
        release::destroy_graph(handle, &graph.family)
    }

    /// Its state.
    pub fn info(&self) -> Info {
        self.lock().as_ref().map_or(
            Info {
                nodes: self.nodes,
                ..Info::default()
            },
            |graph| Info {
                address: graph.handle,
                nodes: self.nodes,
                held: graph.keep.len(),
            },
        )
    }
}

/// An executable graph. The lock keeps launches and destruction of one exec apart.
pub struct Exec {
    slot: Mutex<Option<Arc<LiveExec>>>,
    nodes: usize,
}

/// What pending launches hold on to.
pub struct LiveExec {
    /// Changed only with the exec's lock held.
    handle: AtomicUsize,
    context: Arc<Context>,
    keep: Arc<KeepSet>,
    family: Family,
    /// Whether a launch cannot wait: not the first one, which brings the exec to the device, and none
    /// that copies host memory.
    warm: AtomicBool,
    /// As how many ordinary launches one counts in the launch queue.
    weight: u64,
    /// Whether a launch first frees what the last one has allocated.
    auto_free: bool,
    /// Whether it is destroyed here; else by another library.
    ours: bool,
}

impl Drop for LiveExec {
    fn drop(&mut self) {
        let handle = *self.handle.get_mut();
        if handle != 0 && self.ours {
            let (context, family) = (self.context.clone(), self.family.clone());
            context.pace.collected(self.keep.memory.reserved_bytes());
            release::queue(Release::Exec(handle, context, family));
        }
    }
}

impl LiveExec {
    /// Other contexts than its own that its launches use something of.
    pub fn kept_contexts(&self) -> &[Arc<Context>] {
        self.keep.contexts()
    }

    /// The exec in a slot, if it can be launched on a stream.
    fn for_stream<'a>(
        slot: &'a Option<Arc<LiveExec>>,
        stream: &Stream,
    ) -> Result<&'a Arc<LiveExec>> {
        let exec = slot
            .as_ref()
            .ok_or_else(|| Error::invalid("the exec was destroyed"))?;
        exec.context.check_alive()?;
        exec.keep.check_alive()?;
        if exec.context.handle() != stream.context().handle() {
            return Err(Error::invalid(
                "the exec was captured in one context and the stream belongs to another",
            ));
        }
        Ok(exec)
    }
}

impl Exec {
    /// An exec that another library made, and what it needs, if that was given.
    pub fn foreign(
        handle: usize,
        context: Arc<Context>,
        ours: bool,
        keep: Option<Shared>,
    ) -> Arc<Exec> {
        let live = LiveExec {
            handle: AtomicUsize::new(handle),
            warm: AtomicBool::new(false),
            // Nobody has said how large it is.
            weight: 64,
            context,
            keep: Arc::new(KeepSet::of_unknown_work(keep)),
            family: Family::unknown(),
            auto_free: false,
            ours,
        };
        Arc::new(Exec {
            slot: Mutex::new(Some(Arc::new(live))),
            nodes: 0,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<LiveExec>>> {
        self.slot.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Enqueues the whole graph on a stream, which retains it until it is known to be idle.
    /// `cuGraphLaunch`
    pub fn launch(&self, stream: &Arc<Stream>) -> Result<()> {
        library::ready()?;
        let slot = self.lock();
        let exec = LiveExec::for_stream(&slot, stream)?;
        let handle = exec.handle.load(Ordering::Relaxed);
        let operands = smallvec![Operand::Shared(exec.clone() as Shared)];
        exec.keep.memory.check_launch(exec.auto_free)?;
        let how = Submission {
            if_capturing: Passing::Alone,
            otherwise: Passing::By,
            weight: exec.weight,
        };
        let may_wait = !exec.warm.load(Ordering::Relaxed);
        stream.submit_as(how, operands, |s, _| {
            let _waiting = may_wait.then(Waiting::begin);
            driver!(cuGraphLaunch(handle as sys::CUgraphExec, s)).map_err(|e| {
                let capturing = capture::begun_on(stream.handle()).is_some();
                if capturing {
                    return e.explained("a graph cannot be launched on a stream that is capturing");
                }
                e
            })?;
            exec.keep.memory.launched();
            Ok(())
        })?;
        let warm = !exec.keep.copies_host_memory();
        exec.warm.store(warm, Ordering::Relaxed);
        Ok(())
    }

    /// Enqueues the whole graph at once if that cannot block; nothing otherwise, see
    /// [`Stream::try_submit`].
    #[inline]
    pub fn try_launch(&self, stream: &Arc<Stream>) -> Option<Result<()>> {
        let slot = self.slot.try_lock().ok()?;
        let exec = slot.as_ref()?;
        let plain = exec.warm.load(Ordering::Relaxed)
            && !exec.keep.memory.exist()
            && stream.is_ordinary()
            && exec.context.is(stream.context());
        if !plain {
            return None;
        }
        let handle = exec.handle.load(Ordering::Relaxed);
        stream.try_submit(exec.weight, |pending, sequence, s| {
            pending.retain_owner(Borrowed::of(exec), sequence);
            if !exec.keep.is_alive() {
                return None;
            }
            Some(driver!(cuGraphLaunch(handle as sys::CUgraphExec, s)))
        })
    }

    /// Device memory that its launches leave, of which the garbage collector is to be told, in
    /// [`PARTS`](super::pace::PARTS).
    pub fn untold(&self) -> Option<usize> {
        self.lock().as_ref()?.context.pace.tell()
    }

    /// Destroys the exec now. Launches that are pending complete, and what they use stays until
    /// they have. Again is harmless. `cuGraphExecDestroy`
    pub fn destroy(&self) -> Result<()> {
        library::ready()?;
        let mut slot = self.lock();
        if slot.as_ref().is_some_and(|exec| !exec.ours) {
            return Err(Error::invalid(
                "the exec is borrowed; its owner destroys it",
            ));
        }
        let entered = slot.as_ref().map(|exec| exec.context.enter_if_alive());
        let _entered = entered.transpose()?;
        let Some(exec) = slot.take() else {
            return Ok(());
        };
        drop(slot);
        let handle = exec.handle.swap(0, Ordering::Relaxed);
        let bytes = exec.keep.memory.reserved_bytes();
        match exec.keep.memory.are_left() {
            // They go once the collector has found their values.
            true => exec.context.pace.collected(bytes),
            false => exec.context.pace.freed(bytes),
        }
        if !exec.context.is_alive() {
            return Ok(());
        }
        let _relaxed = ThreadMode::relaxed();
        let _waiting = Waiting::begin();
        release::destroy_exec(handle, &exec.family)
    }

    /// Its state.
    pub fn info(&self) -> Info {
        self.lock().as_ref().map_or(
            Info {
                nodes: self.nodes,
                ..Info::default()
            },
            |exec| Info {
                address: exec.handle.load(Ordering::Relaxed),
                nodes: self.nodes,
                held: exec.keep.len(),
            },
        )
    }
}

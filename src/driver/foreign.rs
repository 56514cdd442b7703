//! Handles that came from another library in the same process.

use super::context::Context;
use super::event::Event;
use super::graph::{Exec, Graph};
use super::memory::Allocation;
use super::module::{Function, Module};
use super::retain::Shared;
use super::stream::Stream;
use super::{driver, Error, Result};
use cudarc::driver::sys;
use std::sync::Arc;

/// Whose a handle is to destroy.
pub enum Whose {
    /// Ours: destroyed when nothing needs it any more.
    Ours,
    /// Another library's; and what keeps it alive for as long as we need it, if that was given.
    Theirs {
        /// Dropped with the last of our owners.
        _keep: Option<Shared>,
    },
}

impl Whose {
    /// Whether it is destroyed here.
    pub fn is_ours(&self) -> bool {
        matches!(self, Whose::Ours)
    }
}

fn not_null(what: &str, handle: usize) -> Result<()> {
    match handle {
        0 => Err(Error::invalid(format!("the {what} handle is 0"))),
        _ => Ok(()),
    }
}

/// A stream; the NULL stream's handles are refused, since it is `no_stream`. `cuStreamGetCtx`,
/// `cuStreamGetFlags`
pub fn stream(handle: usize, whose: Whose) -> Result<Arc<Stream>> {
    /// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`
    const SPECIAL: [usize; 2] = [1, 2];
    not_null("stream", handle)?;
    if SPECIAL.contains(&handle) {
        return Err(Error::invalid(format!(
            "the stream handle {handle} is the NULL stream or the thread's own one, which is no object"
        )));
    }
    let raw = handle as sys::CUstream;
    let (mut context, mut flags) = (std::ptr::null_mut(), 0);
    driver!(cuStreamGetCtx(raw, &mut context))?;
    driver!(cuStreamGetFlags(raw, &mut flags))?;
    let non_blocking = flags & sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32 != 0;
    let context = Context::of_handle(context as usize)?;
    Ok(Stream::foreign(handle, context, non_blocking, whose))
}

/// Device memory of a known size. `cuPointerGetAttribute`
pub fn memory(address: u64, size: usize, whose: Whose) -> Result<Arc<Allocation>> {
    not_null("memory", address as usize)?;
    let context = Context::of_memory(address)?;
    Ok(Allocation::foreign(address, size, context, whose))
}

/// A module of the current context.
pub fn module(handle: usize, whose: Whose) -> Result<Arc<Module>> {
    not_null("module", handle)?;
    Ok(Module::foreign(handle, Context::current()?, whose))
}

/// A kernel of the current context, and its name for messages. `cuFuncGetModule`
pub fn function(handle: usize, name: &str, whose: Whose) -> Result<Arc<Function>> {
    not_null("function", handle)?;
    let mut module = std::ptr::null_mut();
    driver!(cuFuncGetModule(&mut module, handle as sys::CUfunction))?;
    let module = Module::foreign(module as usize, Context::current()?, whose);
    Function::new(handle, name, module)
}

/// An event of the current context.
pub fn event(handle: usize, whose: Whose) -> Result<Arc<Event>> {
    not_null("event", handle)?;
    Ok(Event::foreign(handle, Context::current()?, whose))
}

/// A graph, instantiated in the current context. `cuGraphGetNodes`
pub fn graph(handle: usize, ours: bool, keep: Option<Shared>) -> Result<Arc<Graph>> {
    not_null("graph", handle)?;
    Graph::foreign(handle, Context::current()?, ours, keep)
}

/// An executable graph, launched on streams of the current context.
pub fn exec(handle: usize, ours: bool, keep: Option<Shared>) -> Result<Arc<Exec>> {
    not_null("exec", handle)?;
    Ok(Exec::foreign(handle, Context::current()?, ours, keep))
}

/// A context that another library made. `cuCtxGetDevice`
pub fn context(handle: usize) -> Result<Arc<Context>> {
    super::library::ready()?;
    not_null("context", handle)?;
    Context::of_handle(handle)
}

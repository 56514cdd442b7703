//! Memory that is allocated and freed in the order of a stream: from the device's pool, or by the nodes of
//! a graph when the stream captures.

use super::gate::{self, Passing, Shield};
use super::graph_memory::GraphMemory;
use super::memory::Held;
use super::pressure::Waiting;
use super::release::{self, Drain};
use super::retain::{Operand, Operands};
use super::stream::{Stream, Submission};
use super::{capture, driver, Result};
use smallvec::smallvec;
use std::sync::Arc;

impl Stream {
    /// Allocates in stream order: the address, and the node's memory if the stream captures.
    /// `cuMemAllocAsync`
    pub fn allocate(self: &Arc<Self>, size: usize) -> Result<(u64, Option<Arc<GraphMemory>>)> {
        let _entered = self.context().enter()?;
        release::drain(Drain::Quick);
        let (mut address, mut memory) = (0, None);
        self.submit_as(Submission::default(), Operands::new(), |stream, nodes| {
            let Some(nodes) = nodes else {
                let _shield = Shield::for_others(Passing::By);
                let _waiting = Waiting::begin();
                return driver!(cuMemAllocAsync(&mut address, size, stream));
            };
            driver!(cuMemAllocAsync(&mut address, size, stream))?;
            if address == 0 {
                // No bytes: there is no node.
                return Ok(());
            }
            let node = GraphMemory::new(address, size, self.context().clone());
            nodes.allocate(&node);
            memory = Some(node);
            Ok(())
        })?;
        Ok((address, memory))
    }

    /// Frees in stream order; the stream is not capturing and its context is current. `called` tells
    /// whether it came to asking the driver. `cuMemFreeAsync`
    pub fn free(self: &Arc<Self>, address: u64, called: &mut bool) -> Result<()> {
        self.submit(Operands::new(), |stream| {
            let _shield = Shield::harmless(Passing::By);
            *called = true;
            driver!(cuMemFreeAsync(address, stream))
        })
    }

    /// Captures the freeing of a graph's memory. Whether the graph being captured allocates it too.
    /// `cuMemFreeAsync`
    pub fn free_in_capture(self: &Arc<Self>, held: &Held) -> Result<bool> {
        let mut own = false;
        let memory = held.allocation();
        let operands = smallvec![Operand::memory(memory)?];
        self.submit_as(Submission::default(), operands, |stream, nodes| {
            driver!(cuMemFreeAsync(memory.address(), stream))?;
            if let (Some(nodes), Some(graph)) = (nodes, memory.of_graph()) {
                own = nodes.free(graph);
            }
            Ok(())
        })?;
        Ok(own)
    }

    /// Gives memory back that nothing needs any more, with its context current; false if that must wait,
    /// since the stream is busy with a call or captures.
    pub fn take_back(&self, address: u64) -> Result<bool> {
        let Some(_quiet) = self.state().try_lock() else {
            return Ok(false);
        };
        let null = self.handle() == 0;
        // As long as it cannot be told, the memory waits.
        let capturing = !null && self.is_capturing().unwrap_or(true);
        let _passage = gate::pass(if null { Passing::Together } else { Passing::By });
        let capturing =
            capturing || null && capture::refuse_null_stream("", self.context().handle()).is_err();
        if capturing {
            return Ok(false);
        }
        driver!(cuMemFreeAsync(
            address,
            self.handle() as cudarc::driver::sys::CUstream
        ))?;
        Ok(true)
    }
}

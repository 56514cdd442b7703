//! Captures.

use super::{functions, list_nodes, EdgeData, Out};
use crate::capture;
use crate::graph::Graph;
use crate::status::*;
use crate::stream::Stream;
use std::cell::RefCell;

thread_local! {
    /// The dependencies that the latest question of this thread was answered with: C keeps the address.
    static ANSWERED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Places for what a capture's information has in its different forms.
struct Answer {
    status: Out<i32>,
    id: Out<u64>,
    graph: Out<usize>,
    after: Out<*const usize>,
    count: Out<usize>,
}

impl Answer {
    fn give(self, handle: usize) -> Result<()> {
        self.status.required()?;
        let info = capture::info(&*Stream::get(handle)?)?;
        self.status.set(info.status);
        self.id.set(info.id);
        self.graph.set(info.graph);
        self.count.set(info.after.len());
        if !self.after.is_null() {
            ANSWERED.with_borrow_mut(|answered| {
                *answered = info.after;
                self.after.set(answered.as_ptr());
            });
        }
        Ok(())
    }
}

/// Edges between kernels that overlap are not simulated: all others have only zeros.
pub fn plain_edges(edges: Out<EdgeData>, count: usize) -> Result<()> {
    if edges.is_null() {
        return Ok(());
    }
    match edges
        .list(count)?
        .iter()
        .all(|edge| *edge == EdgeData::default())
    {
        true => Ok(()),
        false => Err(NOT_SUPPORTED),
    }
}

fn update(handle: usize, nodes: Out<usize>, count: usize, flags: u32) -> Result<()> {
    if flags > 1 {
        return Err(INVALID_VALUE);
    }
    let nodes = nodes.list(count)?;
    capture::update_dependencies(&*Stream::get(handle)?, &nodes, flags == 1)
}

functions! {
    fn cuStreamBeginCapture_v2 / cuStreamBeginCapture_v2_ptsz(handle: usize, mode: i32) {
        capture::begin(&Stream::get(handle)?, mode, None)
    }

    fn cuStreamBeginCaptureToGraph / cuStreamBeginCaptureToGraph_ptsz(
        handle: usize,
        graph: usize,
        nodes: Out<usize>,
        edges: Out<EdgeData>,
        count: usize,
        mode: i32,
    ) {
        let stream = Stream::get(handle)?;
        let graph = Graph::get(graph)?;
        let nodes = list_nodes(&graph, nodes, count)?;
        plain_edges(edges, count)?;
        if nodes.iter().any(|node| !graph.state().nodes.contains_key(node)) {
            return Err(INVALID_VALUE);
        }
        capture::begin(&stream, mode, Some((graph, nodes)))
    }

    fn cuStreamEndCapture / cuStreamEndCapture_ptsz(handle: usize, graph: Out<usize>) {
        graph.required()?.set(0);
        graph.set(capture::end(&Stream::get(handle)?)?);
        Ok(())
    }

    fn cuStreamIsCapturing / cuStreamIsCapturing_ptsz(handle: usize, status: Out<i32>) {
        status.required()?;
        status.set(capture::info(&*Stream::get(handle)?)?.status);
        Ok(())
    }

    fn cuStreamGetCaptureInfo / cuStreamGetCaptureInfo_ptsz(
        handle: usize,
        status: Out<i32>,
        id: Out<u64>,
    ) {
        let (graph, after, count) = (Out::null(), Out::null(), Out::null());
        Answer { status, id, graph, after, count }.give(handle)
    }

    fn cuStreamGetCaptureInfo_v2 / cuStreamGetCaptureInfo_v2_ptsz(
        handle: usize,
        status: Out<i32>,
        id: Out<u64>,
        graph: Out<usize>,
        after: Out<*const usize>,
        count: Out<usize>,
    ) {
        Answer { status, id, graph, after, count }.give(handle)
    }

    fn cuStreamGetCaptureInfo_v3 / cuStreamGetCaptureInfo_v3_ptsz(
        handle: usize,
        status: Out<i32>,
        id: Out<u64>,
        graph: Out<usize>,
        after: Out<*const usize>,
        edges: Out<*const EdgeData>,
        count: Out<usize>,
    ) {
        edges.set(std::ptr::null());
        Answer { status, id, graph, after, count }.give(handle)
    }

    fn cuStreamUpdateCaptureDependencies / cuStreamUpdateCaptureDependencies_ptsz(
        handle: usize,
        nodes: Out<usize>,
        count: usize,
        flags: u32,
    ) {
        update(handle, nodes, count, flags)
    }

    fn cuStreamUpdateCaptureDependencies_v2 / cuStreamUpdateCaptureDependencies_v2_ptsz(
        handle: usize,
        nodes: Out<usize>,
        edges: Out<EdgeData>,
        count: usize,
        flags: u32,
    ) {
        plain_edges(edges, count)?;
        update(handle, nodes, count, flags)
    }

    fn cuThreadExchangeStreamCaptureMode(mode: Out<i32>) {
        let previous = capture::exchange_mode(mode.get()?)?;
        mode.set(previous);
        Ok(())
    }
}

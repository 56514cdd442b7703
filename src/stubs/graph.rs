//! Captures, graphs and execs.

use super::custom::{alloc, borrow, get};
use super::run::{blocking, guarded, status, value};
use super::stream::StreamBlock;
use super::value::{int, nativeint, to_int, tuple, UNIT};
use crate::driver::capture;
use crate::driver::graph::{Exec, Graph, Info};
use crate::driver::Error;
use cudarc::driver::sys::CUstreamCaptureMode::*;
use ocaml::sys::Value;

#[no_mangle]
extern "C" fn cudagraph_begin_capture(stream: Value, mode: Value) -> Value {
    let stream = get::<StreamBlock>(stream);
    let mode = match to_int(mode) {
        0 => CU_STREAM_CAPTURE_MODE_GLOBAL,
        1 => CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        _ => CU_STREAM_CAPTURE_MODE_RELAXED,
    };
    status(blocking(|| capture::begin(&stream.resolve()?, mode)))
}

#[no_mangle]
extern "C" fn cudagraph_captures_here(_unit: Value) -> Value {
    int(capture::begun_here() as isize)
}

#[no_mangle]
extern "C" fn cudagraph_close_captures(_unit: Value) -> Value {
    // Most domains have none, and one that ends is not to wait for a reset then.
    if capture::begun_here() {
        let _ = blocking(|| {
            capture::close_own();
            Ok(())
        });
    }
    UNIT
}

#[no_mangle]
extern "C" fn cudagraph_end_capture(stream: Value) -> Value {
    let stream = get::<StreamBlock>(stream);
    value(blocking(|| capture::end(&stream.resolve()?)), alloc)
}

#[no_mangle]
extern "C" fn cudagraph_abandon_capture(stream: Value) -> Value {
    let stream = get::<StreamBlock>(stream);
    let _ = blocking(|| {
        let stream = stream.resolve()?;
        // A reset has closed it, and the handle may be of another stream by now.
        stream.context().check_alive()?;
        capture::abandon(stream.handle());
        Ok(())
    });
    UNIT
}

#[no_mangle]
extern "C" fn cudagraph_instantiate(graph: Value, flags: Value) -> Value {
    let (graph, flags) = (get::<Graph>(graph), to_int(flags) as u64);
    value(blocking(|| graph.instantiate(flags)), alloc)
}

#[no_mangle]
extern "C" fn cudagraph_graph_launch(exec: Value, stream: Value) -> Value {
    if let Some(stream) = borrow::<StreamBlock>(stream).own() {
        let exec = borrow::<Exec>(exec);
        if let Some(result) = guarded(|| Ok(exec.try_launch(stream))).transpose() {
            return status(result.and_then(|launched| launched));
        }
    }
    let (exec, stream) = (get::<Exec>(exec), get::<StreamBlock>(stream));
    status(blocking(|| exec.launch(&stream.resolve()?)))
}

#[no_mangle]
extern "C" fn cudagraph_graph_destroy(graph: Value) -> Value {
    let graph = get::<Graph>(graph);
    status(blocking(|| graph.destroy()))
}

#[no_mangle]
extern "C" fn cudagraph_exec_destroy(exec: Value) -> Value {
    let exec = get::<Exec>(exec);
    status(blocking(|| exec.destroy()))
}

/// A `Raw.graph_info` record.
fn info(info: Info) -> Value {
    tuple(&[
        nativeint(info.address as u64),
        int((info.address != 0) as isize),
        int(info.nodes as isize),
        int(info.held as isize),
    ])
}

#[no_mangle]
extern "C" fn cudagraph_graph_info(graph: Value) -> Value {
    let graph = get::<Graph>(graph);
    info(blocking(|| Ok::<_, Error>(graph.info())).unwrap_or_default())
}

#[no_mangle]
extern "C" fn cudagraph_exec_info(exec: Value) -> Value {
    let exec = get::<Exec>(exec);
    info(blocking(|| Ok::<_, Error>(exec.info())).unwrap_or_default())
}

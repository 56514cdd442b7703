//! Every row of the two measured tables of what calls do to an open capture: on a non-blocking stream, and
//! on a blocking one.

mod common;
use common::*;
use std::ffi::c_void;
use std::ptr::null_mut;

/// What an operation works on: made anew for each row, before the capture begins.
struct Things {
    function: CUfunction,
    captured: CUstream,
    other: CUstream,
    blocking: CUstream,
    memory: CUdeviceptr,
    target: CUdeviceptr,
    stream_memory: CUdeviceptr,
    pinned: *mut c_void,
    event: CUevent,
    module: CUmodule,
    graph: CUgraph,
    exec: CUgraphExec,
    doomed: CUstream,
    doomed_blocking: CUstream,
    bytes: [u8; 64],
}

// SAFETY: handles are numbers; one thread at a time uses them.
unsafe impl Sync for Things {}

impl Things {
    /// Things for a capture on a stream with these flags.
    fn new(function: CUfunction, flags: u32) -> Things {
        let other = stream();
        let stream_memory = get!(cuMemAllocAsync(64, other));
        let event = get!(cuEventCreate(0));
        cu!(cuEventRecord(event, other));
        let graph = get!(cuGraphCreate(0));
        let _: CUgraphNode = get!(cuGraphAddEmptyNode(graph, std::ptr::null(), 0));
        cu!(cuStreamSynchronize(other));
        Things {
            function,
            captured: get!(cuStreamCreate(flags)),
            other,
            blocking: get!(cuStreamCreate(0)),
            memory: words(16),
            target: words(16),
            stream_memory,
            pinned: get!(cuMemAllocHost_v2(64)),
            event,
            module: get!(cuModuleLoadData(KERNELS.as_ptr().cast())),
            graph,
            exec: instantiate(graph),
            doomed: stream(),
            doomed_blocking: get!(cuStreamCreate(0)),
            bytes: [7; 64],
        }
    }

    fn launch(&self, on: CUstream) -> CUresult {
        launch(self.function, 1, 0, 0, on)
    }
}

fn operate(name: &str, t: &Things) -> CUresult {
    let (mut address, mut size, mut total, mut value) = (0, 0, 0, 0);
    let (mut host, mut stream, mut exec) = (null_mut(), null_mut(), null_mut());
    let (mut module, mut function) = (null_mut(), null_mut());
    let mut here = [0u8; 64];
    let bytes = t.bytes.as_ptr().cast::<c_void>();
    let threads = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    match name {
        "cuMemFree" => status!(cuMemFree_v2(t.memory)),
        "cuMemFree(async mem)" => status!(cuMemFree_v2(t.stream_memory)),
        "cuMemAlloc" => status!(cuMemAlloc_v2(&mut address, 64)),
        "cuMemFreeAsync(other)" => status!(cuMemFreeAsync(t.stream_memory, t.other)),
        "cuMemFreeAsync(capt.)" => status!(cuMemFreeAsync(t.stream_memory, t.captured)),
        "cuEventDestroy" => status!(cuEventDestroy_v2(t.event)),
        "cuEventQuery(unrel.)" | "cuEventQuery" => status!(cuEventQuery(t.event)),
        "cuModuleUnload" => status!(cuModuleUnload(t.module)),
        "cuModuleLoad" => status!(cuModuleLoadData(&mut module, KERNELS.as_ptr().cast())),
        "cuModuleGetFunction" => status!(cuModuleGetFunction(
            &mut function,
            t.module,
            c"nothing".as_ptr()
        )),
        "cuFuncGetAttribute" => status!(cuFuncGetAttribute(&mut value, threads, t.function)),
        "cuGraphDestroy" => status!(cuGraphDestroy(t.graph)),
        "cuGraphExecDestroy" => status!(cuGraphExecDestroy(t.exec)),
        "cuStreamDestroy(other)" | "cuStreamDestroy(nb)" => status!(cuStreamDestroy_v2(t.doomed)),
        "cuStreamDestroy(b)" => status!(cuStreamDestroy_v2(t.doomed_blocking)),
        "cuStreamCreate" => status!(cuStreamCreate(&mut stream, 1)),
        "cuCtxSynchronize" => status!(cuCtxSynchronize()),
        "cuStreamSync(capt.)" => status!(cuStreamSynchronize(t.captured)),
        "cuStreamSync(other)" | "cuStreamSync(nb)" => status!(cuStreamSynchronize(t.other)),
        "cuStreamSync(b)" => status!(cuStreamSynchronize(t.blocking)),
        "cuStreamQuery(capt.)" => status!(cuStreamQuery(t.captured)),
        "cuStreamQuery(other)" | "cuStreamQuery(nb)" => status!(cuStreamQuery(t.other)),
        "cuStreamQuery(b)" => status!(cuStreamQuery(t.blocking)),
        "cuStreamQuery(NULL)" => status!(cuStreamQuery(null_mut())),
        "cuMemFreeHost" => status!(cuMemFreeHost(t.pinned)),
        "cuMemAllocHost" => status!(cuMemAllocHost_v2(&mut host, 64)),
        "cuMemcpyHtoD sync" | "HtoD sync" => status!(cuMemcpyHtoD_v2(t.memory, bytes, 64)),
        "DtoH sync" => status!(cuMemcpyDtoH_v2(here.as_mut_ptr().cast(), t.memory, 64)),
        "DtoD sync" => status!(cuMemcpyDtoD_v2(t.target, t.memory, 64)),
        "memset sync" => status!(cuMemsetD8_v2(t.memory, 0, 64)),
        "HtoDAsync pageable" => {
            status!(cuMemcpyHtoDAsync_v2(t.memory, bytes, 64, t.captured))
        }
        "cuMemGetInfo" => status!(cuMemGetInfo_v2(&mut size, &mut total)),
        "cuGraphInstantiate" => status!(cuGraphInstantiateWithFlags(&mut exec, t.graph, 0)),
        "launch other stream" => t.launch(t.other),
        "launch b other" => t.launch(t.blocking),
        "launch NULL stream" | "launch NULL" => t.launch(null_mut()),
        "cuGraphLaunch capt." => status!(cuGraphLaunch(t.exec, t.captured)),
        "cuGraphLaunch other" => status!(cuGraphLaunch(t.exec, t.other)),
        "PrimaryCtxRelease" => status!(cuDevicePrimaryCtxRelease_v2(0)),
        other => panic!("unknown operation {other}"),
    }
}

/// The status that a table names, or numbers.
fn number(text: &str) -> u32 {
    match text {
        "ok" => 0,
        "UNSUPPORTED" => 900,
        "INVALIDATED" => 901,
        "INVALID_VALUE" => 1,
        other => other.parse().expect("a status"),
    }
}

/// Runs each row of a table, with captures on streams that have these flags; tells how many there were.
fn table(text: &str, flags: u32) -> usize {
    let _s = Session::new();
    // Releases of the primary context are among the operations.
    let context: CUcontext = get!(cuDevicePrimaryCtxRetain(0));
    cu!(cuCtxPushCurrent_v2(context));
    let function = kernel(c"nothing");
    let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    let (mut count, mut wrong) = (0, Vec::new());
    for line in rows {
        let f: Vec<&str> = line.split('\t').collect();
        // A release of the primary context must not be the last one.
        if f[0] == "PrimaryCtxRelease" {
            let _: CUcontext = get!(cuDevicePrimaryCtxRetain(0));
        }
        let t = Things::new(function, flags);
        use CUstreamCaptureMode::*;
        let mode = match f[1] {
            "GLOBAL" | "0" => CU_STREAM_CAPTURE_MODE_GLOBAL,
            "THREAD_LOCAL" | "1" => CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            _ => CU_STREAM_CAPTURE_MODE_RELAXED,
        };
        cu!(cuStreamBeginCapture_v2(t.captured, mode));
        assert_eq!(t.launch(t.captured), CUresult::CUDA_SUCCESS);
        let (relaxed, things, shared) = (f[3] == "1", &t, context as usize);
        let work = || {
            let mut mine = CU_STREAM_CAPTURE_MODE_RELAXED;
            if relaxed {
                cu!(cuThreadExchangeStreamCaptureMode(&mut mine));
            }
            let got = operate(f[0], things);
            if relaxed {
                cu!(cuThreadExchangeStreamCaptureMode(&mut mine));
            }
            got
        };
        let operation = match f[2] {
            "same" => work(),
            _ => std::thread::scope(|scope| {
                let there = scope.spawn(|| {
                    cu!(cuCtxSetCurrent(shared as CUcontext));
                    work()
                });
                there.join().unwrap()
            }),
        };
        let later = t.launch(t.captured);
        let mut graph = null_mut();
        let end = status!(cuStreamEndCapture(t.captured, &mut graph));
        let mut nodes = 0;
        if !graph.is_null() {
            cu!(cuGraphGetNodes(graph, null_mut(), &mut nodes));
        }
        let got = (operation as u32, later as u32, end as u32, nodes);
        let want = (
            number(f[4]),
            number(f[5]),
            number(f[6]),
            number(f[7]) as usize,
        );
        count += 1;
        if got != want {
            wrong.push(format!("{line}: got {got:?}"));
        }
    }
    cu!(cuDevicePrimaryCtxRelease_v2(0));
    println!("{count} rows, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    count
}

#[test]
fn captures_on_a_non_blocking_stream() {
    assert_eq!(table(include_str!("capture-matrix.tsv"), 1), 203);
}

#[test]
fn captures_on_a_blocking_stream() {
    assert_eq!(table(include_str!("capture-blocking.tsv"), 0), 208);
}

//! Every row of the measured table of what calls do to an open capture.
//!
//! `CUDAGRAPH_DRIVER` may name another driver's library: the same program then runs on that.
#![allow(missing_docs, non_snake_case)]

use std::ffi::{c_char, c_void, CString};
use std::ptr::{null, null_mut};

type H = usize;

macro_rules! driver {
    ($($name:ident($($t:ty),*);)*) => {
        struct Driver { $($name: extern "C" fn($($t),*) -> i32,)* }
        impl Driver {
            fn open(path: &str) -> Driver {
                let path = CString::new(path).unwrap();
                // SAFETY: opens a library; each symbol has the type that the driver documents.
                unsafe {
                    let lib = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
                    assert!(!lib.is_null(), "cannot open {path:?}");
                    $(let $name = {
                        let symbol = concat!(stringify!($name), "\0");
                        let at = libc::dlsym(lib, symbol.as_ptr().cast());
                        assert!(!at.is_null(), "no {symbol}");
                        std::mem::transmute::<*mut c_void, extern "C" fn($($t),*) -> i32>(at)
                    };)*
                    Driver { $($name,)* }
                }
            }
        }
    };
}

driver! {
    cuInit(u32);
    cuDevicePrimaryCtxRetain(*mut H, i32);
    cuDevicePrimaryCtxRelease_v2(i32);
    cuCtxSetCurrent(H);
    cuCtxSynchronize();
    cuModuleLoadData(*mut H, *const c_void);
    cuModuleUnload(H);
    cuModuleGetFunction(*mut H, H, *const c_char);
    cuStreamCreate(*mut H, u32);
    cuStreamDestroy_v2(H);
    cuStreamSynchronize(H);
    cuStreamQuery(H);
    cuStreamBeginCapture_v2(H, i32);
    cuStreamEndCapture(H, *mut H);
    cuThreadExchangeStreamCaptureMode(*mut i32);
    cuLaunchKernel(H, u32, u32, u32, u32, u32, u32, u32, H, *const *const c_void, *const *const c_void);
    cuMemAlloc_v2(*mut u64, usize);
    cuMemFree_v2(u64);
    cuMemAllocAsync(*mut u64, usize, H);
    cuMemFreeAsync(u64, H);
    cuMemAllocHost_v2(*mut H, usize);
    cuMemFreeHost(H);
    cuMemcpyHtoD_v2(u64, *const u8, usize);
    cuMemcpyHtoDAsync_v2(u64, *const u8, usize, H);
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuEventCreate(*mut H, u32);
    cuEventRecord(H, H);
    cuEventQuery(H);
    cuEventDestroy_v2(H);
    cuGraphCreate(*mut H, u32);
    cuGraphAddEmptyNode(*mut H, H, *const H, usize);
    cuGraphGetNodes(H, *mut H, *mut usize);
    cuGraphInstantiateWithFlags(*mut H, H, u64);
    cuGraphLaunch(H, H);
    cuGraphDestroy(H);
    cuGraphExecDestroy(H);
}

const PTX: &str =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n\0";

/// What an operation works on: made anew for each row, before the capture begins.
struct Things {
    function: H,
    captured: H,
    other: H,
    memory: u64,
    stream_memory: u64,
    pinned: H,
    event: H,
    module: H,
    graph: H,
    exec: H,
    doomed: H,
    bytes: [u8; 64],
}

fn ok(status: i32) {
    assert_eq!(status, 0);
}

fn launch(d: &Driver, function: H, stream: H) -> i32 {
    (d.cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, null(), null())
}

fn operate(d: &Driver, name: &str, t: &Things) -> i32 {
    let (mut handle, mut address, mut size, mut total) = (0usize, 0u64, 0usize, 0usize);
    match name {
        "cuMemFree" => (d.cuMemFree_v2)(t.memory),
        "cuMemAlloc" => (d.cuMemAlloc_v2)(&mut address, 64),
        "cuMemFreeAsync(other)" => (d.cuMemFreeAsync)(t.stream_memory, t.other),
        "cuMemFreeAsync(capt.)" => (d.cuMemFreeAsync)(t.stream_memory, t.captured),
        "cuEventDestroy" => (d.cuEventDestroy_v2)(t.event),
        "cuEventQuery(unrel.)" => (d.cuEventQuery)(t.event),
        "cuModuleUnload" => (d.cuModuleUnload)(t.module),
        "cuModuleLoad" => (d.cuModuleLoadData)(&mut handle, PTX.as_ptr().cast()),
        "cuModuleGetFunction" => {
            (d.cuModuleGetFunction)(&mut handle, t.module, c"nothing".as_ptr())
        }
        "cuGraphDestroy" => (d.cuGraphDestroy)(t.graph),
        "cuGraphExecDestroy" => (d.cuGraphExecDestroy)(t.exec),
        "cuStreamDestroy(other)" => (d.cuStreamDestroy_v2)(t.doomed),
        "cuStreamCreate" => (d.cuStreamCreate)(&mut handle, 1),
        "cuCtxSynchronize" => (d.cuCtxSynchronize)(),
        "cuStreamSync(capt.)" => (d.cuStreamSynchronize)(t.captured),
        "cuStreamSync(other)" => (d.cuStreamSynchronize)(t.other),
        "cuStreamQuery(capt.)" => (d.cuStreamQuery)(t.captured),
        "cuStreamQuery(other)" => (d.cuStreamQuery)(t.other),
        "cuMemFreeHost" => (d.cuMemFreeHost)(t.pinned),
        "cuMemAllocHost" => (d.cuMemAllocHost_v2)(&mut handle, 64),
        "cuMemcpyHtoD sync" => (d.cuMemcpyHtoD_v2)(t.memory, t.bytes.as_ptr(), 64),
        "HtoDAsync pageable" => {
            (d.cuMemcpyHtoDAsync_v2)(t.memory, t.bytes.as_ptr(), 64, t.captured)
        }
        "cuMemGetInfo" => (d.cuMemGetInfo_v2)(&mut size, &mut total),
        "cuGraphInstantiate" => (d.cuGraphInstantiateWithFlags)(&mut handle, t.graph, 0),
        "launch other stream" => launch(d, t.function, t.other),
        "launch NULL stream" => launch(d, t.function, 0),
        "cuGraphLaunch capt." => (d.cuGraphLaunch)(t.exec, t.captured),
        "cuGraphLaunch other" => (d.cuGraphLaunch)(t.exec, t.other),
        "PrimaryCtxRelease" => (d.cuDevicePrimaryCtxRelease_v2)(0),
        other => panic!("unknown operation {other}"),
    }
}

fn status(text: &str) -> i32 {
    match text {
        "ok" => 0,
        "UNSUPPORTED" => 900,
        "INVALIDATED" => 901,
        "INVALID_VALUE" => 1,
        other => panic!("{other}"),
    }
}

#[test]
fn the_table_of_captures() {
    let beside = std::env::current_exe()
        .unwrap()
        .with_file_name("libcudagraph_sim.so");
    let path = match std::env::var("CUDAGRAPH_DRIVER") {
        Ok(path) if path == "system" => "libcuda.so.1".to_string(),
        Ok(path) => path,
        Err(_) => beside.to_str().unwrap().to_string(),
    };
    let d = &Driver::open(&path);
    ok((d.cuInit)(0));
    let mut context = 0;
    ok((d.cuDevicePrimaryCtxRetain)(&mut context, 0));
    ok((d.cuCtxSetCurrent)(context));
    let (mut module, mut function) = (0, 0);
    ok((d.cuModuleLoadData)(&mut module, PTX.as_ptr().cast()));
    ok((d.cuModuleGetFunction)(
        &mut function,
        module,
        c"nothing".as_ptr(),
    ));
    let (mut rows, mut wrong) = (0, Vec::new());
    for line in include_str!("capture-matrix.tsv")
        .lines()
        .filter(|l| !l.starts_with('#'))
        .skip(1)
    {
        let f: Vec<&str> = line.split('\t').collect();
        // A release of the primary context must not be the last one.
        if f[0] == "PrimaryCtxRelease" {
            ok((d.cuDevicePrimaryCtxRetain)(&mut context, 0));
        }
        let mut t = Things {
            function,
            captured: 0,
            other: 0,
            memory: 0,
            stream_memory: 0,
            pinned: 0,
            event: 0,
            module: 0,
            graph: 0,
            exec: 0,
            doomed: 0,
            bytes: [7; 64],
        };
        for stream in [&mut t.captured, &mut t.other, &mut t.doomed] {
            ok((d.cuStreamCreate)(stream, 1));
        }
        ok((d.cuMemAlloc_v2)(&mut t.memory, 64));
        ok((d.cuMemAllocAsync)(&mut t.stream_memory, 64, t.other));
        ok((d.cuMemAllocHost_v2)(&mut t.pinned, 64));
        ok((d.cuEventCreate)(&mut t.event, 0));
        ok((d.cuEventRecord)(t.event, t.other));
        ok((d.cuModuleLoadData)(&mut t.module, PTX.as_ptr().cast()));
        ok((d.cuGraphCreate)(&mut t.graph, 0));
        let mut node = 0;
        ok((d.cuGraphAddEmptyNode)(&mut node, t.graph, null(), 0));
        ok((d.cuGraphInstantiateWithFlags)(&mut t.exec, t.graph, 0));
        ok((d.cuStreamSynchronize)(t.other));
        let mode = match f[1] {
            "GLOBAL" => 0,
            "THREAD_LOCAL" => 1,
            _ => 2,
        };
        ok((d.cuStreamBeginCapture_v2)(t.captured, mode));
        ok(launch(d, function, t.captured));
        let (relaxed, things, name) = (f[3] == "1", &t, f[0]);
        let work = move || {
            let mut mine = 2;
            if relaxed {
                ok((d.cuThreadExchangeStreamCaptureMode)(&mut mine));
            }
            let got = operate(d, name, things);
            if relaxed {
                ok((d.cuThreadExchangeStreamCaptureMode)(&mut mine));
            }
            got
        };
        let op = if f[2] == "same" {
            work()
        } else {
            std::thread::scope(|s| {
                s.spawn(move || {
                    ok((d.cuCtxSetCurrent)(context));
                    work()
                })
                .join()
                .unwrap()
            })
        };
        let later = launch(d, function, t.captured);
        let mut graph = 0;
        let end = (d.cuStreamEndCapture)(t.captured, &mut graph);
        let mut nodes = 0;
        if graph != 0 {
            ok((d.cuGraphGetNodes)(graph, null_mut(), &mut nodes));
        }
        let got = (op, later, end, nodes);
        let want = (
            status(f[4]),
            status(f[5]),
            status(f[6]),
            f[7].parse::<usize>().unwrap(),
        );
        rows += 1;
        if got != want {
            wrong.push(format!("{line}: got {got:?}"));
        }
    }
    println!("{rows} rows, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(rows, 203);
}

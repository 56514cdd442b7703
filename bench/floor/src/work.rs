//! The measures: `ocaml/work.ml` has the same, in the same order.

use crate::driver::call;
use cudarc::driver::sys::{self, CUstreamCaptureMode};
use std::ffi::{c_void, CString};
use std::ptr::{from_mut, null_mut};

const WORDS: usize = 256;
const BYTES: usize = 4 * WORDS;
const KERNELS: &str = concat!(include_str!("../../kernels.ptx"), "\0");

/// What one thread works with. All of it lives until the program ends.
#[derive(Clone, Copy)]
pub struct Work {
    stream: sys::CUstream,
    other: sys::CUstream,
    one: sys::CUfunction,
    five: sys::CUfunction,
    twelve: sys::CUfunction,
    x: sys::CUdeviceptr,
    y: sys::CUdeviceptr,
    host: *mut c_void,
    event: sys::CUevent,
}

/// Makes so many calls.
type Calls = Box<dyn FnMut(usize)>;

/// A measure; see `measure` in `work.ml`.
pub struct Measure {
    calls: Calls,
    settle: Box<dyn FnMut()>,
    /// A call has so many parts, and its time is given for one part.
    pub parts: usize,
}

impl Measure {
    /// Makes so many calls.
    pub fn run(&mut self, count: usize) {
        (self.calls)(count)
    }

    /// Waits for the calls and lets go what they made.
    pub fn settle(&mut self) {
        (self.settle)()
    }
}

impl Work {
    /// Streams, kernels and memory in the primary context of the first device.
    pub fn new() -> Result<Work, String> {
        let mut device = 0;
        let mut context = null_mut();
        call!(cuDeviceGet(&mut device, 0));
        call!(cuDevicePrimaryCtxRetain(&mut context, device));
        call!(cuCtxSetCurrent(context));
        let mut module = null_mut();
        call!(cuModuleLoadData(&mut module, KERNELS.as_ptr().cast()));
        let kernel = |name: &str| {
            let name = CString::new(name).map_err(|e| e.to_string())?;
            let mut function = null_mut();
            call!(cuModuleGetFunction(&mut function, module, name.as_ptr()));
            Ok::<_, String>(function)
        };
        let stream = || {
            let mut stream = null_mut();
            let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
            call!(cuStreamCreateWithPriority(&mut stream, flags, 0));
            stream
        };
        let host: *mut c_void = Box::leak(Box::new([1f32; WORDS])).as_mut_ptr().cast();
        let memory = || {
            let mut address = 0;
            call!(cuMemAlloc_v2(&mut address, BYTES));
            call!(cuMemcpyHtoD_v2(address, host, BYTES));
            address
        };
        let mut event = null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        call!(cuEventCreate(&mut event, flags));
        Ok(Work {
            stream: stream(),
            other: stream(),
            one: kernel("one")?,
            five: kernel("five")?,
            twelve: kernel("twelve")?,
            x: memory(),
            y: memory(),
            host,
            event,
        })
    }

    fn launch(&self, function: sys::CUfunction, parameters: &mut [*mut c_void]) {
        call!(cuLaunchKernel(
            function,
            1,
            1,
            1,
            32,
            1,
            1,
            0,
            self.stream,
            parameters.as_mut_ptr(),
            null_mut()
        ));
    }

    fn launch_one(&self) {
        let mut y = self.y;
        self.launch(self.one, &mut [from_mut(&mut y).cast()]);
    }

    fn launch_five(&self) {
        let (mut y, mut x, mut n, mut a, mut stride) = (self.y, self.x, 0i32, 2f32, 1usize);
        self.launch(
            self.five,
            &mut [
                from_mut(&mut y).cast(),
                from_mut(&mut x).cast(),
                from_mut(&mut n).cast(),
                from_mut(&mut a).cast(),
                from_mut(&mut stride).cast(),
            ],
        );
    }

    fn launch_twelve(&self) {
        let (mut y, mut x, mut w, mut b) = (self.y, self.x, self.x, self.x);
        let (mut n, mut m, mut a, mut c) = (0i32, 1i32, 2f32, 3f32);
        let (mut d, mut e, mut stride, mut offset) = (4f64, 5f64, 1usize, 1usize);
        self.launch(
            self.twelve,
            &mut [
                from_mut(&mut y).cast(),
                from_mut(&mut x).cast(),
                from_mut(&mut w).cast(),
                from_mut(&mut b).cast(),
                from_mut(&mut n).cast(),
                from_mut(&mut m).cast(),
                from_mut(&mut a).cast(),
                from_mut(&mut c).cast(),
                from_mut(&mut d).cast(),
                from_mut(&mut e).cast(),
                from_mut(&mut stride).cast(),
                from_mut(&mut offset).cast(),
            ],
        );
    }

    fn wait(&self) {
        call!(cuStreamSynchronize(self.stream));
        call!(cuStreamSynchronize(self.other));
    }

    fn enqueue(&self, nodes: usize) {
        (0..nodes).for_each(|_| self.launch_five());
    }

    fn capture(&self, nodes: usize) -> sys::CUgraph {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        call!(cuStreamBeginCapture_v2(self.stream, mode));
        self.enqueue(nodes);
        let mut graph = null_mut();
        call!(cuStreamEndCapture(self.stream, &mut graph));
        graph
    }

    fn graph(&self, nodes: usize) -> Result<sys::CUgraph, String> {
        let graph = self.capture(nodes);
        let mut counted = 0;
        call!(cuGraphGetNodes(graph, null_mut(), &mut counted));
        match counted == nodes {
            true => Ok(graph),
            false => Err(format!("a captured graph has {counted} nodes, not {nodes}")),
        }
    }

    fn exec(&self, nodes: usize) -> Result<sys::CUgraphExec, String> {
        Ok(instantiate(self.graph(nodes)?))
    }

    /// A measure whose calls only enqueue.
    fn enqueuing(self, call: impl Fn(&Work) + 'static) -> Result<Measure, String> {
        Ok(Measure {
            calls: Box::new(move |count| (0..count).for_each(|_| call(&self))),
            settle: Box::new(move || self.wait()),
            parts: 1,
        })
    }

    /// A measure by its name, as `graph_10`; a name without a number has size 0.
    pub fn find(self, name: &str) -> Result<Measure, String> {
        let numbered = name
            .rsplit_once('_')
            .and_then(|(kind, size)| Some((kind, size.parse().ok()?)));
        let (kind, size) = numbered.unwrap_or((name, 0));
        match (kind, size) {
            ("launch", 1) => self.enqueuing(Work::launch_one),
            ("launch", 5) => self.enqueuing(Work::launch_five),
            ("launch", 12) => self.enqueuing(Work::launch_twelve),
            ("graph", nodes) => {
                let exec = self.exec(nodes)?;
                self.enqueuing(move |w| call!(cuGraphLaunch(exec, w.stream)))
            }
            ("capture", nodes) => {
                let destroy = |graph| call!(cuGraphDestroy(graph));
                Ok(making(nodes, move || self.capture(nodes), destroy))
            }
            ("instantiate", nodes) => {
                let graph = self.graph(nodes)?;
                let destroy = |exec| call!(cuGraphExecDestroy(exec));
                Ok(making(1, move || instantiate(graph), destroy))
            }
            ("stream", nodes) => self.enqueuing(move |w| {
                w.enqueue(nodes);
                call!(cuStreamSynchronize(w.stream));
            }),
            ("replay", nodes) => {
                let exec = self.exec(nodes)?;
                self.enqueuing(move |w| {
                    call!(cuGraphLaunch(exec, w.stream));
                    call!(cuStreamSynchronize(w.stream));
                })
            }
            ("event_record", _) => {
                self.enqueuing(|w| call!(cuEventRecordWithFlags(w.event, w.stream, 0)))
            }
            ("event_pair", _) => self.enqueuing(|w| {
                call!(cuEventRecordWithFlags(w.event, w.stream, 0));
                call!(cuStreamWaitEvent(w.other, w.event, 0));
            }),
            ("h2d", _) => {
                self.enqueuing(|w| call!(cuMemcpyHtoDAsync_v2(w.y, w.host, BYTES, w.stream)))
            }
            ("d2h", _) => {
                self.enqueuing(|w| call!(cuMemcpyDtoHAsync_v2(w.host, w.y, BYTES, w.stream)))
            }
            ("d2d", _) => {
                self.enqueuing(|w| call!(cuMemcpyDtoDAsync_v2(w.y, w.x, BYTES, w.stream)))
            }
            ("memset", _) => self.enqueuing(|w| call!(cuMemsetD32Async(w.y, 0, WORDS, w.stream))),
            _ => Err(format!("there is no measure {name}")),
        }
    }
}

fn instantiate(graph: sys::CUgraph) -> sys::CUgraphExec {
    let mut exec = null_mut();
    call!(cuGraphInstantiateWithFlags(&mut exec, graph, 0));
    exec
}

/// A measure whose calls make things, which are destroyed outside of the time.
fn making<T: 'static>(
    parts: usize,
    make: impl Fn() -> T + 'static,
    destroy: impl Fn(T) + 'static,
) -> Measure {
    let made = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let kept = made.clone();
    Measure {
        calls: Box::new(move |count| {
            let mut made = made.borrow_mut();
            made.reserve(count);
            (0..count).for_each(|_| made.push(make()));
        }),
        settle: Box::new(move || kept.borrow_mut().drain(..).for_each(&destroy)),
        parts,
    }
}

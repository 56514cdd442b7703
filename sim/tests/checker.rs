//! The memory checker of the simulator: each fault ends in the driver's own error, with a report that names
//! the kernel, its PTX line, the thread, the address, and the nearest allocation. Each test runs itself in
//! a process of its own and reads what that wrote.

mod common;
use common::*;

const SUCCESS: CUresult = CUresult::CUDA_SUCCESS;

/// Runs a body in a child: what it has written to stderr.
fn report(test: &str, body: impl FnOnce(&Session)) -> Option<String> {
    if is_child(test) {
        body(&Session::new());
        return None;
    }
    let output = child(test, &[]);
    let text = errors(&output);
    assert!(output.status.success(), "{text}");
    let lines = text.lines().filter(|line| line.starts_with("simulator:"));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

fn mentions(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in:\n{text}");
    }
}

/// The line of the first instruction of a kernel that starts with a text.
fn line_of(kernel: &str, instruction: &str) -> String {
    let text = KERNELS.to_str().unwrap();
    let start = text.find(&format!(".entry {kernel}(")).unwrap();
    let at = start + text[start..].find(instruction).unwrap();
    format!("PTX line {}:", text[..at].matches('\n').count() + 1)
}

fn run_on(s: &Session, name: &std::ffi::CStr, threads: u32, memory: CUdeviceptr) -> CUresult {
    let stream = s.stream();
    assert_eq!(launch(s.kernel(name), threads, memory, 7, stream), SUCCESS);
    status!(cuStreamSynchronize(stream))
}

#[test]
fn a_step_over_the_end() {
    alone!();
    simulator_only!();
    let report = report("a_step_over_the_end", |s| {
        let memory = words(25);
        let status = run_on(s, c"set", 27, memory);
        assert_eq!(status, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    });
    let Some(text) = report else { return };
    mentions(
        &text,
        &[
            "kernel `set`",
            "writing 4 bytes",
            "thread (25,0,0) of block (0,0,0)",
            &line_of("set", "st.global"),
            "0 bytes behind the end of 100 bytes of device memory",
        ],
    );
}

#[test]
fn a_step_before_the_start() {
    alone!();
    simulator_only!();
    let report = report("a_step_before_the_start", |s| {
        let memory = words(25);
        let status = run_on(s, c"add", 1, memory - 8);
        assert_eq!(status, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    });
    let Some(text) = report else { return };
    mentions(
        &text,
        &[
            "reading 4 bytes",
            &line_of("add", "ld.global"),
            "8 bytes before 100 bytes of device memory",
        ],
    );
}

#[test]
fn memory_that_was_freed() {
    alone!();
    simulator_only!();
    let report = report("memory_that_was_freed", |s| {
        let memory = words(25);
        cu!(cuMemFree_v2(memory));
        let status = run_on(s, c"set", 4, memory + 40);
        assert_eq!(status, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    });
    let Some(text) = report else { return };
    mentions(
        &text,
        &["40 bytes into 100 bytes of device memory", "freed before"],
    );
}

#[test]
fn an_access_that_is_not_aligned() {
    alone!();
    simulator_only!();
    let report = report("an_access_that_is_not_aligned", |s| {
        let memory = words(25);
        let status = run_on(s, c"set", 4, memory + 2);
        assert_eq!(status, CUresult::CUDA_ERROR_MISALIGNED_ADDRESS);
    });
    let Some(text) = report else { return };
    mentions(
        &text,
        &[
            "misaligned",
            "kernel `set`",
            "is in 100 bytes of device memory",
        ],
    );
}

#[test]
fn a_handle_that_was_never_set() {
    alone!();
    simulator_only!();
    let report = report("a_handle_that_was_never_set", |s| {
        let status = run_on(s, c"set", 4, 0);
        assert_eq!(status, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    });
    let Some(text) = report else { return };
    mentions(&text, &["at 0x0", "thread (0,0,0)", "a null pointer"]);
}

#[test]
fn memory_of_the_program_s_own() {
    alone!();
    simulator_only!();
    let report = report("memory_of_the_program_s_own", |s| {
        let own = [0u32; 4];
        let status = run_on(s, c"set", 4, own.as_ptr() as u64);
        assert_eq!(status, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_eq!(own, [0; 4]);
    });
    let Some(text) = report else { return };
    mentions(
        &text,
        &["illegal address writing 4 bytes", "near no allocation"],
    );
}

#[test]
fn a_captured_copy_of_memory_that_was_freed() {
    alone!();
    simulator_only!();
    let report = report("a_captured_copy_of_memory_that_was_freed", |s| {
        let (from, to, stream) = (words(25), words(25), s.stream());
        let graph = get!(cuGraphCreate(0));
        let copy = copy_params((DEVICE, to), (DEVICE, from), 100);
        let _: CUgraphNode = get!(cuGraphAddMemcpyNode(
            graph,
            std::ptr::null(),
            0,
            &copy,
            s.context
        ));
        let exec = instantiate(graph);
        cu!(cuMemFree_v2(from));
        cu!(cuGraphLaunch(exec, stream));
        fails!(ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
    });
    let Some(text) = report else { return };
    mentions(
        &text,
        &[
            "copy from 100 bytes",
            "0 bytes into 100 bytes",
            "freed before",
        ],
    );
}

#[test]
fn a_copy_to_host_memory_that_is_not_there() {
    simulator_only!();
    let report = report("a_copy_to_host_memory_that_is_not_there", |s| {
        let (from, stream) = (words(4), s.stream());
        let nowhere = 0x7000 as *mut std::ffi::c_void;
        cu!(cuMemcpyDtoHAsync_v2(nowhere, from, 16, stream));
        assert_ne!(status!(cuStreamSynchronize(stream)), SUCCESS);
    });
    let Some(text) = report else { return };
    mentions(&text, &["host memory at 0x7000"]);
}

#[test]
fn a_captured_copy_of_host_memory_that_was_unmapped() {
    simulator_only!();
    let report = report("a_captured_copy_of_host_memory_that_was_unmapped", |s| {
        let (to, stream) = (words(4), s.stream());
        // SAFETY: a page of the test's own, which nobody else knows.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        let graph = get!(cuGraphCreate(0));
        let copy = copy_params((DEVICE, to), (HOST, page as u64), 16);
        let node: *const CUgraphNode = std::ptr::null();
        let _: CUgraphNode = get!(cuGraphAddMemcpyNode(graph, node, 0, &copy, s.context));
        let exec = instantiate(graph);
        run(exec, stream);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::munmap(page, 4096) }, 0);
        fails!(INVALID_VALUE, cuGraphLaunch(exec, stream));
    });
    let Some(text) = report else { return };
    mentions(&text, &["a copy of 16 bytes uses host memory", "not there"]);
}

#[test]
fn a_captured_copy_to_pinned_memory_that_was_freed() {
    simulator_only!();
    let report = report("a_captured_copy_to_pinned_memory_that_was_freed", |s| {
        let (from, stream) = (words(4), s.stream());
        let pinned: *mut std::ffi::c_void = get!(cuMemAllocHost_v2(64));
        let graph = get!(cuGraphCreate(0));
        let copy = copy_params((HOST, pinned as u64), (DEVICE, from), 16);
        let node: *const CUgraphNode = std::ptr::null();
        let _: CUgraphNode = get!(cuGraphAddMemcpyNode(graph, node, 0, &copy, s.context));
        let exec = instantiate(graph);
        cu!(cuMemFreeHost(pinned));
        cu!(cuGraphLaunch(exec, stream));
        assert_ne!(status!(cuStreamSynchronize(stream)), SUCCESS);
    });
    let Some(text) = report else { return };
    mentions(
        &text,
        &[
            "0 bytes into 64 bytes of pinned host memory",
            "freed before",
        ],
    );
}

#[test]
fn a_kernel_of_a_module_that_was_unloaded() {
    simulator_only!();
    let report = report("a_kernel_of_a_module_that_was_unloaded", |s| {
        let stream = s.stream();
        let module = get!(cuModuleLoadData(KERNELS.as_ptr().cast()));
        let function = get!(cuModuleGetFunction(module, c"nothing".as_ptr()));
        let graph = get!(cuGraphCreate(0));
        let params = kernel_params(function, 1, &mut []);
        let _: CUgraphNode = get!(cuGraphAddKernelNode_v2(graph, std::ptr::null(), 0, &params));
        let exec = instantiate(graph);
        cu!(cuModuleUnload(module));
        let status = status!(cuGraphLaunch(exec, stream));
        assert!(status != SUCCESS || status!(cuStreamSynchronize(stream)) != SUCCESS);
    });
    let Some(text) = report else { return };
    mentions(&text, &["`nothing`", "unloaded"]);
}

#[test]
fn memory_of_another_device() {
    alone!();
    simulator_only!();
    std::env::set_var("CUDAGRAPH_SIM_DEVICES", "2");
    let report = report("memory_of_another_device", |s| {
        let other: CUcontext = get!(cuCtxCreate_v2(0, 1));
        let memory = words(25);
        cu!(cuCtxSetCurrent(s.context));
        let status = run_on(s, c"set", 4, memory);
        assert_eq!(status, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        assert!(!other.is_null());
    });
    let Some(text) = report else { return };
    mentions(
        &text,
        &[
            "is in 100 bytes of device memory",
            "on device 1, to which device 0 has no access",
        ],
    );
}

#[test]
fn faults_are_counted() {
    simulator_only!();
    let s = Session::new();
    let count = function!("cusimFaults", extern "C" fn() -> u64);
    let before = count();
    assert_ne!(run_on(&s, c"set", 4, 64), SUCCESS);
    assert_eq!(count(), before + 1);
}

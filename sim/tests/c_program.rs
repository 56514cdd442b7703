//! The C program in `example/`, built as a project without the driver's header would, and run on the
//! simulator in the driver's place.

mod common;
use common::*;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder in which the simulator stands under the driver's names, with the program.
fn built() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("c-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["libcuda.so", "libcuda.so.1"] {
        let link = folder.join(name);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(library(), link).unwrap();
    }
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/example/saxpy.c");
    let output = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(folder.join("saxpy"))
        .arg(source)
        .arg("-L")
        .arg(&folder)
        .arg("-lcuda")
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{}", errors(&output));
    folder
}

fn run_with(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let folder = built();
    let output = Command::new(folder.join("saxpy"))
        .args(arguments)
        .env("LD_LIBRARY_PATH", &folder)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    output
}

#[test]
fn a_c_program_runs_and_its_errors_are_found() {
    simulator_only!();
    let output = run_with(&[], &[("CUDAGRAPH_SIM_REPORT", "1")]);
    let (text, report) = (String::from_utf8_lossy(&output.stdout), errors(&output));
    assert!(output.status.success(), "{report}");
    assert_eq!(text, "y = 41 after 10 launches on cudagraph simulator\n");
    assert!(!report.contains("leaked"), "{report}");

    let output = run_with(&["overrun"], &[]);
    let report = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{report}");
    for words in [
        "kernel `saxpy`: illegal address reading 4 bytes",
        "thread (255,0,0) of block (0,0,0), PTX line 17: `ld.global.f32 %f3, [%d5];`",
        "0 bytes behind the end of 1020 bytes of device memory",
        // From the first call that comes after the kernel has run.
        "stream): CUDA_ERROR_ILLEGAL_ADDRESS",
    ] {
        assert!(report.contains(words), "no {words:?} in:\n{report}");
    }

    let output = run_with(
        &[],
        &[("CUDAGRAPH_SIM_FAIL", "cuGraphLaunch@4=LAUNCH_FAILED")],
    );
    assert_eq!(output.status.code(), Some(1));
    let want = "cuGraphLaunch(step, stream): CUDA_ERROR_LAUNCH_FAILED";
    assert!(errors(&output).contains(want), "{}", errors(&output));
}

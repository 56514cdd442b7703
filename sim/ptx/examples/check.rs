//! Says what is in PTX files, or what is wrong with them: `cargo run --example check -- FILE...`

use cudagraph_ptx::Program;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut failed = false;
    for path in std::env::args().skip(1) {
        let result = std::fs::read(&path)
            .map_err(|error| error.to_string())
            .and_then(|source| Program::compile(&source).map_err(|error| error.to_string()));
        match result {
            Ok(program) => {
                for kernel in program.kernels() {
                    println!(
                        "{path}: {} params {} shared {} local {} registers {}",
                        kernel.name,
                        kernel.param_bytes,
                        kernel.static_shared_bytes,
                        kernel.local_bytes,
                        kernel.registers
                    );
                }
            }
            Err(error) => {
                failed = true;
                eprintln!("{path}: {error}");
            }
        }
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

//! The front end takes anything: it answers with a program or an error.
#![no_main]

use cudagraph_ptx::Program;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &[u8]| {
    if let Err(error) = Program::compile(source) {
        assert!(error.line > 0);
        assert!(!error.message.is_empty());
    }
});

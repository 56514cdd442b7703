//! What people read: reports on stderr as things happen, and the table at the end.

use crate::ledger::{self, KINDS};
use crate::memory;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

static SILENT: AtomicBool = AtomicBool::new(false);

/// From now on nothing is written: the process ends.
pub fn silence() {
    SILENT.store(true, Ordering::Release);
}

/// Writes lines to stderr, each with a prefix that says where it comes from.
pub fn say(text: &str) {
    if SILENT.load(Ordering::Acquire) {
        return;
    }
    write_lines(text);
}

fn write_lines(text: &str) {
    let lines: String = text
        .lines()
        .map(|line| format!("simulator: {line}\n"))
        .collect();
    // Nobody is told when stderr is closed: a report must not end the program.
    let _ = std::io::stderr().write_all(lines.as_bytes());
}

/// Writes the table of what is live.
pub fn at_exit() {
    write_lines(&table());
}

/// The table of what was made, destroyed and is live.
pub fn table() -> String {
    let mut text = format!(
        "{:<10}{:>10}{:>12}{:>10}\n",
        "kind", "made", "destroyed", "live"
    );
    for (kind, name) in KINDS {
        let (made, destroyed) = ledger::counts(kind);
        let live = made - destroyed;
        let mark = if live > 0 { "  leaked" } else { "" };
        let _ = writeln!(text, "{name:<10}{made:>10}{destroyed:>12}{live:>10}{mark}");
    }
    let _ = writeln!(
        text,
        "{} bytes of device memory live, {} faults, {} uses of dead handles",
        memory::bytes_live(),
        ledger::faults(),
        ledger::bad_handles()
    );
    for (address, size, kind) in memory::largest_live(8) {
        let _ = writeln!(text, "live: {size} bytes of {kind} at 0x{address:x}");
    }
    text
}

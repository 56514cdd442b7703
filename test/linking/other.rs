//! Another Rust library in the same program: it allocates, starts a thread and catches a panic.

use std::collections::HashMap;

/// The sum of 0 to `n`, taken the long way.
#[no_mangle]
pub extern "C" fn other_sum(n: isize) -> isize {
    let squares: HashMap<isize, isize> = (0..=n).map(|i| (i, i)).collect();
    let sum = std::thread::spawn(move || squares.values().sum::<isize>()).join();
    sum.unwrap_or(-1)
}

/// 1 if a panic was caught.
#[no_mangle]
pub extern "C" fn other_panic(n: isize) -> isize {
    std::panic::set_hook(Box::new(|_| ()));
    std::panic::catch_unwind(|| [1, 2, 3][n as usize]).is_err() as isize
}

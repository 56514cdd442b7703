//! Copies and fills, synchronous and in stream order.

use super::functions;
use crate::status::{Result, INVALID_VALUE};
use crate::stream::{Stream, Task};
use crate::work::{Place, Work};
use crate::{capture, context, memory};
use Place::{Device, Host};

/// Does work on the NULL stream and waits for it.
fn now(work: Work) -> Result<()> {
    let context = context::current()?;
    capture::uses_null_stream(context.handle)?;
    check(&work)?;
    let stream = context.null_stream()?;
    stream.push(Task::Work(vec![work]))?;
    stream.wait_idle();
    context.check()
}

/// Puts work into a stream, or into the capture that it takes part in.
fn later(stream: usize, work: Work) -> Result<()> {
    check(&work)?;
    capture::submit(&Stream::get(stream)?, work)
}

/// Addresses that cannot be right are refused at once, as the driver does.
fn check(work: &Work) -> Result<()> {
    let device = |address: u64, size: usize| {
        if memory::is_valid(address, size as u64) {
            Ok(())
        } else {
            Err(INVALID_VALUE)
        }
    };
    match *work {
        Work::Copy { to, from, size } => {
            for place in [to, from] {
                match place {
                    Device(address) => device(address, size)?,
                    Host(0) if size > 0 => return Err(INVALID_VALUE),
                    Host(_) => {}
                }
            }
            Ok(())
        }
        Work::Fill {
            to, width, count, ..
        } => {
            if to % width as u64 != 0 {
                return Err(INVALID_VALUE);
            }
            device(to, width.checked_mul(count).ok_or(INVALID_VALUE)?)
        }
        _ => Ok(()),
    }
}

fn fill(to: u64, width: usize, value: u32, count: usize) -> Work {
    Work::Fill {
        to,
        width,
        value,
        count,
    }
}

functions! {
    fn cuMemcpyHtoD_v2(to: u64, from: usize, size: usize) {
        now(Work::Copy { to: Device(to), from: Host(from), size })
    }

    fn cuMemcpyDtoH_v2(to: usize, from: u64, size: usize) {
        now(Work::Copy { to: Host(to), from: Device(from), size })
    }

    fn cuMemcpyDtoD_v2(to: u64, from: u64, size: usize) {
        now(Work::Copy { to: Device(to), from: Device(from), size })
    }

    fn cuMemcpyHtoDAsync_v2(to: u64, from: usize, size: usize, stream: usize) {
        later(stream, Work::Copy { to: Device(to), from: Host(from), size })
    }

    fn cuMemcpyDtoHAsync_v2(to: usize, from: u64, size: usize, stream: usize) {
        later(stream, Work::Copy { to: Host(to), from: Device(from), size })
    }

    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, size: usize, stream: usize) {
        later(stream, Work::Copy { to: Device(to), from: Device(from), size })
    }

    fn cuMemsetD8_v2(to: u64, value: u8, count: usize) {
        now(fill(to, 1, u32::from(value), count))
    }

    fn cuMemsetD16_v2(to: u64, value: u16, count: usize) {
        now(fill(to, 2, u32::from(value), count))
    }

    fn cuMemsetD32_v2(to: u64, value: u32, count: usize) {
        now(fill(to, 4, value, count))
    }

    fn cuMemsetD8Async(to: u64, value: u8, count: usize, stream: usize) {
        later(stream, fill(to, 1, u32::from(value), count))
    }

    fn cuMemsetD16Async(to: u64, value: u16, count: usize, stream: usize) {
        later(stream, fill(to, 2, u32::from(value), count))
    }

    fn cuMemsetD32Async(to: u64, value: u32, count: usize, stream: usize) {
        later(stream, fill(to, 4, value, count))
    }
}

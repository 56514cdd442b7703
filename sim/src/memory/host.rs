//! Host memory: pinned, registered, and the program's own, which may not be there.

use super::heap::{read, write};
use super::{allocate, block_at, changed, is_reserved, Block, Kind};
use crate::ledger;
use crate::status::*;

/// Allocates pinned host memory.
pub fn allocate_pinned(size: u64, device: i32, context: usize, flags: u32) -> Result<u64> {
    let mut block = Block::new(size, device, context, Kind::Host);
    block.flags = flags;
    allocate(block)
}

/// Frees pinned host memory.
pub fn free_pinned(address: u64) -> Result<()> {
    super::free(address, |block| block.kind == Kind::Host)
}

/// Registers memory of the program.
pub fn register(address: u64, size: u64, device: i32, context: usize, flags: u32) -> Result<()> {
    if address == 0 || size == 0 || address.checked_add(size).is_none() {
        return Err(INVALID_VALUE);
    }
    let mut heap = write();
    let last = heap.blocks.range(..address + size).next_back();
    if last.is_some_and(|(_, block)| block.end() > address) {
        return Err(HOST_MEMORY_ALREADY_REGISTERED);
    }
    let mut block = Block::new(size, device, context, Kind::Registered);
    (block.start, block.flags) = (address, flags);
    heap.adopt(block);
    ledger::made(ledger::Kind::HostMemory);
    changed();
    Ok(())
}

/// Ends the registration of memory.
pub fn unregister(address: u64) -> Result<()> {
    let registered = read().blocks.get(&address).map(|block| block.kind);
    if registered != Some(Kind::Registered) {
        ledger::bad_handle();
        return Err(HOST_MEMORY_NOT_REGISTERED);
    }
    super::free(address, |block| block.kind == Kind::Registered)
}

/// Whether host memory at an address is the program's own, so that a copy has to take the bytes.
pub fn is_pageable(address: u64) -> bool {
    block_at(address).is_none()
}

/// Copies bytes out of host memory that may not be there.
pub fn read_bytes(from: u64, to: u64, size: usize) -> Result<()> {
    transfer(from, to, size, false)
}

/// Copies bytes into host memory that may not be there.
pub fn write_bytes(to: u64, from: u64, size: usize) -> Result<()> {
    transfer(to, from, size, true)
}

/// Moves bytes between host memory of the program and memory that is known to be there. The kernel does
/// it, which answers an error for a bad address where a plain copy would end the process.
fn transfer(host: u64, local: u64, size: usize, to_host: bool) -> Result<()> {
    if is_reserved(host) {
        // Pinned memory, or an address of the device where one of the host was meant.
        if !super::is_live(host, size as u64) {
            return Err(INVALID_VALUE);
        }
        plain_copy(host, local, size, to_host);
        return Ok(());
    }
    let mut done = 0;
    while done < size {
        let length = (size - done).min(1 << 30);
        let (host, local) = (host + done as u64, local + done as u64);
        match copy_by_kernel(host, local, length, to_host) {
            Some(0) => return Err(INVALID_VALUE),
            Some(moved) => done += moved,
            // The program vouches for its pointer.
            None => {
                plain_copy(host, local, length, to_host);
                done += length;
            }
        }
    }
    Ok(())
}

/// How many bytes the kernel moved, 0 if the host's memory is not there; `None` where the system has no such
/// call, or forbids it (some containers do).
#[cfg(target_os = "linux")]
fn copy_by_kernel(host: u64, local: u64, length: usize, to_host: bool) -> Option<usize> {
    let at = |base: u64| libc::iovec {
        iov_base: base as usize as *mut _,
        iov_len: length,
    };
    let (to, from) = (at(local), at(host));
    // SAFETY: the kernel checks both ranges; `local` is there by the caller.
    let moved = unsafe {
        let me = libc::getpid();
        match to_host {
            true => libc::process_vm_writev(me, &to, 1, &from, 1, 0),
            false => libc::process_vm_readv(me, &to, 1, &from, 1, 0),
        }
    };
    match moved {
        0.. => Some(moved as usize),
        _ if std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT) => Some(0),
        _ => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn copy_by_kernel(_host: u64, _local: u64, _length: usize, _to_host: bool) -> Option<usize> {
    None
}

fn plain_copy(host: u64, local: u64, size: usize, to_host: bool) {
    let (from, to) = if to_host {
        (local, host)
    } else {
        (host, local)
    };
    // SAFETY: both ranges are there: checked by the caller, or vouched for by the program.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, size) };
}

//! Pools that stream-ordered memory comes from.

use crate::device;
use crate::ledger::Kind;
use crate::status::{Result, INVALID_VALUE, NOT_SUPPORTED};
use crate::table::{fresh_handle, lock, Table};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A pool.
pub struct Pool {
    /// Its handle.
    pub handle: usize,
    /// The device that its memory is on.
    pub device: i32,
    /// The most that may be in use; 0 for no limit.
    pub most: u64,
    used: AtomicU64,
    high: AtomicU64,
    /// Attributes 1 to 4 as set.
    settings: Mutex<[u64; 4]>,
    /// Devices that may use the memory, one bit each.
    pub access: AtomicU64,
}

static POOLS: Table<Pool> = Table::new(Kind::Pool);
/// The default pool and the current pool of each device.
static OF_DEVICES: Mutex<Vec<(Arc<Pool>, Arc<Pool>)>> = Mutex::new(Vec::new());

impl Pool {
    fn new(device: i32, most: u64) -> Arc<Pool> {
        Arc::new(Pool {
            handle: fresh_handle(),
            device,
            most,
            used: AtomicU64::new(0),
            high: AtomicU64::new(0),
            settings: Mutex::new([1, 1, 1, 0]),
            access: AtomicU64::new(1 << device),
        })
    }

    /// A pool made by the program.
    pub fn create(device: i32, most: u64) -> Result<usize> {
        device::check(device).map_err(|_| INVALID_VALUE)?;
        let pool = Pool::new(device, most);
        let handle = pool.handle;
        POOLS.insert_as(handle, pool);
        Ok(handle)
    }

    /// Counts an allocation.
    pub fn take(&self, size: u64) -> Result<()> {
        let used = self.used.fetch_add(size, Ordering::Relaxed) + size;
        if self.most != 0 && used > self.most {
            self.give_back(size);
            return Err(crate::status::OUT_OF_MEMORY);
        }
        self.high.fetch_max(used, Ordering::Relaxed);
        Ok(())
    }

    /// Counts a free.
    pub fn give_back(&self, size: u64) {
        self.used.fetch_sub(size, Ordering::Relaxed);
    }

    /// Whether the kernels of a device may use its memory.
    pub fn is_open_to(&self, device: i32) -> bool {
        self.access.load(Ordering::Acquire) >> device & 1 == 1
    }

    /// An attribute by its number.
    pub fn attribute(&self, number: i32) -> Result<u64> {
        match number {
            1..=4 => Ok(lock(&self.settings)[number as usize - 1]),
            // What is reserved from the system is what is used: nothing is held back.
            5 | 7 => Ok(self.used.load(Ordering::Relaxed)),
            6 | 8 => Ok(self.high.load(Ordering::Relaxed)),
            _ => Err(INVALID_VALUE),
        }
    }

    /// Sets an attribute; the marks of the highest use can only be reset.
    pub fn set_attribute(&self, number: i32, value: u64) -> Result<()> {
        match number {
            1..=4 => lock(&self.settings)[number as usize - 1] = value,
            6 | 8 if value == 0 => {
                self.high
                    .store(self.used.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }
}

/// The pool with a handle.
pub fn get(handle: usize) -> Result<Arc<Pool>> {
    match default_with(handle) {
        Some(pool) => Ok(pool),
        None => POOLS.get(handle).map_err(|_| INVALID_VALUE),
    }
}

/// The pool with a handle, if it was not destroyed.
pub(super) fn find(handle: usize) -> Option<Arc<Pool>> {
    if POOLS.is_live(handle) {
        return POOLS.get(handle).ok();
    }
    default_with(handle)
}

fn default_with(handle: usize) -> Option<Arc<Pool>> {
    let of_devices = lock(&OF_DEVICES);
    let found = of_devices.iter().find(|(pool, _)| pool.handle == handle);
    found.map(|(pool, _)| pool.clone())
}

fn with_device<R>(device: i32, f: impl FnOnce(&mut (Arc<Pool>, Arc<Pool>)) -> R) -> Result<R> {
    device::check(device)?;
    let mut of_devices = lock(&OF_DEVICES);
    while of_devices.len() <= device as usize {
        let pool = Pool::new(of_devices.len() as i32, 0);
        of_devices.push((pool.clone(), pool));
    }
    Ok(f(&mut of_devices[device as usize]))
}

/// The default pool of a device.
pub fn default_of(device: i32) -> Result<Arc<Pool>> {
    with_device(device, |(default, _)| default.clone())
}

/// The current pool of a device.
pub fn current_of(device: i32) -> Result<Arc<Pool>> {
    with_device(device, |(_, current)| current.clone())
}

/// Makes a pool the current one of a device.
pub fn set_current(device: i32, pool: Arc<Pool>) -> Result<()> {
    if pool.device != device {
        return Err(INVALID_VALUE);
    }
    with_device(device, |(_, current)| *current = pool)
}

/// Destroys a pool of the program. Its memory lives on.
pub fn destroy(handle: usize) -> Result<()> {
    if lock(&OF_DEVICES)
        .iter()
        .any(|(pool, _)| pool.handle == handle)
    {
        return Err(NOT_SUPPORTED);
    }
    let pool = POOLS.remove(handle).map_err(|_| INVALID_VALUE)?;
    with_device(pool.device, |(default, current)| {
        if current.handle == pool.handle {
            *current = default.clone();
        }
    })
}

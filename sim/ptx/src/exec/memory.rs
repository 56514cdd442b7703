//! Checked access to memory: addresses to host pointers.

use super::access::Pointers;
use super::code::{Base, MemOp, Space};
use super::context::{Context, Trouble};
use super::lanes::{Frame, LANES};
use super::warp::Warp;
use crate::interface::{Memory, Region, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};
use crate::FaultKind;
use std::sync::atomic::{fence, Ordering};

/// The allocations that a worker met last.
pub struct Regions {
    epoch: u64,
    recent: [Region; 4],
    next: usize,
}

const NOWHERE: Region = Region {
    start: 0,
    end: 0,
    host: std::ptr::null_mut(),
    writable: false,
};

impl Regions {
    pub fn new() -> Self {
        Regions {
            epoch: 0,
            recent: [NOWHERE; 4],
            next: 0,
        }
    }

    /// The live allocation that holds an address. Call [`Regions::refresh`] before.
    #[inline]
    fn find(&mut self, memory: &dyn Memory, address: u64) -> Option<Region> {
        for region in &self.recent {
            if address >= region.start && address < region.end {
                return Some(*region);
            }
        }
        let region = memory.region(address)?;
        if address < region.start || address >= region.end {
            return None;
        }
        self.recent[self.next] = region;
        self.next = (self.next + 1) % self.recent.len();
        Some(region)
    }

    /// Forgets everything if an allocation appeared or went.
    #[inline]
    fn refresh(&mut self, memory: &dyn Memory) {
        let epoch = memory.epoch();
        if epoch != self.epoch {
            self.recent = [NOWHERE; 4];
            self.epoch = epoch;
        }
    }
}

/// Shared memory of a block: host address and size.
#[derive(Clone, Copy)]
pub struct Shared {
    pub host: *mut u8,
    pub size: u32,
}

impl Shared {
    fn holds(&self, pointer: *mut u8) -> bool {
        (pointer as usize).wrapping_sub(self.host as usize) < self.size as usize
    }
}

/// The state space of a generic address.
pub fn space_of(address: u64) -> Space {
    match address >> 48 {
        0xfe => Space::Shared,
        0xff => Space::Local,
        0xfd => Space::Param,
        _ => Space::Global,
    }
}

/// The start of the window of a state space.
fn window(space: Space) -> u64 {
    match space {
        Space::Shared => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Param => PARAM_WINDOW,
        _ => 0,
    }
}

/// The lanes of a mask.
pub fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let lane = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        Some(lane)
    })
}

/// Where accesses go.
pub struct Access<'x, 'a> {
    pub ctx: &'x Context<'a>,
    pub shared: Shared,
    pub regions: &'x mut Regions,
}

impl Access<'_, '_> {
    /// Addresses of the active lanes.
    fn addresses(&self, warp: &Warp, frame: &Frame, op: &MemOp) -> [u64; LANES] {
        let offset = op.offset as u64;
        let mut addresses = [offset; LANES];
        match op.base {
            Base::None => {}
            Base::Wide(slot) => {
                // SAFETY: lowering has checked that the slot holds 64 bits.
                let base = unsafe { frame.source::<u64>(slot) };
                for lane in 0..LANES {
                    addresses[lane] = base[lane].wrapping_add(offset);
                }
            }
            Base::Narrow(slot) => {
                // SAFETY: lowering has checked that the slot holds 32 bits.
                let base = unsafe { frame.source::<u32>(slot) };
                for lane in 0..LANES {
                    addresses[lane] = u64::from(base[lane].wrapping_add(offset as u32));
                }
            }
            Base::Symbol(symbol) => {
                addresses = [self.ctx.symbols[symbol as usize].wrapping_add(offset); LANES];
            }
            Base::Frame => {
                for lane in 0..LANES {
                    addresses[lane] = u64::from(warp.frame_base[lane]).wrapping_add(offset);
                }
            }
        }
        addresses
    }

    /// Host pointers of the active lanes; every access is checked.
    #[inline]
    fn resolve(
        &mut self,
        warp: &mut Warp,
        frame: &Frame,
        op: &MemOp,
        mask: u32,
        write: bool,
    ) -> Result<Pointers, Trouble> {
        let addresses = self.addresses(warp, frame, op);
        let mut pointers = [std::ptr::null_mut(); LANES];
        let (mut low, mut high, mut bits) = (u64::MAX, 0, 0);
        if mask == u32::MAX {
            for &address in &addresses {
                low = low.min(address);
                high = high.max(address);
                bits |= address;
            }
        } else {
            for lane in lanes_of(mask) {
                low = low.min(addresses[lane]);
                high = high.max(addresses[lane]);
                bits |= addresses[lane];
            }
        }
        let aligned = bits & u64::from(op.total - 1) == 0;
        let space = match op.space {
            // All lanes of a warp mostly agree.
            Space::Generic if space_of(low) == space_of(high) => space_of(low),
            other => other,
        };
        if aligned && matches!(space, Space::Global | Space::Const) {
            self.regions.refresh(self.ctx.memory);
            if let Some(region) = self.regions.find(self.ctx.memory, low) {
                let end = high.checked_add(u64::from(op.total));
                if end.is_some_and(|end| end <= region.end) && (region.writable || !write) {
                    let base = region.host.wrapping_sub(region.start as usize);
                    for lane in 0..LANES {
                        pointers[lane] = base.wrapping_add(addresses[lane] as usize);
                    }
                    return Ok(pointers);
                }
            }
        }
        if aligned && space == Space::Shared {
            let start = if op.space == Space::Generic {
                SHARED_WINDOW
            } else {
                0
            };
            let end = high.checked_add(u64::from(op.total));
            let limit = start + u64::from(self.shared.size);
            if low >= start && end.is_some_and(|end| end <= limit) {
                let base = self.shared.host.wrapping_sub(start as usize);
                for lane in 0..LANES {
                    pointers[lane] = base.wrapping_add(addresses[lane] as usize);
                }
                return Ok(pointers);
            }
        }
        self.regions.refresh(self.ctx.memory);
        for lane in lanes_of(mask) {
            pointers[lane] = self
                .resolve_lane(warp, op, addresses[lane], lane, write)
                .map_err(|kind| Trouble {
                    kind,
                    lane: lane as u32,
                    address: addresses[lane],
                    size: op.total,
                    write,
                })?;
        }
        Ok(pointers)
    }

    fn resolve_lane(
        &mut self,
        warp: &mut Warp,
        op: &MemOp,
        address: u64,
        lane: usize,
        write: bool,
    ) -> Result<*mut u8, FaultKind> {
        if address & u64::from(op.total - 1) != 0 {
            return Err(FaultKind::MisalignedAddress);
        }
        let (space, offset) = match op.space {
            Space::Generic => {
                let space = space_of(address);
                (space, address.wrapping_sub(window(space)))
            }
            space => (space, address),
        };
        let size = u64::from(op.total);
        let within = |limit: u64| offset.checked_add(size).is_some_and(|end| end <= limit);
        match space {
            Space::Shared if within(u64::from(self.shared.size)) => {
                Ok(self.shared.host.wrapping_add(offset as usize))
            }
            Space::Local if within(u64::from(self.ctx.local)) => Ok(warp
                .local(self.ctx)
                .wrapping_add(lane * self.ctx.local as usize + offset as usize)),
            Space::Param if write => Err(FaultKind::ReadOnly),
            Space::Param if within(u64::from(self.ctx.kernel.param_bytes)) => {
                let base = self.ctx.params.as_ptr().cast::<u8>().cast_mut();
                Ok(base.wrapping_add(offset as usize))
            }
            Space::Shared | Space::Local | Space::Param => Err(FaultKind::IllegalAddress),
            _ => {
                let Some(region) = self.regions.find(self.ctx.memory, address) else {
                    return Err(FaultKind::IllegalAddress);
                };
                if address.checked_add(size).is_none_or(|end| end > region.end) {
                    return Err(FaultKind::IllegalAddress);
                }
                if write && !region.writable {
                    return Err(FaultKind::ReadOnly);
                }
                Ok(region.host.wrapping_add((address - region.start) as usize))
            }
        }
    }

    pub fn load(
        &mut self,
        warp: &mut Warp,
        frame: &Frame,
        op: &MemOp,
        mask: u32,
    ) -> Result<(), Trouble> {
        let pointers = self.resolve(warp, frame, op, mask, false)?;
        for (element, &slot) in op.slots.iter().enumerate() {
            // SAFETY: `resolve` has checked every active lane for all elements.
            unsafe { (op.transfer)(frame, slot, mask, &pointers, element * op.size as usize) };
        }
        if op.acquire {
            fence(Ordering::Acquire);
        }
        Ok(())
    }

    pub fn store(
        &mut self,
        warp: &mut Warp,
        frame: &Frame,
        op: &MemOp,
        mask: u32,
    ) -> Result<(), Trouble> {
        let pointers = self.resolve(warp, frame, op, mask, true)?;
        if op.release {
            fence(Ordering::Release);
        }
        for (element, &slot) in op.slots.iter().enumerate() {
            // SAFETY: `resolve` has checked every active lane for all elements.
            unsafe { (op.transfer)(frame, slot, mask, &pointers, element * op.size as usize) };
        }
        Ok(())
    }

    pub fn atom(
        &mut self,
        warp: &mut Warp,
        frame: &Frame,
        op: &MemOp,
        mask: u32,
    ) -> Result<(), Trouble> {
        let Some(atom) = &op.atomic else {
            return Ok(());
        };
        let pointers = self.resolve(warp, frame, op, mask, true)?;
        // Atomic operations are at least as strong here as they ask to be.
        fence(Ordering::SeqCst);
        for (element, &slot) in atom.b.iter().enumerate() {
            let offset = element * op.size as usize;
            for lane in lanes_of(mask) {
                // SAFETY: lowering has checked the widths of the slots, `resolve` the pointers.
                unsafe {
                    let b = read_lane(frame, slot, op.size, lane);
                    let c = atom.c.map_or(0, |c| read_lane(frame, c, op.size, lane));
                    let at = pointers[lane].wrapping_add(offset);
                    let f = if self.shared.holds(at) {
                        atom.shared
                    } else {
                        atom.global
                    };
                    let old = f(at, b, c);
                    if atom.returns {
                        write_lane(frame, op.slots[element], op.size, lane, old);
                    }
                }
            }
        }
        fence(Ordering::SeqCst);
        Ok(())
    }
}

/// One lane of a register of this many bytes.
///
/// # Safety
/// The slot must lie in the frame and hold that many bytes a lane.
pub unsafe fn read_lane(frame: &Frame, slot: u32, bytes: u32, lane: usize) -> u128 {
    // SAFETY: passed on.
    unsafe {
        match bytes {
            0..=2 => u128::from(frame.source::<u16>(slot)[lane]),
            4 => u128::from(frame.source::<u32>(slot)[lane]),
            8 => u128::from(frame.source::<u64>(slot)[lane]),
            _ => frame.source::<u128>(slot)[lane],
        }
    }
}

/// Sets one lane of a register of this many bytes.
///
/// # Safety
/// As [`read_lane`].
pub unsafe fn write_lane(frame: &Frame, slot: u32, bytes: u32, lane: usize, value: u128) {
    // SAFETY: passed on.
    unsafe {
        match bytes {
            0..=2 => frame.target::<u16>(slot)[lane] = value as u16,
            4 => frame.target::<u32>(slot)[lane] = value as u32,
            8 => frame.target::<u64>(slot)[lane] = value as u64,
            _ => frame.target::<u128>(slot)[lane] = value,
        }
    }
}

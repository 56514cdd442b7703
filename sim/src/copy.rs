//! Copies and fills of rectangles of memory.

use crate::memory::{self, host};
use crate::report;
use crate::status::{Result, ILLEGAL_ADDRESS, INVALID_VALUE, OUT_OF_MEMORY};
use std::sync::Arc;

/// Bytes that a copy from host to host moves at once.
const PIECE: usize = 1 << 20;

/// Where a copy's bytes come from or go to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// Device memory.
    Device(u64),
    /// Host memory.
    Host(u64),
}

impl Place {
    /// What an address is when the program does not say.
    pub fn unified(address: u64) -> Place {
        match memory::block_at(address) {
            Some(_) => Place::Device(address),
            None if memory::is_reserved(address) => Place::Device(address),
            None => Place::Host(address),
        }
    }

    fn address(self) -> u64 {
        match self {
            Place::Device(address) | Place::Host(address) => address,
        }
    }
}

/// One end of a copy: rows of a pitch, layers of a number of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    /// The address of the first byte.
    pub place: Place,
    /// From a row to the next.
    pub pitch: u64,
    /// From a layer to the next.
    pub layer: u64,
}

/// A copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copy {
    /// To.
    pub to: Side,
    /// From.
    pub from: Side,
    /// Bytes of a row.
    pub width: u64,
    /// Rows of a layer.
    pub height: u64,
    /// Layers.
    pub depth: u64,
}

/// A copy of bytes that were taken from the host before.
#[derive(Clone, Debug)]
pub struct Upload {
    copy: Copy,
    bytes: Arc<[u8]>,
}

impl Copy {
    /// A copy of bytes in a row.
    pub fn linear(to: Place, from: Place, size: u64) -> Copy {
        let side = |place| Side {
            place,
            pitch: size,
            layer: size,
        };
        Copy {
            to: side(to),
            from: side(from),
            width: size,
            height: 1,
            depth: 1,
        }
    }

    /// The number of bytes.
    pub fn size(&self) -> u64 {
        self.width
            .saturating_mul(self.height)
            .saturating_mul(self.depth)
    }

    /// How far one end reaches from its first byte.
    fn reach(&self, side: &Side) -> Result<u64> {
        if self.size() == 0 {
            return Ok(0);
        }
        let rows = (self.height - 1).checked_mul(side.pitch);
        let layers = (self.depth - 1).checked_mul(side.layer);
        let sum = rows
            .zip(layers)
            .and_then(|(r, l)| r.checked_add(l)?.checked_add(self.width));
        sum.filter(|sum| side.place.address().checked_add(*sum).is_some())
            .ok_or(INVALID_VALUE)
    }

    /// Refuses what cannot be right, as the driver does when it is asked for the copy.
    pub fn check(&self) -> Result<()> {
        for side in [&self.to, &self.from] {
            let rows_fit = self.height <= 1 || side.pitch >= self.width;
            let layer = side.pitch.max(self.width).checked_mul(self.height);
            let layers_fit = self.depth <= 1 || layer.is_some_and(|layer| side.layer >= layer);
            if !rows_fit || !layers_fit {
                return Err(INVALID_VALUE);
            }
            let reach = self.reach(side)?;
            match side.place {
                Place::Device(address) if !memory::is_known(address, reach) => {
                    return Err(INVALID_VALUE);
                }
                Place::Host(0) if reach > 0 => return Err(INVALID_VALUE),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether its bytes come from host memory of the program's own.
    pub fn reads_pageable(&self) -> bool {
        matches!(self.from.place, Place::Host(address) if host::is_pageable(address))
    }

    /// Whether its bytes go from the device to host memory of the program's own.
    pub fn writes_pageable(&self) -> bool {
        matches!(self.from.place, Place::Device(_))
            && matches!(self.to.place, Place::Host(address) if host::is_pageable(address))
    }

    /// The same with the bytes taken from the host now.
    pub fn taken(&self) -> Result<Upload> {
        let mut bytes = Vec::new();
        let size = self.size() as usize;
        bytes.try_reserve_exact(size).map_err(|_| OUT_OF_MEMORY)?;
        let (address, width) = (self.from.place.address(), self.width as usize);
        let rows = self.rows(&self.from);
        for row in rows.take_while(|_| size > 0) {
            // In pieces, so that a size that cannot be right ends where the host's memory does.
            for done in (0..width).step_by(PIECE) {
                let (start, length) = (bytes.len(), (width - done).min(PIECE));
                bytes.resize(start + length, 0u8);
                let from = address + row + done as u64;
                host::read_bytes(from, bytes[start..].as_mut_ptr() as u64, length)
                    .map_err(|_| not_there(from, self.width))?;
            }
        }
        let mut copy = *self;
        copy.from.pitch = self.width;
        copy.from.layer = self.width * self.height;
        Ok(Upload {
            copy,
            bytes: bytes.into(),
        })
    }

    /// Where the rows of one end start.
    fn rows<'a>(&'a self, side: &'a Side) -> impl Iterator<Item = u64> + 'a {
        let layers = 0..self.depth;
        layers.flat_map(move |z| (0..self.height).map(move |y| z * side.layer + y * side.pitch))
    }

    /// Does it.
    pub fn run(&self) -> Result<()> {
        if self.size() == 0 {
            return Ok(());
        }
        for (verb, side) in [("copy to", &self.to), ("copy from", &self.from)] {
            if let Place::Device(address) = side.place {
                check_device(verb, address, self.reach(side)?)?;
            }
        }
        let (to, from) = (self.to.place, self.from.place);
        for (there, here) in self.rows(&self.to).zip(self.rows(&self.from)) {
            move_row(to, there, from, here, self.width)?;
        }
        Ok(())
    }
}

impl Upload {
    /// Does it.
    pub fn run(&self) -> Result<()> {
        let copy = &self.copy;
        if copy.size() == 0 {
            return Ok(());
        }
        if let Place::Device(address) = copy.to.place {
            check_device("copy to", address, copy.reach(&copy.to)?)?;
        }
        let source = Place::Device(self.bytes.as_ptr() as u64);
        for (there, here) in copy.rows(&copy.to).zip(copy.rows(&copy.from)) {
            move_row(copy.to.place, there, source, here, copy.width)?;
        }
        Ok(())
    }
}

/// Moves one row. Device addresses are known to be there.
fn move_row(to: Place, there: u64, from: Place, here: u64, width: u64) -> Result<()> {
    let size = width as usize;
    match (to, from) {
        (Place::Device(to), Place::Device(from)) => {
            // SAFETY: the caller checked both ranges.
            unsafe { std::ptr::copy((from + here) as *const u8, (to + there) as *mut u8, size) };
            Ok(())
        }
        (Place::Host(to), Place::Device(from)) => {
            let to = to + there;
            host::write_bytes(to, from + here, size).map_err(|_| not_there(to, width))
        }
        (Place::Device(to), Place::Host(from)) => {
            let from = from + here;
            host::read_bytes(from, to + there, size).map_err(|_| not_there(from, width))
        }
        (Place::Host(to), Place::Host(from)) => {
            let mut piece = vec![0u8; size.min(PIECE)];
            for done in (0..size).step_by(PIECE) {
                let piece = &mut piece[..(size - done).min(PIECE)];
                let [to, from] = [to + there, from + here].map(|start| start + done as u64);
                let (here, length) = (piece.as_mut_ptr() as u64, piece.len());
                host::read_bytes(from, here, length).map_err(|_| not_there(from, width))?;
                host::write_bytes(to, here, length).map_err(|_| not_there(to, width))?;
            }
            Ok(())
        }
    }
}

/// Reports host memory that cannot be used.
fn not_there(address: u64, size: u64) -> i32 {
    report::say(&format!(
        "a copy of {size} bytes uses host memory at 0x{address:x} that is not there"
    ));
    if memory::is_reserved(address) {
        report::say(&memory::describe(address));
    }
    ILLEGAL_ADDRESS
}

/// Fails, with a report, unless a range of device memory is live.
pub fn check_device(verb: &str, address: u64, size: u64) -> Result<()> {
    if memory::is_live(address, size) {
        return Ok(());
    }
    report::say(&format!("illegal {verb} {size} bytes at 0x{address:x}"));
    report::say(&memory::describe(address));
    Err(ILLEGAL_ADDRESS)
}

/// A fill of rows with elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    /// Device address.
    pub to: u64,
    /// From a row to the next.
    pub pitch: u64,
    /// Bytes of an element: 1, 2 or 4.
    pub element: u32,
    /// The element.
    pub value: u32,
    /// Elements of a row.
    pub width: u64,
    /// Rows.
    pub height: u64,
}

impl Fill {
    fn reach(&self) -> Result<u64> {
        if self.width == 0 || self.height == 0 {
            return Ok(0);
        }
        let row = self.width.checked_mul(u64::from(self.element));
        let rows = (self.height - 1).checked_mul(self.pitch);
        row.zip(rows)
            .and_then(|(a, b)| a.checked_add(b))
            .ok_or(INVALID_VALUE)
    }

    /// Refuses what cannot be right.
    pub fn check(&self) -> Result<()> {
        let reach = self.reach()?;
        let row = self.width * u64::from(self.element);
        let good = matches!(self.element, 1 | 2 | 4)
            && self.to % u64::from(self.element) == 0
            && (self.height <= 1
                || (self.pitch >= row && self.pitch % u64::from(self.element) == 0))
            && memory::is_known(self.to, reach);
        good.then_some(()).ok_or(INVALID_VALUE)
    }

    /// Does it.
    pub fn run(&self) -> Result<()> {
        let reach = self.reach()?;
        check_device("fill of", self.to, reach)?;
        if reach == 0 {
            return Ok(());
        }
        let (width, value) = (self.width as usize, self.value);
        for row in 0..self.height {
            let at = self.to + row * self.pitch;
            // SAFETY: the range was checked just now, and is aligned for the element. There are no references
            // to it, since other work of the program may touch it at the same time.
            unsafe {
                match self.element {
                    1 => std::ptr::write_bytes(at as *mut u8, value as u8, width),
                    2 => (0..width).for_each(|i| (at as *mut u16).add(i).write(value as u16)),
                    _ => (0..width).for_each(|i| (at as *mut u32).add(i).write(value)),
                }
            }
        }
        Ok(())
    }
}

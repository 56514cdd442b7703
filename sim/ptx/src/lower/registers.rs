//! Registers that are never needed at the same time share their storage.
//!
//! Compilers write a new register for nearly every value. A warp keeps all of a kernel's registers,
//! so a function is lowered twice: the first time each register gets storage of its own, and where
//! each one is read and written is noted; the second time they get what this module assigns.
//!
//! Lanes that are apart are at different places of the function. That does no harm: each lane only
//! touches its own column, and registers of different width, whose columns differ, never share.

use crate::exec::code::{Code, Op};
use crate::exec::lanes::Slot;
use std::collections::BTreeMap;

/// What an instruction does with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Read,
    /// Written in all active lanes.
    Written,
    /// Needed from the start of the function to its end.
    Pinned,
}

/// A register that occurs at the instruction of this index.
#[derive(Clone, Copy, Debug)]
pub struct Occurrence {
    pub at: u32,
    pub register: u32,
    pub role: Role,
}

/// Storage for each register, in the order of their allocation.
pub struct Assignment {
    pub slots: Vec<Slot>,
    pub planes: u32,
}

/// Beyond this many bits of liveness, every register keeps its own storage.
const MAX_BITS: usize = 1 << 25;

/// A basic block.
struct Block {
    start: u32,
    end: u32,
    next: Vec<usize>,
}

fn blocks(code: &Code, entry: u32, end: u32) -> Vec<Block> {
    let mut leaders = vec![false; (end - entry) as usize + 1];
    leaders[0] = true;
    let jumps = |at: u32| -> (Vec<u32>, bool) {
        let inst = &code.insts[at as usize];
        let guarded = inst.guard != 0;
        match inst.op {
            Op::Branch(target) => (vec![target], guarded),
            Op::BranchTable { table, .. } => (code.tables[table as usize].clone(), guarded),
            Op::Return | Op::Exit => (Vec::new(), guarded),
            _ => (Vec::new(), true),
        }
    };
    for at in entry..end {
        let (targets, falls) = jumps(at);
        for &target in &targets {
            leaders[(target - entry) as usize] = true;
        }
        if !targets.is_empty() || !falls {
            leaders[(at + 1 - entry) as usize] = true;
        }
    }
    let starts: Vec<u32> = (entry..end)
        .filter(|at| leaders[(at - entry) as usize])
        .collect();
    let index: BTreeMap<u32, usize> = starts.iter().enumerate().map(|(i, &s)| (s, i)).collect();
    let ends = starts.iter().skip(1).copied().chain([end]);
    starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| {
            let (targets, falls) = jumps(end - 1);
            let after = falls.then_some(end);
            let next = targets
                .into_iter()
                .chain(after)
                .filter_map(|t| index.get(&t).copied());
            Block {
                start,
                end,
                next: next.collect(),
            }
        })
        .collect()
}

/// Sets of registers, one a block.
struct Sets {
    words: usize,
    bits: Vec<u64>,
}

impl Sets {
    fn new(count: usize, registers: usize) -> Self {
        let words = registers.div_ceil(64);
        Sets {
            words,
            bits: vec![0; count * words],
        }
    }

    fn get(&self, set: usize) -> &[u64] {
        &self.bits[set * self.words..(set + 1) * self.words]
    }

    fn get_mut(&mut self, set: usize) -> &mut [u64] {
        &mut self.bits[set * self.words..(set + 1) * self.words]
    }

    /// Calls a function for each register of a set.
    fn each(&self, set: usize, mut f: impl FnMut(u32)) {
        for (index, &word) in self.get(set).iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                f(index as u32 * 64 + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
    }

    fn insert(&mut self, set: usize, register: u32) {
        self.get_mut(set)[register as usize / 64] |= 1 << (register % 64);
    }

    fn contains(&self, set: usize, register: u32) -> bool {
        self.get(set)[register as usize / 64] >> (register % 64) & 1 != 0
    }
}

/// Assigns storage to the registers of the function between `entry` and `end`; `widths` are their
/// sizes in planes and their classes.
pub fn assign(
    code: &Code,
    (entry, end): (u32, u32),
    widths: &[u32],
    occurrences: &[Occurrence],
) -> Option<Assignment> {
    let blocks = blocks(code, entry, end);
    if blocks
        .len()
        .checked_mul(widths.len())
        .is_none_or(|bits| bits > MAX_BITS)
    {
        return None;
    }
    let ranges = live_ranges(&blocks, widths.len(), occurrences, (entry, end));
    Some(scan(widths, &ranges))
}

/// First and last instruction at which each register holds something, or is touched.
fn live_ranges(
    blocks: &[Block],
    registers: usize,
    occurrences: &[Occurrence],
    (entry, end): (u32, u32),
) -> Vec<Option<(u32, u32)>> {
    let mut ranges: Vec<Option<(u32, u32)>> = vec![None; registers];
    let mut extend = |register: u32, at: u32| {
        let range = &mut ranges[register as usize];
        *range = Some(range.map_or((at, at), |(a, b)| (a.min(at), b.max(at))));
    };
    let (mut used, mut killed) = (
        Sets::new(blocks.len(), registers),
        Sets::new(blocks.len(), registers),
    );
    let mut sorted = occurrences.to_vec();
    // At the same instruction, reading comes first.
    sorted.sort_by_key(|o| (o.at, o.role != Role::Read));
    let mut block = 0;
    for o in &sorted {
        if o.role == Role::Pinned {
            extend(o.register, entry);
            extend(o.register, end);
            continue;
        }
        while block + 1 < blocks.len() && o.at >= blocks[block].end {
            block += 1;
        }
        extend(o.register, o.at);
        match o.role {
            Role::Read if !killed.contains(block, o.register) => used.insert(block, o.register),
            Role::Written => killed.insert(block, o.register),
            _ => {}
        }
    }
    let live = propagate(blocks, &used, &killed);
    for (index, block) in blocks.iter().enumerate() {
        live.each(index, |register| extend(register, block.start));
        for &next in &block.next {
            live.each(next, |register| extend(register, block.end - 1));
        }
    }
    ranges
}

/// Registers that are live at the start of each block.
fn propagate(blocks: &[Block], used: &Sets, killed: &Sets) -> Sets {
    let mut live = Sets {
        words: used.words,
        bits: used.bits.clone(),
    };
    let mut changed = true;
    while changed {
        changed = false;
        for (index, block) in blocks.iter().enumerate().rev() {
            for &next in &block.next {
                for word in 0..used.words {
                    let through = live.get(next)[word] & !killed.get(index)[word];
                    let old = live.get(index)[word];
                    if old | through != old {
                        live.get_mut(index)[word] = old | through;
                        changed = true;
                    }
                }
            }
        }
    }
    live
}

/// Linear scan: a register takes storage of its width that is free when its range begins.
fn scan(widths: &[u32], ranges: &[Option<(u32, u32)>]) -> Assignment {
    let mut order: Vec<usize> = (0..widths.len()).filter(|&r| ranges[r].is_some()).collect();
    order.sort_by_key(|&r| ranges[r]);
    let mut slots = vec![0; widths.len()];
    let mut planes = 0;
    // For each width: storage in use by the end of its range, and free storage.
    let mut busy: BTreeMap<u32, BTreeMap<(u32, Slot), ()>> = BTreeMap::new();
    let mut free: BTreeMap<u32, Vec<Slot>> = BTreeMap::new();
    for register in order {
        let Some((start, end)) = ranges[register] else {
            continue;
        };
        let width = widths[register];
        let busy = busy.entry(width).or_default();
        let free = free.entry(width).or_default();
        while let Some((&(last, slot), ())) = busy.first_key_value() {
            if last >= start {
                break;
            }
            busy.remove(&(last, slot));
            free.push(slot);
        }
        let slot = free.pop().unwrap_or_else(|| {
            let slot = planes;
            planes += width.div_ceil(32);
            slot
        });
        busy.insert((end, slot), ());
        slots[register] = slot;
    }
    // Registers that never occur have no use for storage, but must lie inside the frame.
    let widest = widths.iter().map(|w| w.div_ceil(32)).max().unwrap_or(0);
    Assignment {
        slots,
        planes: planes.max(widest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_do_not_meet_share() {
        let ranges = [Some((0, 4)), Some((2, 6)), Some((5, 9)), Some((5, 9)), None];
        let assignment = scan(&[32, 32, 32, 64, 32], &ranges);
        assert_eq!(assignment.slots[0], assignment.slots[2]);
        assert_ne!(assignment.slots[0], assignment.slots[1]);
        assert_eq!(assignment.planes, 4);
    }

    #[test]
    fn touching_ranges_do_not_share() {
        let assignment = scan(&[32, 32], &[Some((0, 4)), Some((4, 6))]);
        assert_ne!(assignment.slots[0], assignment.slots[1]);
    }
}

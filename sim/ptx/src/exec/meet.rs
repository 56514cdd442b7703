//! Where lanes of a warp wait for each other.
//!
//! A collective operation names the lanes that take part. Those that come early wait until the
//! others have come to an operation with the same member mask, or have ended.

use super::code::{Pc, SyncOp};
use super::context::Trouble;
use super::lanes::Frame;
use super::memory::lanes_of;
use super::sync;
use super::warp::Warp;
use crate::FaultKind;

impl Warp {
    /// Threads end.
    pub fn exit(&mut self, mask: u32) {
        self.live &= !mask;
        if self.at_sync == 0 {
            return;
        }
        // Those who waited for them may go on.
        for lane in lanes_of(self.at_sync) {
            let waiting = self.waiting_with(self.members[lane]);
            if self.members[lane] & self.live & !waiting == 0 {
                self.met |= waiting;
                self.at_sync &= !waiting;
            }
        }
    }

    /// Lanes that wait with this member mask.
    fn waiting_with(&self, members: u32) -> u32 {
        lanes_of(self.at_sync).fold(0, |set, lane| {
            set | u32::from(self.members[lane] == members) << lane
        })
    }

    /// Lanes come to a collective operation. Those whose partners are all there do it; the others
    /// wait. The result is the set of those who did it.
    pub fn meet(&mut self, op: &SyncOp, frame: &Frame, mask: u32, pc: Pc) -> Result<u32, Trouble> {
        // SAFETY: lowering has checked the member mask.
        let members = unsafe { frame.source::<u32>(op.members) };
        let first = members[mask.trailing_zeros() as usize];
        if first & self.live == mask && lanes_of(mask).all(|lane| members[lane] == first) {
            // All are there and agree, which is nearly always so.
            self.met &= !mask;
            sync::together(op, frame, mask);
            return Ok(mask);
        }
        let members = *members;
        let (mut rest, mut went) = (mask, 0);
        while rest != 0 {
            let wanted = members[rest.trailing_zeros() as usize];
            let same = lanes_of(rest).fold(0, |set, lane| {
                set | u32::from(members[lane] == wanted) << lane
            });
            rest &= !same;
            if same & !wanted != 0 {
                let lane = (same & !wanted).trailing_zeros();
                return Err(Trouble::new(FaultKind::IllegalInstruction, lane));
            }
            let waiting = self.waiting_with(wanted);
            let met = self.met & same;
            if met != same && wanted & self.live & !(same | waiting) != 0 {
                // Someone is missing.
                self.at_sync |= same;
                for lane in lanes_of(same) {
                    self.members[lane] = wanted;
                    self.pc[lane] = pc;
                }
                continue;
            }
            self.met &= !same;
            let here = if met == same {
                0
            } else {
                self.lanes_at(waiting, pc)
            };
            if met != same {
                self.at_sync &= !waiting;
                self.met |= waiting & !here;
            }
            sync::together(op, frame, same | here);
            self.put(here, pc + 1);
            went |= same | here;
        }
        Ok(went)
    }
}

//! What threads do together: barriers, shuffles, votes.

use super::function::FunctionLowering;
use super::instruction::Statement;
use super::Result;
use crate::exec::code::{BarrierKind, BarrierOp, Op, SyncKind, SyncOp};
use crate::parse::ast::{Number, Operand};
use crate::types::{Kind, Type};

impl<'a> FunctionLowering<'_, 'a> {
    /// `bar` and `barrier`
    pub fn barrier(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        if s.mods.take("warp") {
            if !s.mods.take("sync") {
                return s.mods.fail("`.sync` is missing");
            }
            s.expect_operands(1)?;
            let members = self.source(&s.operands[0], Type::B32)?;
            self.emit_sync(SyncOp {
                members,
                ..blank(SyncKind::Barrier)
            });
            return Ok(());
        }
        if s.mods.take("cluster") {
            return self.cluster_barrier(s);
        }
        s.mods.take("cta");
        s.mods.take("aligned");
        let kind = match s.mods.one_of(&["sync", "arrive", "red"]) {
            Some("sync") => BarrierKind::Sync,
            Some("arrive") => BarrierKind::Arrive,
            Some(_) => match s.mods.one_of(&["popc", "and", "or"]) {
                Some("popc") => BarrierKind::Popc,
                Some("and") => BarrierKind::And,
                Some(_) => BarrierKind::Or,
                None => return s.mods.fail("the reduction is missing"),
            },
            None => return s.mods.fail("the operation is missing"),
        };
        let mut operands = s.operands;
        let mut op = BarrierOp {
            kind,
            id: 0,
            count: None,
            pred: 0,
            d: 0,
        };
        if !matches!(kind, BarrierKind::Sync | BarrierKind::Arrive) {
            let ty = s.mods.ty()?;
            let [target, middle @ .., pred] = operands else {
                return s.mods.fail("operands are missing");
            };
            op.d = match (kind, ty) {
                (BarrierKind::Popc, Type::U32) => self.target(target, ty)?,
                (BarrierKind::And | BarrierKind::Or, Type::PRED) => self.pred_target(target)?,
                _ => return s.mods.bad_type(ty),
            };
            op.pred = self.pred(pred)?;
            operands = middle;
        }
        match operands {
            [id] if kind != BarrierKind::Arrive => op.id = self.source(id, Type::U32)?,
            [id, count] => {
                op.id = self.source(id, Type::U32)?;
                op.count = Some(self.source(count, Type::U32)?);
            }
            _ => {
                return s
                    .mods
                    .fail("expected the barrier and the number of threads")
            }
        }
        self.emit_barrier(op);
        Ok(())
    }

    pub fn emit_barrier(&mut self, op: BarrierOp) {
        self.module.code.barriers.push(op);
        let index = self.module.code.barriers.len() as u32 - 1;
        self.emit(Op::Barrier(index));
    }

    fn emit_sync(&mut self, op: SyncOp) {
        self.module.code.syncs.push(op);
        let index = self.module.code.syncs.len() as u32 - 1;
        self.emit(Op::Sync(index));
    }

    /// `shfl`, `vote`, `match`, `redux`, `activemask`, `elect`
    pub fn collective(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        if s.opcode == "activemask" {
            let ty = s.mods.ty()?;
            if ty != Type::B32 {
                return s.mods.bad_type(ty);
            }
            s.expect_operands(1)?;
            let d = self.target(&s.operands[0], ty)?;
            self.emit(Op::ActiveMask { d });
            return Ok(());
        }
        if !s.mods.take("sync") {
            return s.mods.fail("`.sync` is missing");
        }
        match s.opcode {
            "shfl" => self.shuffle(s),
            "vote" => self.vote(s),
            "match" => self.matching(s),
            "redux" => self.reduce(s),
            _ => self.elect(s),
        }
    }

    /// `d|p` or `d`
    fn value_and_pred(&mut self, operand: &Operand<'a>, ty: Type) -> Result<(u32, u32)> {
        match operand {
            Operand::Pair(d, p) => {
                let p = match **p {
                    Operand::Sink => 0,
                    _ => self.pred_target(p)?,
                };
                Ok((self.target(d, ty)?, p))
            }
            _ => Ok((self.target(operand, ty)?, 0)),
        }
    }

    fn shuffle(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let kind = match s.mods.one_of(&["up", "down", "bfly", "idx"]) {
            Some("up") => SyncKind::ShuffleUp,
            Some("down") => SyncKind::ShuffleDown,
            Some("bfly") => SyncKind::ShuffleButterfly,
            Some(_) => SyncKind::ShuffleIndex,
            None => return s.mods.fail("the mode is missing"),
        };
        let ty = s.mods.ty()?;
        if ty.bits != 32 {
            return s.mods.bad_type(ty);
        }
        s.expect_operands(5)?;
        let (d, p) = self.value_and_pred(&s.operands[0], ty)?;
        let op = SyncOp {
            d,
            p,
            a: self.source(&s.operands[1], ty)?,
            b: self.source(&s.operands[2], Type::B32)?,
            c: self.source(&s.operands[3], Type::B32)?,
            members: self.source(&s.operands[4], Type::B32)?,
            ..blank(kind)
        };
        self.emit_sync(op);
        Ok(())
    }

    fn vote(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let Some(mode) = s.mods.one_of(&["all", "any", "uni", "ballot"]) else {
            return s.mods.fail("the mode is missing");
        };
        let ty = s.mods.ty()?;
        s.expect_operands(3)?;
        let (kind, d, p) = match (mode, ty) {
            ("ballot", Type::B32) => (SyncKind::VoteBallot, self.target(&s.operands[0], ty)?, 0),
            ("ballot", _) => return s.mods.bad_type(ty),
            (_, Type::PRED) => {
                let p = self.pred_target(&s.operands[0])?;
                let kind = match mode {
                    "all" => SyncKind::VoteAll,
                    "any" => SyncKind::VoteAny,
                    _ => SyncKind::VoteUniform,
                };
                (kind, 0, p)
            }
            _ => return s.mods.bad_type(ty),
        };
        let a = match &s.operands[1] {
            Operand::Number(Number::Int(value)) => self.always() ^ u32::from(*value == 0),
            operand => self.pred(operand)?,
        };
        let members = self.source(&s.operands[2], Type::B32)?;
        self.emit_sync(SyncOp {
            d,
            p,
            a,
            members,
            ..blank(kind)
        });
        Ok(())
    }

    fn matching(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let kind = match s.mods.one_of(&["any", "all"]) {
            Some("any") => SyncKind::MatchAny,
            Some(_) => SyncKind::MatchAll,
            None => return s.mods.fail("the mode is missing"),
        };
        let ty = s.mods.ty()?;
        if !matches!(ty, Type::B32 | Type::B64) {
            return s.mods.bad_type(ty);
        }
        s.expect_operands(3)?;
        let (d, p) = self.value_and_pred(&s.operands[0], Type::B32)?;
        if p != 0 && kind == SyncKind::MatchAny {
            return s.mods.fail("a predicate belongs to `.all`");
        }
        let a = self.source(&s.operands[1], ty)?;
        let members = self.source(&s.operands[2], Type::B32)?;
        self.emit_sync(SyncOp {
            d,
            p,
            a,
            members,
            wide: ty == Type::B64,
            ..blank(kind)
        });
        Ok(())
    }

    fn reduce(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let Some(operation) = s.mods.one_of(&["add", "min", "max", "and", "or", "xor"]) else {
            return s.mods.fail("the operation is missing");
        };
        let ty = s.mods.ty()?;
        if ty.bits != 32 || ty.packed != 1 {
            return s.mods.bad_type(ty);
        }
        let kind = match (operation, ty.kind) {
            ("add", Kind::Unsigned | Kind::Signed) => SyncKind::ReduceAdd,
            ("min", Kind::Unsigned) => SyncKind::ReduceMin,
            ("max", Kind::Unsigned) => SyncKind::ReduceMax,
            ("min", Kind::Signed) => SyncKind::ReduceSignedMin,
            ("max", Kind::Signed) => SyncKind::ReduceSignedMax,
            ("and", Kind::Bits) => SyncKind::ReduceAnd,
            ("or", Kind::Bits) => SyncKind::ReduceOr,
            ("xor", Kind::Bits) => SyncKind::ReduceXor,
            _ => return s.mods.bad_type(ty),
        };
        s.expect_operands(3)?;
        let op = SyncOp {
            d: self.target(&s.operands[0], ty)?,
            a: self.source(&s.operands[1], ty)?,
            members: self.source(&s.operands[2], Type::B32)?,
            ..blank(kind)
        };
        self.emit_sync(op);
        Ok(())
    }

    fn elect(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        s.expect_operands(2)?;
        let (d, p) = self.value_and_pred(&s.operands[0], Type::B32)?;
        let members = self.source(&s.operands[1], Type::B32)?;
        self.emit_sync(SyncOp {
            d,
            p,
            members,
            ..blank(SyncKind::Elect)
        });
        Ok(())
    }

    /// `pmevent`: no profiler watches.
    pub fn profiler_event(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        s.mods.take("mask");
        s.expect_operands(1)?;
        match s.operands[0] {
            Operand::Number(Number::Int(_)) => Ok(()),
            _ => s.mods.fail("the event must be a constant"),
        }
    }

    /// `nanosleep`
    pub fn nanosleep(&mut self, s: &mut Statement<'_, 'a>) -> Result<()> {
        let ty = s.mods.ty()?;
        if ty != Type::U32 {
            return s.mods.bad_type(ty);
        }
        s.expect_operands(1)?;
        self.source(&s.operands[0], ty)?;
        self.emit(Op::Relax);
        Ok(())
    }
}

fn blank(kind: SyncKind) -> SyncOp {
    SyncOp {
        kind,
        members: 0,
        d: 0,
        p: 0,
        a: 0,
        b: 0,
        c: 0,
        wide: false,
    }
}

//! Constant expressions and initialisers.

use super::ast::{Init, Number};
use super::lexer::Tok;
use super::module::Parser;
use crate::CompileError;

/// How deep parentheses and braces may nest.
const MAX_DEPTH: u32 = 64;

fn precedence(tok: Tok) -> Option<u32> {
    Some(match tok {
        Tok::Punct2("||") => 1,
        Tok::Punct2("&&") => 2,
        Tok::Punct('|') => 3,
        Tok::Punct('^') => 4,
        Tok::Punct('&') => 5,
        Tok::Punct2("==" | "!=") => 6,
        Tok::Punct('<' | '>') | Tok::Punct2("<=" | ">=") => 7,
        Tok::Punct2("<<" | ">>") => 8,
        Tok::Punct('+' | '-') => 9,
        Tok::Punct('*' | '/' | '%') => 10,
        _ => return None,
    })
}

impl<'a> Parser<'a, '_> {
    /// A constant: an expression of integers, or one floating point literal with its sign.
    pub(super) fn number(&mut self) -> Result<Number, CompileError> {
        match (self.peek(), self.peek_at(1)) {
            (Tok::F32(bits), _) => {
                self.advance();
                Ok(Number::F32(bits))
            }
            (Tok::F64(bits), _) => {
                self.advance();
                Ok(Number::F64(bits))
            }
            (Tok::Punct('-'), Tok::F32(bits)) => {
                self.advance();
                self.advance();
                Ok(Number::F32(bits ^ 1 << 31))
            }
            (Tok::Punct('-'), Tok::F64(bits)) => {
                self.advance();
                self.advance();
                Ok(Number::F64(bits ^ 1 << 63))
            }
            _ => Ok(Number::Int(self.integer(1, 0)? as u64)),
        }
    }

    /// An expression of integers.
    pub(super) fn constant(&mut self) -> Result<i64, CompileError> {
        self.integer(1, 0)
    }

    fn integer(&mut self, lowest: u32, depth: u32) -> Result<i64, CompileError> {
        let mut left = self.primary(depth)?;
        while let Some(level) = precedence(self.peek()).filter(|&level| level >= lowest) {
            let operator = self.advance();
            let right = self.integer(level + 1, depth + 1)?;
            left = self.apply(operator, left, right)?;
        }
        Ok(left)
    }

    fn primary(&mut self, depth: u32) -> Result<i64, CompileError> {
        if depth > MAX_DEPTH {
            return self.fail("the expression is nested too deeply");
        }
        match self.advance() {
            Tok::Int(value) => Ok(value as i64),
            Tok::Ident("WARP_SZ") => Ok(32),
            Tok::Punct('-') => Ok(self.primary(depth + 1)?.wrapping_neg()),
            Tok::Punct('+') => self.primary(depth + 1),
            Tok::Punct('~') => Ok(!self.primary(depth + 1)?),
            Tok::Punct('!') => Ok(i64::from(self.primary(depth + 1)? == 0)),
            Tok::Punct('(') => {
                let value = self.integer(1, depth + 1)?;
                self.expect(')')?;
                Ok(value)
            }
            _ => self.fail_before("expected a constant"),
        }
    }

    fn apply(&self, operator: Tok, a: i64, b: i64) -> Result<i64, CompileError> {
        Ok(match operator {
            Tok::Punct2("||") => i64::from(a != 0 || b != 0),
            Tok::Punct2("&&") => i64::from(a != 0 && b != 0),
            Tok::Punct('|') => a | b,
            Tok::Punct('^') => a ^ b,
            Tok::Punct('&') => a & b,
            Tok::Punct2("==") => i64::from(a == b),
            Tok::Punct2("!=") => i64::from(a != b),
            Tok::Punct('<') => i64::from(a < b),
            Tok::Punct('>') => i64::from(a > b),
            Tok::Punct2("<=") => i64::from(a <= b),
            Tok::Punct2(">=") => i64::from(a >= b),
            Tok::Punct2("<<") => a.checked_shl(b as u32).unwrap_or(0),
            Tok::Punct2(">>") => a.checked_shr(b as u32).unwrap_or(0),
            Tok::Punct('+') => a.wrapping_add(b),
            Tok::Punct('-') => a.wrapping_sub(b),
            Tok::Punct('*') => a.wrapping_mul(b),
            Tok::Punct('/') if b != 0 => a.wrapping_div(b),
            Tok::Punct('%') if b != 0 => a.wrapping_rem(b),
            _ => return self.fail("division by zero in a constant"),
        })
    }

    /// What follows `=` in a variable declaration.
    pub(super) fn initialiser(&mut self, depth: u32) -> Result<Init<'a>, CompileError> {
        if depth > MAX_DEPTH {
            return self.fail("the initialiser is nested too deeply");
        }
        match self.peek() {
            Tok::Punct('{') => {
                self.advance();
                let mut list = Vec::new();
                while self.peek() != Tok::Punct('}') {
                    list.push(self.initialiser(depth + 1)?);
                    if !self.accept(',') {
                        break;
                    }
                }
                self.expect('}')?;
                Ok(Init::List(list))
            }
            Tok::Ident("generic") if self.peek_at(1) == Tok::Punct('(') => {
                self.advance();
                self.advance();
                let inner = self.initialiser(depth + 1)?;
                self.expect(')')?;
                match inner {
                    Init::Address(name, offset) => Ok(Init::Address(name, self.offset(offset)?)),
                    _ => self.fail("`generic` needs the name of a variable"),
                }
            }
            Tok::Ident(name) if name != "WARP_SZ" => {
                self.advance();
                Ok(Init::Address(name, self.offset(0)?))
            }
            _ => Ok(Init::Number(self.number()?)),
        }
    }

    /// An optional `+ constant` or `- constant` after a name.
    pub(super) fn offset(&mut self, start: i64) -> Result<i64, CompileError> {
        match self.peek() {
            Tok::Punct('+') => {
                self.advance();
                Ok(start.wrapping_add(self.integer(10, 0)?))
            }
            Tok::Punct('-') => {
                self.advance();
                Ok(start.wrapping_sub(self.integer(10, 0)?))
            }
            _ => Ok(start),
        }
    }
}

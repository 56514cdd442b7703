//! Statements of a function body.

use super::ast::{Guard, Instruction, Operand, Prototype, RegDecl, Statement};
use super::lexer::Tok;
use super::module::Parser;
use crate::CompileError;

/// How deep blocks and operands may nest.
const MAX_DEPTH: u32 = 64;

impl<'a> Parser<'a, '_> {
    /// The statements between the braces of a function.
    pub(super) fn body(&mut self) -> Result<Vec<Statement<'a>>, CompileError> {
        self.expect('{')?;
        let mut statements = Vec::new();
        let mut depth = 0;
        loop {
            match self.peek() {
                Tok::Punct('{') => {
                    self.advance();
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return self.fail("blocks are nested too deeply");
                    }
                    statements.push(Statement::Open);
                }
                Tok::Punct('}') => {
                    self.advance();
                    if depth == 0 {
                        return Ok(statements);
                    }
                    depth -= 1;
                    statements.push(Statement::Close);
                }
                Tok::Punct(';') => {
                    self.advance();
                }
                Tok::Dot(word) => self.local_directive(word, &mut statements)?,
                Tok::Ident(name) if self.peek_at(1) == Tok::Punct(':') => {
                    let line = self.line();
                    self.advance();
                    self.advance();
                    self.labelled(name, line, &mut statements)?;
                }
                Tok::Ident(_) | Tok::Punct('@') => {
                    statements.push(Statement::Instruction(self.instruction()?));
                }
                _ => return self.fail_here("expected an instruction"),
            }
        }
    }

    fn local_directive(
        &mut self,
        word: &str,
        statements: &mut Vec<Statement<'a>>,
    ) -> Result<(), CompileError> {
        match word {
            "reg" => self.registers(statements)?,
            "loc" | "file" => self.debug_line()?,
            "pragma" => self.pragma()?,
            _ => {
                let variables = self.variables(false)?;
                statements.extend(variables.into_iter().map(Statement::Variable));
            }
        }
        Ok(())
    }

    /// What stands after a label belongs to it if it is a list of targets or a prototype.
    fn labelled(
        &mut self,
        name: &'a str,
        line: u32,
        statements: &mut Vec<Statement<'a>>,
    ) -> Result<(), CompileError> {
        let statement = match self.peek() {
            Tok::Dot("branchtargets") => Statement::BranchTargets(name, self.names()?, line),
            Tok::Dot("calltargets") => Statement::CallTargets(name, self.names()?, line),
            Tok::Dot("callprototype") => {
                self.advance();
                let returns = if self.peek() == Tok::Punct('(') {
                    self.formals()?
                } else {
                    Vec::new()
                };
                self.name()?;
                let params = if self.peek() == Tok::Punct('(') {
                    self.formals()?
                } else {
                    Vec::new()
                };
                while let Tok::Dot("noreturn" | "abi_preserve" | "abi_preserve_control") =
                    self.peek()
                {
                    self.advance();
                    if let Tok::Int(_) = self.peek() {
                        self.advance();
                    }
                }
                self.expect(';')?;
                Statement::Prototype(name, Prototype { returns, params })
            }
            _ => Statement::Label(name, line),
        };
        statements.push(statement);
        Ok(())
    }

    fn names(&mut self) -> Result<Vec<&'a str>, CompileError> {
        self.advance();
        let mut names = vec![self.name()?];
        while self.accept(',') {
            names.push(self.name()?);
        }
        self.expect(';')?;
        Ok(names)
    }

    fn registers(&mut self, statements: &mut Vec<Statement<'a>>) -> Result<(), CompileError> {
        self.advance();
        let ty = self.ty()?;
        loop {
            let line = self.line();
            let name = self.name()?;
            let mut count = None;
            if self.accept('<') {
                match self.advance() {
                    Tok::Int(n) => count = Some(n),
                    _ => return self.fail_before("expected a number of registers"),
                }
                self.expect('>')?;
            }
            statements.push(Statement::Reg(RegDecl {
                line,
                ty,
                name,
                count,
            }));
            if !self.accept(',') {
                break;
            }
        }
        self.expect(';')
    }

    fn instruction(&mut self) -> Result<Instruction<'a>, CompileError> {
        let start = self.token().start;
        let mut guard = None;
        if self.accept('@') {
            let negated = self.accept('!');
            guard = Some(Guard {
                name: self.name()?,
                negated,
            });
        }
        let line = self.line();
        let opcode = self.name()?;
        let mut modifiers = Vec::new();
        while let Tok::Dot(word) = self.peek() {
            self.advance();
            modifiers.push(word);
        }
        if let Some(reason) = crate::lower::refusal(opcode) {
            let mut full = String::from(opcode);
            for word in &modifiers {
                full.push('.');
                full.push_str(word);
            }
            return Err(CompileError::new(line, format!("{reason} `{full}`")));
        }
        let mut operands = Vec::new();
        if self.peek() != Tok::Punct(';') {
            loop {
                operands.push(self.operand(opcode == "call", 0)?);
                if !self.accept(',') {
                    break;
                }
            }
        }
        if self.peek() != Tok::Punct(';') {
            return self.fail_here("expected `,` or `;`");
        }
        self.advance();
        let text = &self.source[start..self.previous_end()];
        Ok(Instruction {
            line,
            text,
            guard,
            opcode,
            modifiers,
            operands,
        })
    }

    /// `arguments`: a parenthesis opens a list of arguments, not an expression of constants.
    fn operand(&mut self, arguments: bool, depth: u32) -> Result<Operand<'a>, CompileError> {
        if depth > 4 {
            return self.fail("operands are nested too deeply");
        }
        match self.peek() {
            Tok::Ident("WARP_SZ") => Ok(Operand::Number(self.number()?)),
            Tok::Ident(_) => self.named_operand(depth),
            Tok::Punct('!') => {
                self.advance();
                Ok(Operand::Not(self.name()?))
            }
            Tok::Punct('{') => Ok(Operand::Vector(self.operand_list('}', depth)?)),
            Tok::Punct('(') if arguments => Ok(Operand::List(self.operand_list(')', depth)?)),
            Tok::Punct('[') => {
                self.advance();
                let address = match self.peek() {
                    Tok::Ident(name) if name != "WARP_SZ" => {
                        self.advance();
                        Operand::Address(Some(name), self.offset(0)?)
                    }
                    _ => Operand::Address(None, self.constant()?),
                };
                self.expect(']')?;
                Ok(address)
            }
            _ => Ok(Operand::Number(self.number()?)),
        }
    }

    fn operand_list(&mut self, close: char, depth: u32) -> Result<Vec<Operand<'a>>, CompileError> {
        self.advance();
        let mut list = Vec::new();
        if self.accept(close) {
            return Ok(list);
        }
        loop {
            list.push(self.operand(false, depth + 1)?);
            if !self.accept(',') {
                break;
            }
        }
        self.expect(close)?;
        Ok(list)
    }

    fn named_operand(&mut self, depth: u32) -> Result<Operand<'a>, CompileError> {
        let name = self.name()?;
        let first = match self.peek() {
            Tok::Dot(member) => {
                self.advance();
                Operand::Member(name, member)
            }
            Tok::Punct('+' | '-') => Operand::Offset(name, self.offset(0)?),
            _ if name == "_" => Operand::Sink,
            _ => Operand::Name(name),
        };
        if self.accept('|') {
            let second = self.operand(false, depth + 1)?;
            return Ok(Operand::Pair(Box::new(first), Box::new(second)));
        }
        Ok(first)
    }
}

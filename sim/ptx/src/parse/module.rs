//! Directives at module scope, variables and function headers.

use super::ast::{Formal, Function, Module, Storage, Variable};
use super::lexer::{Tok, Token};
use crate::types::{Kind, Type};
use crate::CompileError;

/// A parser over the tokens of one module.
pub(super) struct Parser<'a, 't> {
    pub(super) source: &'a str,
    tokens: &'t [Token<'a>],
    at: usize,
}

impl<'a, 't> Parser<'a, 't> {
    pub(super) fn new(source: &'a str, tokens: &'t [Token<'a>]) -> Self {
        Parser {
            source,
            tokens,
            at: 0,
        }
    }

    pub(super) fn token(&self) -> &Token<'a> {
        &self.tokens[self.at]
    }

    pub(super) fn peek(&self) -> Tok<'a> {
        self.token().tok
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Tok<'a> {
        self.tokens.get(self.at + ahead).map_or(Tok::End, |t| t.tok)
    }

    /// Where the token before this one ended.
    pub(super) fn previous_end(&self) -> usize {
        self.tokens[self.at.saturating_sub(1)].end
    }

    pub(super) fn line(&self) -> u32 {
        self.token().line
    }

    /// Takes a token; the end of the text is never passed.
    pub(super) fn advance(&mut self) -> Tok<'a> {
        let tok = self.peek();
        if tok != Tok::End {
            self.at += 1;
        }
        tok
    }

    pub(super) fn accept(&mut self, c: char) -> bool {
        let found = self.peek() == Tok::Punct(c);
        self.at += usize::from(found);
        found
    }

    pub(super) fn fail<T>(&self, message: impl Into<String>) -> Result<T, CompileError> {
        Err(CompileError::new(self.line(), message))
    }

    /// Fails and says what was found instead.
    pub(super) fn fail_here<T>(&self, expected: &str) -> Result<T, CompileError> {
        self.fail_at(self.token(), expected)
    }

    /// The same for the token that was taken last.
    pub(super) fn fail_before<T>(&self, expected: &str) -> Result<T, CompileError> {
        let ended = self.peek() == Tok::End && self.tokens.len() - 1 == self.at;
        let index = if ended {
            self.at
        } else {
            self.at.saturating_sub(1)
        };
        self.fail_at(&self.tokens[index], expected)
    }

    fn fail_at<T>(&self, token: &Token<'a>, expected: &str) -> Result<T, CompileError> {
        let found = match token.tok {
            Tok::End => String::from("the end of the text"),
            _ => format!("`{}`", &self.source[token.start..token.end]),
        };
        Err(CompileError::new(
            token.line,
            format!("{expected}, found {found}"),
        ))
    }

    pub(super) fn expect(&mut self, c: char) -> Result<(), CompileError> {
        if self.accept(c) {
            return Ok(());
        }
        self.fail_here(&format!("expected `{c}`"))
    }

    pub(super) fn name(&mut self) -> Result<&'a str, CompileError> {
        match self.peek() {
            Tok::Ident(name) => {
                self.advance();
                Ok(name)
            }
            _ => self.fail_here("expected a name"),
        }
    }

    /// The type of a register, a variable or a parameter.
    pub(super) fn ty(&mut self) -> Result<Type, CompileError> {
        match self.peek() {
            Tok::Dot(word) => match Type::parse(word) {
                Some(ty) if ty.of_instructions_only() => {
                    self.fail(format!("`.{word}` may only be the type of an instruction"))
                }
                Some(ty) => {
                    self.advance();
                    Ok(ty)
                }
                None => self.fail(format!("unknown type `.{word}`")),
            },
            _ => self.fail_here("expected a type"),
        }
    }

    pub(super) fn accept_dot(&mut self, word: &str) -> bool {
        let found = self.peek() == Tok::Dot(word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn module(mut self) -> Result<Module<'a>, CompileError> {
        let mut module = Module::default();
        while self.peek() != Tok::End {
            self.directive(&mut module)?;
        }
        if module.version == 0 {
            return self.fail("missing `.version`");
        }
        if module.target == 0 {
            return self.fail("missing `.target`");
        }
        Ok(module)
    }

    fn directive(&mut self, module: &mut Module<'a>) -> Result<(), CompileError> {
        let Tok::Dot(word) = self.peek() else {
            return self.fail_here("expected a directive");
        };
        if module.version == 0 && word != "version" {
            return self.fail("the first directive must be `.version`");
        }
        match word {
            "version" => module.version = self.version()?,
            "target" => module.target = self.target()?,
            "address_size" => {
                self.advance();
                if self.advance() != Tok::Int(64) {
                    return self.fail_before("only `.address_size 64` is supported");
                }
            }
            "file" | "loc" => self.debug_line()?,
            "section" => self.section()?,
            "pragma" => self.pragma()?,
            "alias" => {
                self.advance();
                let line = self.line();
                let alias = self.name()?;
                self.expect(',')?;
                module.aliases.push((alias, self.name()?, line));
                self.expect(';')?;
            }
            _ => self.declaration(module)?,
        }
        Ok(())
    }

    fn version(&mut self) -> Result<u32, CompileError> {
        self.advance();
        // `9.0` reads as a floating point number.
        let (start, end) = (self.token().start, self.token().end);
        let text = &self.source[start..end];
        self.advance();
        let parts = text.split_once('.').and_then(|(major, minor)| {
            Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
        });
        match parts {
            Some((major, minor)) if (1..=9).contains(&major) && minor <= 9 => {
                Ok(major * 10 + minor)
            }
            _ => self.fail_before("unsupported PTX version"),
        }
    }

    fn target(&mut self) -> Result<u32, CompileError> {
        self.advance();
        let mut target = 0;
        loop {
            let name = self.name()?;
            if let Some(number) = name.strip_prefix("sm_") {
                let digits = number.trim_end_matches(['a', 'f']);
                match digits.parse::<u32>() {
                    Ok(sm) if (20..=999).contains(&sm) => target = sm,
                    _ => return self.fail_before("unknown target"),
                }
            } else if !matches!(name, "debug" | "texmode_unified" | "texmode_independent") {
                return self.fail_before("unknown target");
            }
            if !self.accept(',') {
                break;
            }
        }
        if target == 0 {
            return self.fail_before("`.target` names no architecture");
        }
        Ok(target)
    }

    /// `.file` and `.loc` end with their line.
    pub(super) fn debug_line(&mut self) -> Result<(), CompileError> {
        let line = self.line();
        while self.peek() != Tok::End && self.line() == line {
            self.advance();
        }
        Ok(())
    }

    pub(super) fn pragma(&mut self) -> Result<(), CompileError> {
        self.advance();
        loop {
            match self.advance() {
                Tok::Str(_) => {}
                _ => return self.fail_before("expected a string"),
            }
            if !self.accept(',') {
                return self.expect(';');
            }
        }
    }

    /// Debug sections hold nothing that runs.
    fn section(&mut self) -> Result<(), CompileError> {
        self.advance();
        match self.advance() {
            Tok::Dot(_) | Tok::Ident(_) => {}
            _ => return self.fail_before("expected the name of a section"),
        }
        self.expect('{')?;
        while !self.accept('}') {
            if self.peek() == Tok::End {
                return self.fail_here("expected `}`");
            }
            self.advance();
        }
        Ok(())
    }

    fn declaration(&mut self, module: &mut Module<'a>) -> Result<(), CompileError> {
        let mut external = false;
        loop {
            let Tok::Dot(word) = self.peek() else {
                return self.fail_here("expected a directive");
            };
            match word {
                "extern" => external = true,
                "visible" | "weak" | "common" => {}
                "entry" | "func" => {
                    let function = self.function()?;
                    module.functions.push(function);
                    return Ok(());
                }
                _ => {
                    let variables = self.variables(external)?;
                    module.variables.extend(variables);
                    return Ok(());
                }
            }
            self.advance();
        }
    }

    /// `.global .align 4 .u32 a = 1, b;`
    pub(super) fn variables(&mut self, external: bool) -> Result<Vec<Variable<'a>>, CompileError> {
        let storage = match self.peek() {
            Tok::Dot("global") => Storage::Global,
            Tok::Dot("const") => Storage::Const,
            Tok::Dot("shared") => Storage::Shared,
            Tok::Dot("local") => Storage::Local,
            Tok::Dot("param") => Storage::Param,
            Tok::Dot(word) => return self.fail(format!("unknown directive `.{word}`")),
            _ => return self.fail_here("expected a directive"),
        };
        self.advance();
        let mut align = None;
        loop {
            if self.accept_dot("align") {
                align = Some(self.alignment()?);
            } else if self.accept_dot("attribute") {
                self.attribute()?;
            } else {
                break;
            }
        }
        let lanes = self.vector_width();
        let ty = self.ty()?;
        if ty.kind == Kind::Pred {
            return self.fail_before("a variable cannot be a predicate");
        }
        let natural = u64::from(ty.bytes()) * lanes;
        let mut variables = Vec::new();
        loop {
            let line = self.line();
            let name = self.name()?;
            let count = self.dimensions(lanes)?;
            let init = if self.accept('=') {
                Some(self.initialiser(0)?)
            } else {
                None
            };
            let align = align.unwrap_or(natural);
            variables.push(Variable {
                line,
                storage,
                external,
                name,
                ty,
                align,
                count,
                init,
            });
            if !self.accept(',') {
                break;
            }
        }
        self.expect(';')?;
        Ok(variables)
    }

    fn attribute(&mut self) -> Result<(), CompileError> {
        self.expect('(')?;
        loop {
            match self.advance() {
                Tok::Dot("managed") => {}
                _ => return self.fail_before("unknown attribute"),
            }
            if !self.accept(',') {
                return self.expect(')');
            }
        }
    }

    fn vector_width(&mut self) -> u64 {
        if self.accept_dot("v2") {
            2
        } else if self.accept_dot("v4") {
            4
        } else {
            1
        }
    }

    pub(super) fn alignment(&mut self) -> Result<u64, CompileError> {
        match self.advance() {
            Tok::Int(align) if align.is_power_of_two() && align <= 4096 => Ok(align),
            _ => self.fail_before("expected an alignment, a power of two"),
        }
    }

    /// `[4][2]`: the product; `[]`: `None`.
    fn dimensions(&mut self, lanes: u64) -> Result<Option<u64>, CompileError> {
        let mut count = Some(lanes);
        while self.accept('[') {
            if self.accept(']') {
                count = None;
                continue;
            }
            let size = self.constant()?;
            if !(0..=1 << 40).contains(&size) {
                return self.fail("the array is too large");
            }
            count = match count.map(|c| c.checked_mul(size as u64)) {
                Some(None) => return self.fail("the array is too large"),
                Some(product) => product,
                None => None,
            };
            self.expect(']')?;
        }
        Ok(count)
    }

    fn function(&mut self) -> Result<Function<'a>, CompileError> {
        let entry = self.advance() == Tok::Dot("entry");
        let mut returns = Vec::new();
        if !entry && self.peek() == Tok::Punct('(') {
            returns = self.formals()?;
        }
        let line = self.line();
        let name = self.name()?;
        let params = if self.peek() == Tok::Punct('(') {
            self.formals()?
        } else {
            Vec::new()
        };
        let mut function = Function {
            line,
            entry,
            name,
            returns,
            params,
            max_threads: None,
            required_threads: None,
            body: None,
        };
        loop {
            match self.peek() {
                Tok::Dot("maxntid") => function.max_threads = Some(self.triple()?),
                Tok::Dot("reqntid") => function.required_threads = Some(self.triple()?),
                Tok::Dot(
                    "minnctapersm"
                    | "maxnctapersm"
                    | "maxnreg"
                    | "maxclusterrank"
                    | "abi_preserve"
                    | "abi_preserve_control",
                ) => {
                    self.advance();
                    self.constant()?;
                }
                Tok::Dot(word @ ("reqnctapercluster" | "explicitcluster")) => {
                    let message =
                        format!("unsupported directive `.{word}`: clusters have one block");
                    return self.fail(message);
                }
                Tok::Dot("noreturn" | "unified") => {
                    self.advance();
                }
                Tok::Dot("pragma") => self.pragma()?,
                Tok::Dot(word) => return self.fail(format!("unknown directive `.{word}`")),
                Tok::Punct(';') => {
                    self.advance();
                    return Ok(function);
                }
                Tok::Punct('{') => {
                    function.body = Some(self.body()?);
                    return Ok(function);
                }
                _ => return self.fail_here("expected the body of a function"),
            }
        }
    }

    fn triple(&mut self) -> Result<[u32; 3], CompileError> {
        self.advance();
        let mut sizes = [1; 3];
        for size in &mut sizes {
            let value = self.constant()?;
            match u32::try_from(value) {
                Ok(value) if value > 0 => *size = value,
                _ => return self.fail_before("expected a number of threads"),
            }
            if !self.accept(',') {
                break;
            }
        }
        Ok(sizes)
    }

    /// `(.param .b32 a, .param .align 4 .b8 b[8])`
    pub(super) fn formals(&mut self) -> Result<Vec<Formal<'a>>, CompileError> {
        self.expect('(')?;
        let mut formals = Vec::new();
        if self.accept(')') {
            return Ok(formals);
        }
        loop {
            formals.push(self.formal()?);
            if !self.accept(',') {
                break;
            }
        }
        self.expect(')')?;
        Ok(formals)
    }

    fn formal(&mut self) -> Result<Formal<'a>, CompileError> {
        let register = match self.advance() {
            Tok::Dot("reg") => true,
            Tok::Dot("param") => false,
            _ => return self.fail_before("expected `.param` or `.reg`"),
        };
        let mut align = None;
        if self.accept_dot("align") {
            align = Some(self.alignment()?);
        }
        let lanes = self.vector_width();
        let ty = self.ty()?;
        if self.accept_dot("ptr") {
            while let Tok::Dot("global" | "const" | "shared" | "local" | "generic") = self.peek() {
                self.advance();
            }
            if self.accept_dot("align") {
                self.alignment()?;
            }
        }
        let line = self.line();
        let name = self.name()?;
        let Some(count) = self.dimensions(lanes)? else {
            return self.fail("a parameter of unknown size (a variadic function) is not supported");
        };
        let size = count.saturating_mul(u64::from(ty.bytes()));
        if size > 1 << 16 {
            return self.fail("the parameter is too large");
        }
        let align = align.unwrap_or(u64::from(ty.bytes()));
        Ok(Formal {
            line,
            name,
            register,
            ty,
            align,
            size,
        })
    }
}

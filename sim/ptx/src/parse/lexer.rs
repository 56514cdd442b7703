//! Text to tokens.

use crate::CompileError;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tok<'a> {
    /// A name: `add`, `%r1`, `$L__BB0_1`, `_`.
    Ident(&'a str),
    /// A dotted word without its dot: `.s32`, `.L2::128B`.
    Dot(&'a str),
    /// An integer literal.
    Int(u64),
    /// A decimal or `0d` floating point literal.
    F64(u64),
    /// A `0f` literal.
    F32(u32),
    /// A string literal without its quotes.
    Str(&'a str),
    /// Anything else, one character.
    Punct(char),
    /// Two characters that belong together: `<<`, `>>`, `==`, `!=`, `<=`, `>=`, `&&`, `||`.
    Punct2(&'a str),
    /// The end of the text.
    End,
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub tok: Tok<'a>,
    pub line: u32,
    pub start: usize,
    pub end: usize,
}

/// Splits the source into tokens; the last one is [`Tok::End`].
pub fn lex(source: &str) -> Result<Vec<Token<'_>>, CompileError> {
    let mut lexer = Lexer {
        source,
        bytes: source.as_bytes(),
        at: 0,
        line: 1,
    };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next()?;
        tokens.push(token);
        if token.tok == Tok::End {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
    line: u32,
}

fn starts_name(c: u8) -> bool {
    c.is_ascii_alphabetic() || matches!(c, b'_' | b'$' | b'%')
}

fn continues_name(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$')
}

impl<'a> Lexer<'a> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T, CompileError> {
        Err(CompileError::new(self.line, message))
    }

    fn skip_blank(&mut self) -> Result<(), CompileError> {
        loop {
            match self.peek(0) {
                b'\n' => {
                    self.line += 1;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'/' if self.peek(1) == b'/' => {
                    while self.at < self.bytes.len() && self.peek(0) != b'\n' {
                        self.at += 1;
                    }
                }
                b'/' if self.peek(1) == b'*' => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), CompileError> {
        let opened = self.line;
        self.at += 2;
        while !(self.peek(0) == b'*' && self.peek(1) == b'/') {
            if self.at >= self.bytes.len() {
                return Err(CompileError::new(opened, "the comment is not closed"));
            }
            self.line += u32::from(self.peek(0) == b'\n');
            self.at += 1;
        }
        self.at += 2;
        Ok(())
    }

    fn take_while(&mut self, test: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.at < self.bytes.len() && test(self.bytes[self.at]) {
            self.at += 1;
        }
        &self.source[start..self.at]
    }

    fn next(&mut self) -> Result<Token<'a>, CompileError> {
        self.skip_blank()?;
        let (start, line) = (self.at, self.line);
        let tok = if start >= self.bytes.len() {
            Tok::End
        } else {
            self.token()?
        };
        Ok(Token {
            tok,
            line,
            start,
            end: self.at,
        })
    }

    fn token(&mut self) -> Result<Tok<'a>, CompileError> {
        let c = self.peek(0);
        if starts_name(c) {
            let start = self.at;
            self.at += 1;
            self.take_while(continues_name);
            return Ok(Tok::Ident(&self.source[start..self.at]));
        }
        if c.is_ascii_digit() {
            return self.number();
        }
        if c == b'.' && continues_name(self.peek(1)) {
            return Ok(self.dotted());
        }
        if c == b'"' {
            return self.string();
        }
        let pair = [c, self.peek(1)];
        if matches!(
            &pair,
            b"<<" | b">>" | b"==" | b"!=" | b"<=" | b">=" | b"&&" | b"||"
        ) {
            self.at += 2;
            return Ok(Tok::Punct2(&self.source[self.at - 2..self.at]));
        }
        if c.is_ascii_graphic() {
            self.at += 1;
            return Ok(Tok::Punct(char::from(c)));
        }
        self.fail(format!("unexpected byte {c:#04x}"))
    }

    fn dotted(&mut self) -> Tok<'a> {
        self.at += 1;
        let start = self.at;
        self.take_while(continues_name);
        while self.peek(0) == b':' && self.peek(1) == b':' && continues_name(self.peek(2)) {
            self.at += 2;
            self.take_while(continues_name);
        }
        Tok::Dot(&self.source[start..self.at])
    }

    fn string(&mut self) -> Result<Tok<'a>, CompileError> {
        let start = self.at + 1;
        self.at = start;
        loop {
            match self.peek(0) {
                b'"' => break,
                b'\\' => self.at += 2,
                b'\n' => return self.fail("the string is not closed"),
                _ if self.at >= self.bytes.len() => return self.fail("the string is not closed"),
                _ => self.at += 1,
            }
        }
        self.at += 1;
        // A backslash before a character of several bytes may have left us inside of it.
        match self.source.get(start..self.at - 1) {
            Some(text) => Ok(Tok::Str(text)),
            None => self.fail("bad escape in the string"),
        }
    }

    fn number(&mut self) -> Result<Tok<'a>, CompileError> {
        let second = self.peek(1).to_ascii_lowercase();
        if self.peek(0) == b'0' && matches!(second, b'f' | b'd' | b'x' | b'b') {
            self.at += 2;
            let text = self.take_while(|c| c.is_ascii_alphanumeric());
            return self.prefixed(second, text);
        }
        let start = self.at;
        self.take_while(|c| c.is_ascii_digit());
        let fraction = self.peek(0) == b'.' && self.peek(1).is_ascii_digit();
        let exponent = matches!(self.peek(0), b'e' | b'E');
        if fraction || exponent {
            return self.decimal_float(start);
        }
        let digits = &self.source[start..self.at];
        let suffix = self.take_while(|c| c.is_ascii_alphanumeric());
        if !suffix.is_empty() && !suffix.eq_ignore_ascii_case("u") {
            return self.fail(format!("bad number `{digits}{suffix}`"));
        }
        let radix = if digits.len() > 1 && digits.starts_with('0') {
            8
        } else {
            10
        };
        self.integer(digits, radix)
    }

    fn prefixed(&mut self, prefix: u8, text: &'a str) -> Result<Tok<'a>, CompileError> {
        let digits = text.trim_end_matches(['u', 'U']);
        match prefix {
            b'x' => self.integer(digits, 16),
            b'b' => self.integer(digits, 2),
            b'f' if text.len() == 8 => match u32::from_str_radix(text, 16) {
                Ok(bits) => Ok(Tok::F32(bits)),
                Err(_) => self.fail(format!("bad number `0f{text}`")),
            },
            b'd' if text.len() == 16 => match u64::from_str_radix(text, 16) {
                Ok(bits) => Ok(Tok::F64(bits)),
                Err(_) => self.fail(format!("bad number `0d{text}`")),
            },
            _ => self.fail(format!("bad number `0{}{text}`", char::from(prefix))),
        }
    }

    fn integer(&self, digits: &str, radix: u32) -> Result<Tok<'a>, CompileError> {
        match u64::from_str_radix(digits, radix) {
            Ok(value) => Ok(Tok::Int(value)),
            Err(_) => self.fail(format!("bad number `{digits}`")),
        }
    }

    fn decimal_float(&mut self, start: usize) -> Result<Tok<'a>, CompileError> {
        if self.peek(0) == b'.' {
            self.at += 1;
            self.take_while(|c| c.is_ascii_digit());
        }
        if matches!(self.peek(0), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(0), b'+' | b'-') {
                self.at += 1;
            }
            self.take_while(|c| c.is_ascii_digit());
        }
        let text = &self.source[start..self.at];
        match text.parse::<f64>() {
            Ok(value) => Ok(Tok::F64(value.to_bits())),
            Err(_) => self.fail(format!("bad number `{text}`")),
        }
    }
}

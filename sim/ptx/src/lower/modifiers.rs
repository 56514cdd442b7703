//! The dotted words behind an opcode.

use super::Result;
use crate::parse::ast::Instruction;
use crate::types::Type;
use crate::CompileError;

/// The modifiers of an instruction that nobody has claimed yet. What is left at the end is unknown.
pub struct Modifiers<'a> {
    words: Vec<&'a str>,
    full: String,
    line: u32,
}

impl<'a> Modifiers<'a> {
    pub fn new(instruction: &Instruction<'a>) -> Self {
        let mut full = String::from(instruction.opcode);
        for word in &instruction.modifiers {
            full.push('.');
            full.push_str(word);
        }
        Modifiers {
            words: instruction.modifiers.clone(),
            full,
            line: instruction.line,
        }
    }

    /// Claims a word.
    pub fn take(&mut self, word: &str) -> bool {
        match self.words.iter().position(|w| *w == word) {
            Some(at) => {
                self.words.remove(at);
                true
            }
            None => false,
        }
    }

    /// Claims the first word that is one of these.
    pub fn one_of(&mut self, words: &[&str]) -> Option<&'a str> {
        let at = self.words.iter().position(|w| words.contains(w))?;
        Some(self.words.remove(at))
    }

    /// Claims the first word that `test` accepts.
    pub fn first_of(&mut self, test: impl Fn(&str) -> bool) -> Option<&'a str> {
        let at = self.words.iter().position(|w| test(w))?;
        Some(self.words.remove(at))
    }

    /// Claims the words that `test` accepts.
    pub fn take_all(&mut self, test: impl Fn(&str) -> bool) {
        self.words.retain(|w| !test(w));
    }

    /// Claims the first type.
    pub fn try_ty(&mut self) -> Option<Type> {
        let at = self.words.iter().position(|w| Type::parse(w).is_some())?;
        Type::parse(self.words.remove(at))
    }

    /// Claims the first type, which there must be.
    pub fn ty(&mut self) -> Result<Type> {
        match self.try_ty() {
            Some(ty) => Ok(ty),
            None => self.fail("the type is missing"),
        }
    }

    /// All words must have been claimed.
    pub fn finish(&self) -> Result<()> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => self.fail(&format!("unknown modifier `.{word}`")),
        }
    }

    /// An error about this instruction.
    pub fn fail<T>(&self, message: &str) -> Result<T> {
        Err(CompileError::new(
            self.line,
            format!("`{}`: {message}", self.full),
        ))
    }

    /// The type is none that this instruction has.
    pub fn bad_type<T>(&self, ty: Type) -> Result<T> {
        self.fail(&format!(
            "the type `.{}` does not go with this instruction",
            ty.name()
        ))
    }
}

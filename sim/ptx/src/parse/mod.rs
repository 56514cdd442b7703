//! PTX text to syntax tree. Names are not resolved here.

pub mod ast;
mod body;
mod expr;
mod lexer;
mod module;

use crate::CompileError;

/// Parses a whole module.
pub fn parse(source: &str) -> Result<ast::Module<'_>, CompileError> {
    let tokens = lexer::lex(source)?;
    module::Parser::new(source, &tokens).module()
}

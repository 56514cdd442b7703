//! The floor of the comparison: the driver calls of `ocaml/work.ml`, made directly.
//!
//! `floor serve THREADS` answers each line `MEASURE COUNT` with `NS 0 0`, `floor once MEASURE COUNT` makes
//! the calls and ends, as the OCaml program does.

mod driver;
mod team;
mod work;

use std::io::{BufRead, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("floor: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", threads] => serve(number(threads)?),
        ["once", measure, count] => {
            driver::load()?;
            let mut measure = work::Work::new()?.find(measure)?;
            measure.run(number(count)?);
            measure.settle();
            Ok(())
        }
        _ => Err("usage: floor serve THREADS | once MEASURE COUNT".to_string()),
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| format!("{text:?} is not a number from 1"))
}

fn serve(threads: usize) -> Result<(), String> {
    let description = driver::load()?;
    let team = team::Team::new(threads);
    let mut out = std::io::stdout();
    let mut say = |line: String| {
        writeln!(out, "{line}")
            .and_then(|()| out.flush())
            .map_err(|e| format!("standard output: {e}"))
    };
    say(format!("ready {description}"))?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| format!("standard input: {e}"))?;
        let (measure, count) = line
            .split_once(' ')
            .ok_or_else(|| format!("{line:?} is not MEASURE COUNT"))?;
        let ns = team.run(measure, number(count)?)?;
        say(format!("{ns:.2} 0 0"))?;
    }
    Ok(())
}

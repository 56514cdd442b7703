//! Failing and delaying chosen calls.
//!
//! A specification is a list, separated by commas, of `NAME[WHEN]=ERROR` and `NAME[WHEN]~TIME`. NAME is
//! a function, with or without its version, or `*`. WHEN is `@N` for the Nth call from now, or `%P` with
//! an optional `/seed=N` for each call with probability P; every call without it. TIME is a number with
//! `us`, `ms` or `s`. The name `cuGraph/inside` delays calls where the driver needs them apart, see
//! [`dwell`].

use crate::ledger::base;
use crate::status;
use crate::table::lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
enum When {
    Always,
    Nth { n: u64, seen: u64 },
    Probability { p: f64, state: u64 },
}

#[derive(Clone, Debug, PartialEq)]
enum Effect {
    Fail(i32),
    Delay(Duration),
}

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    name: String,
    when: When,
    effect: Effect,
}

static ACTIVE: AtomicBool = AtomicBool::new(false);
static RULES: Mutex<Vec<Rule>> = Mutex::new(Vec::new());

/// Replaces the rules. The text of the error says which part is wrong.
pub fn set(spec: &str) -> Result<(), String> {
    let parts = spec.split(',').map(str::trim);
    let rules: Result<Vec<Rule>, String> =
        parts.filter(|part| !part.is_empty()).map(parse).collect();
    let rules = rules?;
    ACTIVE.store(!rules.is_empty(), Ordering::Release);
    *lock(&RULES) = rules;
    Ok(())
}

fn parse(part: &str) -> Result<Rule, String> {
    read(part).ok_or_else(|| {
        format!("cannot read {part:?}: NAME=ERROR or NAME~TIME, where @N or %P[/seed=N] may follow NAME")
    })
}

fn read(part: &str) -> Option<Rule> {
    let (call, effect) = match part.split_once('~') {
        Some((call, time)) => (call, Effect::Delay(duration(time)?)),
        None => {
            let (call, error) = part.rsplit_once('=')?;
            (call, Effect::Fail(status::by_name(error)?))
        }
    };
    let (name, when) = if let Some((name, n)) = call.split_once('@') {
        (
            name,
            When::Nth {
                n: n.parse().ok().filter(|n| *n > 0)?,
                seen: 0,
            },
        )
    } else if let Some((name, rest)) = call.split_once('%') {
        let (p, seed) = match rest.split_once("/seed=") {
            Some((p, seed)) => (p, seed.parse().ok()?),
            None => (rest, 1),
        };
        let p = p.parse().ok().filter(|p| (0.0..=1.0).contains(p))?;
        (name, When::Probability { p, state: seed })
    } else {
        (call, When::Always)
    };
    (name == "*" || name.starts_with("cu")).then(|| Rule {
        name: name.to_string(),
        when,
        effect,
    })
}

fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        _ => return None,
    };
    Some(Duration::from_micros(
        digits.parse::<u64>().ok()?.checked_mul(unit)?,
    ))
}

impl When {
    /// Whether this call is meant.
    fn hits(&mut self) -> bool {
        match self {
            When::Always => true,
            When::Nth { n, seen } => {
                *seen += 1;
                seen == n
            }
            When::Probability { p, state } => random(state) < *p,
        }
    }
}

/// A number from 0 to 1 (splitmix64).
fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// What is to happen to this call.
pub fn inject(name: &str) -> Result<(), i32> {
    follow(|rule| rule.name == "*" || rule.name == name || rule.name == base(name))
}

/// Stays for as long as a rule says that has just this name: the place inside of a call where another
/// thread must not be.
pub fn dwell(place: &str) {
    // Nothing fails half-way through a call.
    let _ = follow(|rule| rule.name == place);
}

fn follow(meant: impl Fn(&Rule) -> bool) -> Result<(), i32> {
    if !ACTIVE.load(Ordering::Acquire) {
        return Ok(());
    }
    let mut delay = Duration::ZERO;
    let mut failure = None;
    for rule in lock(&RULES).iter_mut() {
        if meant(rule) && rule.when.hits() {
            match rule.effect {
                Effect::Fail(status) => failure = failure.or(Some(status)),
                Effect::Delay(time) => delay += time,
            }
        }
    }
    if !delay.is_zero() {
        std::thread::sleep(delay);
    }
    failure.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read() {
        let rule = |text| parse(text).unwrap();
        assert_eq!(
            rule("cuMemAlloc@3=OUT_OF_MEMORY"),
            Rule {
                name: "cuMemAlloc".into(),
                when: When::Nth { n: 3, seen: 0 },
                effect: Effect::Fail(status::OUT_OF_MEMORY)
            }
        );
        assert_eq!(
            rule("cuMemAlloc%0.1/seed=7=CUDA_ERROR_OUT_OF_MEMORY").when,
            When::Probability { p: 0.1, state: 7 }
        );
        assert_eq!(
            rule("cuLaunchKernel~200us").effect,
            Effect::Delay(Duration::from_micros(200))
        );
        assert_eq!(rule("*@17=999").name, "*");
    }

    #[test]
    fn nonsense_is_named() {
        for text in [
            "cuMemAlloc@x=OUT_OF_MEMORY",
            "cuMemAlloc@0=OUT_OF_MEMORY",
            "cuMemAlloc%2=OUT_OF_MEMORY",
            "cuMemAlloc=NO_SUCH_ERROR",
            "cuMemAlloc",
            "cuLaunchKernel~200",
            "malloc=UNKNOWN",
        ] {
            assert!(parse(text).unwrap_err().contains(text), "{text}");
        }
    }

    #[test]
    fn the_nth_call_fails_once() {
        let mut when = When::Nth { n: 2, seen: 0 };
        assert_eq!([(); 4].map(|()| when.hits()), [false, true, false, false]);
    }

    #[test]
    fn the_same_seed_fails_the_same_calls() {
        let run = || {
            let mut when = When::Probability { p: 0.3, state: 7 };
            (0..100).map(|_| when.hits()).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
        let hits = run().iter().filter(|hit| **hit).count();
        assert!((15..45).contains(&hits), "{hits}");
    }
}

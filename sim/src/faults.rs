//! Failing chosen calls: `cuGraphInstantiateWithFlags@3=OUT_OF_MEMORY`, `*@17=UNKNOWN`,
//! `cuMemAlloc%0.1=OUT_OF_MEMORY`, delays as `cuLaunchKernel~200us`.

use crate::status;
use crate::table::lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
enum When {
    Nth(u64),
    Probability(f64),
    Always,
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
static RULES: Mutex<(Vec<Rule>, u64)> = Mutex::new((Vec::new(), 0x9e37_79b9_7f4a_7c15));

/// Replaces the rules. The text of the error says which part is wrong.
pub fn set(spec: &str) -> Result<(), String> {
    let rules: Result<Vec<Rule>, String> = spec
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(parse)
        .collect();
    let rules = rules?;
    ACTIVE.store(!rules.is_empty(), Ordering::Release);
    lock(&RULES).0 = rules;
    Ok(())
}

fn parse(part: &str) -> Result<Rule, String> {
    let wrong =
        || format!("cannot read {part:?}: NAME@N=ERROR, NAME%P=ERROR, NAME=ERROR or NAME~TIMEus");
    if let Some((name, delay)) = part.split_once('~') {
        let micros = delay.trim_end_matches("us").parse().map_err(|_| wrong())?;
        let effect = Effect::Delay(Duration::from_micros(micros));
        return Ok(Rule {
            name: name.to_string(),
            when: When::Always,
            effect,
        });
    }
    let (call, error) = part.split_once('=').ok_or_else(wrong)?;
    let status = status::by_name(error).ok_or_else(wrong)?;
    let (name, when) = if let Some((name, n)) = call.split_once('@') {
        (name, When::Nth(n.parse().map_err(|_| wrong())?))
    } else if let Some((name, p)) = call.split_once('%') {
        (name, When::Probability(p.parse().map_err(|_| wrong())?))
    } else {
        (call, When::Always)
    };
    Ok(Rule {
        name: name.to_string(),
        when,
        effect: Effect::Fail(status),
    })
}

/// What is to happen to the call of `name` that is the `nth` of its function and the `total`th of all.
pub fn inject(name: &str, nth: u64, total: u64) -> Result<(), i32> {
    if !ACTIVE.load(Ordering::Acquire) {
        return Ok(());
    }
    let mut delay = Duration::ZERO;
    let mut failure = None;
    {
        let mut guard = lock(&RULES);
        let (rules, seed) = &mut *guard;
        for rule in rules.iter() {
            let any = rule.name == "*";
            if !any && rule.name != name && rule.name != base(name) {
                continue;
            }
            let hit = match rule.when {
                When::Always => true,
                When::Nth(n) => n == if any { total } else { nth },
                When::Probability(p) => {
                    *seed ^= *seed << 13;
                    *seed ^= *seed >> 7;
                    *seed ^= *seed << 17;
                    ((*seed >> 11) as f64 / (1u64 << 53) as f64) < p
                }
            };
            match rule.effect {
                Effect::Fail(status) if hit => failure = Some(status),
                Effect::Delay(time) if hit => delay += time,
                _ => {}
            }
        }
    }
    if !delay.is_zero() {
        std::thread::sleep(delay);
    }
    failure.map_or(Ok(()), Err)
}

/// The name without its version.
fn base(name: &str) -> &str {
    match name.rfind("_v") {
        Some(at) if name[at + 2..].bytes().all(|b| b.is_ascii_digit()) => &name[..at],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_nonsense_is_named() {
        assert_eq!(
            parse("cuMemAlloc@3=OUT_OF_MEMORY"),
            Ok(Rule {
                name: "cuMemAlloc".into(),
                when: When::Nth(3),
                effect: Effect::Fail(status::OUT_OF_MEMORY)
            })
        );
        assert!(parse("cuLaunchKernel~200us").is_ok());
        assert!(parse("cuMemAlloc@x=OUT_OF_MEMORY")
            .unwrap_err()
            .contains("cuMemAlloc@x"));
        assert!(parse("cuMemAlloc=NO_SUCH_ERROR").is_err());
    }
}

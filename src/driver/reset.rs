//! Resetting a primary context while other threads use what is in it.
//!
//! A call looks whether its context lives and then hands the driver handles from it. A reset in between would
//! leave it with dead ones, so it comes when no call is under way.

use super::capture;
use super::context::Context;
use super::gate::{self, Passing, ThreadMode};
use super::pressure::Waiting;
use super::queue::StreamState;
use super::release::{self, Drain};
use super::stream::Stream;
use super::{driver, library, Result};
use std::sync::{Arc, RwLock, RwLockReadGuard};
use std::time::Duration;

/// Shared by the calls under way, but for those at once; alone while a context is reset.
static CALLS: RwLock<()> = RwLock::new(());

/// No context is reset while this lives. A thread has one at a time, and nothing in a forked child, where nobody
/// would give back what other threads had.
pub fn hold_off() -> Option<RwLockReadGuard<'static, ()>> {
    library::usable().then(|| CALLS.read().unwrap_or_else(|e| e.into_inner()))
}

/// Resets a device's primary context: everything in it is destroyed, and its owners here know. Waits for the
/// calls under way, also for those that wait for the device. `cuDevicePrimaryCtxReset`
pub fn reset_primary(device: i32) -> Result<()> {
    library::ready()?;
    let _alone = CALLS.write().unwrap_or_else(|e| e.into_inner());
    release::drain(Drain::All);
    let contexts = Context::primary_of(device)?;
    contexts
        .iter()
        .for_each(|c| capture::abandon_in(c.handle()));
    outlast_others(&contexts);
    let _passage = gate::pass(Passing::Alone);
    // Outlasts the calls at once. Later ones find this one, and then that their context is gone.
    let _waiting = Waiting::begin();
    driver!(cuDevicePrimaryCtxReset_v2(device))?;
    contexts.iter().for_each(|context| context.note_reset());
    Ok(())
}

/// Waits for work of other contexts that uses memory of these, as far as it can be waited for: not for a stream
/// that captures.
fn outlast_others(contexts: &[Arc<Context>]) {
    for other in Context::others(contexts) {
        // The NULL stream is that of the context that is current.
        let Ok(_entered) = other.enter() else {
            continue;
        };
        let streams = other.all_streams().into_iter();
        for (state, stream) in streams.filter(|(state, _)| state.needs(contexts)) {
            outlast(&state, stream);
        }
    }
}

/// In its context.
fn outlast(state: &Arc<StreamState>, stream: Option<Arc<Stream>>) {
    let is_done = || {
        release::drain(Drain::Quick);
        match &stream {
            // Its owner may have destroyed it.
            Some(_) => {
                let _relaxed = ThreadMode::relaxed();
                state.is_done_by_markers()
            }
            None => !release::lingers(state),
        }
    };
    match &stream {
        // The work of a stream that fails is over as well.
        Some(stream) if stream.is_ours() => drop(stream.outlast()),
        _ => {
            while !is_done() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

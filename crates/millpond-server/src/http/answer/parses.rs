//! Counts of parsed paths, for the test that each request's path is parsed once.

use std::cell::Cell;

/// Parses on one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parses {
    /// Paths of requests that were decoded.
    pub(crate) paths: u32,
    /// Routes of assets that were parsed.
    pub(crate) routes: u32,
    /// Routes of running streams that were parsed.
    pub(crate) live_routes: u32,
}

thread_local! {
    static PARSES: Cell<Parses> = const { Cell::new(Parses { paths: 0, routes: 0, live_routes: 0 }) };
}

/// Counts a parse.
pub(super) fn count(change: impl FnOnce(&mut Parses)) {
    let mut parses = PARSES.get();
    change(&mut parses);
    PARSES.set(parses);
}

/// Returns the parses on this thread since the last call.
pub(crate) fn take() -> Parses {
    PARSES.take()
}

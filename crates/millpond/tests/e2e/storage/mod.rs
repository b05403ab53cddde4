//! Origins, caches and striped files.

mod cache;
mod downstream_cache;
mod faults;
mod fragments;
mod lying_origin;
mod prefetch;
pub(crate) mod stripe;
mod traffic;

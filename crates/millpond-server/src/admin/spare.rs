//! Descriptors that are kept for the admin address, so that it answers when the process has no other one left.

use std::{
    fs::File,
    io,
    sync::{Arc, Mutex, PoisonError},
};

/// Number of descriptors that are kept.
const KEPT: usize = 8;

/// Descriptors that are open for nothing, until a connection needs one.
#[derive(Clone)]
pub(super) struct Spare(Arc<Mutex<Vec<File>>>);

impl Spare {
    pub(super) fn new() -> Self {
        let spare = Self(Arc::default());
        spare.refill();
        spare
    }

    /// Closes a kept descriptor for another use. Returns whether there was one.
    pub(super) fn give(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().is_some()
    }

    /// Keeps descriptors again, as far as there are any.
    pub(super) fn refill(&self) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while kept.len() < KEPT {
            match File::open("/dev/null") {
                Ok(file) => kept.push(file),
                Err(_) => return,
            }
        }
    }
}

/// Tells whether a failure is for want of descriptors (EMFILE, ENFILE).
pub(super) fn is_without_descriptors(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(code, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_descriptors_are_given_and_kept_again() {
        let spare = Spare::new();
        assert_eq!((0..2 * KEPT).filter(|_| spare.give()).count(), KEPT);
        spare.refill();
        assert!(spare.give());
        assert!(is_without_descriptors(&rustix::io::Errno::MFILE.into()));
        assert!(!is_without_descriptors(&io::ErrorKind::NotFound.into()));
    }
}

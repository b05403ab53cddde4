//! Bytes that nobody can guess: keys, and names of sessions.

use std::io;

/// So many of them, of the system's: they cost nothing to begin with, where a generator of our own process would first have to be
/// seeded, within somebody's first request.
///
/// # Errors
/// The system has none to give.
pub(super) fn bytes<const COUNT: usize>() -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn they_differ() {
        let [first, second] = [super::bytes::<16>().unwrap(), super::bytes::<16>().unwrap()];
        assert_ne!(first, second);
    }
}

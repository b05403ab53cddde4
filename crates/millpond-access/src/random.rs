//! Unpredictable random bytes for keys and names of sessions.

use std::io;

/// Returns random bytes of the system. A generator of this process would have to be seeded within the first request.
///
/// # Errors
/// The system provides none.
pub fn bytes<const COUNT: usize>() -> io::Result<[u8; COUNT]> {
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

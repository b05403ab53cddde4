//! Bytes that nobody can guess: keys, and names of sessions.

use std::io;
use tokio_rustls::rustls::crypto::aws_lc_rs;

/// So many of them.
///
/// # Errors
/// The system has none to give.
pub(super) fn bytes<const COUNT: usize>() -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    let filled = aws_lc_rs::default_provider().secure_random.fill(&mut bytes);
    filled.map_err(|_| io::Error::other("no random bytes from the system"))?;
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

//! Random credentials of one connection.

use super::CallError;
use millpond_webrtc::sdp::IceCredentials;
use std::fmt::Write as _;

/// Random bytes of a user fragment and of a password (RFC 8839 5.4: at least 24 and 128 bits).
const FRAGMENT: usize = 6;
const PASSWORD: usize = 18;

/// Makes credentials.
///
/// # Errors
/// The system gives no random bytes.
pub(super) fn credentials() -> Result<IceCredentials, CallError> {
    Ok(IceCredentials { ufrag: random::<FRAGMENT>()?, password: random::<PASSWORD>()? })
}

/// Random bytes as hexadecimal text, whose characters are those of ICE (RFC 8839 5.1).
fn random<const BYTES: usize>() -> Result<String, CallError> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(CallError::Random)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

//! Signatures of webhooks, as Standard Webhooks 1.0.0 has them.
#![forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types)]

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::fmt;

/// The beginning of a secret as it is written.
const PREFIX: &str = "whsec_";
/// Least and most bytes of a key.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// The key that webhooks are signed with. It is empty where the text is no secret.
#[derive(Clone, PartialEq, Eq)]
pub struct HookSecret(Vec<u8>);

/// Shows nothing of it.
impl fmt::Debug for HookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HookSecret")
    }
}

impl HookSecret {
    /// The form of a secret, and how to make one. Errors don't have the value: it may be a part of the real one.
    pub(super) const EXPECTED: &'static str =
        "a secret of 24 to 64 bytes in Base64 behind \"whsec_\": echo \"whsec_$(openssl rand -base64 32)\" makes one";

    /// Reads a secret, `whsec_` and Base64.
    pub(super) fn new(text: &str) -> Self {
        let text = text.strip_prefix(PREFIX).unwrap_or_default();
        Self(STANDARD_NO_PAD.decode(text.trim_end_matches('=')).unwrap_or_default())
    }

    /// Whether it has the form and the length of a secret.
    pub(super) fn is_strong(&self) -> bool {
        LENGTHS.contains(&self.0.len())
    }

    /// Returns the value of the field `webhook-signature` for a message: its id, the time of the attempt in seconds since 1970,
    /// and the body.
    pub(super) fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        // HMAC takes keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_signed_as_the_published_example() {
        // The example of the reference libraries (standard-webhooks/standard-webhooks).
        let secret = HookSecret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn secrets_have_a_form_and_are_not_shown() {
        let of = |length: usize| format!("whsec_{}", STANDARD.encode(vec![7; length]));
        for (text, is_secret) in [
            (of(24), true),
            (of(64), true),
            (of(23), false),
            (of(65), false),
            (of(32).trim_end_matches('=').to_owned(), true),
            (of(32).replace("whsec_", ""), false),
            ("whsec_".to_owned(), false),
            ("whsec_***".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(HookSecret::new(&text).is_strong(), is_secret, "{text}");
        }
        assert_eq!(format!("{:?}", HookSecret::new(&of(32))), "HookSecret");
    }
}

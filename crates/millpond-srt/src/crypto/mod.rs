//! Encryption of payloads (draft-sharabayko-srt-01 6).

mod cipher;
mod key_material;
mod key_wrap;
mod keys;
mod passphrase;

pub(crate) use key_material::{BAD_SECRET, NO_SECRET};
pub(crate) use keys::{KeyFailure, Keys};
pub use passphrase::{BadPassphrase, KeyLength, Passphrase};

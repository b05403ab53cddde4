//! Common encryption (ISO/IEC 23001-7): the scheme, the keys and the auxiliary information of a track's samples.
//!
//! Nothing is decrypted. The tables here hold what media segments need besides the encrypted bytes: initialization
//! vectors, the clear and protected bytes of each sample, and the key of each sample.

mod auxiliary;
mod draft;
mod entry;
mod group;
mod source;
mod system;

#[cfg(test)]
mod tests;

pub use auxiliary::{Auxiliary, AuxiliaryTable, Cursor};
pub(crate) use draft::{Container, ProtectionDraft};
pub(crate) use entry::{clear_format, parse, rename_format};
pub(crate) use system::SystemHeaders;
pub use system::{FragmentHeader, SystemHeader};

use crate::boxes::FourCc;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Protection schemes (ISO/IEC 23001-7 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scheme {
    /// AES in counter mode, of whole samples or subsamples.
    Cenc,
    /// AES in counter mode, of a pattern of blocks in subsamples.
    Cens,
    /// AES in cipher block chaining mode, of whole samples or subsamples.
    Cbc1,
    /// AES in cipher block chaining mode, of a pattern of blocks in subsamples.
    Cbcs,
}

impl Scheme {
    const ALL: [Self; 4] = [Self::Cenc, Self::Cens, Self::Cbc1, Self::Cbcs];

    /// Returns the scheme of a `schm` box.
    pub(crate) fn of(kind: FourCc) -> Option<Self> {
        Self::ALL.into_iter().find(|scheme| scheme.name().as_bytes() == kind)
    }

    /// Four-character code of the scheme.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cenc => "cenc",
            Self::Cens => "cens",
            Self::Cbc1 => "cbc1",
            Self::Cbcs => "cbcs",
        }
    }
}

/// A UUID (RFC 9562): a key identifier (KID) or a protection system's SystemID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// Returns the 32 hexadecimal digits, without hyphens.
    #[must_use]
    pub fn digits(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, byte) in self.0.iter().enumerate() {
            let hyphen = if matches!(place, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{hyphen}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Encryption parameters of samples: of `tenc` (8.2), or of an entry of a `seig` sample group (6).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeyParameters {
    /// Whether the samples are encrypted.
    pub is_protected: bool,
    /// Number of encrypted blocks in a pattern; 0 without a pattern.
    pub crypt_blocks: u8,
    /// Number of clear blocks in a pattern.
    pub skip_blocks: u8,
    /// Length of each sample's initialization vector in bytes: 0, 8 or 16.
    pub iv_size: u8,
    /// Identifier of the key.
    pub key_id: Uuid,
    /// Initialization vector of all samples; used where `iv_size` is 0.
    pub constant_iv: Vec<u8>,
}

impl KeyParameters {
    /// Parameters of samples that are not encrypted.
    pub(crate) const CLEAR: Self = Self {
        is_protected: false,
        crypt_blocks: 0,
        skip_blocks: 0,
        iv_size: 0,
        key_id: Uuid([0; 16]),
        constant_iv: Vec::new(),
    };
}

/// Encryption of a track.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Protection {
    /// Encryption scheme.
    pub scheme: Scheme,
    /// Parameters of samples outside of all groups.
    pub parameters: KeyParameters,
    /// Parameters of sample groups. [`Auxiliary::group`] counts them from 1.
    pub groups: Vec<KeyParameters>,
    /// Auxiliary information of each sample.
    pub samples: AuxiliaryTable,
    /// Headers of fragments, each with the first sample of its fragment.
    pub headers: Vec<FragmentHeader>,
}

impl Protection {
    /// Whether some samples have another key than the track, as with key rotation.
    #[must_use]
    pub fn changes_key(&self) -> bool {
        let key = self.parameters.key_id;
        self.groups.iter().any(|group| group.is_protected && (group.key_id != key || !self.parameters.is_protected))
    }

    /// Bytes of heap held, for memory budgets.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let parameters = |parameters: &KeyParameters| size_of::<KeyParameters>() + parameters.constant_iv.len();
        let headers = self.headers.len() * size_of::<FragmentHeader>();
        size_of::<Self>() + self.groups.iter().map(parameters).sum::<usize>() + self.samples.heap_bytes() + headers
    }
}

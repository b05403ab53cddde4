//! Encryption of one track's packets (SRTP, RFC 3711 and RFC 7714).

use millpond_rtp::srtp::{MasterKey, Protector, SrtpError, Unprotector};

/// A track's keys. A key protects one source only: two streams under one key would give both away.
#[derive(Clone, Debug)]
pub struct Protection {
    protector: Protector,
    /// Opens the receiver's reports, where it told a key.
    receiver: Option<Unprotector>,
}

impl Protection {
    /// Encrypts under `key`. `receiver` opens the receiver's reports; without it they are ignored.
    #[must_use]
    pub fn new(key: &MasterKey, receiver: Option<Unprotector>) -> Self {
        Self { protector: Protector::new(key), receiver }
    }

    /// Number of bytes that encryption adds to an RTP packet.
    pub(super) fn overhead(&self) -> usize {
        self.protector.suite().tag_length()
    }

    /// Encrypts the RTP packet at the end of a buffer.
    pub(super) fn seal(&mut self, buffer: &mut Vec<u8>, start: usize) -> Result<(), SrtpError> {
        self.protector.rtp(buffer, start)
    }

    /// Encrypts a compound of reports.
    pub(super) fn seal_reports(&mut self, reports: &mut Vec<u8>) -> Result<(), SrtpError> {
        self.protector.rtcp(reports, 0)
    }

    /// Decrypts a receiver's reports; `None` where they are not the receiver's.
    pub(super) fn open_reports<'a>(&mut self, reports: &'a mut [u8]) -> Option<&'a [u8]> {
        self.receiver.as_mut()?.rtcp(reports).ok().map(|reports| &*reports)
    }
}

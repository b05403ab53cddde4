//! The certificate of a server.

use crate::sdp::Fingerprint;
use dimpl::DtlsCertificate;
use sha2::{Digest as _, Sha256};
use std::{fmt, sync::Arc, time::Duration};

/// Longest time of a handshake: players give up earlier.
const HANDSHAKE: Duration = Duration::from_secs(20);
/// Time before the first repetition of a flight: round trips of half a second are rare.
const FLIGHT: Duration = Duration::from_millis(500);
/// Most bytes of a datagram, which fits any path of the internet with a tunnel's headers.
const MTU: usize = 1200;

/// No certificate can be made.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no certificate for DTLS: {0}")]
pub struct IdentityError(String);

/// The self-signed certificate of a server, and the parameters of its handshakes. Offers and answers tell its fingerprint.
#[derive(Clone)]
pub struct Identity {
    pub(crate) certificate: DtlsCertificate,
    pub(crate) config: Arc<dimpl::Config>,
    fingerprint: Fingerprint,
}

impl Identity {
    /// Makes a new certificate.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new() -> Result<Self, IdentityError> {
        let error = |error: &dyn fmt::Display| IdentityError(error.to_string());
        let certificate = dimpl::certificate::generate_self_signed_certificate().map_err(|why| error(&why))?;
        // ICE has checked the address of each peer before its first record is read. A cookie would check it again.
        let config = dimpl::Config::builder().mtu(MTU).use_server_cookie(false);
        let config = config.handshake_timeout(HANDSHAKE).flight_start_rto(FLIGHT);
        let config = Arc::new(config.build().map_err(|why| error(&why))?);
        let fingerprint = Fingerprint(Sha256::digest(&certificate.certificate).into());
        Ok(Self { certificate, config, fingerprint })
    }

    /// The fingerprint of the certificate.
    #[must_use]
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

//! Failures of requests.

use std::error::Error;
use std::io;

use tokio_rustls::rustls::{AlertDescription, CertificateError, Error as TlsError};

use crate::frames::{SPARE_FRAMES, SPARE_HEADS};
use crate::heads::{MOST_BYTES, MOST_INTERIM};

/// A bound that a server's reply exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Excess {
    /// Interim replies before a reply.
    #[error("more than {MOST_INTERIM} interim replies (1xx) before a reply")]
    Interim,
    /// Bytes of interim replies before a reply.
    #[error("interim replies (1xx) of more than {MOST_BYTES} bytes before a reply")]
    Bytes,
    /// Heads of HTTP/2 replies, beyond those that the requests account for.
    #[error("more heads of replies than requests (HTTP/2, {SPARE_HEADS} to spare)")]
    Heads,
    /// Frames of HTTP/2 without content, beyond those that the requests account for.
    #[error("more frames without content than requests account for (HTTP/2, {SPARE_FRAMES} to spare)")]
    Frames,
}

/// A request that got no reply.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The request can't be written.
    #[error("the request can't be written: {0}")]
    Request(#[from] http::Error),
    /// The server was not reached in time.
    #[error("no connection in time")]
    ConnectTimeout,
    /// The server was not reached.
    #[error("no connection")]
    Connect(#[source] hyper_util::client::legacy::Error),
    /// The server exceeded a bound.
    #[error("{0}")]
    Excess(Excess),
    /// The connection broke before the reply.
    #[error("no reply")]
    Broken(#[source] hyper_util::client::legacy::Error),
}

impl SendError {
    /// Returns the fault of a certificate for which there is no reply: the server was reached. `None` for all other failures.
    #[must_use]
    pub fn certificate_fault(&self) -> Option<CertificateFault> {
        let (Self::Connect(error) | Self::Broken(error)) = self else { return None };
        causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).find_map(|io| {
            match io.get_ref()?.downcast_ref::<TlsError>()? {
                TlsError::InvalidCertificate(fault) => Some(CertificateFault::OfServer(fault.clone())),
                TlsError::AlertReceived(alert) if REFUSALS.contains(alert) => Some(CertificateFault::OfClient(*alert)),
                _ => None,
            }
        })
    }
}

/// Alerts by which a server refuses the certificate of a client, or its absence (RFC 8446 6.2).
const REFUSALS: [AlertDescription; 9] = [
    AlertDescription::BadCertificate,
    AlertDescription::UnsupportedCertificate,
    AlertDescription::CertificateRevoked,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateUnknown,
    AlertDescription::UnknownCA,
    AlertDescription::DecryptError,
    AlertDescription::AccessDenied,
    AlertDescription::CertificateRequired,
];

/// A certificate that one end of a connection refuses.
#[derive(Clone, Debug)]
pub enum CertificateFault {
    /// The server's is not trusted here, with the reason.
    OfServer(CertificateError),
    /// The server refuses the client's or wants one, with its alert.
    OfClient(AlertDescription),
}

impl From<hyper_util::client::legacy::Error> for SendError {
    fn from(error: hyper_util::client::legacy::Error) -> Self {
        if let Some(excess) = excess(&error) {
            return Self::Excess(excess);
        }
        match error.is_connect() {
            true if is_late(&error) => Self::ConnectTimeout,
            true => Self::Connect(error),
            false => Self::Broken(error),
        }
    }
}

/// Returns the bound whose excess ended a connection.
pub(crate) fn excess(error: &(dyn Error + 'static)) -> Option<Excess> {
    causes(error).find_map(|cause| {
        cause.downcast_ref::<Excess>().copied().or_else(|| {
            let io: &io::Error = cause.downcast_ref()?;
            io.get_ref()?.downcast_ref::<Excess>().copied()
        })
    })
}

fn is_late(error: &(dyn Error + 'static)) -> bool {
    causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|io| io.kind() == io::ErrorKind::TimedOut)
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'a (dyn Error + 'static) = *error;
        error.source()
    })
}

/// Returns an error with all that lies below it, in one line.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in causes(error).skip(1) {
        let cause = cause.to_string();
        // Many layers repeat the text of the one below.
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

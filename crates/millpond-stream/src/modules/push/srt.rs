//! SRT: a listener is called, and gets a transport stream.

use super::pushing::WayError;
use crate::{
    Run,
    live::{Program, TransportPayloads},
    reception::{SrtLink, SrtLinkError, SrtSource, Stopwatch},
};

/// A connection to a listener.
pub(super) struct SrtWay {
    link: SrtLink,
    payloads: TransportPayloads,
}

/// Why a connection to a listener ends.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct SrtWayError(#[from] SrtLinkError);

impl SrtWay {
    /// Calls a listener.
    pub(super) async fn open(listener: &SrtSource, program: &Program) -> Result<Self, WayError> {
        let payloads = TransportPayloads::new(program).ok_or(WayError::Unfit)?;
        let link = SrtLink::call(listener, Stopwatch::start()).await.map_err(SrtWayError)?;
        Ok(Self { link, payloads })
    }

    /// Gives frames to the connection, which sends them at its pace and drops those that are too late.
    pub(super) fn send(&mut self, run: &Run, program: &Program) -> Result<(), WayError> {
        let payloads = self.payloads.of(run, program, self.link.longest_payload())?;
        self.link.send(payloads.into_iter());
        self.link.advance().map_err(SrtWayError)?;
        Ok(())
    }

    /// Answers the listener until the connection ends. Cancel safe.
    pub(super) async fn serve(&mut self) -> SrtWayError {
        loop {
            let waited = match self.link.advance() {
                Ok(()) => self.link.wait().await,
                Err(error) => Err(error),
            };
            // A listener that sends media is not listened to.
            while self.link.deliver().is_some() {}
            if let Err(error) = waited {
                return error.into();
            }
        }
    }
}

//! A call: the offer, its answer, and the connection.

use super::{
    CallError, CallPurpose, CalledSession, Link, WebRtcEndpoint, credentials::credentials, signalling, sockets::Sockets,
};
use crate::web::Web;
use millpond_webrtc::{
    Identity, RtcPeer, SrtpKeys,
    sdp::{ReceivedAnswer, SentOffer, SentSection},
};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::{Instant as Deadline, timeout_at};

/// Name of the stream in offers, and of the server in reports (RFC 3550 6.5.1).
pub(crate) const STREAM: &str = "millpond";

/// A call to a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    /// Endpoint that gets the offer.
    pub(crate) endpoint: &'a WebRtcEndpoint,
    /// Sends the requests.
    pub(crate) web: &'a Arc<dyn Web>,
    /// Direction of the media.
    pub(crate) purpose: CallPurpose,
    /// Time for the answer and the connection together.
    pub(crate) patience: Duration,
}

/// A connection to a server that has answered.
pub(crate) struct Called {
    /// The connection.
    pub(crate) link: Link,
    /// Keys of its packets.
    pub(crate) keys: Box<SrtpKeys>,
    /// The session at the server.
    pub(crate) session: CalledSession,
}

impl Call<'_> {
    /// Sends an offer of some sections, and connects to the server that answers it. `take` reads the answer before the server is
    /// connected to. Cancel safe: a dropped call ends its session.
    ///
    /// # Errors
    /// The server refuses the offer or can't be connected to, or `take` fails.
    pub(crate) async fn make<T, E: From<CallError>>(
        &self,
        sections: &[SentSection],
        take: impl FnOnce(&ReceivedAnswer) -> Result<T, E>,
    ) -> Result<(Called, T), E> {
        let deadline = Deadline::now() + self.patience;
        let (identity, local) = (Identity::new().map_err(CallError::from)?, credentials()?);
        let offer = SentOffer {
            session: fastrand::u64(..) >> 1,
            local: &local,
            fingerprint: identity.fingerprint(),
            stream: STREAM,
            sections,
        };
        let answered = timeout_at(deadline, signalling::offer(self, &offer.write())).await;
        let (answer, session) = answered.map_err(|_| CallError::Late(self.purpose, self.patience))??;
        let answer = ReceivedAnswer::read(&answer).map_err(CallError::from)?;
        let taken = take(&answer)?;
        let sockets = Sockets::open(&answer.addresses).await.map_err(CallError::from)?;
        let peer = RtcPeer::calling(local, &identity, &answer, fastrand::u64(..), Instant::now());
        let mut link = Link::new(peer, sockets);
        let keys = match timeout_at(deadline, link.connect()).await {
            Ok(connected) => connected.map_err(CallError::from)?,
            Err(_) => return Err(unconnected(&link, &answer.addresses).into()),
        };
        Ok((Called { link, keys, session }, taken))
    }
}

/// Why a server that has answered an offer was not connected to in time.
fn unconnected(link: &Link, addresses: &[SocketAddr]) -> CallError {
    match link.address() {
        Some(address) => CallError::Handshake(address.to_string()),
        None => {
            let all: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            CallError::Unreachable(all.join(", "))
        }
    }
}

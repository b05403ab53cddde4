//! DESCRIBE: the tracks of a medium, and how they can be received (RFC 2326 10.2).

use super::{Connection, failed, found, refused};
use crate::{
    live::{PhasedTitle, is_for_relay},
    rtsp::{
        medium::Medium,
        signalling::{Outcome, clock},
        srtp::Promises,
    },
};
use millpond_rtp::{
    message::StatusCode,
    sdp_writer::{self, Repeats, SessionTimes},
    setup::RtpProfile,
};
use millpond_stream::{
    PACKETS_KEPT,
    broadcast::{Ahead, BroadcastPhase},
    ntp,
};
use std::{
    io,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Reason why a session has no keys or no name.
pub(super) const NO_RANDOM: &str = "the system has no random numbers";

/// The reply for a medium of which no track can be sent, with the reason of each.
fn unsupported(medium: &Medium) -> Outcome<'static> {
    let (path, found) = (medium.feed().path(), medium.codecs().join(", "));
    let why = format!("{path}: no track can be sent by RTP: {found}");
    tracing::warn!(path, why, "RTSP request failed");
    refused(StatusCode::UnsupportedMediaType, why)
}

/// Describes the phase that a viewer who begins now may join: its path, the wall time at which its lap began, and the seconds of the
/// title that it has sent since.
fn phase(phased: &PhasedTitle) -> Option<String> {
    let Ahead { phase, lead } = phased.phases.nearest(Duration::ZERO, Instant::now())?;
    let phase = BroadcastPhase { channel: phased.channel.clone(), number: phase, of: phased.phases.count() };
    let began = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.checked_sub(lead)?;
    let began = clock(began, None);
    let began = began.trim_start_matches("clock=").trim_end_matches('-');
    Some(format!("/{} began={began} sent={:.3}", phase.path(), lead.as_secs_f64()))
}

/// Whether a client asks for lost packets only where the description names AVPF. Others, such as live555, leave out streams of a
/// profile that they don't know, and a client that knows retransmission can set up AVPF without being told.
fn wants_avpf(agent: Option<&str>) -> bool {
    agent.is_some_and(|agent| agent.starts_with("GStreamer"))
}

impl Connection<'_> {
    /// Describes the medium of a path, for a client that can receive `most` bits a second. One without room here is sent
    /// `elsewhere`. `agent` is how it calls itself.
    pub(super) async fn describe(
        &mut self,
        (path, query): (&str, &str),
        most: Option<u64>,
        (elsewhere, agent): (Option<String>, Option<&str>),
    ) -> Outcome<'static> {
        if is_for_relay(query) && self.rtsp.sources.is_relayed(path) {
            return refused(StatusCode::ServiceUnavailable, "this node takes the stream from another node");
        }
        let (medium, rendition) = match self.medium(path, query).await {
            Ok(found) => found,
            Err(error) => return failed(path, &error),
        };
        // A live stream stays open until the client has set it up.
        let runs = medium.program().is_some() || medium.phased().is_some();
        self.described = runs.then(|| medium.clone());
        let stored = medium.stored();
        let feed = medium.feed();
        let chosen = feed.chosen(rendition.as_deref(), most.filter(|_| stored.is_some() && !runs));
        let (numbers, mut all): (Vec<usize>, Vec<_>) =
            chosen.iter().filter_map(|(number, format)| Some((*number, format.described(*number)?))).unzip();
        if all.is_empty() {
            return unsupported(&medium);
        }
        if let Some(elsewhere) = elsewhere
            && !self.rtsp.manager.has_room(self.peer.ip(), feed, &numbers, stored.map(|media| &**media))
        {
            return found(elsewhere);
        }
        let keys = match self.promise(path, &numbers) {
            Ok(keys) => keys,
            Err(error) => {
                tracing::error!(%error, "no keys for SRTP");
                return refused(StatusCode::InternalServerError, NO_RANDOM);
            }
        };
        all.iter_mut().zip(&keys).for_each(|(described, key)| described.keys = Some(key));
        if self.inlet.takes_udp(RtpProfile::Avpf) {
            let repeats = Repeats { time: PACKETS_KEPT, is_avpf: wants_avpf(agent) };
            all.iter_mut().for_each(|described| described.repeats = Some(repeats));
        }
        let duration = medium.duration();
        // Players that join the live edge look at the first range only.
        let kept = medium.program().and_then(|program| self.rtsp.manager.kept(program.path()));
        let kept = kept.map(|(from, _)| clock(from, None));
        let phase = medium.phased().and_then(phase);
        let times = SessionTimes { duration, kept: kept.as_deref(), phase: phase.as_deref() };
        Outcome::Described(sdp_writer::describe(feed.path(), feed.id(), &times, &all))
    }

    /// Makes keys for tracks, where the connection can carry them in secret.
    fn promise(&mut self, path: &str, tracks: &[usize]) -> io::Result<Vec<String>> {
        if !self.inlet.is_secure() {
            return Ok(Vec::new());
        }
        self.promises = Promises::of(path);
        tracks.iter().map(|track| self.promises.make(*track, ntp(SystemTime::now()))).collect()
    }
}

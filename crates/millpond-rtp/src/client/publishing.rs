//! The session of a publisher: ANNOUNCE, SETUP of each track, RECORD (RFC 2326 10.3, 10.11).

use super::{
    ClientAction, ClientError, ClientOptions, RtspClient, State, Tracks,
    request::{Request, RequestKind},
};
use crate::setup::{Offer, RtpProfile};
use std::time::Duration;

/// The tracks that a publisher announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The session description.
    pub description: String,
    /// The `control` attribute of each track in it.
    pub controls: Vec<String>,
}

impl RtspClient {
    /// Creates the client of a publisher for a URL, whose credentials are ignored in favour of those in `options`. The session begins
    /// with [`ClientAction::Connect`], and packets may be sent on the connection after [`ClientAction::Recording`].
    ///
    /// # Errors
    /// The URL has another scheme than `rtsp` or `rtsps`, or no host.
    pub fn publisher(
        url: &str,
        announcement: Announcement,
        options: ClientOptions,
        now: Duration,
    ) -> Result<Self, ClientError> {
        Ok(Self { announcement: Some(announcement), ..Self::new(url, options, now)? })
    }

    /// Announces the tracks.
    pub(super) fn announce(&mut self, now: Duration) {
        let Some(announcement) = &self.announcement else { return };
        let request = Request::new(RequestKind::Announce, "ANNOUNCE", &self.target.url);
        let request = request.with_description(&announcement.description);
        self.ask(request, now);
    }

    /// Sets up all tracks on the connection, once the announcement was accepted.
    pub(super) fn announced(&mut self, now: Duration) {
        let Some(Announcement { controls, .. }) = &self.announcement else { return };
        let url = self.target.url.trim_end_matches('/');
        // The track stands behind the query too, as other clients put it.
        let streams: Vec<_> = controls.iter().map(|control| format!("{url}/{control}")).collect();
        let profiles = vec![vec![RtpProfile::Avp]; streams.len()];
        let offers = (0..streams.len()).map(|stream| (stream, Offer::Interleaved(None))).collect();
        self.tracks = Tracks { control: self.target.url.clone(), streams, profiles, offers, ..Tracks::default() };
        self.state = State::SettingUp;
        self.set_up_next(now);
    }

    /// Begins to record, once all tracks are set up.
    pub(super) fn record(&mut self, now: Duration) {
        let request = Request::new(RequestKind::Record, "RECORD", &self.tracks.control);
        self.ask(request.with("Range", "npt=0.000-"), now);
    }

    /// Tells that packets may be sent.
    pub(super) fn recording(&mut self) {
        self.actions.push_back(ClientAction::Recording(self.tracks.agreed.clone()));
    }
}

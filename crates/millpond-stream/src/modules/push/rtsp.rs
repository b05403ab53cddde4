//! RTSP: the tracks are announced to a server, and sent on the connection (RFC 2326 10.3, 10.12).

use super::{pushing::WayError, rtp_track::RtpTrack};
use crate::{
    Format, Run,
    live::{FormatsChanged, Program},
    reception::{Connector, RtspSource, Stopwatch, Wire},
};
use millpond_rtp::{
    client::{Announcement, ClientAction, ClientError, ClientTrack, Endpoint, RtspClient, TrackTransport},
    sdp_writer::{self, Described, SessionTimes},
};
use std::{
    io,
    sync::Arc,
    time::{Instant, SystemTime},
};

/// Name of the sender in reports (RFC 3550 6.5.1).
const CNAME: &str = "millpond";

/// Why a server can't be published to, or no more.
#[derive(Debug, thiserror::Error)]
pub(super) enum RtspWayError {
    #[error("{0}")]
    Client(String),
    #[error("connection: {0}")]
    Connection(#[from] io::Error),
    #[error("the server ended the session")]
    Over,
    #[error("the server does not take media on the connection")]
    Transport,
}

/// Shows errors of a client without the query of its URL.
#[derive(Clone)]
struct Shown(Option<String>);

impl Shown {
    fn of(server: &RtspSource) -> Self {
        Self(server.url().split_once('?').map(|(_, query)| query.to_owned()).filter(|query| !query.is_empty()))
    }

    fn error(&self, error: &ClientError) -> RtspWayError {
        let words = error.to_string();
        RtspWayError::Client(match &self.0 {
            Some(query) => words.replace(query, "***"),
            None => words,
        })
    }
}

/// A session of a publisher.
pub(super) struct RtspWay {
    client: RtspClient,
    shown: Shown,
    wire: Wire,
    watch: Stopwatch,
    tracks: Vec<ChannelTrack>,
    /// Number of the current epoch; `None` before the first frame.
    epoch: Option<u32>,
}

impl RtspWay {
    /// Announces the tracks of a program, and sets them up. Returns once the server takes packets.
    pub(super) async fn open(
        server: &RtspSource,
        connector: &Arc<dyn Connector>,
        program: &Program,
    ) -> Result<Self, WayError> {
        let described = |(track, format)| Some((track, Format::described(format, usize::from(track))?));
        let formats: Vec<(u16, Described<'_>)> = program.formats().filter_map(described).collect();
        if formats.is_empty() {
            return Err(WayError::NoPayloads);
        }
        let sdp: Vec<Described<'_>> = formats.iter().map(|(_, described)| *described).collect();
        let description = sdp_writer::describe("Millpond", 1, &SessionTimes::default(), &sdp);
        let controls = sdp.iter().map(|described| described.name.to_owned()).collect();
        let tracks = formats.iter().map(|(track, described)| RtpTrack::new(*track, described)).collect();
        let watch = Stopwatch::start();
        let (announcement, options) =
            (Announcement { description, controls }, server.client_options(fastrand::u64(..)));
        let client = RtspClient::publisher(server.url(), announcement, options, watch.now());
        let shown = Shown::of(server);
        let client = client.map_err(|error| shown.error(&error))?;
        let mut opening = Opening { client, shown: shown.clone(), connector, watch };
        let (wire, agreed) = opening.run().await?;
        let Opening { client, .. } = opening;
        let tracks = paired(tracks, &agreed)?;
        Ok(Self { client, shown, wire, watch, tracks, epoch: None })
    }

    /// Sends the packets of frames. Waits while the server takes nothing.
    pub(super) async fn send(&mut self, run: &Run, program: &Program) -> Result<(), WayError> {
        for frame in run.iter() {
            if self.epoch.replace(frame.epoch) != Some(frame.epoch)
                && let Some(epoch) = program.feed().epoch(frame.epoch)
            {
                let of = |track: u16| epoch.formats.get(usize::from(track)).and_then(Option::as_ref);
                if !self.tracks.iter_mut().all(|(track, _)| track.adopt(of(track.track))) {
                    return Err(FormatsChanged.into());
                }
            }
            let Self { tracks, wire, .. } = self;
            let Some((track, (rtp, rtcp))) = tracks.iter_mut().find(|(track, _)| track.track == frame.track) else {
                continue;
            };
            track.packets(frame, |parts| wire.send_packet(*rtp, &parts));
            if let Some(report) = track.report(frame.pts, (Instant::now(), SystemTime::now())) {
                wire.send_packet(*rtcp, &[&report.to_bytes(CNAME)]);
            }
        }
        self.wire.flush().await.map_err(RtspWayError::from)?;
        Ok(())
    }

    /// Answers the server and keeps the session, until it ends. Cancel safe.
    pub(super) async fn serve(&mut self) -> RtspWayError {
        loop {
            while self.client.receive(&mut self.wire.input, self.watch.now()).is_some() {}
            while let Some(action) = self.client.poll() {
                match action {
                    ClientAction::Send(bytes) => self.wire.send(&bytes),
                    ClientAction::Failed(error) => return self.shown.error(&error),
                    // A redirect: the next connection goes there by itself, if the server tells it again.
                    ClientAction::Connect(_) | ClientAction::Closed => return RtspWayError::Over,
                    _ => {}
                }
            }
            let wake = self.client.wake();
            tokio::select! {
                exchanged = self.wire.exchange() => if let Err(error) = exchanged { return error.into() },
                () = self.watch.sleep_until(wake) => self.client.tick(self.watch.now()),
            }
        }
    }
}

impl Drop for RtspWay {
    /// Tells the server that the session ends, without waiting for its reply.
    fn drop(&mut self) {
        self.client.tear_down(self.watch.now());
        while let Some(action) = self.client.poll() {
            if let ClientAction::Send(bytes) = action {
                self.wire.send(&bytes);
            }
        }
        self.wire.write_now();
    }
}

/// A track with its channels of RTP and RTCP.
type ChannelTrack = (RtpTrack, (u8, u8));

/// Gives each track that the server has set up its channels.
fn paired(tracks: Vec<RtpTrack>, agreed: &[ClientTrack]) -> Result<Vec<ChannelTrack>, RtspWayError> {
    let mut paired = Vec::new();
    for (index, track) in tracks.into_iter().enumerate() {
        let Some(client_track) = agreed.iter().find(|agreed| agreed.stream == index) else { continue };
        let TrackTransport::Interleaved { channels } = client_track.transport else {
            return Err(RtspWayError::Transport);
        };
        paired.push((track, channels));
    }
    Ok(paired)
}

/// A session that is being opened.
struct Opening<'a> {
    client: RtspClient,
    shown: Shown,
    connector: &'a Arc<dyn Connector>,
    watch: Stopwatch,
}

impl Opening<'_> {
    /// Connects and speaks with the server until it takes packets.
    async fn run(&mut self) -> Result<(Wire, Vec<ClientTrack>), RtspWayError> {
        let mut wire = None;
        loop {
            while let Some(action) = self.client.poll() {
                match (action, &mut wire) {
                    (ClientAction::Connect(endpoint), _) => wire = Some(self.connect(&endpoint).await?),
                    (ClientAction::Send(bytes), Some(wire)) => wire.send(&bytes),
                    (ClientAction::Recording(tracks), Some(_)) => {
                        return wire.map(|wire| (wire, tracks)).ok_or(RtspWayError::Over);
                    }
                    (ClientAction::Failed(error), _) => return Err(self.shown.error(&error)),
                    (ClientAction::Closed, _) => return Err(RtspWayError::Over),
                    _ => {}
                }
            }
            let Some(wire) = &mut wire else { return Err(RtspWayError::Over) };
            if self.client.receive(&mut wire.input, self.watch.now()).is_some() {
                continue;
            }
            let wake = self.client.wake();
            tokio::select! {
                exchanged = wire.exchange() => exchanged?,
                () = self.watch.sleep_until(wake) => self.client.tick(self.watch.now()),
            }
        }
    }

    async fn connect(&mut self, endpoint: &Endpoint) -> io::Result<Wire> {
        let wire = Wire::new(self.connector.connect(endpoint).await?);
        self.client.connected(self.watch.now());
        Ok(wire)
    }
}

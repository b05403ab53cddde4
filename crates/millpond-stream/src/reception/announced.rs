//! Media that a publisher announces, and the transports that it is sent on.

use crate::{
    reception::{
        assembly::Assembly,
        format::StreamFormat,
        rtsp::tracks::{Tracks, choose},
        udp::{UdpMedia, UdpTrack},
    },
    source_health::{SourceError, SourceErrorKind},
};
use millpond_rtp::{
    client::{ClientTrack, TrackTransport},
    sdp_reader::{MediaDescription, SessionDescription},
    setup::RtpProfile,
};
use std::{fmt, io, net::IpAddr, sync::Arc, time::Duration};

/// Most streams of an announcement. Publishers set all of them up, even those that can't be received.
const MOST_STREAMS: usize = 16;

/// Sends a report on an interleaved channel of the publisher's connection.
pub type Backchannel = Arc<dyn Fn(u8, &[u8]) + Send + Sync>;

/// The streams of an announcement (RFC 2326 10.3), and the transports that were agreed upon.
pub struct AnnouncedMedia {
    description: SessionDescription,
    /// By stream of the description; `None` before it is set up.
    agreed: Vec<Option<Agreed>>,
    back: Option<Backchannel>,
}

/// The transport of a stream.
enum Agreed {
    Interleaved((u8, u8)),
    Udp(UdpTrack),
    /// Datagrams that the publisher's connection passes on: RTP on the channel, RTCP on the next one.
    Passed(u8),
}

/// A publication with its tracks, as it is received.
pub(super) struct Received {
    pub(super) tracks: Tracks,
    /// Channel of each track whose datagrams the publisher's connection passes on.
    pub(super) passed: Vec<Option<u8>>,
    pub(super) udp: UdpMedia,
    pub(super) back: Option<Backchannel>,
}

impl AnnouncedMedia {
    /// Takes the description of an announcement.
    ///
    /// # Errors
    /// It has more than 16 streams, or none that can be received.
    pub fn new(description: SessionDescription) -> Result<Self, SourceError> {
        let streams = &description.streams;
        let count = streams.len() + description.skipped.len();
        if count > MOST_STREAMS {
            return Err(no_media(format!("{count} streams, expected at most {MOST_STREAMS}")));
        }
        if !streams.iter().any(Self::takes) {
            let found: Vec<&str> = streams.iter().map(|stream| stream.encoding.as_str()).collect();
            return Err(no_media(format!("no supported stream among {found:?}")));
        }
        let agreed = (0..streams.len() + description.skipped.len()).map(|_| None).collect();
        Ok(Self { description, agreed, back: None })
    }

    /// Whether a stream of a description can be received.
    #[must_use]
    pub fn takes(stream: &MediaDescription) -> bool {
        StreamFormat::new(stream, 1, 1).is_ok()
    }

    /// The first stream whose control URL fits. Streams behind those of the description are sections that were skipped.
    pub fn stream(&self, fits: impl Fn(&str) -> bool) -> Option<usize> {
        let SessionDescription { streams, skipped, .. } = &self.description;
        let mut all =
            streams.iter().map(|stream| &stream.control).chain(skipped.iter().map(|section| &section.control));
        all.position(|control| fits(control))
    }

    /// Whether a stream was set up.
    pub fn is_set_up(&self) -> bool {
        self.agreed.iter().any(Option::is_some)
    }

    /// Sets a stream up on channels of the connection.
    pub fn set_up_interleaved(&mut self, stream: usize, channels: (u8, u8)) {
        if let Some(agreed) = self.agreed.get_mut(stream) {
            *agreed = Some(Agreed::Interleaved(channels));
        }
    }

    /// Opens UDP ports for a stream at a local address. Packets are taken from the host `peer` only. Reports are sent to the
    /// second of its `ports`. Returns the opened ports of RTP and RTCP.
    ///
    /// # Errors
    /// No ports can be opened.
    pub fn set_up_udp(
        &mut self,
        stream: usize,
        local: IpAddr,
        (peer, ports): (IpAddr, (u16, u16)),
    ) -> io::Result<(u16, u16)> {
        let track = UdpTrack::open(local, peer, ports)?;
        let numbers = track.ports();
        if let Some(agreed) = self.agreed.get_mut(stream) {
            *agreed = Some(Agreed::Udp(track));
        }
        Ok(numbers)
    }

    /// Sets a stream up whose datagrams are pushed in the order of their arrival: RTP on a channel, which is an even number, and RTCP
    /// on the next one. Lost packets and key frames are asked for as the description offers. Reports and requests leave by the
    /// backchannel, on the channel of RTCP.
    pub fn set_up_passed(&mut self, stream: usize, channel: u8) {
        if let Some(agreed) = self.agreed.get_mut(stream) {
            *agreed = Some(Agreed::Passed(channel));
        }
    }

    /// Sets how reports are sent on the connection.
    pub fn set_backchannel(&mut self, back: Backchannel) {
        self.back = Some(back);
    }

    /// Begins to receive the streams that were set up.
    pub(super) fn receive(self, assembly: &mut Assembly, now: Duration) -> Result<Received, SourceError> {
        let Self { mut description, mut agreed, back } = self;
        // Publishers set up what is skipped too.
        agreed.truncate(description.streams.len());
        let mut each = agreed.iter();
        description.streams.retain(|_| each.next().is_some_and(Option::is_some));
        let mut agreed: Vec<Option<Agreed>> = agreed.into_iter().filter(Option::is_some).collect();
        let chosen = choose(&description, assembly);
        if chosen.is_empty() {
            return Err(no_media("no stream that can be received was set up".to_owned()));
        }
        let (mut tracks, mut udp, mut passed) = (Vec::new(), Vec::new(), Vec::new());
        let datagrams = TrackTransport::Unicast { server: None, source: None };
        for stream in chosen.iter().map(|chosen| chosen.stream) {
            let (transport, profile, socket, channel) = match agreed.get_mut(stream).and_then(Option::take) {
                Some(Agreed::Interleaved(channels)) => {
                    (TrackTransport::Interleaved { channels }, RtpProfile::Avp, None, None)
                }
                Some(Agreed::Udp(track)) => (datagrams, RtpProfile::Avp, Some(track), None),
                Some(Agreed::Passed(channel)) => (datagrams, RtpProfile::Avpf, None, Some(channel)),
                None => continue,
            };
            tracks.push(ClientTrack { stream, transport, ssrc: None, profile });
            udp.push(socket);
            passed.push(channel);
        }
        let takes: Vec<bool> = chosen.iter().map(|chosen| chosen.description.feedback.takes_key_frames).collect();
        let mut tracks = Tracks::new(chosen, &tracks, now).map_err(|error| no_media(error.to_string()))?;
        let asked = passed.iter().zip(takes).enumerate().filter(|(_, (channel, takes))| channel.is_some() && *takes);
        asked.for_each(|(place, _)| tracks.ask_for_key_frames(place, now));
        Ok(Received { tracks, passed, udp: UdpMedia::of(udp), back })
    }
}

fn no_media(words: String) -> SourceError {
    SourceError { kind: SourceErrorKind::NoMedia, address: super::published::ADDRESS.to_owned(), words }
}

impl fmt::Debug for AnnouncedMedia {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnnouncedMedia").field("description", &self.description).finish_non_exhaustive()
    }
}

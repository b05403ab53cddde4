//! Writes offers: the server sends media to a peer that it has called, or receives media from it.

use super::{Fingerprint, IceCredentials, SectionKind, SentFormat, answer::identifier};
use millpond_rtp::transport_cc;
use sdp_types::{AddrType, Attribute, Connection, Media, NetType, Origin, Session, Time};

/// Kinds of feedback that are offered (RFC 4585 4.2): of all media, and of pictures.
const NACK: &str = "nack";
const PICTURE_LOSS: &str = "nack pli";
/// Port of sections whose address the peer learns from checks (RFC 8839 4.2.1).
const PORT: u16 = 9;

/// An offer of media that the server sends or receives. All sections share one transport.
#[derive(Clone, Copy, Debug)]
pub struct SentOffer<'a> {
    /// Number of the session: less than 2^63.
    pub session: u64,
    /// Credentials of the server in ICE.
    pub local: &'a IceCredentials,
    /// Fingerprint of the server's certificate.
    pub fingerprint: &'a Fingerprint,
    /// Name of the stream, which is also its CNAME in RTCP: tracks of one stream are played in sync.
    pub stream: &'a str,
    /// A section for each track. The index is the name of the section.
    pub sections: &'a [SentSection],
}

/// A track that is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentSection {
    /// Pictures or sound.
    pub kind: SectionKind,
    /// Its formats, in order of preference.
    pub formats: Vec<SentFormat>,
    /// Direction of its media.
    pub media: OfferedMedia,
}

/// The media of a section, as the server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferedMedia {
    /// The server sends a track.
    Sends {
        /// SSRC of the packets.
        ssrc: u32,
        /// SSRC of packets that are sent again. It counts for formats with a `repeat_type`.
        repeat_ssrc: u32,
        /// Name of the track.
        track: String,
    },
    /// The server receives a track.
    Receives {
        /// Number of the header extension by which arrivals are reported ([`transport_cc`]).
        arrivals: u8,
    },
}

impl SentSection {
    fn repeats(&self) -> bool {
        self.formats.iter().any(|format| format.repeat_type.is_some())
    }

    /// The attributes that tell the formats.
    fn format_attributes(&self) -> impl Iterator<Item = Attribute> {
        let is_video = self.kind == SectionKind::Video;
        let reports = matches!(self.media, OfferedMedia::Receives { .. });
        self.formats.iter().flat_map(move |format| {
            let SentFormat { payload_type, repeat_type, encoding, clock_rate, channels, parameters } = format;
            let channels = channels.map(|channels| format!("/{channels}")).unwrap_or_default();
            let map = format!("{payload_type} {encoding}/{clock_rate}{channels}");
            let mut attributes = vec![Attribute::with_value("rtpmap", map)];
            if !parameters.is_empty() {
                attributes.push(Attribute::with_value("fmtp", format!("{payload_type} {parameters}")));
            }
            let feedback = [Some(NACK), is_video.then_some(PICTURE_LOSS), reports.then_some(transport_cc::FEEDBACK)];
            let feedback = feedback.into_iter().flatten();
            attributes.extend(feedback.map(|kind| Attribute::with_value("rtcp-fb", format!("{payload_type} {kind}"))));
            if let Some(repeat) = repeat_type {
                attributes.extend([
                    Attribute::with_value("rtpmap", format!("{repeat} rtx/{clock_rate}")),
                    Attribute::with_value("fmtp", format!("{repeat} apt={payload_type}")),
                ]);
            }
            attributes
        })
    }

    /// The direction, and the header extensions of packets.
    fn direction(&self) -> Vec<Attribute> {
        match self.media {
            OfferedMedia::Sends { .. } => vec![Attribute::new("sendonly"), Attribute::new("rtcp-mux")],
            OfferedMedia::Receives { arrivals } => vec![
                Attribute::new("recvonly"),
                Attribute::new("rtcp-mux"),
                Attribute::with_value("extmap", format!("{arrivals} {}", transport_cc::URI)),
            ],
        }
    }

    /// The attributes that tell the track and its SSRCs; none of a track that is received.
    fn sources(&self, stream: &str) -> Vec<Attribute> {
        let OfferedMedia::Sends { ssrc, repeat_ssrc, track } = &self.media else { return Vec::new() };
        let stream = identifier(stream);
        let mut attributes = vec![Attribute::with_value("msid", format!("{stream} {}", identifier(track)))];
        let mut all = vec![ssrc];
        if self.repeats() {
            attributes.push(Attribute::with_value("ssrc-group", format!("FID {ssrc} {repeat_ssrc}")));
            all.push(repeat_ssrc);
        }
        attributes.extend(all.iter().map(|ssrc| Attribute::with_value("ssrc", format!("{ssrc} cname:{stream}"))));
        attributes
    }

    /// The payload types of the `m=` line.
    fn payload_types(&self) -> String {
        let each = self.formats.iter().flat_map(|format| [Some(format.payload_type), format.repeat_type]);
        each.flatten().map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
    }
}

impl SentOffer<'_> {
    /// Writes the offer.
    #[must_use]
    pub fn write(&self) -> String {
        let mids = (0..self.sections.len()).map(|at| at.to_string()).collect::<Vec<_>>().join(" ");
        let session = Session {
            origin: Origin {
                username: None,
                sess_id: self.session.to_string(),
                sess_version: 1,
                nettype: NetType::In,
                addrtype: AddrType::Ip4,
                unicast_address: "0.0.0.0".to_owned(),
            },
            session_name: "-".to_owned(),
            session_description: None,
            uri: None,
            emails: Vec::new(),
            phones: Vec::new(),
            connection: None,
            bandwidths: Vec::new(),
            times: vec![Time { start_time: 0, stop_time: 0, repeats: Vec::new() }],
            time_zones: Vec::new(),
            key: None,
            attributes: vec![
                Attribute::with_value("group", format!("BUNDLE {mids}")),
                Attribute::with_value("msid-semantic", "WMS *"),
            ],
            medias: self.sections.iter().enumerate().map(|(at, section)| self.media(at, section)).collect(),
        };
        let mut text = Vec::new();
        // Writing to memory never fails.
        let _ = session.write(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    fn media(&self, at: usize, section: &SentSection) -> Media {
        let mut attributes = vec![Attribute::with_value("mid", at.to_string())];
        attributes.extend(self.transport());
        attributes.extend(section.direction());
        attributes.extend(section.format_attributes());
        attributes.extend(section.sources(self.stream));
        if at == 0 {
            attributes.push(Attribute::new("end-of-candidates"));
        }
        let any =
            Connection { nettype: NetType::In, addrtype: AddrType::Ip4, connection_address: "0.0.0.0".to_owned() };
        Media {
            media: section.kind.name().to_owned(),
            port: PORT,
            num_ports: None,
            proto: "UDP/TLS/RTP/SAVPF".to_owned(),
            fmt: section.payload_types(),
            media_title: None,
            connections: vec![any],
            bandwidths: Vec::new(),
            key: None,
            attributes,
        }
    }

    /// The server's half of ICE and DTLS. Without `ice2` its checks may all nominate (RFC 8445 10).
    fn transport(&self) -> [Attribute; 4] {
        [
            Attribute::with_value("ice-ufrag", &self.local.ufrag),
            Attribute::with_value("ice-pwd", &self.local.password),
            Attribute::with_value("fingerprint", format!("sha-256 {}", self.fingerprint)),
            Attribute::with_value("setup", "actpass"),
        ]
    }
}

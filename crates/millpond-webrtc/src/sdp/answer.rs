//! Writes answers.

use super::{Fingerprint, IceCandidate, IceCredentials, OfferedFormat, Section, SectionKind};
use millpond_rtp::transport_cc;
use sdp_types::{AddrType, Attribute, Connection, Media, NetType, Origin, Session, Time};

/// Kinds of feedback that the server acts on (RFC 4585 4.2, RFC 5104 7.1).
const FEEDBACK: [&str; 3] = ["nack", "nack pli", "ccm fir"];
/// Port of sections whose address is that of a candidate (RFC 8839 4.2.1).
const PORT: u16 = 9;
/// Parameters of H.264 that are the same in both directions (RFC 6184 8.2.2).
const AVC_PARAMETERS: [&str; 3] = ["profile-level-id", "packetization-mode", "level-asymmetry-allowed"];
/// Longest identifier of a stream or track (RFC 8830 2).
const MOST_IDENTIFIER: usize = 64;

/// An answer to an offer.
#[derive(Clone, Copy, Debug)]
pub struct PeerAnswer<'a> {
    /// Number of the session: less than 2^63.
    pub session: u64,
    /// Credentials of the server in ICE.
    pub local: &'a IceCredentials,
    /// Fingerprint of the server's certificate.
    pub fingerprint: &'a Fingerprint,
    /// Whether the server begins DTLS.
    pub begins_dtls: bool,
    /// Addresses of the server, in order of preference.
    pub candidates: &'a [IceCandidate],
    /// A section for each one of the offer, in its order.
    pub sections: &'a [AnsweredSection<'a>],
    /// Words about the session for people.
    pub note: Option<&'a str>,
}

/// The answer to a section.
#[derive(Clone, Debug)]
pub enum AnsweredSection<'a> {
    /// The server sends a track.
    Sends {
        /// Section of the offer.
        section: &'a Section,
        /// Format of the packets.
        format: &'a OfferedFormat,
        /// SSRC of the packets.
        ssrc: u32,
        /// SSRC of packets that are sent again; `None` where lost packets stay lost. It counts for formats with a `repeat_type`.
        repeat_ssrc: Option<u32>,
        /// Name of the track.
        track: &'a str,
        /// Name of the stream, which is also its CNAME in RTCP: tracks of one stream are played in sync.
        stream: &'a str,
    },
    /// The server receives a track.
    Receives {
        /// Section of the offer.
        section: &'a Section,
        /// Format of the packets.
        format: &'a OfferedFormat,
        /// Number of the header extension by which arrivals are reported ([`transport_cc`](millpond_rtp::transport_cc)); `None`
        /// where they are not.
        arrivals: Option<u8>,
    },
    /// There is nothing to send or receive.
    Rejected {
        /// Section of the offer.
        section: &'a Section,
    },
}

impl<'a> AnsweredSection<'a> {
    /// The section of the offer.
    #[must_use]
    pub fn section(&self) -> &'a Section {
        match *self {
            Self::Sends { section, .. } | Self::Receives { section, .. } | Self::Rejected { section } => section,
        }
    }

    fn is_accepted(&self) -> bool {
        !matches!(self, Self::Rejected { .. })
    }

    /// The formats of the `m=` line; none for a rejected section.
    fn formats(&self) -> Vec<&'a OfferedFormat> {
        match *self {
            Self::Sends { section, format, repeat_ssrc, .. } => {
                let repeat = repeat_ssrc.and(format.repeat_type).and_then(|number| section.format(number));
                [format].into_iter().chain(repeat).collect()
            }
            Self::Receives { section, format, .. } => {
                let repeat = format.repeat_type.and_then(|number| section.format(number));
                [format].into_iter().chain(repeat).collect()
            }
            Self::Rejected { .. } => Vec::new(),
        }
    }

    /// The header extensions of packets.
    fn extensions(&self) -> Option<Attribute> {
        let Self::Receives { arrivals: Some(number), .. } = *self else { return None };
        Some(Attribute::with_value("extmap", format!("{number} {}", transport_cc::URI)))
    }

    /// The kinds of feedback that the server sends or acts on.
    fn feedback(&self) -> impl Iterator<Item = &'static str> {
        let reports = matches!(self, Self::Receives { arrivals: Some(_), .. });
        FEEDBACK.into_iter().chain(reports.then_some(transport_cc::FEEDBACK))
    }

    /// The attributes that tell the track and its SSRCs.
    fn sources(&self) -> Vec<Attribute> {
        let Self::Sends { format, ssrc, repeat_ssrc, track, stream, .. } = *self else { return Vec::new() };
        let (track, stream) = (identifier(track), identifier(stream));
        let mut attributes = vec![Attribute::with_value("msid", format!("{stream} {track}"))];
        let repeat = repeat_ssrc.filter(|_| format.repeat_type.is_some());
        attributes.extend(repeat.map(|repeat| Attribute::with_value("ssrc-group", format!("FID {ssrc} {repeat}"))));
        let all = [ssrc].into_iter().chain(repeat);
        attributes.extend(all.map(|ssrc| Attribute::with_value("ssrc", format!("{ssrc} cname:{stream}"))));
        attributes
    }
}

impl PeerAnswer<'_> {
    /// Writes the answer.
    #[must_use]
    pub fn write(&self) -> String {
        let accepted = self.sections.iter().filter(|section| section.is_accepted()).map(AnsweredSection::section);
        let bundled = accepted.filter(|section| section.is_bundled).map(|section| section.mid.as_str());
        let bundled: Vec<&str> = bundled.collect();
        let group = format!("BUNDLE {}", bundled.join(" "));
        let group = (!bundled.is_empty()).then(|| Attribute::with_value("group", group));
        let semantics = Attribute::with_value("msid-semantic", "WMS *");
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
            session_description: self.note.map(str::to_owned),
            uri: None,
            emails: Vec::new(),
            phones: Vec::new(),
            connection: None,
            bandwidths: Vec::new(),
            times: vec![Time { start_time: 0, stop_time: 0, repeats: Vec::new() }],
            time_zones: Vec::new(),
            key: None,
            attributes: std::iter::once(Attribute::new("ice-lite")).chain(group).chain([semantics]).collect(),
            medias: self.medias(),
        };
        let mut text = Vec::new();
        // Writing to memory never fails.
        let _ = session.write(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    fn medias(&self) -> Vec<Media> {
        // All sections have the transport of the first one (RFC 9143 7.3).
        let first = self.sections.iter().position(AnsweredSection::is_accepted);
        self.sections
            .iter()
            .enumerate()
            .map(|(at, answered)| {
                let section = answered.section();
                if !answered.is_accepted() {
                    let attributes = mid(section).into_iter().chain([Attribute::new("inactive")]).collect();
                    return media(section, 0, formats_of_rejected(section), attributes);
                }
                let formats = answered.formats();
                let list = formats.iter().map(|format| format.payload_type.to_string()).collect::<Vec<_>>().join(" ");
                let mut attributes: Vec<Attribute> = mid(section).into_iter().chain(self.transport()).collect();
                let direction = if matches!(answered, AnsweredSection::Sends { .. }) { "sendonly" } else { "recvonly" };
                attributes.extend([
                    Attribute::new(direction),
                    Attribute::new("rtcp-mux"),
                    Attribute::new("rtcp-mux-only"),
                ]);
                attributes.extend(answered.extensions());
                let described = |format| format_attributes(format, answered.feedback());
                attributes.extend(formats.into_iter().flat_map(described));
                attributes.extend(answered.sources());
                if first == Some(at) {
                    let candidates = IceCandidate::values(self.candidates).into_iter();
                    attributes.extend(candidates.map(|value| Attribute::with_value("candidate", value)));
                    attributes.push(Attribute::new("end-of-candidates"));
                }
                media(section, PORT, list, attributes)
            })
            .collect()
    }

    /// The server's half of ICE and DTLS.
    fn transport(&self) -> [Attribute; 5] {
        [
            Attribute::with_value("ice-ufrag", &self.local.ufrag),
            Attribute::with_value("ice-pwd", &self.local.password),
            Attribute::with_value("ice-options", "ice2"),
            Attribute::with_value("fingerprint", format!("sha-256 {}", self.fingerprint)),
            Attribute::with_value("setup", if self.begins_dtls { "active" } else { "passive" }),
        ]
    }
}

/// The formats of a rejected section, which nobody reads (RFC 3264 6). One is enough, and that of number 0 needs no `rtpmap`: some
/// parsers miss that of the others.
fn formats_of_rejected(section: &Section) -> String {
    match section.kind {
        SectionKind::Video | SectionKind::Audio => "0".to_owned(),
        SectionKind::Other(_) => section.format_list.clone(),
    }
}

fn mid(section: &Section) -> Option<Attribute> {
    (!section.mid.is_empty()).then(|| Attribute::with_value("mid", &section.mid))
}

fn media(section: &Section, port: u16, fmt: String, attributes: Vec<Attribute>) -> Media {
    let any = Connection { nettype: NetType::In, addrtype: AddrType::Ip4, connection_address: "0.0.0.0".to_owned() };
    Media {
        media: section.kind.name().to_owned(),
        port,
        num_ports: None,
        proto: section.proto.clone(),
        fmt,
        media_title: None,
        connections: vec![any],
        bandwidths: Vec::new(),
        key: None,
        attributes,
    }
}

fn format_attributes(format: &OfferedFormat, feedback: impl Iterator<Item = &'static str>) -> Vec<Attribute> {
    let OfferedFormat { payload_type, encoding, clock_rate, channels, .. } = format;
    let channels = channels.map(|channels| format!("/{channels}")).unwrap_or_default();
    let mut attributes =
        vec![Attribute::with_value("rtpmap", format!("{payload_type} {encoding}/{clock_rate}{channels}"))];
    let parameters = parameters(format);
    if !parameters.is_empty() {
        attributes.push(Attribute::with_value("fmtp", format!("{payload_type} {parameters}")));
    }
    let feedback = feedback.filter(|kind| format.takes(kind));
    attributes.extend(feedback.map(|kind| Attribute::with_value("rtcp-fb", format!("{payload_type} {kind}"))));
    attributes
}

/// Returns the parameters of a format as they were offered, without those that are about the offerer's own stream.
fn parameters(format: &OfferedFormat) -> String {
    let is_avc = format.is("H264");
    let is_kept = |name: &str| {
        if is_avc {
            AVC_PARAMETERS.iter().any(|kept| kept.eq_ignore_ascii_case(name))
        } else {
            !name.to_ascii_lowercase().starts_with("sprop-")
        }
    };
    let kept = format.parameters.iter().filter(|(name, _)| is_kept(name));
    let texts = kept.map(|(name, value)| if value.is_empty() { name.clone() } else { format!("{name}={value}") });
    texts.collect::<Vec<_>>().join(";")
}

/// Makes an identifier of a name (RFC 8830 2): a token of RFC 8866 9.
pub(super) fn identifier(name: &str) -> String {
    let is_token = |c: char| c.is_ascii_graphic() && !"\"(),/:;<=>?@[\\]".contains(c);
    let text: String = name.chars().map(|c| if is_token(c) { c } else { '-' }).take(MOST_IDENTIFIER).collect();
    if text.is_empty() { "-".to_owned() } else { text }
}

//! The tracks that a server is asked for, and those that it sends.

use super::error::WhepError;
use crate::{
    reception::{AnnouncedMedia, ReceivedTrack, described_section},
    source_health::SourceError,
};
use millpond_rtp::{sdp_reader::SessionDescription, transport_cc};
use millpond_webrtc::sdp::{
    OfferedFormat, OfferedMedia, ReceivedAnswer, SectionKind, SentSection, answered_formats, receivable_formats,
};

/// Sections of the offer.
const KINDS: [SectionKind; 2] = [SectionKind::Video, SectionKind::Audio];
/// Number of the header extension by which arrivals are reported.
const ARRIVALS: u8 = 1;

/// The tracks that a server sends: one of pictures and one of sound, or one of both.
#[derive(Debug)]
pub(super) struct AnsweredTracks {
    tracks: Vec<AnsweredTrack>,
    /// Number of the header extension of arrivals, where the server has it.
    pub(super) arrivals: Option<u8>,
}

#[derive(Debug)]
struct AnsweredTrack {
    /// Index of the section.
    number: usize,
    kind: SectionKind,
    /// The formats in which the server may send: at least one.
    formats: Vec<OfferedFormat>,
    /// Index of the format in which it sends.
    chosen: usize,
}

/// Returns the sections of an offer to receive pictures and sound.
pub(super) fn offered() -> [SentSection; 2] {
    KINDS.map(|kind| {
        let formats = receivable_formats(&kind);
        SentSection { kind, formats, media: OfferedMedia::Receives { arrivals: ARRIVALS } }
    })
}

impl AnsweredTracks {
    /// Finds the tracks of an answer to [`offered`].
    ///
    /// # Errors
    /// It sends nothing that can be received.
    pub(super) fn of(answer: &ReceivedAnswer) -> Result<Self, WhepError> {
        let (mut tracks, mut arrivals, mut others) = (Vec::new(), None, Vec::new());
        for (number, offered) in offered().into_iter().enumerate() {
            let section = answer.section(number).filter(|section| section.kind == offered.kind);
            let Some(section) = section else { continue };
            let mut formats = answered_formats(&offered.formats, section);
            formats.retain(|format| AnnouncedMedia::takes(&described_section(number, &offered.kind, format)));
            let Some(first) = formats.first() else {
                others.extend(section.formats.iter().filter(|_| section.sends()).map(|format| format.encoding.clone()));
                continue;
            };
            let reports = section.extension(transport_cc::URI) == Some(ARRIVALS) && first.takes(transport_cc::FEEDBACK);
            arrivals = arrivals.or(reports.then_some(ARRIVALS));
            tracks.push(AnsweredTrack { number, kind: offered.kind, formats, chosen: 0 });
        }
        if tracks.is_empty() {
            let others = if others.is_empty() { "nothing".to_owned() } else { others.join(", ") };
            return Err(WhepError::NoMedia(others));
        }
        Ok(Self { tracks, arrivals })
    }

    /// Takes the format of a payload type as the one in which its track is sent. Returns whether that changes something.
    ///
    /// An answer may list several formats (RFC 3264 6.1). The packets tell which one the server has chosen.
    pub(super) fn turn_to(&mut self, payload_type: u8) -> bool {
        let found = self.tracks.iter_mut().find_map(|track| {
            let place = track.formats.iter().position(|format| format.payload_type == payload_type)?;
            Some((track, place))
        });
        found.is_some_and(|(track, place)| std::mem::replace(&mut track.chosen, place) != place)
    }

    /// The chosen formats, with their sections.
    fn chosen(&self) -> impl Iterator<Item = (usize, &SectionKind, &OfferedFormat)> {
        self.tracks.iter().filter_map(|track| Some((track.number, &track.kind, track.formats.get(track.chosen)?)))
    }

    /// Returns the tracks of the chosen formats.
    pub(super) fn received(&self) -> Vec<ReceivedTrack> {
        let channels = (0..).step_by(2);
        let of = |((_, _, format), channel): ((_, _, &OfferedFormat), u8)| ReceivedTrack {
            payload_type: format.payload_type,
            repeat_type: format.repeat_type,
            channel,
        };
        self.chosen().zip(channels).map(of).collect()
    }

    /// Returns the media of the chosen formats, set up on the channels of [`received`](Self::received).
    ///
    /// # Errors
    /// It can't be received.
    pub(super) fn media(&self) -> Result<AnnouncedMedia, SourceError> {
        let streams = self.chosen().map(|(number, kind, format)| described_section(number, kind, format)).collect();
        let description = SessionDescription { control: String::new(), range: None, streams, skipped: Vec::new() };
        let mut media = AnnouncedMedia::new(description)?;
        for (stream, track) in self.received().iter().enumerate() {
            media.set_up_passed(stream, track.channel);
        }
        Ok(media)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_webrtc::sdp::SentFormat;

    /// An answer with the payload types of pictures and of sound, and lines of both sections.
    fn answer(video: &str, audio: &str, lines: &str) -> ReceivedAnswer {
        let of = |section: &SentSection| -> String {
            let format = |format: &SentFormat| {
                let channels = format.channels.map(|channels| format!("/{channels}")).unwrap_or_default();
                format!("a=rtpmap:{} {}/{}{channels}\r\n", format.payload_type, format.encoding, format.clock_rate)
            };
            section.formats.iter().map(format).collect()
        };
        let [pictures, sound] = offered();
        let transport = "a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuv\r\na=setup:passive\r\na=rtcp-mux\r\n";
        let fingerprint = vec!["00"; 32].join(":");
        let text = format!(
            "v=0\r\na=group:BUNDLE 0 1\r\na=fingerprint:sha-256 {fingerprint}\r\n\
             m=video 9 UDP/TLS/RTP/SAVPF {video}\r\na=mid:0\r\n{transport}{lines}{}\
             a=candidate:1 1 udp 1 192.0.2.1 4000 typ host\r\n\
             m=audio 9 UDP/TLS/RTP/SAVPF {audio}\r\na=mid:1\r\n{transport}{lines}{}",
            of(&pictures),
            of(&sound)
        );
        ReceivedAnswer::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_packets_tell_which_format_is_sent() {
        let mut tracks = AnsweredTracks::of(&answer("96 116", "111 0", "a=sendonly\r\n")).unwrap();
        let types = |tracks: &AnsweredTracks| -> Vec<(u8, u8)> {
            tracks.received().iter().map(|track| (track.payload_type, track.channel)).collect()
        };
        assert_eq!((types(&tracks), tracks.arrivals), (vec![(96, 0), (111, 2)], None));
        assert!(!tracks.turn_to(96) && !tracks.turn_to(98) && tracks.turn_to(116));
        assert!(tracks.turn_to(0) && !tracks.turn_to(0));
        assert_eq!(types(&tracks), [(116, 0), (0, 2)]);
        tracks.media().unwrap();
    }

    #[test]
    fn arrivals_are_reported_where_the_server_has_the_extension() {
        let lines = format!("a=sendonly\r\na=rtcp-fb:* transport-cc\r\na=extmap:1 {}\r\n", transport_cc::URI);
        let of = |lines: &str| AnsweredTracks::of(&answer("96", "111", lines)).unwrap().arrivals;
        assert_eq!(of(&lines), Some(1));
        assert_eq!(of(&lines.replace("extmap:1", "extmap:2")), None, "another number than that of the offer");
    }

    #[test]
    fn an_answer_that_sends_nothing_is_refused() {
        let none = AnsweredTracks::of(&answer("96", "111", "a=recvonly\r\n")).unwrap_err().to_string();
        assert!(none.starts_with("the answer sends nothing, expected H264"), "{none}");
        let foreign = AnsweredTracks::of(&answer("120", "9", "a=sendonly\r\na=rtpmap:120 H266/90000\r\n"));
        let foreign = foreign.unwrap_err().to_string();
        assert!(foreign.starts_with("the answer sends H266, expected"), "{foreign}");
    }
}

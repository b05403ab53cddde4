//! `RTP-Info` (RFC 2326 12.33): the first packet of each track.

use crate::sdp_reader::resolve;

/// First packet of a track after PLAY. Some servers state wrong values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtpStart {
    /// Sequence number.
    pub sequence: Option<u16>,
    /// Timestamp that belongs to the start of the time range.
    pub timestamp: Option<u32>,
}

/// Returns the first packet of each track, given by its URL. If no URL matches a track, entries are taken in order.
pub(super) fn starts(header: &str, base: &str, tracks: &[&str]) -> Vec<RtpStart> {
    let entries: Vec<(String, RtpStart)> =
        entries(header).take(tracks.len()).map(|(url, start)| (resolve(base, url), start)).collect();
    let of = |track: &str| entries.iter().find(|(url, _)| is_same(url, track)).map(|(_, start)| *start);
    let known: Vec<Option<RtpStart>> = tracks.iter().map(|track| of(track)).collect();
    if known.iter().all(Option::is_none) && entries.len() == tracks.len() {
        return entries.into_iter().map(|(_, start)| start).collect();
    }
    known.into_iter().map(Option::unwrap_or_default).collect()
}

/// Entries begin with `url=`; URLs may contain commas.
fn entries(header: &str) -> impl Iterator<Item = (&str, RtpStart)> {
    let mut rest = header.trim();
    std::iter::from_fn(move || {
        rest = rest.strip_prefix("url=")?;
        let end = rest.match_indices(',').find(|(at, _)| rest[at + 1..].trim_start().starts_with("url="));
        let entry = end.map_or(rest, |(at, _)| &rest[..at]);
        rest = rest[entry.len()..].trim_start_matches(',').trim_start();
        Some(read(entry))
    })
}

fn read(entry: &str) -> (&str, RtpStart) {
    let mut fields = entry.split(';').map(str::trim);
    let url = fields.next().unwrap_or_default().trim_matches('"');
    let mut start = RtpStart::default();
    for field in fields {
        match field.split_once('=') {
            Some(("seq", number)) => start.sequence = number.parse().ok(),
            Some(("rtptime", number)) => start.timestamp = number.parse().ok(),
            _ => {}
        }
    }
    (url, start)
}

fn is_same(found: &str, track: &str) -> bool {
    found.trim_end_matches('/') == track.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(sequence: u16, timestamp: u32) -> RtpStart {
        RtpStart { sequence: Some(sequence), timestamp: Some(timestamp) }
    }

    #[test]
    fn entries_belong_to_the_tracks_of_their_urls() {
        let tracks = ["rtsp://h/a/v", "rtsp://h/a/w,1"];
        let read = |header: &str| starts(header, "rtsp://h/a/", &tracks);
        let both = vec![start(1, 2), start(3, 4)];
        for header in [
            "url=rtsp://h/a/v;seq=1;rtptime=2,url=rtsp://h/a/w,1;seq=3;rtptime=4",
            "url=w,1;rtptime=4;seq=3, url=\"v/\";seq=1;rtptime=2",
            "url=rtsp://nat/v;seq=1;rtptime=2,url=rtsp://nat/w;seq=3;rtptime=4",
        ] {
            assert_eq!(read(header), both, "{header}");
        }
        assert_eq!(read("url=v;seq=70000;rtptime=x"), [RtpStart::default(); 2]);
        assert_eq!(read("url=v;seq=1;rtptime=2"), [start(1, 2), RtpStart::default()]);
        assert_eq!(read("seq=1"), [RtpStart::default(); 2]);
    }
}

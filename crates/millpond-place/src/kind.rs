//! Kinds of places: the words and the options of each scheme.

use crate::{live, objects};

/// A kind of place, chosen by the scheme of its URL: its words and the options that have an effect on it.
#[derive(Debug)]
pub struct PlaceKind {
    /// Its name in the admin API.
    pub name: &'static str,
    /// Its description, as it follows "this place is".
    pub about: &'static str,
    /// The schemes of its URLs; none for a folder.
    pub schemes: &'static [&'static str],
    /// The options that have an effect on it.
    pub options: &'static [OptionGroup],
}

/// Options of a place that have an effect on the same kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionGroup {
    /// Options of files and folders.
    Files,
    /// Options of requests over a network.
    Remote,
    /// Options of web servers.
    WebServer,
    /// Options of all buckets.
    Bucket,
    /// Options of S3 buckets.
    S3,
    /// Options of Azure containers.
    Azure,
    /// Options of all live streams.
    Live,
    /// Options of RTSP servers.
    RtspServer,
    /// Options of HLS and DASH streams of web servers.
    Pulled,
}

impl OptionGroup {
    /// The places on which the options have an effect, in words.
    pub fn places(self) -> &'static str {
        match self {
            Self::Files => "places with files",
            Self::Remote => "web servers and buckets",
            Self::WebServer => "web servers",
            Self::Bucket => "buckets (s3, gs, az)",
            Self::S3 => "S3 buckets",
            Self::Azure => "Azure containers",
            Self::Live => "places with live streams",
            Self::RtspServer => "RTSP servers",
            Self::Pulled => "HLS and DASH streams (hls+http, hls+https, dash+http, dash+https)",
        }
    }
}

impl PlaceKind {
    /// Returns whether options of a group have an effect on it.
    pub fn takes(&self, options: OptionGroup) -> bool {
        self.options.contains(&options)
    }
}

/// Returns the schemes of all URLs of places, which stand before `://`.
pub(crate) fn schemes() -> impl Iterator<Item = &'static str> {
    let objects = objects::KINDS.iter().copied();
    let live = live::KINDS.iter().filter(|kind| kind.has_urls()).map(|kind| &kind.place);
    objects.chain(live).flat_map(|kind| kind.schemes.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_has_one_kind() {
        let all: Vec<_> = schemes().collect();
        assert_eq!(
            all,
            [
                "http",
                "https",
                "s3",
                "gs",
                "az",
                "rtsp",
                "rtsps",
                "udp",
                "rtp",
                "srt",
                "rtmp",
                "rtmps",
                "hls+http",
                "hls+https",
                "dash+http",
                "dash+https",
                "ts+http",
                "ts+https",
                "whep+http",
                "whep+https"
            ]
        );
    }
}

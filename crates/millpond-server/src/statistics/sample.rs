//! The viewers of a moment, by all protocols.
#![forbid(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

/// Most titles whose rebuffers are counted by title between two samples.
const MOST_REBUFFERED: usize = 1024;

/// A protocol by which viewers are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ViewerProtocol {
    /// Requests by HTTP, and responses without an end.
    Http,
    /// RTSP.
    Rtsp,
    /// WebRTC.
    WebRtc,
    /// SRT.
    Srt,
    /// RTMP.
    Rtmp,
}

impl ViewerProtocol {
    /// All of them.
    pub(crate) const ALL: [Self; 5] = [Self::Http, Self::Rtsp, Self::WebRtc, Self::Srt, Self::Rtmp];

    /// Returns its name in the API, in the file, and as the label `protocol`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Rtsp => "rtsp",
            Self::WebRtc => "webrtc",
            Self::Srt => "srt",
            Self::Rtmp => "rtmp",
        }
    }
}

/// A figure for each protocol, in the order of [`ViewerProtocol::ALL`].
pub(crate) type ByProtocol<T> = [T; ViewerProtocol::ALL.len()];

/// A viewer of a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SampledViewer {
    /// Protocol by which it is served.
    pub(crate) protocol: ViewerProtocol,
    /// Number that no other viewer of its protocol has.
    pub(crate) number: u64,
    /// Path of the title or stream.
    pub(crate) title: String,
}

/// The rebuffers that players have reported since the sample before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rebuffers {
    /// Rebuffers by the paths of titles.
    pub(crate) by_title: BTreeMap<String, u64>,
    /// Rebuffers of further titles.
    pub(crate) others: u64,
}

impl Rebuffers {
    /// Adds a rebuffer of a title.
    pub(crate) fn add(&mut self, title: &str) {
        let is_full = self.by_title.len() >= MOST_REBUFFERED;
        match self.by_title.get_mut(title) {
            Some(count) => *count += 1,
            None if is_full => self.others += 1,
            None => _ = self.by_title.insert(title.to_owned(), 1),
        }
    }
}

/// All viewers of a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct ViewerSample {
    /// The viewers, each once.
    pub(crate) viewers: Vec<SampledViewer>,
    /// Rebuffers since the sample before.
    pub(crate) rebuffers: Rebuffers,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rebuffers_of_many_titles_are_bounded() {
        let mut rebuffers = Rebuffers::default();
        for number in 0..2000 {
            rebuffers.add(&format!("films/{number}"));
        }
        rebuffers.add("films/1");
        assert_eq!((rebuffers.by_title.len(), rebuffers.others), (MOST_REBUFFERED, 2000 - MOST_REBUFFERED as u64));
        assert_eq!(rebuffers.by_title["films/1"], 2);
    }
}

//! One viewer of a live stream by Low-Latency HLS: blocking reloads, delta updates, and each part as soon as it is listed.
//!
//! One viewer of each thread checks what it gets. It also asks for each part as soon as it is hinted at, and reads its media.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::{join, try_join_all};
use url::Url;

use crate::abr::Ladder;
use crate::client::{Client, Text};
use crate::llhls::{Checker, ListedPart, LivePlaylist, MediaChecker, Part, Place, ReceivedPart, Reload, Violation};
use crate::player::Playout;
use crate::resource::{ByteSpan, Resource};
use crate::tally::{Ending, ErrorKind, Failure, RequestKind};
use crate::title::Media;
use crate::viewer::Common;

/// Delay behind the earliest part of a track from which a part is late.
const LATE: Duration = Duration::from_millis(100);

/// One viewer's session.
pub(crate) struct LiveViewer<'a> {
    common: &'a Common,
    client: &'a Client,
    began: Instant,
    playout: RefCell<Option<Playout>>,
    /// The rules are checked by one viewer of each thread: what it gets, all get.
    checker: RefCell<Option<Checker>>,
}

/// A track's state between two reloads.
#[derive(Debug)]
struct TrackPlayback {
    index: usize,
    url: Url,
    place: Place,
    /// Media seconds since the viewer's first part.
    time: f64,
    /// Least distance seen between a part's arrival and its end in media time, in seconds.
    ahead: f64,
    map: Option<String>,
    /// The check of the parts, where this viewer checks.
    checker: Option<MediaChecker>,
    /// The part that was hinted at last, with its bytes.
    hinted: Option<(String, Vec<u8>)>,
    /// Whether the next part goes on from the last one.
    is_continuous: bool,
    /// Whether parts come as soon as they are listed.
    is_live: bool,
}

impl<'a> LiveViewer<'a> {
    pub(crate) fn new(common: &'a Common, client: &'a Client) -> Self {
        let checker = RefCell::new(common.checker.take());
        let playout = RefCell::new(None);
        Self { common, client, began: Instant::now(), playout, checker }
    }

    /// Plays until the stream fails; failures have been counted already.
    pub(crate) async fn watch(&self) -> Result<(), Failure> {
        let urls = self.open().await?;
        let pace = self.common.options.pace;
        self.playout.replace(Some(Playout::new(pace, urls.len(), 0.0, f64::INFINITY)));
        try_join_all(urls.into_iter().enumerate().map(|(index, url)| self.play(index, url))).await?;
        Ok(())
    }

    /// Writes down what the viewer saw.
    pub(crate) fn leave(&self, ending: Ending) {
        let mut tally = self.common.meter.tally.borrow_mut();
        tally.ended(ending);
        if let Some(playout) = self.playout.borrow_mut().as_mut() {
            tally.watched(playout.outcome(self.began.elapsed()), crate::abr::Switches::default());
        }
        if let Some(checker) = self.checker.take() {
            self.common.checker.replace(Some(checker));
        }
    }

    /// Addresses of the media playlists of the chosen rendition.
    async fn open(&self) -> Result<Vec<Url>, Failure> {
        let url = &self.common.options.url;
        let (body, location) = self.client.manifest(url).await?;
        let title = self.common.library.read(body, location);
        let title = title.map_err(|error| self.broken(url, &error.to_string()))?.title();
        let rungs = title.ladder.iter().map(|rendition| rendition.bandwidth).collect();
        let rung = Ladder::new(self.common.options.abr, rungs).current();
        let rendition = title.ladder.get(rung);
        let audio = rendition.and_then(|rendition| title.audio.get(rendition.audio?));
        let playlist = |media: &Media| match media {
            Media::Playlist(url) => Some(url.clone()),
            Media::Track(_) => None,
        };
        Ok([rendition, audio].into_iter().flatten().filter_map(|rendition| playlist(&rendition.media)).collect())
    }

    fn broken(&self, url: &Url, what: &str) -> Failure {
        let failure = Failure { kind: ErrorKind::Manifest, detail: format!("{url}: {what}") };
        self.client.count(&failure);
        failure
    }

    /// Counts broken rules.
    fn report(&self, url: &Url, found: Vec<Violation>) {
        for violation in found {
            let detail = format!("{url}: {:?}: {}", violation.rule, violation.what);
            self.client.count(&Failure { kind: ErrorKind::Rule, detail });
        }
    }

    async fn play(&self, index: usize, url: Url) -> Result<(), Failure> {
        let checker = self.checker.borrow().is_some().then(MediaChecker::default);
        let mut list = self.reload(&url, None, false).await?;
        let mut track = TrackPlayback {
            index,
            url,
            place: list.start(),
            time: 0.0,
            ahead: f64::INFINITY,
            map: None,
            checker,
            hinted: None,
            is_continuous: false,
            is_live: false,
        };
        loop {
            self.listed(&mut track, &list).await?;
            track.is_live = true;
            let skips = list.control.skip_until.is_some();
            let hint = list.hint.as_deref().filter(|_| track.checker.is_some());
            let reload = self.reload(&track.url, Some(track.place), skips);
            let (reloaded, hinted) = join(reload, self.hinted(&track, hint)).await;
            (list, track.hinted) = (reloaded?, hinted?);
        }
    }

    /// Fetches a media playlist; `place` is the part that it must list.
    async fn reload(&self, url: &Url, place: Option<Place>, skips: bool) -> Result<Rc<LivePlaylist>, Failure> {
        let mut address = url.clone();
        let kind = if place.is_some() { RequestKind::Reload } else { RequestKind::Manifest };
        if let Some(Place { segment, part }) = place {
            let mut query = address.query_pairs_mut();
            query.append_pair("_HLS_msn", &segment.to_string()).append_pair("_HLS_part", &part.to_string());
            if skips {
                query.append_pair("_HLS_skip", "YES");
            }
        }
        let asked = self.began.elapsed();
        let Text { body, max_age, .. } = self.client.text(kind, &address).await?;
        if let Some(checker) = self.checker.borrow_mut().as_mut() {
            let text = std::str::from_utf8(&body).map_err(|error| self.broken(url, &error.to_string()))?;
            let (segment, part) = (place.map(|place| place.segment), place.map(|place| place.part));
            let (arrived, skip) = (self.began.elapsed(), skips && place.is_some());
            let reload = Reload { path: url.path(), segment, part, skip, asked, arrived, max_age, body: text };
            self.report(&address, checker.check(&reload));
        }
        self.common.playlists.read(body).map_err(|what| self.broken(url, &what))
    }

    /// Fetches the part that a playlist hints at, which is sent when it is complete.
    async fn hinted(&self, track: &TrackPlayback, hint: Option<&str>) -> Result<Option<(String, Vec<u8>)>, Failure> {
        let Some(uri) = hint else { return Ok(None) };
        let url = track.url.join(uri).map_err(|error| self.broken(&track.url, &error.to_string()))?;
        let text = self.client.text(RequestKind::Part, &url).await?;
        Ok(Some((uri.to_owned(), text.body)))
    }

    /// Fetches the parts that a playlist lists from the track's place on.
    async fn listed(&self, track: &mut TrackPlayback, list: &LivePlaylist) -> Result<(), Failure> {
        if list.first_part().is_some_and(|first| first > track.place) {
            // The viewer fell behind what is listed in parts.
            track.place = list.start();
            track.ahead = f64::INFINITY;
            (track.is_continuous, track.is_live) = (false, false);
        }
        for listed in list.parts().filter(|listed| listed.place >= track.place).collect::<Vec<_>>() {
            let part = listed.part;
            if listed.map.is_some() && listed.map != track.map.as_deref() {
                self.init(track, listed.map.unwrap_or_default()).await?;
            }
            track.is_continuous &= !listed.discontinuity;
            if !part.gap {
                self.part(track, part).await?;
            }
            track.is_continuous = !part.gap;
            track.place = listed.next;
            self.arrived(track, &listed);
        }
        Ok(())
    }

    /// Fetches the init segment of the parts that follow.
    async fn init(&self, track: &mut TrackPlayback, uri: &str) -> Result<(), Failure> {
        track.map = Some(uri.to_owned());
        track.is_continuous = false;
        let url = track.url.join(uri).map_err(|error| self.broken(&track.url, &error.to_string()))?;
        let text = self.client.text(RequestKind::Init, &url).await?;
        if let Some(checker) = &mut track.checker {
            self.report(&url, checker.init(&text.body));
        }
        Ok(())
    }

    /// Fetches a part, unless it came when it was hinted at.
    async fn part(&self, track: &mut TrackPlayback, part: &Part) -> Result<(), Failure> {
        let url = track.url.join(&part.uri).map_err(|error| self.broken(&track.url, &error.to_string()))?;
        let range = part.range.as_deref();
        let range = range.map(|range| byte_range(range).ok_or_else(|| self.broken(&track.url, range))).transpose()?;
        let Some(checker) = track.checker.as_mut().filter(|_| range.is_none()) else {
            return self.client.resource(RequestKind::Part, &Resource::new(url, range)).await.map(|_| ());
        };
        let bytes = match track.hinted.take().filter(|(uri, _)| *uri == part.uri) {
            Some((_, bytes)) => bytes,
            None => self.client.text(RequestKind::Part, &url).await?.body,
        };
        let received = ReceivedPart {
            uri: &part.uri,
            duration: part.duration,
            is_independent: part.independent,
            is_continuous: track.is_continuous,
            bytes: &bytes,
        };
        self.report(&url, checker.part(&received));
        Ok(())
    }

    /// Notes a part, and how late it is.
    fn arrived(&self, track: &mut TrackPlayback, listed: &ListedPart<'_>) {
        let now = self.began.elapsed();
        track.time += listed.part.duration;
        let ahead = now.as_secs_f64() - track.time;
        track.ahead = track.ahead.min(ahead);
        let late = Duration::from_secs_f64((ahead - track.ahead).max(0.0));
        let mut tally = self.common.meter.tally.borrow_mut();
        tally.part(late, late > LATE);
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        if let Some(date) = listed.date.filter(|_| track.is_live) {
            tally.ages.record(Duration::try_from_secs_f64(clock - date).unwrap_or_default());
        }
        drop(tally);
        if let Some(playout) = self.playout.borrow_mut().as_mut() {
            playout.arrived(track.index, track.time, now);
        }
    }
}

/// `length@offset` of `BYTERANGE` (draft-pantos-hls-rfc8216bis 4.4.4.9).
fn byte_range(text: &str) -> Option<ByteSpan> {
    let (length, start) = text.split_once('@')?;
    ByteSpan::new(start.parse().ok()?, length.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_ranges_need_both_numbers() {
        assert_eq!(byte_range("10@5"), ByteSpan::new(5, 10));
        for text in ["10", "@5", "0@5", "10@x"] {
            assert_eq!(byte_range(text), None, "{text}");
        }
    }
}

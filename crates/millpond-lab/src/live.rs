//! One viewer of a live stream by Low-Latency HLS: blocking reloads, delta updates, and each part as soon as it is listed.
//!
//! Where the multivariant playlist lists pathways, a viewer whose request fails goes on at the next one, at the part that it lacks.
//! One viewer of each thread checks what it gets. It also asks for each part as soon as it is hinted at, and reads its media.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
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
use crate::title::{Media, Rendition, Title};
use crate::viewer::Common;

/// Delay behind the earliest part of a track from which a part is late.
const LATE: Duration = Duration::from_millis(100);

/// Times that each of several servers is tried before the viewer leaves.
const ROUNDS: usize = 2;

/// One viewer's session.
pub(crate) struct LiveViewer<'a> {
    common: &'a Common,
    client: &'a Client,
    began: Instant,
    playout: RefCell<Option<Playout>>,
    /// Server of the stream that it plays from: its place among the pathways.
    server: Cell<usize>,
    /// Number of times that it went on at another server.
    moves: Cell<u64>,
    /// The rules are checked by one viewer of each thread: what it gets, all get.
    checker: RefCell<Option<Checker>>,
}

/// A track's state between two reloads.
#[derive(Debug)]
struct TrackPlayback {
    index: usize,
    /// Its media playlist at each server.
    urls: Vec<Url>,
    /// The part that comes next, from the first playlist on.
    place: Option<Place>,
    /// Servers that have failed since the last reload that came.
    failed: usize,
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
        let (playout, server, moves) = (RefCell::new(None), Cell::new(0), Cell::new(0));
        Self { common, client, began: Instant::now(), playout, server, moves, checker }
    }

    /// Plays until the stream fails; failures have been counted already.
    pub(crate) async fn watch(&self) -> Result<(), Failure> {
        let tracks = self.open().await?;
        let pace = self.common.options.pace;
        self.playout.replace(Some(Playout::new(pace, tracks.len(), 0.0, f64::INFINITY)));
        try_join_all(tracks.into_iter().enumerate().map(|(index, urls)| self.play(index, urls))).await?;
        Ok(())
    }

    /// Writes down what the viewer saw.
    pub(crate) fn leave(&self, ending: Ending) {
        let mut tally = self.common.meter.tally.borrow_mut();
        tally.ended(ending);
        tally.moves += self.moves.get();
        if let Some(playout) = self.playout.borrow_mut().as_mut() {
            tally.watched(playout.outcome(self.began.elapsed()), crate::abr::Switches::default());
        }
        if let Some(checker) = self.checker.take() {
            self.common.checker.replace(Some(checker));
        }
    }

    /// Addresses of the media playlists of the chosen rendition: by track, and by server.
    async fn open(&self) -> Result<Vec<Vec<Url>>, Failure> {
        let url = &self.common.options.url;
        let (body, location) = self.client.manifest(url).await?;
        let title = self.common.library.read(body, location);
        let title = title.map_err(|error| self.broken(url, &error.to_string()))?.title();
        let rungs = title.ladder.iter().map(|rendition| rendition.bandwidth).collect();
        let rung = Ladder::new(self.common.options.abr, rungs).current();
        let audio = title.ladder.get(rung).and_then(|rendition| rendition.audio);
        let playlists = |of: &dyn Fn(&Title) -> Option<&Rendition>| -> Vec<Url> {
            let media = (0..title.servers()).filter_map(|server| Some(&of(title.at(server))?.media));
            let urls = media.filter_map(|media| match media {
                Media::Playlist(url) => Some(url.clone()),
                Media::Track(_) => None,
            });
            urls.collect()
        };
        let tracks = [playlists(&|title| title.ladder.get(rung)), playlists(&|title| title.audio.get(audio?))];
        Ok(tracks.into_iter().filter(|urls| !urls.is_empty()).collect())
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

    /// Plays a track at one server after the other, until all have failed twice.
    async fn play(&self, index: usize, urls: Vec<Url>) -> Result<(), Failure> {
        let checker = self.checker.borrow().is_some().then(MediaChecker::default);
        let mut track = TrackPlayback {
            index,
            urls,
            place: None,
            failed: 0,
            time: 0.0,
            ahead: f64::INFINITY,
            map: None,
            checker,
            hinted: None,
            is_continuous: false,
            is_live: false,
        };
        loop {
            let server = self.server.get();
            let url = track.urls[server % track.urls.len()].clone();
            let Err(failure) = self.follow(&mut track, &url).await;
            track.failed += 1;
            // One server may be about to take the stream over from another one that died.
            let rounds = if track.urls.len() > 1 { ROUNDS } else { 1 };
            if track.failed >= rounds * track.urls.len() {
                return Err(failure);
            }
            // Unless the other track has left this server already.
            if self.server.get() == server {
                self.server.set(server + 1);
                self.moves.set(self.moves.get() + 1);
            }
        }
    }

    /// Plays a track at one server, from the part that it lacks, until a request fails.
    async fn follow(&self, track: &mut TrackPlayback, url: &Url) -> Result<Infallible, Failure> {
        let mut list = self.reload(url, track.place, false).await?;
        loop {
            track.place.get_or_insert(list.start());
            self.listed(track, url, &list).await?;
            (track.is_live, track.failed) = (true, 0);
            let skips = list.control.skip_until.is_some();
            let hint = list.hint.as_deref().filter(|_| track.checker.is_some());
            let reload = self.reload(url, track.place, skips);
            let (reloaded, hinted) = join(reload, self.hinted(url, hint)).await;
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
    async fn hinted(&self, list: &Url, hint: Option<&str>) -> Result<Option<(String, Vec<u8>)>, Failure> {
        let Some(uri) = hint else { return Ok(None) };
        let url = list.join(uri).map_err(|error| self.broken(list, &error.to_string()))?;
        let text = self.client.text(RequestKind::Part, &url).await?;
        Ok(Some((uri.to_owned(), text.body)))
    }

    /// Fetches the parts that a playlist lists from the track's place on.
    async fn listed(&self, track: &mut TrackPlayback, url: &Url, list: &LivePlaylist) -> Result<(), Failure> {
        if list.first_part().is_some_and(|first| Some(first) > track.place) {
            // The viewer fell behind what is listed in parts.
            track.place = Some(list.start());
            track.ahead = f64::INFINITY;
            (track.is_continuous, track.is_live) = (false, false);
        }
        for listed in list.parts().filter(|listed| Some(listed.place) >= track.place).collect::<Vec<_>>() {
            let part = listed.part;
            if listed.map.is_some() && listed.map != track.map.as_deref() {
                self.init(track, url, listed.map.unwrap_or_default()).await?;
            }
            track.is_continuous &= !listed.discontinuity;
            if !part.gap {
                self.part(track, url, part).await?;
            }
            track.is_continuous = !part.gap;
            track.place = Some(listed.next);
            self.arrived(track, &listed);
        }
        Ok(())
    }

    /// Fetches the init segment of the parts that follow.
    async fn init(&self, track: &mut TrackPlayback, list: &Url, uri: &str) -> Result<(), Failure> {
        track.map = Some(uri.to_owned());
        track.is_continuous = false;
        let url = list.join(uri).map_err(|error| self.broken(list, &error.to_string()))?;
        let text = self.client.text(RequestKind::Init, &url).await?;
        if let Some(checker) = &mut track.checker {
            self.report(&url, checker.init(&text.body));
        }
        Ok(())
    }

    /// Fetches a part, unless it came when it was hinted at.
    async fn part(&self, track: &mut TrackPlayback, list: &Url, part: &Part) -> Result<(), Failure> {
        let url = list.join(&part.uri).map_err(|error| self.broken(list, &error.to_string()))?;
        let range = part.range.as_deref();
        let range = range.map(|range| byte_range(range).ok_or_else(|| self.broken(list, range))).transpose()?;
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

//! Stored titles of a scripted server, on a virtual clock.

use super::{RemoteTitle, RemoteTitles, error::RemoteError};
use crate::reception::{
    Alternatives, RtspSource,
    tests::server::{PICTURES, PPS, Peer, SPS, header, picture, server, units},
};
use millpond_rtp::message::{Method, headers};
use millpond_store::At;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// Pictures a second.
const RATE: u32 = 2;
/// Seconds of a group of pictures, and of a segment.
const GROUP: u32 = 2;
/// An RTCP BYE of the sender of pictures.
const BYE: [u8; 8] = [0x81, 203, 0, 1, 0, 0, 0, 70];

/// The behaviour of a server that is asked for a later time than the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    /// It seeks, and refuses times behind the end.
    Refuses,
    /// It seeks, and plays the last group of pictures instead of times behind the end.
    Clamps,
    /// It seeks, and ends at once behind the end.
    Ends,
    /// It plays from the beginning.
    Forward,
    /// It refuses all times.
    RefusesAll,
}

/// A title of the server.
#[derive(Clone, Copy, Debug)]
struct Film {
    /// Seconds that the description states.
    stated: u32,
    /// Seconds that there are.
    real: u32,
    habit: Habit,
    /// A PLAY, from 0, that ends at a time in seconds.
    cut_off: Option<(usize, u32)>,
    /// Time from one picture to the next, where it is sent slowly.
    pace: Duration,
    /// Second at which the pictures need another decoder.
    changes: Option<u32>,
}

/// The times of all PLAYs, in seconds.
type Plays = Arc<Mutex<Vec<f64>>>;

impl Film {
    fn new(stated: u32, real: u32, habit: Habit) -> Self {
        Self { stated, real, habit, cut_off: None, pace: Duration::ZERO, changes: None }
    }

    /// Serves the film.
    fn serve(self) -> (RemoteTitles, Plays) {
        let (mut server, connector) = server();
        let plays = Plays::default();
        let told = plays.clone();
        tokio::spawn(async move {
            loop {
                let peer = server.accept().await;
                tokio::spawn(self.session(peer, told.clone()));
            }
        });
        (RemoteTitles::new(Arc::new(connector)), plays)
    }

    /// Serves the film, and opens it. The session that goes on from its beginning is over then.
    async fn open(self) -> (Arc<RemoteTitle>, Plays, RemoteTitles) {
        let (titles, plays) = self.serve();
        let title = found(&titles).await.expect("a title");
        sleep(Duration::from_secs(1)).await;
        (title, plays, titles)
    }

    async fn session(self, mut peer: Peer, plays: Plays) {
        let range = format!("a=control:*\r\na=range:npt=0-{}\r\n", self.stated);
        let sdp = PICTURES.replace("a=control:*\r\n", &range);
        while let Some(request) = peer.request().await {
            match request.method() {
                Method::Describe => peer.reply(&request, "200 OK", "", &sdp).await,
                Method::Setup => {
                    let transport = header(&request, &headers::TRANSPORT);
                    peer.reply(&request, "200 OK", &format!("Session: 7\r\nTransport: {transport}\r\n"), "").await;
                }
                Method::Play => {
                    let range = header(&request, &headers::RANGE);
                    let asked: f64 = range.trim_start_matches("npt=").trim_end_matches('-').parse().unwrap();
                    let place = {
                        let mut plays = plays.lock().unwrap();
                        plays.push(asked);
                        plays.len() - 1
                    };
                    let Some(begins) = self.begins(asked) else {
                        peer.reply(&request, "457 Invalid Range", "", "").await;
                        continue;
                    };
                    peer.reply(&request, "200 OK", &format!("Range: npt={begins}.000-\r\n"), "").await;
                    let cut_off = self.cut_off.filter(|(play, _)| *play == place).map(|(_, end)| end);
                    self.send(&mut peer, begins, cut_off.unwrap_or(self.real)).await;
                }
                _ => peer.reply(&request, "200 OK", "", "").await,
            }
        }
    }

    /// Returns the second from which it plays; `None` where it refuses.
    fn begins(self, asked: f64) -> Option<u32> {
        let group = |second: u32| second / GROUP * GROUP;
        let is_behind = asked >= f64::from(self.real);
        match self.habit {
            Habit::Forward => Some(0),
            Habit::RefusesAll => (asked == 0.0).then_some(0),
            Habit::Refuses if is_behind => None,
            Habit::Clamps if is_behind => Some(group(self.real - 1)),
            Habit::Ends if is_behind => Some(asked as u32),
            _ => Some(group(asked as u32)),
        }
    }

    async fn send(self, peer: &mut Peer, begins: u32, end: u32) {
        for number in begins * RATE..end * RATE {
            let first = if number % (GROUP * RATE) == 0 { 0x65 } else { 0x41 };
            let mut frame = picture(first, (number % 200 + 1) as u8);
            if self.changes.is_some_and(|second| second * RATE == number) {
                let mut sps = SPS.to_vec();
                // The next level.
                sps[3] += 1;
                frame = [units(&[&sps[..], PPS]), frame].concat();
            }
            peer.frame(0, &frame, number * (90_000 / RATE)).await;
            if !self.pace.is_zero() {
                sleep(self.pace).await;
            }
        }
        peer.data(1, &BYE).await;
    }
}

async fn found(titles: &RemoteTitles) -> Option<Arc<RemoteTitle>> {
    let source = Alternatives::from(RtspSource::new("rtsp://server/film").unwrap());
    let least = Duration::from_secs(GROUP.into());
    titles.find(("films/film", "films".len()), &source, least).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn segments_behind_an_overstated_end_do_not_exist_and_the_server_still_seeks() {
    // The server states 200 s, and has 60 s: 30 segments.
    for (habit, number, segments) in [
        (Habit::Refuses, 90, 90),
        (Habit::Ends, 90, 90),
        (Habit::Clamps, 90, 30),
        (Habit::Clamps, 35, 30),
        (Habit::Refuses, 30, 30),
    ] {
        let (title, plays, _titles) = Film::new(200, 60, habit).open().await;
        assert_eq!(title.segments(), 100, "as the description says");
        let began = Instant::now();
        assert_eq!(title.fetch(number).await, Err(RemoteError::BehindEnd), "{habit:?} {number}");
        assert!(began.elapsed() < Duration::from_secs(1), "{habit:?} {number}: {:?}", began.elapsed());
        assert_eq!(title.segments(), segments, "{habit:?} {number}");
        // Another seek gets nearer to the end, or is known to be behind it.
        assert_eq!(title.fetch(34).await, Err(RemoteError::BehindEnd), "{habit:?} {number}");
        assert!(title.segments() <= 34, "{habit:?} {number}");
        assert!(title.fetch(20).await.is_ok(), "{habit:?} {number}");
        assert_eq!(plays.lock().unwrap().last(), Some(&39.9), "{habit:?} {number}: by a seek");
        assert!(title.fetch(29).await.is_ok(), "{habit:?} {number}: the last one");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_early_does_not_shorten_the_title() {
    // PLAY 0 measures the title, and PLAY 1 goes on from there.
    let film = Film { cut_off: Some((2, 24)), ..Film::new(60, 60, Habit::Refuses) };
    let (title, plays, _titles) = film.open().await;
    assert!(title.fetch(10).await.is_ok());
    assert!(title.fetch(11).await.is_ok());
    assert!(title.fetch(12).await.is_ok(), "a second session goes on");
    assert_eq!(title.segments(), 30);
    assert_eq!(plays.lock().unwrap()[2..], [19.9, 23.9]);
}

#[tokio::test(start_paused = true)]
async fn a_second_session_confirms_that_the_title_ends_early() {
    let (title, plays, _titles) = Film::new(100, 61, Habit::Refuses).open().await;
    for number in 0..31 {
        assert!(title.fetch(number).await.is_ok(), "{number}");
    }
    assert_eq!(title.fetch(31).await, Err(RemoteError::BehindEnd));
    assert_eq!(title.segments(), 31);
    let count = plays.lock().unwrap().len();
    assert_eq!(title.fetch(40).await, Err(RemoteError::BehindEnd));
    assert_eq!(plays.lock().unwrap().len(), count, "without asking the server");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_all_times_plays_from_the_beginning() {
    let (title, plays, _titles) = Film::new(200, 200, Habit::RefusesAll).open().await;
    assert!(title.fetch(8).await.is_ok());
    assert_eq!(title.segments(), 100, "the refusals are not about the end");
    assert_eq!(plays.lock().unwrap().last(), Some(&0.0));
    assert!(matches!(title.fetch(90).await, Err(RemoteError::NotSeekable(_))));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_seek_waits_for_a_viewer_that_takes_less_than_it_sends() {
    let (title, plays, _titles) = Film::new(1200, 1200, Habit::Forward).open().await;
    let mut count = 0;
    for number in 0..600 {
        assert!(title.fetch(number).await.is_ok(), "{number}");
        sleep(Duration::from_secs(GROUP.into())).await;
        if number == 40 {
            count = plays.lock().unwrap().len();
        }
    }
    assert_eq!(plays.lock().unwrap().len(), count, "one session plays the rest");
    assert_eq!(title.segments(), 600);
}

#[tokio::test(start_paused = true)]
async fn a_title_that_changes_its_decoder_tells_the_time_and_is_tried_anew() {
    let film = Film { changes: Some(40), ..Film::new(60, 60, Habit::Refuses) };
    let (title, _plays, titles) = film.open().await;
    assert!(title.fetch(5).await.is_ok() && title.unplayable().is_none());
    let error = title.fetch(20).await.unwrap_err();
    let told = error.of_origin(At::new("RTSP titles of films", "film")).for_viewers();
    assert_eq!(told, "a track of the title changes its decoder at 40 s");
    let why = title.unplayable().expect("it is known");
    assert_eq!(why.words, told);
    assert!(Arc::ptr_eq(&title, &found(&titles).await.unwrap()));
    sleep(Duration::from_secs(61)).await;
    let anew = found(&titles).await.unwrap();
    assert!(!Arc::ptr_eq(&title, &anew) && anew.unplayable().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_title_that_takes_too_long_to_open_is_a_live_stream() {
    // The third key frame, which ends the second group, would arrive after 32 s.
    let film = Film { pace: Duration::from_secs(4), ..Film::new(60, 60, Habit::Refuses) };
    let (titles, plays) = film.serve();
    let began = Instant::now();
    assert!(found(&titles).await.is_none());
    assert_eq!(began.elapsed().as_secs(), 30);
    assert!(titles.is_known("films/film").await, "later viewers do not wait");
    assert!(found(&titles).await.is_none());
    assert_eq!((began.elapsed().as_secs(), plays.lock().unwrap().len()), (30, 1));
}

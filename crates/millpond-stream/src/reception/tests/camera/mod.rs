//! A fake camera, whose behaviours are data: see [`oddities`].

mod film;
mod oddities;
mod packets;
mod scenario;

use super::{
    Viewer,
    server::{FakeServer, Peer, header, server},
    start,
};
use crate::Frame;
use film::{Film, SETS};
use millpond_rtp::message::{Method, headers};
use oddities::ODDITIES;
use packets::Packets;
use scenario::{Habit, Scenario, Step};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Description of a camera with pictures and sound.
const SDP: &str = "v=0\r\no=- 7 1 IN IP4 10.0.0.7\r\ns=door\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\na=control:*\r\n\
    m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1;sprop-parameter-sets=SETS\r\n\
    a=control:v\r\nm=audio 0 RTP/AVP 97\r\na=rtpmap:97 mpeg4-generic/48000/2\r\n\
    a=fmtp:97 mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config=1190\r\na=control:a\r\n";

/// A camera that plays a scenario.
struct Camera {
    peer: Peer,
    packets: Packets,
    film: Film,
    /// Pictures and frames of sound that were sent, and are expected to come out.
    sent: [Vec<Vec<u8>>; 2],
    began: Instant,
    /// Time by which sound is sent late.
    late: Duration,
}

impl Camera {
    /// Answers requests until the client plays.
    async fn play(server: &mut FakeServer, scenario: &Scenario) -> Self {
        let film = Film::new();
        let sdp = scenario.sdp.iter().fold(SDP.replace("SETS", SETS), |sdp, (from, to)| {
            assert!(sdp.contains(from), "{}: no {from:?}", scenario.name);
            sdp.replace(from, to)
        });
        let mut peer = server.accept().await;
        loop {
            let request = peer.request().await.expect("a request");
            let (mut status, mut lines, mut body) = ("200 OK", String::new(), "");
            match request.method() {
                Method::Describe => body = &sdp,
                Method::Setup if scenario.habits.contains(&Habit::NoSound) && peer.transports.len() == 1 => {
                    status = "404 Stream Not Found";
                }
                Method::Setup => {
                    let session = if scenario.habits.contains(&Habit::NoSession) { "" } else { "Session: 7\r\n" };
                    let transport = header(&request, &headers::TRANSPORT);
                    lines = format!("{session}Transport: {transport}\r\n");
                    peer.transports.push(transport);
                }
                _ => {}
            }
            peer.reply(&request, status, &lines, body).await;
            if matches!(request.method(), Method::Play) {
                break;
            }
        }
        let packets = Packets::new(scenario.habits);
        Self { peer, packets, film, sent: Default::default(), began: Instant::now(), late: Duration::ZERO }
    }

    /// Does the steps of a scenario.
    async fn act(&mut self, steps: &[Step]) {
        for step in steps {
            match *step {
                Step::Wait(milliseconds) => sleep(Duration::from_millis(milliseconds)).await,
                Step::Times(count, steps) => {
                    for _ in 0..count {
                        Box::pin(self.act(steps)).await;
                    }
                }
                Step::Picture => {
                    let (frame, units) = self.film.next();
                    let time = timestamp(self.began.elapsed(), 90_000);
                    for packet in self.packets.of_picture(&units, time) {
                        self.peer.data(0, &packet).await;
                    }
                    if self.packets.has(Habit::Junk) {
                        self.peer.junk(b"junk\xff\x00$\x00").await;
                    }
                    self.sent[0].push(frame);
                }
                Step::Sound => {
                    let frame = vec![self.sent[1].len() as u8; 40];
                    let time = timestamp(self.began.elapsed(), 48_000) - 48 * self.late.as_millis() as u32;
                    for packet in self.packets.of_sound(&frame, time) {
                        self.peer.data(2, &packet).await;
                    }
                    self.sent[1].push(frame);
                }
                Step::Report => {
                    for (track, rate) in [(0, 90_000), (1, 48_000)] {
                        let now = self.began.elapsed();
                        let report = self.packets.report(track, now, timestamp(now, rate));
                        self.peer.data(2 * track as u8 + 1, &report).await;
                    }
                }
                Step::OtherSource => self.packets.change_source(),
                Step::LateSound(milliseconds) => self.late = Duration::from_millis(milliseconds),
            }
        }
    }
}

/// Timestamp of a time since the beginning. Clocks begin with 10 s.
fn timestamp(time: Duration, rate: u32) -> u32 {
    ((time + Duration::from_secs(10)).as_micros() * u128::from(rate) / 1_000_000) as u32
}

/// Takes the frames of a camera that acts, until none comes for a while: nobody may wait for a viewer.
async fn watch(camera: &mut Camera, steps: &[Step], viewer: &mut Viewer) -> Vec<Frame> {
    let (mut all, mut acts) = (Vec::<Frame>::new(), true);
    let mut act = Box::pin(camera.act(steps));
    loop {
        tokio::select! {
            run = timeout(Duration::from_millis(100), viewer.frames.next()) => match run {
                Ok(Ok(run)) => all.extend(run.iter().cloned()),
                _ if acts => {}
                _ => return all,
            },
            () = &mut act, if acts => acts = false,
        }
    }
}

/// Names of the tracks of epochs whose tracks differ. The clock of the machine stands still meanwhile, which begins epochs too.
fn tracks(viewer: &Viewer) -> Vec<String> {
    let epochs = viewer.reporter.epochs().borrow().clone();
    let names = |epoch: &crate::Epoch| {
        epoch.formats.iter().flatten().map(|format| format.name.clone()).collect::<Vec<_>>().join(" ")
    };
    let mut all: Vec<String> = epochs.iter().map(names).collect();
    all.dedup();
    all
}

/// Plays a scenario, and compares what comes out with what is expected.
async fn check(scenario: &Scenario) {
    let name = scenario.name;
    let (mut server, connector) = server();
    let mut viewer = start(connector, |_| {});
    let mut camera = Camera::play(&mut server, scenario).await;
    let out = watch(&mut camera, scenario.steps, &mut viewer).await;
    let epochs = viewer.reporter.epochs().borrow().clone();
    let reasons: Vec<_> = epochs.iter().map(|epoch| (epoch.reason, epoch.from)).collect();
    assert_eq!(tracks(&viewer), scenario.tracks, "{name}: {reasons:?}");
    for (track, expected) in (0_u16..).zip(scenario.frames) {
        let out: Vec<&Frame> = out.iter().filter(|frame| frame.track == track).collect();
        assert_eq!(out.len(), expected, "{name}: frames of track {track}");
        if !scenario.habits.contains(&Habit::Changed) {
            let sent = &camera.sent[usize::from(track)];
            for frame in &out {
                assert!(
                    sent.iter().any(|sent| frame.data == sent[..]),
                    "{name}: a frame of track {track} is none that was sent"
                );
            }
        }
    }
    if let Some(expected) = scenario.apart {
        let at = |frame: &Frame, rate: i64| frame.pts * 1000 / rate;
        let first = |track: u16| out.iter().find(|frame| frame.track == track).unwrap();
        let apart = at(first(1), 48_000) - at(first(0), 90_000);
        assert!((apart - expected).abs() <= 2, "{name}: sound begins {apart} ms after the pictures");
    }
}

#[tokio::test(start_paused = true)]
async fn odd_cameras_play() {
    for scenario in ODDITIES {
        check(scenario).await;
    }
}

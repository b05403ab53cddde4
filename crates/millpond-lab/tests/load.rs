//! Load runs against a small server in the same process, with made-up titles.

mod server;

use std::time::{Duration, Instant};

use millpond_lab::{
    Abr, HttpVersion, KindReport, LoadError, LoadOptions, Pace, Report, RunLength, Target, run, run_until,
};
use server::{Answer, Server};

const MULTIVARIANT: &str = "#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"en\",DEFAULT=YES,URI=\"a1/index.m3u8\"
#EXT-X-STREAM-INF:BANDWIDTH=100000,RESOLUTION=320x180,AUDIO=\"a\"
v1/index.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=200000,RESOLUTION=640x360,AUDIO=\"a\"
v2/index.m3u8
";

const MPD: &str = r#"<MPD mediaPresentationDuration="PT12S"><Period>
<AdaptationSet contentType="video"><SegmentTemplate media="$RepresentationID$/$Number$.m4s"
 initialization="$RepresentationID$/init.mp4" duration="4"/>
<Representation id="v1" bandwidth="100000"/><Representation id="v2" bandwidth="200000"/></AdaptationSet>
<AdaptationSet contentType="audio"><SegmentTemplate media="a1/$Time$.m4s" initialization="a1/init.mp4"
 timescale="10"><SegmentTimeline><S t="0" d="30" r="3"/></SegmentTimeline></SegmentTemplate>
<Representation id="a1" bandwidth="64000"/></AdaptationSet></Period></MPD>"#;

/// A media playlist of `count` segments of `seconds`.
fn playlist(count: u32, seconds: f64) -> String {
    let mut text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MAP:URI=\"init.mp4\"\n".to_owned();
    for number in 1..=count {
        text.push_str(&format!("#EXTINF:{seconds},\n{number}.m4s\n"));
    }
    text.push_str("#EXT-X-ENDLIST\n");
    text
}

/// 12 seconds in two video renditions and one audio: init segments of 500 bytes, segments of 10,000.
fn title(path: &str) -> Answer {
    match path {
        "/index.m3u8" => Answer::text(MULTIVARIANT),
        "/index.mpd" => Answer::text(MPD),
        path if path.ends_with(".m3u8") => Answer::text(&playlist(3, 4.0)),
        path if path.ends_with("init.mp4") => Answer::bytes(500),
        path if path.ends_with(".m4s") => Answer::bytes(10_000),
        _ => Answer::status(404),
    }
}

/// As fast as it goes, at the lowest rung, without retries.
fn options(server: &Server, path: &str) -> LoadOptions {
    LoadOptions {
        clients: 3,
        pace: Pace::Fast,
        abr: Abr::Lowest,
        retries: 0,
        threads: 2,
        ..LoadOptions::new(server.url(path))
    }
}

async fn report(options: LoadOptions) -> Report {
    let watched = tokio::time::timeout(Duration::from_secs(30), run(options, |_| {}));
    watched.await.expect("ends in time").expect("runs")
}

fn kind<'r>(report: &'r Report, name: &str) -> &'r KindReport {
    report.kinds.iter().find(|kind| kind.kind == name).unwrap_or_else(|| panic!("{name} in {report}"))
}

/// Requests and bytes of one kind.
fn figures(report: &Report, name: &str) -> (u64, u64) {
    let kind = kind(report, name);
    (kind.requests, kind.bytes)
}

#[tokio::test]
async fn hls_as_three_players_ask_for_it() {
    let server = Server::start(title).await;
    let report = report(options(&server, "/index.m3u8")).await;
    assert_eq!(report.mode, "hls");
    assert_eq!(report.errors, [], "{report}");
    let playlists = (MULTIVARIANT.len() + 2 * playlist(3, 4.0).len()) as u64;
    assert_eq!(figures(&report, "manifest"), (9, 3 * playlists));
    assert_eq!(figures(&report, "init"), (6, 3_000));
    assert_eq!(figures(&report, "segment"), (18, 180_000));
    assert_eq!((report.requests, report.bytes), (33, 3 * playlists + 183_000));
    assert_eq!((report.viewers.started, report.viewers.done), (3, 3));
    assert_eq!(report.startup.count, 3);
    assert!(kind(&report, "segment").first_byte.p50 > 0.0);
    assert_eq!(server.asked("/v1/2.m4s"), 3);
    assert_eq!(server.asked("/v2/2.m4s"), 0);
}

#[tokio::test]
async fn dash_as_three_players_ask_for_it() {
    let server = Server::start(title).await;
    let report = report(LoadOptions { abr: Abr::Highest, ..options(&server, "/index.mpd") }).await;
    assert_eq!(report.mode, "dash");
    assert_eq!(report.errors, [], "{report}");
    assert_eq!(figures(&report, "manifest"), (3, 3 * MPD.len() as u64));
    assert_eq!(figures(&report, "init"), (6, 3_000));
    assert_eq!(figures(&report, "segment"), (21, 210_000), "three of video, four of audio");
    for path in ["/v2/1.m4s", "/v2/3.m4s", "/a1/0.m4s", "/a1/90.m4s"] {
        assert_eq!(server.asked(path), 3, "{path}");
    }
}

#[tokio::test]
async fn players_go_on_at_the_next_server_of_the_manifest() {
    let server = Server::start(|path| match path {
        "/index.m3u8" => Answer::text(
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=1x1,PATHWAY-ID=\"a\"\na/index.m3u8\n\
             #EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=1x1,PATHWAY-ID=\"b\"\nb/index.m3u8\n",
        ),
        path if path.ends_with(".m3u8") => Answer::text(&playlist(3, 4.0)),
        "/a/2.m4s" | "/a/3.m4s" => Answer::hang_up(),
        _ => Answer::bytes(1000),
    })
    .await;
    let report = report(options(&server, "/index.m3u8")).await;
    assert_eq!((report.switches.servers, report.viewers.done, report.viewers.failed), (3, 3, 0), "{report}");
    assert_eq!((server.asked("/a/1.m4s"), server.asked("/a/3.m4s")), (3, 0));
    assert_eq!((server.asked("/b/init.mp4"), server.asked("/b/2.m4s"), server.asked("/b/3.m4s")), (3, 3, 3));
    assert_eq!(report.error_count(), 3);
}

/// A live media playlist up to the part that a request asks for, with segments of two parts each.
fn live_playlist(path: &str) -> String {
    let asked = |name: &str| path.split(['?', '&']).find_map(|pair| pair.strip_prefix(name)?.parse::<u64>().ok());
    let (last, part) = (asked("_hls_msn=").unwrap_or(3), asked("_hls_part=").unwrap_or(1));
    let (last, part) = (last + part / 2, part % 2);
    let mut text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5\n\
        #EXT-X-PART-INF:PART-TARGET=0.5\n#EXT-X-MEDIA-SEQUENCE:1\n#EXT-X-MAP:URI=\"init.mp4\"\n"
        .to_owned();
    for (segment, parts) in (1..last).map(|segment| (segment, 2)).chain([(last, part + 1)]) {
        (0..parts).for_each(|part| {
            text.push_str(&format!("#EXT-X-PART:DURATION=0.5,URI=\"{segment}.{part}.m4s\",INDEPENDENT=YES\n"));
        });
        if segment < last {
            text.push_str(&format!("#EXTINF:1,\n{segment}.m4s\n"));
        }
    }
    text
}

#[tokio::test]
async fn live_players_go_on_at_the_next_server_at_the_part_that_they_lack() {
    let server = Server::start(|path| match path {
        "/index.m3u8" => Answer::text(
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=1x1,PATHWAY-ID=\"a\"\na/index.m3u8\n\
             #EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=1x1,PATHWAY-ID=\"b\"\nb/index.m3u8\n",
        ),
        path if path.starts_with("/a/index.m3u8?_hls_msn=5") => Answer::hang_up(),
        path if path.contains(".m3u8") => Answer::text(&live_playlist(path)).after(Duration::from_millis(50)),
        _ => Answer::bytes(1000),
    })
    .await;
    let length = RunLength::For(Duration::from_secs(3));
    let options =
        LoadOptions { target: Target::Live, length, clients: 3, threads: 1, ..options(&server, "/index.m3u8") };
    let report = report(options).await;
    assert_eq!((report.switches.servers, report.viewers.failed), (3, 0), "{report}");
    // Each part once, at the server that had it.
    assert_eq!((server.asked("/a/5.0.m4s"), server.asked("/b/5.0.m4s")), (3, 0), "{report}");
    assert_eq!((server.asked("/a/5.1.m4s"), server.asked("/b/5.1.m4s")), (0, 3), "{report}");
}

#[tokio::test]
async fn byte_ranges_of_one_file() {
    let server = Server::start(|path| match path {
        "/one.m3u8" => Answer::text(
            "#EXTM3U\n#EXT-X-MAP:URI=\"f.mp4\",BYTERANGE=\"100@0\"\n#EXTINF:4,\n#EXT-X-BYTERANGE:300@100\nf.mp4\n\
             #EXTINF:4,\n#EXT-X-BYTERANGE:600\nf.mp4\n#EXT-X-ENDLIST\n",
        ),
        _ => Answer::bytes(1000),
    })
    .await;
    let report = report(options(&server, "/one.m3u8")).await;
    assert_eq!(report.errors, [], "{report}");
    assert_eq!(figures(&report, "init"), (3, 300));
    assert_eq!(figures(&report, "segment"), (6, 2_700));
}

#[tokio::test]
async fn a_server_that_ignores_ranges_is_found_out() {
    let server = Server::start(|path| match path {
        "/one.m3u8" => Answer::text("#EXTM3U\n#EXTINF:4,\n#EXT-X-BYTERANGE:300@100\nf.ts\n#EXT-X-ENDLIST\n"),
        _ => Answer::bytes(1000).without_ranges(),
    })
    .await;
    let report = report(options(&server, "/one.m3u8")).await;
    assert_eq!((report.errors.len(), report.errors[0].count), (1, 3), "{report}");
    assert_eq!(report.errors[0].kind, "wrong length");
}

#[tokio::test]
async fn realtime_keeps_the_pace_of_playback() {
    let server = Server::start(|path| match path {
        "/short.m3u8" => Answer::text(&playlist(10, 0.2)),
        _ => Answer::bytes(100),
    })
    .await;
    let pace = Pace::Realtime { buffer: Duration::from_millis(400) };
    let began = Instant::now();
    let report = report(LoadOptions { pace, ..options(&server, "/short.m3u8") }).await;
    let took = began.elapsed().as_secs_f64();
    assert!((1.9..60.0).contains(&took), "two seconds of title took {took} s");
    assert_eq!((report.viewers.done, figures(&report, "segment").0), (3, 30));
}

#[tokio::test]
async fn a_server_slower_than_playback_stalls() {
    let server = Server::start(|path| match path {
        "/slow.m3u8" => Answer::text(&playlist(4, 0.1)),
        path if path.ends_with("init.mp4") => Answer::bytes(100),
        _ => Answer::bytes(100).after(Duration::from_millis(300)),
    })
    .await;
    let pace = Pace::Realtime { buffer: Duration::from_secs(20) };
    let report = report(LoadOptions { pace, ..options(&server, "/slow.m3u8") }).await;
    // The first segment starts playback; each of the other three comes 0.2 s after what was there is over.
    assert_eq!((report.stalls.count, report.stalls.viewers), (9, 3), "{report}");
    assert!((1.7..60.0).contains(&report.stalls.seconds), "{report}");
    assert!((300.0..30_000.0).contains(&report.startup.p50), "{report}");
}

#[tokio::test]
async fn switches_up_and_down_with_the_throughput() {
    let server = Server::start(|path| match path {
        "/index.m3u8" => Answer::text(MULTIVARIANT),
        path if path.ends_with(".m3u8") => Answer::text(&playlist(8, 4.0)),
        path if path.starts_with("/v2/") && path.ends_with(".m4s") => {
            Answer::bytes(1_000).after(Duration::from_millis(400))
        }
        _ => Answer::bytes(5_000),
    })
    .await;
    let options = LoadOptions { clients: 1, abr: Abr::Switching, ..options(&server, "/index.m3u8") };
    let report = report(options).await;
    assert_eq!(report.errors, [], "{report}");
    assert!(report.switches.up >= 1 && report.switches.down >= 1, "{report}");
    assert_eq!(figures(&report, "segment").0, 16, "each segment once, whatever the rendition");
    assert_eq!(figures(&report, "init").0, 3, "each init segment once");
}

#[tokio::test]
async fn viewers_start_anywhere_and_leave_early() {
    let server = Server::start(|path| match path {
        "/long.m3u8" => Answer::text(&playlist(100, 4.0)),
        _ => Answer::bytes(10),
    })
    .await;
    let options = LoadOptions {
        clients: 200,
        start_within: 0.5,
        mean_watch: 0.2,
        players_per_pool: 20,
        ..options(&server, "/long.m3u8")
    };
    let report = report(options).await;
    assert_eq!((report.viewers.done, report.errors.len()), (200, 0), "{report}");
    // Starting a quarter in on average, each watches a fifth of the 75 segments left, and the begun one.
    let mean = figures(&report, "segment").0 as f64 / 200.0;
    assert!((11.0..20.0).contains(&mean), "{mean} segments on average");
    assert!(server.asked("/1.m4s") < 50, "they do not all start at the beginning");
}

#[tokio::test]
async fn plain_urls_are_fetched_over_and_over() {
    let server = Server::start(|_| Answer::bytes(1000)).await;
    let length = RunLength::For(Duration::from_millis(2500));
    let mut seen = Vec::new();
    let options = LoadOptions { length, ..options(&server, "/file") };
    let whole = run(options.clone(), |progress| seen.push(*progress)).await.expect("runs");
    assert_eq!((whole.mode, whole.viewers.cut_off), ("plain", 3));
    assert!(whole.requests > 10 && (2.4..30.0).contains(&whole.elapsed), "{whole}");
    // Once a second, and at least once in the length of the run.
    assert!((1..=whole.elapsed as usize).contains(&seen.len()), "{} in {} s", seen.len(), whole.elapsed);
    assert!(seen[0].active == 3 && seen[0].requests_per_second > 1.0 && seen[0].errors == 0, "{seen:?}");

    let ranges = report(LoadOptions { random_ranges: Some(100), length: RunLength::Title, ..options }).await;
    assert_eq!(figures(&ranges, "plain"), (3, 300));
}

#[tokio::test]
async fn a_manifest_can_be_fetched_as_plain() {
    let server = Server::start(title).await;
    let options = LoadOptions { target: Target::Plain, ..options(&server, "/index.m3u8") };
    let report = report(options).await;
    assert_eq!(figures(&report, "plain"), (3, 3 * MULTIVARIANT.len() as u64));
}

/// The kinds and counts of errors when segment 2 is answered so.
async fn errors_with(answer: fn() -> Answer, retries: u32) -> (Vec<(String, u64)>, Report) {
    let server = Server::start(move |path| match path {
        "/x.m3u8" => Answer::text(&playlist(3, 4.0)),
        "/2.m4s" => answer(),
        _ => Answer::bytes(1000),
    })
    .await;
    let timeout = Duration::from_secs(5);
    let options = LoadOptions { clients: 1, retries, timeout, ..options(&server, "/x.m3u8") };
    let report = report(options).await;
    (report.errors.iter().map(|error| (error.kind.clone(), error.count)).collect(), report)
}

#[tokio::test]
async fn errors_are_told_apart() {
    type Row = (fn() -> Answer, &'static str);
    let table: [Row; 5] = [
        (|| Answer::status(503), "status 503"),
        (|| Answer::bytes(1000).promising(2000), "broken body"),
        (|| Answer::bytes(1000).after(Duration::from_secs(20)), "timeout"),
        (|| Answer::bytes(0), "wrong length"),
        (Answer::hang_up, "no response"),
    ];
    for (answer, kind) in table {
        let (errors, report) = errors_with(answer, 0).await;
        assert_eq!(errors, [(kind.to_owned(), 1)], "{report}");
        assert_eq!((report.viewers.failed, figures(&report, "segment").0), (1, 1), "{report}");
        assert!(report.errors[0].examples[0].contains("/2.m4s"), "{report}");
    }
    let (errors, _) = errors_with(|| Answer::status(404), 2).await;
    assert_eq!(errors, [("status 404".to_owned(), 3)], "the request and two retries");
}

#[tokio::test]
async fn a_segment_that_changes_its_length_is_found_out() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::start(move |path| match path {
        "/x.m3u8" => Answer::text(&playlist(1, 4.0)),
        "/1.m4s" => Answer::bytes(1000 + count.fetch_add(1, std::sync::atomic::Ordering::Relaxed)),
        _ => Answer::bytes(10),
    })
    .await;
    let options = LoadOptions { threads: 1, ..options(&server, "/x.m3u8") };
    let found = report(options.clone()).await;
    assert_eq!(found.errors[0].count, 2, "{found}");
    assert!(found.errors[0].examples[0].contains("when first fetched"), "{found}");
    let ignored = report(LoadOptions { verify: false, ..options }).await;
    assert_eq!(ignored.errors, [], "{ignored}");
}

#[tokio::test]
async fn a_dead_server_is_not_asked_in_a_tight_loop() {
    let server = Server::start(|path| match path {
        "/x.m3u8" => Answer::text(&playlist(1, 4.0)),
        _ => Answer::status(500),
    })
    .await;
    let length = RunLength::For(Duration::from_millis(1500));
    let report = report(LoadOptions { length, ..options(&server, "/x.m3u8") }).await;
    // A machine that stands still for a moment has no time for the second attempts.
    assert!((3..=6).contains(&report.error_count()), "three clients, twice each: {report}");
}

#[tokio::test]
async fn a_run_can_be_stopped_with_a_report() {
    let server = Server::start(title).await;
    let options = LoadOptions { length: RunLength::For(Duration::from_secs(600)), ..options(&server, "/index.mpd") };
    let stop = async {
        while server.asked("/a1/0.m4s") == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    };
    let report = run_until(options, |_| {}, stop).await.expect("runs");
    assert!(report.elapsed < 60.0 && report.requests > 0, "{report}");
    assert_eq!(report.errors, [], "requests cut off by the end are no errors");
}

#[tokio::test]
async fn runs_that_cannot_begin_say_why() {
    let server = Server::start(|path| match path {
        "/live.m3u8" => Answer::text("#EXTM3U\n#EXTINF:4,\n1.ts\n"),
        "/short" => Answer::bytes(10),
        _ => Answer::status(404),
    })
    .await;
    let fails = async |options| run(options, |_| {}).await.expect_err("can't begin");
    let error = fails(options(&server, "/gone.m3u8")).await;
    assert!(matches!(error, LoadError::Status { status: 404, .. }), "{error}");
    let error = fails(options(&server, "/live.m3u8")).await;
    assert!(matches!(error, LoadError::Manifest { .. }) && error.to_string().contains("live"), "{error}");
    let error = fails(LoadOptions { random_ranges: Some(11), ..options(&server, "/short") }).await;
    assert!(matches!(error, LoadError::Length { length: Some(10), .. }), "{error}");
    let error = fails(LoadOptions { clients: 0, ..options(&server, "/short") }).await;
    assert!(matches!(error, LoadError::Options(_)), "{error}");
    let error = fails(LoadOptions { http: HttpVersion::Http2, ..options(&server, "/short") }).await;
    assert!(matches!(error, LoadError::Unreachable { .. }), "{error}");
}

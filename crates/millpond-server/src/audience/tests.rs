use super::*;
use std::sync::atomic::AtomicU64;

fn viewing<'a>(client: &str, asset: &'a str) -> Viewing<'a> {
    Viewing { client: client.parse().unwrap(), agent: "player", subject: None, asset }
}

fn counted(bytes: &Arc<AtomicU64>) -> ReadBytes {
    let bytes = bytes.clone();
    Box::new(move || bytes.load(Ordering::Relaxed))
}

#[test]
fn requests_of_one_viewer_are_one_line() {
    let audience = Arc::new(Audience::default());
    for _ in 0..3 {
        audience.answered(&viewing("192.0.2.1", "films/a.mp4"), 1000);
    }
    audience.answered(&viewing("::ffff:192.0.2.1", "films/a.mp4"), 1000);
    audience.answered(&viewing("192.0.2.2", "films/a.mp4"), 10);
    audience.answered(&viewing("192.0.2.1", "films/b.mp4"), 20);
    audience.answered(&Viewing { subject: Some("ann"), ..viewing("192.0.2.1", "films/b.mp4") }, 30);
    let mut bytes: Vec<_> = audience.reports().iter().map(|report| (report.requests, report.bytes)).collect();
    bytes.sort_unstable();
    assert_eq!(bytes, [(Some(1), 10), (Some(1), 20), (Some(1), 30), (Some(4), 4000)]);
    assert_eq!(audience.count(), 4);
}

#[test]
fn the_table_is_bounded() {
    let audience = Audience::default();
    for n in 0..SHARDS * 1000 {
        audience.answered(&viewing("192.0.2.1", &format!("films/{n}.mp4")), 1);
    }
    assert!(audience.count() <= SHARDS * 256, "{}", audience.count());
    let last = format!("films/{}.mp4", SHARDS * 1000 - 1);
    assert!(audience.reports().iter().any(|report| *report.about.asset == *last), "the newest is there");
}

#[test]
fn a_crowd_of_names_hides_no_response_under_way() {
    let audience = Arc::new(Audience::default());
    let _film = audience.begin(&viewing("192.0.2.1", "films/a.mp4"), Length::File, Box::new(|| 1));
    for n in 0..SHARDS * 1000 {
        audience.answered(&viewing("192.0.2.2", &format!("films/{n}.mp4")), 1);
    }
    assert!(audience.reports().iter().any(|report| *report.about.asset == *"films/a.mp4"));
}

#[tokio::test]
async fn responses_under_way_count_and_can_be_cut() {
    let (audience, sent) = (Arc::new(Audience::default()), Arc::new(AtomicU64::new(0)));
    let file = audience.begin(&viewing("192.0.2.1", "films/a.mp4"), Length::File, counted(&sent));
    let long = audience.begin(&viewing("192.0.2.2", "cams/door"), Length::Long, counted(&sent));
    sent.store(500, Ordering::Relaxed);
    let reports = audience.reports();
    let facts: Vec<_> = reports.iter().map(|r| (r.is_long, r.bytes, r.state.name())).collect();
    assert_eq!(facts, [(false, 500, "active"), (true, 500, "sending")]);
    for (report, response) in reports.iter().zip([&file, &long]) {
        assert_eq!(audience.kick(&report.id, Duration::from_secs(60)).unwrap().id, report.id);
        response.cut().await;
    }
    assert!(audience.blocked(&viewing("192.0.2.1", "films/a.mp4")).is_some());
    assert!(audience.blocked(&viewing("192.0.2.2", "cams/door")).is_some());
    assert!(audience.blocked(&viewing("192.0.2.2", "films/a.mp4")).is_none());
    drop((file, long));
    assert_eq!(audience.count(), 0);
}

#[test]
fn blocks_end_and_are_bounded() {
    let audience = Audience::default();
    assert!(!audience.has_blocks());
    for n in 0..1100 {
        let asset = format!("films/{n}.mp4");
        let viewing = viewing("192.0.2.1", &asset);
        audience.answered(&viewing, 1);
        let id = audience.key(&viewing).to_string();
        assert!(audience.kick(&id, Duration::from_secs(1000 + n)).is_some());
    }
    let blocks = audience.blocks();
    assert_eq!(blocks.len(), 1024);
    assert!(audience.blocked(&viewing("192.0.2.1", "films/0.mp4")).is_none(), "the first to end gave way");
    assert!(audience.unblock(&blocks[0].id) && !audience.unblock(&blocks[0].id));
    let short = viewing("192.0.2.9", "films/a.mp4");
    audience.answered(&short, 1);
    audience.kick(&audience.key(&short).to_string(), Duration::ZERO).unwrap();
    assert!(audience.blocked(&short).is_none());
    for id in ["", "h", "h-", "h-zz", "x-1", "h-0000000000000001", "l-1"] {
        assert!(audience.kick(id, Duration::ZERO).is_none(), "{id}");
    }
}

#[test]
fn each_viewer_is_shown_with_a_number_of_its_own() {
    let audience = Arc::new(Audience::default());
    for _ in 0..2 {
        audience.answered(&viewing("192.0.2.1", "films/a.mp4"), 1);
    }
    let long = [(); 2].map(|()| audience.begin(&viewing("192.0.2.1", "cams/door"), Length::Long, Box::new(|| 1)));
    let seen = || {
        let mut seen = Vec::new();
        audience.each_viewer(&mut |number, asset| seen.push((asset.to_owned(), number)));
        seen.sort_unstable();
        seen
    };
    let (first, second) = (seen(), seen());
    assert_eq!(
        first.iter().map(|(asset, _)| asset.as_str()).collect::<Vec<_>>(),
        ["cams/door", "cams/door", "films/a.mp4"]
    );
    assert!(first == second && first.windows(2).all(|two| two[0].1 != two[1].1), "{first:?}");
    drop(long);
    assert_eq!(seen().len(), 1);
    audience.rebuffered("films/a.mp4");
    assert_eq!(audience.take_rebuffers().by_title["films/a.mp4"], 1);
    assert_eq!(audience.take_rebuffers(), Rebuffers::default());
}

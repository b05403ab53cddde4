use super::super::{
    ClusterMetrics, ClusterSettings, Counted, LoadMeter, PlaceRead, PurgedCache, Start, WallClocks, measured::Traffic,
};
use super::*;
use crate::events::{EventMetrics, Events};
use millpond_cluster::{Addresses, Booking};
use millpond_settings::{Host, Settings as _, machine::Machine};
use prometheus_client::registry::Registry;
use std::{sync::atomic::AtomicU64, time::Instant};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::mpsc,
};

/// `/millpond/book/` in base64: the beginning of the keys of bookings.
const BOOK: &str = "L21pbGxwb25kL2Jvb2sv";

/// A cache that no purge concerns.
fn cache() -> PurgedCache {
    let store = millpond_store::Store::new(&millpond_store::StoreOptions::default()).unwrap();
    PurgedCache { store, file: "/nonexistent/purged.json".into() }
}

/// An etcd that replies to changes of bookings while `hangs` is false, and to all else at once.
struct Etcd {
    cluster: Arc<Cluster>,
    hangs: watch::Sender<bool>,
    /// Whether another node is always faster.
    refuses: Arc<AtomicBool>,
    heard: mpsc::UnboundedReceiver<String>,
}

impl Etcd {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let ((hangs, hanging), (to, heard)) = (watch::channel(false), mpsc::unbounded_channel());
        let refuses = Arc::<AtomicBool>::default();
        let refusing = refuses.clone();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (mut hanging, to, refusing) = (hanging.clone(), to.clone(), refusing.clone());
                tokio::spawn(async move {
                    let (mut request, mut length) = (vec![0; 64 << 10], 0);
                    while !request[..length].ends_with(b"}") {
                        match stream.read(&mut request[length..]).await {
                            Ok(more) if more > 0 => length += more,
                            _ => return,
                        }
                    }
                    let request = String::from_utf8(request[..length].to_vec()).unwrap();
                    let call = request.split_whitespace().nth(1).unwrap().trim_start_matches("/v3/").to_owned();
                    let mut is_refused = false;
                    if call == "kv/txn" && request.contains(BOOK) {
                        let _ = to.send("book".to_owned());
                        let _ = hanging.wait_for(|hangs| !hangs).await;
                        is_refused = refusing.load(Ordering::Relaxed);
                    } else {
                        let _ = to.send(call.clone());
                    }
                    let reply = match call.as_str() {
                        "lease/grant" => r#"{"ID":"7","TTL":"2"}"#,
                        "lease/keepalive" => r#"{"result":{"ID":"7","TTL":"2"}}"#,
                        "watch" => r#"{"result":{"header":{"revision":"5"},"created":true}}"#,
                        "kv/txn" if is_refused => r#"{"header":{"revision":"6"}}"#,
                        "kv/txn" => r#"{"header":{"revision":"6"},"succeeded":true}"#,
                        _ => r#"{"header":{"revision":"5"}}"#,
                    };
                    let reply = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{reply}\n");
                    let _ = stream.write_all(reply.as_bytes()).await;
                    if call == "watch" {
                        std::future::pending::<()>().await;
                    }
                });
            }
        });
        let host = Host { machine: Machine::detect(), variable: &|_| None };
        let mut settings = ClusterSettings::defaults(&host);
        settings.etcd = vec![url.parse().unwrap()];
        settings.node = Some("a".to_owned());
        (settings.mbps, settings.storage_mbps) = (Some(10_000), Some(10_000));
        settings.lease = Duration::from_secs(2);
        let metrics = ClusterMetrics::register(&mut Registry::default());
        let events = Events::new("a", 10, &EventMetrics::register(&mut Registry::default()));
        let cluster = Cluster::new(&settings, Addresses::default(), metrics, events, WallClocks::default()).unwrap();
        Self { cluster, hangs, refuses, heard }
    }

    /// Requests that arrived until now.
    fn heard(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).collect()
    }
}

/// A stream that needs a booking of its own.
fn demand(minutes: u64) -> Demand {
    Demand { rate: Bitrate::from_mbps(1), length: Some(Duration::from_secs(minutes * 60)), ..Demand::default() }
}

/// Counts of a node that sends and reads at a rate for a second more.
fn second_more((counted, at): &mut (Counted, Duration), mbps: u64) -> (Counted, Duration) {
    counted.sent += mbps * 125_000;
    let before = counted.read.first().map_or(0, |read| read.bytes);
    let bytes = before + mbps * 125_000;
    counted.read = vec![PlaceRead { place: "films".into(), stores: BTreeSet::new(), bytes }];
    *at += Duration::from_secs(1);
    (counted.clone(), *at)
}

#[tokio::test]
async fn the_busy_scenes_of_streams_are_not_booked_a_second_time() {
    let etcd = Etcd::start().await;
    let tasks = etcd.cluster.join(LoadMeter::new(Counted::default), cache()).await.unwrap();
    let film = Demand { storage: Some("films".into()), rate: Bitrate::from_mbps(2), ..demand(60) };
    let mut sessions = Vec::new();
    for _ in 0..14 {
        sessions.push(etcd.cluster.book(film.clone()).await.unwrap().unwrap());
    }
    let needed = |storage| etcd.cluster.bookings.ledger().needed(storage);
    let (mut traffic, mut counts) = (Traffic::default(), Default::default());
    // 1.6 times their rate, then less.
    for second in 0..60 {
        let mbps = if second % 40 < 15 { 45 } else { 18 };
        traffic.follow(&etcd.cluster, second_more(&mut counts, mbps)).await;
        let booked = (needed(None), needed(Some("films")));
        assert_eq!(booked, (Bitrate::from_mbps(28), Bitrate::from_mbps(28)), "{second}");
    }
    drop(sessions);
    traffic.follow(&etcd.cluster, second_more(&mut counts, 0)).await;
    assert_eq!(needed(None), Bitrate::ZERO);
    // A download belongs to no booked stream. Bytes that are read and not sent are booked of the storage alone.
    for _ in 0..20 {
        traffic.follow(&etcd.cluster, second_more(&mut counts, 10)).await;
    }
    let is_ten = |rate: Bitrate| (9_000_000..=11_000_000).contains(&rate.bps());
    assert!(is_ten(needed(None)) && is_ten(needed(Some("films"))), "{} {}", needed(None), needed(Some("films")));
    tasks.leave().await;
}

#[tokio::test]
async fn a_client_books_a_title_once() {
    let etcd = Etcd::start().await;
    let tasks = etcd.cluster.join(LoadMeter::new(Counted::default), cache()).await.unwrap();
    let [a, b] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
    let needed = || etcd.cluster.bookings.ledger().needed(None);
    // Nine requests at once, none of which knows the booking of another.
    let all: Vec<_> = (0..9).map(|_| etcd.cluster.book_viewer((a, "films/a.mp4"), demand(60))).collect();
    for booked in futures_util::future::join_all(all).await {
        booked.unwrap();
    }
    assert_eq!(needed(), Bitrate::from_mbps(1));
    etcd.cluster.book_viewer((b, "films/a.mp4"), demand(60)).await.unwrap();
    etcd.cluster.book_viewer((a, "films/b.mp4"), demand(60)).await.unwrap();
    assert_eq!(needed(), Bitrate::from_mbps(3));
    // A viewer who comes from another node has a booking soon.
    etcd.cluster.hear_viewer((b, "films/b.mp4"), || demand(60));
    etcd.cluster.hear_viewer((b, "films/b.mp4"), || panic!("a known viewer"));
    let began = Instant::now();
    while needed() != Bitrate::from_mbps(4) {
        assert!(began.elapsed() < Duration::from_secs(10), "{}", needed());
        sleep(Duration::from_millis(10)).await;
    }
    tasks.leave().await;
}

#[tokio::test]
async fn a_manager_sends_streams_where_they_fit_and_says_so() {
    let etcd = Etcd::start().await;
    let cluster = &etcd.cluster;
    let name = |text: &str| text.parse::<NodeName>().unwrap();
    let node = |text: &str| Node::new(name(text), Bitrate::from_mbps(10));
    cluster.set_view(View::of(1, [node("b"), node("c")]));
    let film = Demand { rate: Bitrate::from_mbps(3), ..demand(60) };
    let key = ObjectKey::new("films", "a.mp4");
    let mut sent = Vec::new();
    for _ in 0..6 {
        let answer = cluster.answer(&key, Start::Stored, Some(&film), true);
        let best = answer.best().unwrap().clone();
        cluster.count(&best, Start::Stored, Some(&film));
        sent.push(best.name.to_string());
        // Full and with room: never both.
        let told = serde_json::to_value(cluster.explain(&key, Start::Stored, Some(&film))).unwrap();
        for candidate in told["candidates"].as_array().unwrap() {
            let resource = format!("node:{}", candidate["name"].as_str().unwrap());
            let room = told["book"].as_array().unwrap().iter().find(|room| room["resource"] == *resource).unwrap();
            assert_eq!(candidate["standing"] == "full", room["fits"] == false, "{told}");
        }
    }
    // Nothing of them is booked yet.
    assert_eq!(sent.iter().filter(|name| *name == "b").count(), 3, "{sent:?}");
    assert!(cluster.answer(&key, Start::Stored, Some(&film), true).best().is_none(), "no node has room for three more");
    // A measured load that no stream has booked is no reason to call a node full.
    let busy = Node { load: millpond_cluster::Load { rate: Bitrate::from_mbps(11), sessions: 3 }, ..node("d") };
    cluster.set_view(View::of(2, [busy]));
    assert!(cluster.answer(&key, Start::Stored, Some(&film), true).best().is_some());
}

#[tokio::test]
async fn a_refused_stream_counts_no_longer() {
    let etcd = Etcd::start().await;
    let cluster = &etcd.cluster;
    cluster.bookings.is_away.store(true, Ordering::Relaxed);
    cluster.set_view(View::of(1, [Node::new(cluster.name().clone(), Bitrate::from_mbps(10_000))]));
    let load = || cluster.loads.lock().unwrap().load(cluster.name()).unwrap();
    let candidate = |film: &Demand| {
        let answer = cluster.answer(&ObjectKey::new("films", "a.mp4"), Start::Stored, Some(film), true);
        answer.candidates.into_iter().next().unwrap()
    };
    // More than the node has.
    let huge = Demand { rate: Bitrate::from_mbps(20_000), ..demand(60) };
    let own = candidate(&demand(60));
    cluster.count(&own, Start::Stored, Some(&huge));
    assert_eq!(load(), Bitrate::from_mbps(20_000));
    let shortage = cluster.book(huge).await.unwrap_err();
    assert_eq!((load(), limit_of(&shortage)), (Bitrate::ZERO, "cluster-mbps"));
    // One that is booked, and refused for another reason.
    let film = demand(60);
    cluster.count(&own, Start::Stored, Some(&film));
    let booked = cluster.book(film).await.unwrap().unwrap();
    booked.refuse();
    assert_eq!(cluster.bookings.ledger().needed(None), Bitrate::ZERO);
}

#[tokio::test]
async fn a_lease_is_renewed_while_bookings_wait_for_etcd() {
    let mut etcd = Etcd::start().await;
    etcd.hangs.send_replace(true);
    let bytes = AtomicU64::new(0);
    let meter = LoadMeter::new(move || {
        let sent = bytes.fetch_add(10_000_000, Ordering::Relaxed);
        let read = |name: &str| PlaceRead { place: name.into(), stores: BTreeSet::new(), bytes: sent };
        Counted { sent, sessions: 1, read: ["x", "y", "z"].map(read).into() }
    });
    let tasks = etcd.cluster.join(meter, cache()).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    let heard = etcd.heard();
    let count = |call: &str| heard.iter().filter(|heard| *heard == call).count();
    assert!(count("book") > 0 && count("lease/keepalive") >= 4, "{heard:?}");
    assert_eq!(count("lease/grant"), 1);
    tasks.leave().await;
}

#[tokio::test]
async fn one_stream_waits_for_an_etcd_that_hangs_and_later_ones_do_not() {
    let mut etcd = Etcd::start().await;
    let tasks = etcd.cluster.join(LoadMeter::new(Counted::default), cache()).await.unwrap();
    etcd.hangs.send_replace(true);
    let _first = etcd.cluster.book(demand(10)).await.unwrap().unwrap();
    let began = Instant::now();
    let mut booked = Vec::new();
    for minutes in [20, 30, 40] {
        booked.push(etcd.cluster.book(demand(minutes)).await.unwrap().unwrap());
    }
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    etcd.heard();
    etcd.hangs.send_replace(false);
    let written = async {
        let mut is_heard = false;
        while !is_heard || etcd.cluster.bookings.ledger().plan(&[], WallClock::system().now()).is_changed {
            sleep(Duration::from_millis(50)).await;
            is_heard |= etcd.heard().iter().any(|call| call == "book");
        }
    };
    timeout(Duration::from_secs(60), written).await.expect("the bookings are written when etcd answers");
    tasks.leave().await;
}

#[tokio::test]
async fn a_stream_that_loses_each_race_for_a_storage_is_refused() {
    let mut etcd = Etcd::start().await;
    let tasks = etcd.cluster.join(LoadMeter::new(Counted::default), cache()).await.unwrap();
    etcd.refuses.store(true, Ordering::Relaxed);
    let of_storage = Demand { storage: Some("films".into()), ..demand(10) };
    let (of_node, shortage) = tokio::join!(etcd.cluster.book(demand(20)), etcd.cluster.book(of_storage.clone()));
    assert_eq!(shortage.unwrap_err().resource, Resource::Storage("films".into()));
    let _of_node = of_node.unwrap().unwrap();
    assert!(!etcd.cluster.bookings.is_away.load(Ordering::Relaxed), "etcd answers");
    assert_eq!(etcd.cluster.bookings.ledger().needed(Some("films")), Bitrate::ZERO);
    assert!(etcd.heard().iter().filter(|call| *call == "book").count() > 8);
    etcd.refuses.store(false, Ordering::Relaxed);
    assert!(etcd.cluster.book(of_storage).await.unwrap().is_some());
    tasks.leave().await;
}

#[tokio::test]
async fn bookings_of_a_lease_that_was_replaced_meanwhile_are_written_again() {
    let etcd = Etcd::start().await;
    etcd.hangs.send_replace(true);
    let cluster = etcd.cluster.clone();
    cluster.bookings.set_lease(Some(LeaseId(7)));
    let demands = [demand(10)];
    let plan = cluster.bookings.ledger().plan(&demands, WallClock::system().now());
    let written = cluster.write_bookings(plan, &demands, LeaseId(7));
    let (written, ()) = tokio::join!(written, async {
        sleep(Duration::from_millis(100)).await;
        cluster.bookings.set_lease(Some(LeaseId(8)));
        etcd.hangs.send_replace(false);
    });
    assert!(written.unwrap().unwrap()[0].is_ok());
    assert!(cluster.bookings.ledger().plan(&[], WallClock::system().now()).is_changed);
}

#[tokio::test]
async fn an_older_reading_removes_no_bookings() {
    let etcd = Etcd::start().await;
    let (bookings, keys) = (&etcd.cluster.bookings, etcd.cluster.keys());
    let name: NodeName = "b".parse().unwrap();
    let booking =
        Booking::new("x".into(), &name, &["s3".into()], Bitrate::from_mbps(5), WallClock::system().now(), None);
    let value = format!("[{}]", booking.to_json()).into_bytes();
    let pair = |key: &str, value, revision| KeyValue { key: key.into(), value, revision, created: revision };
    let pairs = [pair("/millpond/book/nodes/b/1", value, 9), pair("/millpond/book/storages/s3", b"{}".to_vec(), 9)];
    let booked = || bookings.ledger().booked(&name, WallClock::system().now());
    bookings.observe(&keys, pairs.iter(), 9);
    bookings.observe(&keys, [].iter(), 8);
    assert_eq!(booked(), Bitrate::from_mbps(5));
    bookings.observe(&keys, [].iter(), 10);
    assert_eq!(booked(), Bitrate::ZERO);
    // etcd is restored: revisions that were there are made again.
    bookings.forget();
    assert!(bookings.guards().is_empty() && bookings.observed() == 0);
    bookings.observe(&keys, pairs.iter(), 9);
    assert_eq!(booked(), Bitrate::from_mbps(5));
}

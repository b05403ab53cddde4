use super::super::{ClusterMetrics, ClusterSettings, Counted, LoadMeter, PlaceRead};
use super::*;
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
        let cluster = Cluster::new(&settings, Addresses::default(), metrics).unwrap();
        Self { cluster, hangs, refuses, heard }
    }

    /// Requests that arrived until now.
    fn heard(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).collect()
    }
}

/// A stream that needs a booking of its own.
fn demand(minutes: u64) -> Demand {
    Demand {
        storage: None,
        stores: BTreeSet::new(),
        rate: Bitrate::from_mbps(1),
        length: Some(Duration::from_secs(minutes * 60)),
    }
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
    let tasks = etcd.cluster.join(meter).await.unwrap();
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
    let tasks = etcd.cluster.join(LoadMeter::new(Counted::default)).await.unwrap();
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
    sleep(Duration::from_secs(3)).await;
    assert!(etcd.heard().iter().any(|call| call == "book"));
    assert!(!etcd.cluster.bookings.ledger().plan(&[], now()).is_changed, "the bookings are written when etcd answers");
    tasks.leave().await;
}

#[tokio::test]
async fn a_stream_that_loses_each_race_for_a_storage_is_refused() {
    let mut etcd = Etcd::start().await;
    let tasks = etcd.cluster.join(LoadMeter::new(Counted::default)).await.unwrap();
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
    let plan = cluster.bookings.ledger().plan(&demands, now());
    let written = cluster.write_bookings(plan, &demands, LeaseId(7));
    let (written, ()) = tokio::join!(written, async {
        sleep(Duration::from_millis(100)).await;
        cluster.bookings.set_lease(Some(LeaseId(8)));
        etcd.hangs.send_replace(false);
    });
    assert!(written.unwrap().unwrap()[0].is_ok());
    assert!(cluster.bookings.ledger().plan(&[], now()).is_changed);
}

#[tokio::test]
async fn an_older_reading_removes_no_bookings() {
    let etcd = Etcd::start().await;
    let (bookings, keys) = (&etcd.cluster.bookings, etcd.cluster.keys());
    let name: NodeName = "b".parse().unwrap();
    let booking = Booking::new("x".into(), &name, &["s3".into()], Bitrate::from_mbps(5), now(), None);
    let value = format!("[{}]", booking.to_json()).into_bytes();
    let pair = |key: &str, value, revision| KeyValue { key: key.into(), value, revision, created: revision };
    let pairs = [pair("/millpond/book/nodes/b/1", value, 9), pair("/millpond/book/storages/s3", b"{}".to_vec(), 9)];
    let booked = || bookings.ledger().booked(&name, now());
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

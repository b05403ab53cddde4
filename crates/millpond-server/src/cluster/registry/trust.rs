//! Answers that are forged, replayed, or passed on by strangers, and questions that are.

use super::{
    super::{Cluster, ClusterMetrics, ClusterSettings, NodeListeners, WallClocks, addresses},
    AskedQuestion, GOSSIP, GossipQuestion, PASS_HEADER, PROOF_HEADER, ProvedAnswer, Registry, StaticRegistry,
};
use crate::events::{EventMetrics, Events};
use millpond_settings::{Host, Settings as _, machine::Machine};
use millpond_utc::WallClock;
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

/// The server at an address of the list.
enum Listens {
    /// A node, whichever address is its own.
    Node(Arc<Cluster>),
    /// The same, and each answer but the first is the first one again.
    Repeats(Arc<Cluster>, Mutex<Option<(u16, String, String)>>),
    /// The same, with another body.
    Changes(Arc<Cluster>),
    /// Somebody who says this to everybody, with this proof.
    Stranger(u16, &'static str, &'static str),
}

/// A node at an address, with a secret.
fn node(name: &str, at: SocketAddr, secret: &[u8]) -> (Arc<Cluster>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, secret).unwrap();
    let host = Host { machine: Machine::detect(), variable: &|_| None };
    let mut settings = ClusterSettings::defaults(&host);
    settings.nodes = vec![format!("http://{at}").parse().unwrap()];
    (settings.node, settings.secret) = (Some(name.to_owned()), Some(file));
    let listeners = NodeListeners { http: at, rtsp: at, https: None, nodes: None };
    let metrics = ClusterMetrics::register(&mut prometheus_client::registry::Registry::default());
    let events = Events::new(name, 10, &EventMetrics::register(&mut prometheus_client::registry::Registry::default()));
    let clocks = WallClocks { system: WallClock::system(), ..WallClocks::default() };
    let cluster = Cluster::new(&settings, addresses::addresses(&settings, listeners), metrics, events, clocks).unwrap();
    cluster.knows_its_addresses(listeners).unwrap();
    (cluster, folder)
}

const SECRET: &[u8] = b"a secret of thirty-two bytes....";

fn registry(cluster: &Cluster) -> StaticRegistry {
    let Registry::Static(registry) = &cluster.registry else { panic!("a list of nodes") };
    registry.clone()
}

async fn bind() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

/// The number of the run that asks, as a query has it.
fn run_of(query: &str) -> u64 {
    u64::from_str_radix(query.rsplit_once("by=").unwrap().1, 16).unwrap()
}

async fn answer(cluster: &Cluster, query: &str, pass: Option<&str>) -> Option<ProvedAnswer> {
    let question = GossipQuestion { by: run_of(query), ..GossipQuestion::default() };
    let client = Ipv4Addr::LOCALHOST.into();
    cluster.answer_node(AskedQuestion { question, query, pass, is_of_node: false, client }).await
}

/// Serves one connection after the other; returns the heads of requests.
fn serve(listener: TcpListener, listens: Listens) -> Arc<Mutex<Vec<(String, String)>>> {
    let heard: Arc<Mutex<Vec<_>>> = Arc::default();
    let all = heard.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            let query = head.split(' ').nth(1).unwrap().strip_prefix(&format!("{GOSSIP}?")).unwrap().to_owned();
            let field = format!("{PASS_HEADER}: ");
            let pass = head.lines().find_map(|line| line.strip_prefix(&field)).unwrap_or_default().to_owned();
            all.lock().unwrap().push((query.clone(), pass.clone()));
            let of_node = async |cluster: &Cluster| match answer(cluster, &query, Some(&pass)).await {
                Some(ProvedAnswer { status, body, proof }) => (status.as_u16(), body, proof.unwrap().to_string()),
                None => (404, String::new(), String::new()),
            };
            let (status, body, proof) = match &listens {
                Listens::Node(cluster) => of_node(cluster).await,
                Listens::Repeats(cluster, first) => {
                    let now = of_node(cluster).await;
                    first.lock().unwrap().get_or_insert(now).clone()
                }
                Listens::Changes(cluster) => {
                    let (status, body, proof) = of_node(cluster).await;
                    (status, body.replace("\"heartbeats\":[]", "\"heartbeats\":[ ]"), proof)
                }
                Listens::Stranger(status, body, proof) => (*status, (*body).to_owned(), (*proof).to_owned()),
            };
            let proof = if proof.is_empty() { proof } else { format!("{PROOF_HEADER}: {proof}\r\n") };
            let length = body.len();
            let reply =
                format!("HTTP/1.1 {status} X\r\nConnection: close\r\n{proof}Content-Length: {length}\r\n\r\n{body}");
            stream.write_all(reply.as_bytes()).await.unwrap();
        }
    });
    heard
}

async fn ask(asker: &Cluster, at: SocketAddr) -> Result<Vec<u8>, String> {
    asker.ask_peer(&registry(asker), &format!("http://{at}"), "since=0&run=0&wait=0").await
}

#[tokio::test]
async fn an_answer_counts_with_its_own_proof_only() {
    let (asker, _kept) = node("a", "127.0.0.1:1".parse().unwrap(), SECRET);
    let (listener, at) = bind().await;
    let (other, _also) = node("b", at, SECRET);
    serve(listener, Listens::Node(other.clone()));
    assert!(ask(&asker, at).await.unwrap().starts_with(b"{\"node\":\"b\""));
    assert!(ask(&asker, at).await.is_ok() && asker.metrics.forged.get() == 0);

    let (listener, at) = bind().await;
    let (repeats, _also) = node("b", at, SECRET);
    serve(listener, Listens::Repeats(repeats, Mutex::default()));
    assert!(ask(&asker, at).await.is_ok());
    assert!(ask(&asker, at).await.unwrap_err().contains("no proof of cluster-secret"), "it was the answer of before");
    assert_eq!(asker.metrics.forged.get(), 1);

    let (listener, at) = bind().await;
    let (changes, _also) = node("b", at, SECRET);
    serve(listener, Listens::Changes(changes));
    assert!(ask(&asker, at).await.unwrap_err().contains("no proof of cluster-secret"));

    let zeros = "0000000000000000000000000000000000000000000000000000000000000000";
    for (status, proof) in [(200, ""), (200, zeros), (200, "x"), (403, zeros)] {
        let (listener, at) = bind().await;
        let forged = asker.metrics.forged.get();
        serve(listener, Listens::Stranger(status, r#"{"refusal":"clock","time":1}"#, proof));
        assert!(ask(&asker, at).await.unwrap_err().contains("no proof of cluster-secret"), "{status} {proof}");
        assert_eq!(asker.metrics.forged.get(), forged + 1);
    }
    let (listener, at) = bind().await;
    serve(listener, Listens::Stranger(404, "", ""));
    assert!(ask(&asker, at).await.unwrap_err().contains("another cluster-secret"));
}

#[tokio::test]
async fn a_stranger_in_the_list_can_use_no_question_elsewhere() {
    let (asker, _kept) = node("a", "127.0.0.1:1".parse().unwrap(), SECRET);
    let (listener, stranger) = bind().await;
    let (node_b, _also) = node("b", "127.0.0.1:2".parse().unwrap(), SECRET);
    // The stranger passes the question on to b, and the answer back.
    let heard = serve(listener, Listens::Node(node_b.clone()));
    let error = ask(&asker, stranger).await.unwrap_err();
    assert!(error.contains(&format!("knows itself by other addresses than {stranger}")), "{error}");
    let (query, pass) = heard.lock().unwrap()[0].clone();
    assert!(!pass.contains("eyJ") && !query.contains("eyJ"), "it gets no pass for homes");
    assert!(!registry(&node_b).askers().has_any_but(0, std::time::Duration::ZERO), "b was not asked");
    // With another address in the pass, or for another question, it has no proof.
    let forged = pass.replace(&stranger.to_string(), "127.0.0.1:2");
    assert!(answer(&node_b, &query, Some(&forged)).await.is_none());
    let ended = format!("ended=a/{:x}/1&by={:x}", asker.incarnation, asker.incarnation);
    assert!(answer(&node_b, &ended, Some(&pass)).await.is_none());
    for pass in [None, Some(""), Some("1 2 3 4"), node_b.pass().as_deref()] {
        assert!(answer(&node_b, &query, pass).await.is_none(), "{pass:?}");
    }
}

#[tokio::test]
async fn a_question_is_answered_once() {
    let (asker, _kept) = node("a", "127.0.0.1:1".parse().unwrap(), SECRET);
    let (listener, at) = bind().await;
    let (other, _also) = node("b", at, SECRET);
    let heard = serve(listener, Listens::Node(other.clone()));
    assert!(ask(&asker, at).await.is_ok());
    let (query, pass) = heard.lock().unwrap()[0].clone();
    assert!(answer(&other, &query, Some(&pass)).await.is_none());
    let (third, _also) = node("c", at, b"another secret of 32 bytes......");
    assert!(answer(&third, &query, Some(&pass)).await.is_none(), "another secret");
}

#[tokio::test]
async fn clocks_that_differ_are_named() {
    let (asker, _kept) = node("a", "127.0.0.1:1".parse().unwrap(), SECRET);
    let (listener, at) = bind().await;
    let (other, _also) = node("b", at, SECRET);
    serve(listener, Listens::Node(other));
    for (milliseconds, words) in
        [(7_230_000, "its clock is 2 h 0 min behind"), (-7_230_000, "its clock is 2 h 0 min ahead of")]
    {
        asker.wall.system.correct(milliseconds);
        let error = ask(&asker, at).await.unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    asker.wall.system.correct(300_000);
    assert!(ask(&asker, at).await.is_ok(), "five minutes are within the limit");
    assert_eq!(asker.metrics.forged.get(), 0);
}

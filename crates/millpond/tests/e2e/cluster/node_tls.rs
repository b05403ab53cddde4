//! Nodes with certificates of a private authority: by one end, and by both ends on a listener of nodes.

use super::{
    homes::{bytes, fetched_once},
    taking, wait_for,
};
use crate::{
    access::tokens,
    live::publish::push_clip,
    support::{Server, api::items, clips, etcd::Etcd, free_port, get, have, rtsp::Client},
};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const NAMES: [&str; 3] = ["a", "b", "c"];
/// Bytes of the file that all nodes send.
const LENGTH: usize = 40 << 20;

/// An authority, whose certificates lie in a folder.
struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        fs::write(folder.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { folder, issuer: Issuer::new(params, key) }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Makes `HOST.pem` and `HOST.key`; returns both paths.
    fn certify(&self, host: &str) -> [String; 2] {
        self.certify_until(host, 4000)
    }

    /// The same with a certificate that ends with a year.
    fn certify_until(&self, host: &str, year: i32) -> [String; 2] {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, host);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.not_after = rcgen::date_time_ymd(year, 12, 31);
        let key = KeyPair::generate().unwrap();
        let paths = [self.path(&format!("{host}.pem")), self.path(&format!("{host}.key"))];
        fs::write(&paths[0], params.signed_by(&key, &self.issuer).unwrap().pem()).unwrap();
        fs::write(&paths[1], key.serialize_pem()).unwrap();
        paths
    }
}

/// The flags of a node with a listener of nodes.
fn listener(authority: &Authority, host: &str, port: u16) -> Vec<String> {
    listener_with(authority, authority.certify(host), host, port)
}

/// The flags of a node with a listener of nodes and a certificate.
fn listener_with(authority: &Authority, [cert, key]: [String; 2], host: &str, port: u16) -> Vec<String> {
    let flags = [
        ["--cluster-node-ca", &authority.path("ca.pem")],
        ["--cluster-node-cert", &cert],
        ["--cluster-node-key", &key],
        ["--cluster-node-listen", &format!("{host}:{port}")],
    ];
    flags.concat().into_iter().map(str::to_owned).collect()
}

/// Hosts of three nodes on the loopback, each with a certificate of its own.
fn host(at: usize) -> String {
    format!("127.0.0.{}", 11 + at)
}

/// Starts a node with flags of its own.
fn start(etcd: &Etcd, name: &str, flags: &[&str], own: &[String]) -> Server {
    let cluster = ["--cluster", &etcd.addresses(), "--node", name, "--cluster-lease", "60s"];
    let own: Vec<_> = own.iter().map(String::as_str).collect();
    Server::start(&[&cluster[..], flags, own.as_slice()].concat())
}

/// A folder with a file and a clip.
fn content() -> (tempfile::TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let mut content = bytes(5);
    content.truncate(LENGTH);
    fs::write(folder.path().join("first.bin"), &content).unwrap();
    fs::copy(clips::folder().join("h264_aac.mp4"), folder.path().join("film.mp4")).unwrap();
    (folder, content)
}

/// Fetches a URL by HTTPS with curl. Returns whether there was a reply, and its body.
fn curl(authority: &Authority, url: &str, identity: Option<&[String; 2]>) -> (bool, String) {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--max-time", "20", "--cacert", &authority.path("ca.pem"), url]);
    if let Some([cert, key]) = identity {
        curl.args(["--cert", cert, "--key", key]);
    }
    let output = curl.stderr(Stdio::null()).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn has_told(node: &Server, words: &[&str]) -> bool {
    node.log_text().lines().any(|line| words.iter().all(|word| line.contains(word)))
}

fn sum(nodes: &[Server], metric: &str) -> f64 {
    nodes.iter().map(|node| node.metric(metric, "")).sum()
}

#[test]
fn nodes_share_the_cache_and_pass_requests_by_their_certificates() {
    if !have("curl") {
        return;
    }
    let Some(etcd) = Etcd::start() else { return };
    let (folder, content) = content();
    let origin = Server::start(&[folder.path().to_str().unwrap()]);
    let place = format!("films=http://127.0.0.1:{}", origin.port);
    let (_keys, key) = tokens::file(tokens::SECRET.as_bytes());
    // The place has rules and the nodes have no secret: their certificates are the pass.
    let flags = [place.as_str(), "--access-tokens", &key, "--cluster-steering", "proxy"];
    let authority = Authority::new("nodes");
    let ports = [free_port(), free_port(), free_port()];
    let begin = |at: usize| start(&etcd, NAMES[at], &flags, &listener(&authority, &host(at), ports[at]));
    let nodes: Vec<_> = (0..3).map(begin).collect();
    wait_for("three nodes", || nodes.iter().all(|node| taking(node) == 3));
    let token = tokens::made(&serde_json::json!({ "exp": tokens::now() + 600 }));
    fetched_once(&nodes, &origin, (folder.path(), "first.bin"), &format!("?token={token}"), &content);
    assert!(sum(&nodes, "millpond_sibling_hits_total") >= 2.0);

    // Nodes pass a title's requests on to its node.
    wait_for("a request is passed on", || {
        for node in &nodes {
            let reply = get(node.port, &format!("/~{token}/films/film.mp4/index.m3u8"), &[]);
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
        sum(&nodes, "millpond_cluster_passed_total") >= 1.0
    });
    assert!(nodes.iter().all(|node| !has_told(node, &["TLS to a node fails"])));

    // The listener answers what nodes ask, and nothing else.
    let url = format!("https://{}:{}/", host(0), ports[0]);
    let own = ["pem", "key"].map(|end| authority.path(&format!("{}.{end}", host(1))));
    let (_, refused) = curl(&authority, &url, Some(&own));
    assert!(refused.contains("for nodes of the cluster"), "{refused}");
    let (_, page) = curl(&authority, &format!("{url}films/film.mp4"), Some(&own));
    assert!(page.contains("for nodes of the cluster"), "{page}");
    assert_eq!(curl(&authority, &format!("{url}.millpond/health"), Some(&own)), (true, "ok\n".to_owned()));

    // Operators reach a node by way of another one, whose certificate is the proof. At the address of viewers nothing is one.
    let version = get(nodes[0].admin, "/api/v1/cluster/nodes/b/api/version", &[]);
    assert!(version.status == 200 && version.text().contains("\"node\": \"b\""), "{}", version.text());
    assert_eq!(get(nodes[1].port, "/.millpond/node/api/v1/version", &[("Millpond-Node", "a")]).status, 404);

    // Nobody else is taken for a node, and the log has the reason.
    let other = Authority::new("others");
    let strange = authority.certify("stranger.example");
    let foreign = other.certify(&host(1));
    for (identity, reason) in [
        (None, "it shows no certificate"),
        (Some(&strange), "stranger.example"),
        (Some(&foreign), "an authority that is not trusted"),
    ] {
        let (is_answered, reply) = curl(&authority, &format!("{url}.millpond/health"), identity);
        assert!(!is_answered, "{reason}: {reply}");
        let told = ["a connection to the listener for nodes is refused", reason];
        wait_for(reason, || has_told(&nodes[0], &told));
    }

    // Plain HTTP is told without the cure of certificates.
    let mut plain = std::net::TcpStream::connect((host(0).as_str(), ports[0])).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    wait_for("plain HTTP is told", || has_told(&nodes[0], &["it speaks no TLS", "health checks"]));
    assert!(!has_told(&nodes[0], &["it speaks no TLS", "subjectAltName"]));

    // A node with certificates of another authority, and one without: both are told by name, with a cure.
    let port = free_port();
    let fourth = start(&etcd, "d", &flags, &listener(&other, &host(3), port));
    let fifth = start(&etcd, "e", &flags, &[]);
    let address = format!("https://{}:{port}", host(3));
    let told = ["TLS to a node fails", &address, "cluster-node-ca"];
    wait_for("d is told", || nodes.iter().any(|node| has_told(node, &told)));
    wait_for("d tells it too", || has_told(&fourth, &["TLS to a node fails", "cluster-node-ca"]));
    wait_for("e tells it too", || has_told(&fifth, &["other nodes have a listener for nodes, and this node has none"]));
    wait_for("e is told", || nodes.iter().all(|node| has_told(node, &["a node has no address for nodes"])));
    // Viewers get the same bytes everywhere.
    for node in nodes.iter().chain([&fourth, &fifth]) {
        let reply = get(node.port, &format!("/films/first.bin?token={token}"), &[("Range", "bytes=0-999999")]);
        assert!(reply.status == 206 && reply.body == content[..1_000_000]);
    }
}

#[test]
fn nodes_of_a_list_know_each_other_by_their_certificates() {
    if !have("curl") {
        return;
    }
    let authority = Authority::new("nodes");
    let ports = [free_port(), free_port()];
    let list = [0, 1].map(|at| format!("https://{}:{}", host(at), ports[at]));
    let folder = clips::folder().to_str().unwrap();
    let begin = |at: usize| {
        let cluster = [folder, "--cluster-nodes", &list.join(","), "--node", NAMES[at], "--cluster-lease", "10s"];
        let own = listener(&authority, &host(at), ports[at]);
        Server::start(&[&cluster[..], own.iter().map(String::as_str).collect::<Vec<_>>().as_slice()].concat())
    };
    let nodes = [begin(0), begin(1)];
    wait_for("two nodes", || nodes.iter().all(|node| taking(node) == 2));
    // Nodes are answered at the listener for nodes only.
    let own = ["pem", "key"].map(|end| authority.path(&format!("{}.{end}", host(1))));
    let (_, told) = curl(&authority, &format!("{}/.millpond/registry", list[0]), Some(&own));
    assert!(told.contains("\"heartbeats\"") && told.contains("/millpond/nodes/a/"), "{told}");
    assert_eq!(get(nodes[0].port, "/.millpond/registry", &[]).status, 404);
    assert!(!curl(&authority, &format!("{}/.millpond/registry", list[0]), None).0);
}

#[test]
fn streams_are_taken_from_their_nodes_by_certificates() {
    let Some(etcd) = Etcd::start() else { return };
    let authority = Authority::new("nodes");
    let ports = [free_port(), free_port()];
    let flags = ["live=publish:", "--linger", "0s", "--cluster-steering", "none"];
    let begin = |at: usize| start(&etcd, NAMES[at], &flags, &listener(&authority, &host(at), ports[at]));
    let (first, second) = (begin(0), begin(1));
    wait_for("two nodes", || [&first, &second].iter().all(|node| taking(node) == 2));
    let _publisher = push_clip("tcp", &format!("rtsp://127.0.0.1:{}/live/door", second.rtsp));
    wait_for("the name of the stream", || etcd.text("/millpond/live/b/").contains("door"));
    wait_for("the stream", || Client::new(&first, "live/door").ask("DESCRIBE", "", "").status == 200);
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", first.port)).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(40))).unwrap();
    std::io::Write::write_all(&mut stream, b"GET /live/door/stream.ts HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    std::io::Read::read_exact(&mut stream, &mut [0; 20_000]).unwrap();
    let server = items(first.admin, "streams")[0]["server"].to_string();
    assert!(server.contains(&format!(":{}/", ports[1])), "{server}");
}

#[test]
fn nodes_with_https_of_a_private_authority_share_the_cache() {
    let Some(etcd) = Etcd::start() else { return };
    let (folder, content) = content();
    let origin = Server::start(&[folder.path().to_str().unwrap()]);
    let place = format!("films=http://127.0.0.1:{}", origin.port);
    let authority = Authority::new("nodes");
    let ca = authority.path("ca.pem");
    let [cert, key] = authority.certify("127.0.0.1");
    let begin = |name: &str, more: &[&str]| {
        let address = format!("127.0.0.1:{}", free_port());
        let own = format!("https://{address}");
        let tls = ["--tls-cert", &cert, "--tls-key", &key, "--https", &address, "--cluster-http", &own];
        start(&etcd, name, &[&[place.as_str()], &tls[..], more].concat(), &[])
    };
    let mut nodes: Vec<_> = NAMES[..2].iter().map(|name| begin(name, &["--cluster-node-ca", &ca])).collect();
    wait_for("two nodes", || nodes.iter().all(|node| taking(node) == 2));
    fetched_once(&nodes, &origin, (folder.path(), "first.bin"), "", &content);
    assert!(sum(&nodes, "millpond_sibling_hits_total") >= 1.0);
    // A node that does not know the authority reads from the origin, and tells the cure.
    nodes.push(begin("c", &[]));
    wait_for("c is there", || nodes.iter().all(|node| taking(node) == 3));
    wait_for("the cure", || has_told(&nodes[2], &["TLS to a node fails", "set cluster-node-ca"]));
    assert!(get(nodes[2].port, "/films/first.bin", &[]).body == content);
}

#[test]
fn an_expired_certificate_is_told_once_with_its_date() {
    let Some(etcd) = Etcd::start() else { return };
    let authority = Authority::new("nodes");
    let ports = [free_port(), free_port()];
    let flags = ["live=publish:"];
    let first = start(&etcd, "a", &flags, &listener(&authority, &host(0), ports[0]));
    let expired = authority.certify_until(&host(1), 2020);
    let _second = start(&etcd, "b", &flags, &listener_with(&authority, expired, &host(1), ports[1]));
    let fault = "the certificate expired at 2020-12-31T00:00:00Z";
    let faults = [["TLS to a node fails", fault], ["a connection to the listener for nodes is refused", fault]];
    for words in &faults {
        wait_for(words[0], || has_told(&first, words));
    }
    // Some probes later.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let log = first.log_text();
    for words in &faults {
        let lines = log.lines().filter(|line| words.iter().all(|word| line.contains(word))).count();
        assert_eq!(lines, 1, "{log}");
    }
}

/// Checks a configuration with a listener for nodes; returns whether it is good, and what is told.
fn checked([ca, cert, key]: [&str; 3]) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let file: PathBuf = Path::new(folder.path()).join("millpond.toml");
    let text = format!(
        "cluster = [\"http://127.0.0.1:2379\"]\ncluster-node-ca = {ca:?}\ncluster-node-cert = {cert:?}\ncluster-node-key = {key:?}\n\
         cluster-node-listen = \"127.0.0.1:8445\"\ncluster-node-url = \"https://edge2.example:8445\"\n"
    );
    fs::write(&file, text).unwrap();
    let check = Command::new(env!("CARGO_BIN_EXE_millpond")).arg("check").arg("--config").arg(&file).output().unwrap();
    (check.status.success(), String::from_utf8_lossy(&[check.stdout, check.stderr].concat()).into_owned())
}

#[test]
fn a_certificate_that_other_nodes_refuse_is_told_at_the_check() {
    let authority = Authority::new("nodes");
    let [cert, key] = authority.certify("edge1.example");
    let (is_good, words) = checked([&authority.path("ca.pem"), &cert, &key]);
    assert!(is_good && words.contains("other nodes will refuse it for edge2.example"), "{words}");
}

#[test]
fn files_of_nodes_that_cannot_be_used_are_errors_of_the_check() {
    let authority = Authority::new("nodes");
    let ca = authority.path("ca.pem");
    let [cert, key] = authority.certify("edge2.example");
    let [_, other] = authority.certify("edge1.example");
    let (missing, locked) = (authority.path("missing.pem"), authority.path("locked.key"));
    let header = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00";
    fs::write(&locked, format!("-----BEGIN EC PRIVATE KEY-----\n{header}\n\nAAAA\n-----END EC PRIVATE KEY-----\n"))
        .unwrap();
    for (files, told) in [
        ([&missing, &cert, &key], ["cluster-node-ca: ", "cannot read the certificate"]),
        ([&key, &cert, &key], ["cluster-node-ca: ", "found a private key"]),
        ([&ca, &key, &cert], ["cluster-node-cert: ", "found a private key"]),
        ([&ca, &cert, &missing], ["cluster-node-key: ", "cannot read the private key"]),
        ([&ca, &cert, &other], ["cluster-node-key: ", "does not belong to"]),
        ([&ca, &cert, &locked], ["cluster-node-key: ", "locked by a passphrase"]),
    ] {
        let (is_good, words) = checked(files.map(String::as_str));
        assert!(!is_good && told.iter().all(|part| words.contains(part)), "{told:?}: {words}");
    }
}

//! The admin API: its document, viewers and sessions, tokens and socket files, and a tester that knows nothing but the document.

use crate::support::{
    Server,
    api::{api, items, send},
    clips, get, have, request,
    rtsp::Client,
};
use serde_json::{Value, json};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::{Command, Output},
    time::{Duration, Instant},
};

/// Some segments, and a key frame every other second.
const CLIP: &str = "h264_aac.mp4";
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json");

fn millpond(args: &[&str], env: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond")).args(args).envs(env.iter().copied()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

/// Waits until a list has an item.
#[track_caller]
fn until(server: &Server, path: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let all = items(server.admin, path);
        if let Some(found) = all.as_array().unwrap().iter().find(|item| is_it(item)) {
            return found.clone();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{path}: {all}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_document_is_served_and_valid() {
    let server = Server::start(&[]);
    let served = api(server.admin, "openapi.json");
    let committed: Value = serde_json::from_str(&std::fs::read_to_string(DOCUMENT).unwrap()).unwrap();
    assert_eq!(served, committed);
    if have("openapi-spec-validator") {
        let checked = Command::new("openapi-spec-validator").arg(DOCUMENT).output().unwrap();
        assert!(checked.status.success(), "{}", said(&checked));
    }
}

/// Schemathesis makes requests from the document, wrong ones too.
#[test]
fn no_request_fails_the_server() {
    if !have("schemathesis") {
        return;
    }
    let server = Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-channels", CLIP]);
    let url = format!("http://127.0.0.1:{}/api/v1/openapi.json", server.admin);
    let mut command = Command::new("timeout");
    // Event feeds have no end. An upgrade leaves this process for another one: its tests are in `upgrade`.
    command.args(["300", "schemathesis", "run", &url, "--exclude-path", "/api/v1/events"]);
    command.args(["--exclude-path", "/api/v1/cloudevents", "--exclude-path", "/api/v1/upgrade"]);
    command.args([
        "--checks",
        "not_a_server_error",
        "--max-examples",
        "3",
        "--phases",
        "coverage,fuzzing",
        "--max-time",
        "15",
    ]);
    command.args(["--request-timeout", "60", "--generation-database", "none", "--no-color"]);
    let tested = command.output().unwrap();
    assert!(tested.status.success(), "{} {}", said(&tested), server.log_text());
    assert_eq!(get(server.admin, "/readyz", &[]).status, 200);
    assert_eq!(server.metric("millpond_http_requests_total", "kind=\"admin\",status=\"5xx\""), 0.0);
}

#[test]
fn viewers_of_http_are_listed_and_refused_for_a_time() {
    let server = Server::of_clips();
    let watch = |path: &str| get(server.port, &format!("/{CLIP}/{path}"), &[("User-Agent", "player/1")]);
    for path in ["index.m3u8", "v1/1.m4s", "v1/2.m4s"] {
        assert_eq!(watch(path).status, 200, "{path}");
    }
    get(server.port, &format!("/{CLIP}/v1/1.m4s"), &[("User-Agent", "other")]);
    until(&server, "sessions?q=other", |viewer| viewer["requests"] == 1);
    let viewer = until(&server, "sessions?q=player%2F1", |viewer| viewer["requests"] == 3);
    assert_eq!((&viewer["kind"], &viewer["asset"], &viewer["state"]), (&json!("http"), &json!(CLIP), &json!("active")));
    assert_eq!(viewer["client"], "127.0.0.1");
    assert!(viewer["bytes"].as_u64().unwrap() > 10_000 && viewer["bps"].as_u64().unwrap() > 0, "{viewer}");
    assert_eq!(api(server.admin, "sessions?limit=1")["total"], 2);
    // The overview is made once a second.
    let began = Instant::now();
    while api(server.admin, "overview")["http"]["requests"].as_u64().unwrap() < 4 {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", api(server.admin, "overview"));
        std::thread::sleep(Duration::from_millis(50));
    }

    let id = viewer["id"].as_str().unwrap();
    let kicked = request(server.admin, "DELETE", &format!("/api/v1/sessions/{id}?block=1h"), &[]);
    assert_eq!(kicked.status, 200, "{}", kicked.text());
    let refused = watch("v1/3.m4s");
    assert_eq!(refused.status, 403);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(get(server.port, &format!("/{CLIP}/v1/1.m4s"), &[("User-Agent", "other")]).status, 200);
    assert_eq!(items(server.admin, "blocks")[0]["id"], *id);
    let admin = format!("127.0.0.1:{}", server.admin);
    let unblocked = millpond(&["sessions", "unblock", id, "--admin", &admin], &[]);
    assert!(unblocked.status.success(), "{}", said(&unblocked));
    assert_eq!(watch("v1/3.m4s").status, 200);
    let listed = millpond(&["sessions", "ls", "--kind", "http", "--admin", &admin], &[]);
    assert!(listed.status.success() && said(&listed).contains("player/1"), "{}", said(&listed));
    assert_eq!(request(server.admin, "DELETE", "/api/v1/sessions/h-0?block=10y", &[]).status, 400);
    assert_eq!(request(server.admin, "DELETE", "/api/v1/sessions/h-0", &[]).status, 404);
}

#[test]
fn sessions_and_long_responses_are_ended() {
    let server = Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-channels", CLIP]);
    let mut long = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    long.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(long, "GET /{CLIP}/stream.mp4 HTTP/1.1\r\nHost: localhost\r\nUser-Agent: tv\r\n\r\n").unwrap();
    long.read_exact(&mut [0; 4096]).unwrap();
    let mut client = Client::new(&server, CLIP);
    client.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1");
    assert_eq!(client.ask("PLAY", "", "").status, 200);
    client.receive(|packets| packets.len() > 20);

    let session = until(&server, "sessions?kind=rtsp", |session| session["bytes"].as_u64() > Some(0));
    assert_eq!((&session["state"], &session["transport"]), (&json!("playing"), &json!("tcp")));
    let response = until(&server, "sessions?kind=long", |response| response["bytes"].as_u64() > Some(0));
    assert_eq!((&response["agent"], &response["asset"]), (&json!("tv"), &json!(CLIP)));
    for item in [&session, &response] {
        let path = format!("/api/v1/sessions/{}", item["id"].as_str().unwrap());
        assert_eq!(get(server.admin, &path, &[]).status, 200);
        let ended = request(server.admin, "DELETE", &path, &[]);
        assert_eq!(ended.status, 200, "{}", ended.text());
    }
    // The end of a response without length is that of its connection.
    let _ = long.read_to_end(&mut Vec::new());
    until_empty(&server);
    let log = server.log_text();
    assert_eq!(log.matches("kicked").count(), 2, "{log}");
}

#[track_caller]
fn until_empty(server: &Server) {
    let began = Instant::now();
    while items(server.admin, "sessions?kind=rtsp") != json!([])
        || items(server.admin, "sessions?kind=long") != json!([])
    {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", items(server.admin, "sessions"));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_token_or_a_socket_file_admits() {
    let folder = tempfile::tempdir().unwrap();
    let (token, file) = ("correct-horse-battery", folder.path().join("token"));
    std::fs::write(&file, format!("{token}\n")).unwrap();
    let server = Server::start(&["--admin-token-file", file.to_str().unwrap()]);
    let bearer = format!("Bearer {token}");
    for (fields, expected) in [
        (&[][..], 401),
        (&[("Authorization", "Bearer wrong-horse-battery")], 401),
        (&[("Authorization", &*bearer)], 200),
    ] {
        assert_eq!(get(server.admin, "/api/v1/overview", fields).status, expected);
        let changed = send(server.admin, "PATCH", "cache", &json!({ "prefetch": "half" }), fields);
        assert_eq!(changed.status, expected, "{}", changed.text());
    }
    let none = get(server.admin, "/api/v1/none", &[]);
    assert_eq!((none.status, none.header("www-authenticate").is_some()), (401, true), "paths are not told either");
    assert_eq!(get(server.admin, "/metrics", &[]).status, 200);
    let admin = format!("127.0.0.1:{}", server.admin);
    assert!(said(&millpond(&["cache", "stat", "--admin", &admin], &[])).contains("admin-token"));
    for (flags, env) in [(&["--admin-token", token][..], None), (&[], Some(("MILLPOND_ADMIN_TOKEN", token)))] {
        let args = [&["cache", "stat", "--admin", &admin][..], flags].concat();
        let told = millpond(&args, env.as_slice());
        assert!(told.status.success(), "{}", said(&told));
    }
    let checked = millpond(&["check", "--admin-token", token], &[]);
    assert!(said(&checked).contains("***") && !said(&checked).contains(token), "{}", said(&checked));
    assert!(!server.log_text().contains(token));

    let socket = format!("unix:{}", folder.path().join("admin.sock").display());
    let server = Server::start(&["--admin", &socket, "--admin-token", token]);
    let told = millpond(&["cache", "stat", "--admin", &socket], &[]);
    assert!(told.status.success() && said(&told).contains("slice-bytes"), "{}", said(&told));
    drop(server);
}

#[test]
fn the_state_is_followed_and_lines_are_kept() {
    let server = Server::start(&[]);
    let mut feed = TcpStream::connect(("127.0.0.1", server.admin)).unwrap();
    feed.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(feed, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut text = String::new();
    while text.matches("event: overview").count() < 3 {
        let mut bytes = [0; 4096];
        let count = feed.read(&mut bytes).unwrap();
        assert!(count > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert!(text.contains("content-type: text/event-stream") && text.contains("\"hit-ratio\""), "{text}");
    assert!(!items(server.admin, "overview/history").as_array().unwrap().is_empty());

    // Purging is logged.
    let purged = send(server.admin, "POST", "cache/purge", &json!({ "path": "sample" }), &[]);
    assert_eq!(purged.status, 200, "{}", purged.text());
    let line = until(&server, "logs?level=info&q=purged", |_| true);
    assert_eq!(line["fields"]["object"], "sample");
    let admin = format!("127.0.0.1:{}", server.admin);
    let told = millpond(&["logs", "--find", "purged", "--admin", &admin], &[]);
    assert!(told.status.success() && said(&told).contains("purged object=sample"), "{}", said(&told));
    // A body that is no JSON, and one that is too long.
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    assert_eq!(send(server.admin, "POST", "cache/purge", &json!({ "path": "sample" }), &form).status, 415);
    let long = json!({ "path": "x".repeat(70_000) });
    assert_eq!(send(server.admin, "POST", "cache/purge", &long, &[]).status, 413);

    let begun = send(
        server.admin,
        "POST",
        "simulations",
        &json!({ "preset": "sproxy", "shrink": 100, "cache": ["1MiB"] }),
        &[],
    );
    assert_eq!(begun.status, 202, "{}", begun.text());
    let done = until(&server, "simulations", |run| run["state"] != "running");
    assert_eq!(done["state"], "done", "{done}");
    let run = api(server.admin, &format!("simulations/{}", done["id"]));
    assert!(!run["outcomes"].as_array().unwrap().is_empty(), "{run}");
}

#[test]
fn settings_are_shown_and_written_with_their_comments() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("millpond.toml");
    let media = clips::folder().display();
    let text = format!("# Oslo\nmemory = \"64MiB\" # small\n\n[places.films]\nurl = \"{media}\"\n");
    std::fs::write(&file, &text).unwrap();
    let server = Server::start(&["--config", file.to_str().unwrap(), "--linger", "3s"]);
    let setting = |name: &str| {
        let all = api(server.admin, "settings");
        all["settings"].as_array().unwrap().iter().find(|setting| setting["name"] == name).unwrap().clone()
    };
    let memory = setting("memory");
    assert_eq!(
        (&memory["value"], &memory["from"], &memory["in-force"]),
        (&json!("64MiB"), &json!("file"), &json!("64MiB"))
    );
    assert_eq!(setting("linger")["from"], "flag");
    assert_eq!(items(server.admin, "places")[0]["kind"], "folder");

    let wrong = send(server.admin, "PATCH", "settings", &json!({ "set": { "memory": "much" } }), &[]);
    let problem: Value = serde_json::from_str(&wrong.text()).unwrap();
    assert_eq!(
        (wrong.status, problem["errors"][0].as_str().unwrap().contains(":2:1: memory")),
        (422, true),
        "{problem}"
    );
    let flag = send(server.admin, "PATCH", "settings", &json!({ "set": { "linger": "9s" } }), &[]);
    assert_eq!(flag.status, 409, "{}", flag.text());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);

    let admin = format!("127.0.0.1:{}", server.admin);
    let set = millpond(&["settings", "set", "memory=128MiB", "--admin", &admin], &[]);
    assert!(set.status.success() && said(&set).contains("\"is-written\": true"), "{}", said(&set));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text.replace("64MiB", "128MiB"));
    assert_eq!(setting("memory")["in-force"], "128MiB");
    // Without a token the API adds folders within those that are served, and no files.
    let outside = send(server.admin, "PUT", "places/all", &json!({ "url": "/" }), &[]);
    assert!(outside.status == 403 && outside.text().contains("admin-token-file"), "{}", outside.text());
    let log = send(server.admin, "PATCH", "settings", &json!({ "set": { "access-log": "/tmp/log" } }), &[]);
    assert!(log.status == 403 && log.text().contains("access-log"), "{}", log.text());
    let news = media.to_string();
    let place = json!({ "url": news });
    let put = millpond(&["places", "set", "news", &news, "hidden-files=true", "--admin", &admin], &[]);
    assert!(
        put.status.success() && std::fs::read_to_string(&file).unwrap().contains("hidden-files = true"),
        "{}",
        said(&put)
    );
    assert!(said(&millpond(&["places", "ls", "--admin", &admin], &[])).contains("news"));
    assert_eq!(send(server.admin, "PUT", "places/news", &place, &[]).status, 200);
    assert!(std::fs::read_to_string(&file).unwrap().contains(&format!("[places.news]\nurl = \"{news}\"")));
    assert!(millpond(&["places", "rm", "news", "--admin", &admin], &[]).status.success());
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim_end(), text.replace("64MiB", "128MiB").trim_end());
    let listed = millpond(&["settings", "ls", "--given", "--admin", &admin], &[]);
    assert!(said(&listed).contains("128MiB"), "{}", said(&listed));
    drop(server);
    let server = Server::start(&[&format!("films={media}"), "--config", file.to_str().unwrap()]);
    let refused = send(server.admin, "PUT", "places/news", &place, &[]);
    assert_eq!(refused.status, 409, "an argument wins over the file: {}", refused.text());
    assert_eq!(
        send(Server::start(&[]).admin, "PATCH", "settings", &json!({ "set": { "memory": "1GiB" } }), &[]).status,
        409
    );
}

#[test]
fn assets_are_listed_in_pages() {
    let folder = tempfile::tempdir().unwrap();
    let series = folder.path().join("series/first");
    std::fs::create_dir_all(&series).unwrap();
    for path in ["b.mp4", "a.mp4", "series/c.mp4", "series/first/D.mp4"] {
        std::fs::copy(clips::folder().join(CLIP), folder.path().join(path)).unwrap();
    }
    let server = Server::start(&[&format!("films={}", folder.path().display())]);
    let paths = |query: &str| -> Vec<String> {
        let all = items(server.admin, &format!("assets?{query}"));
        all.as_array().unwrap().iter().map(|asset| asset["path"].as_str().unwrap().to_owned()).collect()
    };
    until(&server, "assets", |asset| asset["path"] == "films/series/first/D.mp4" && asset["place"] == "films");
    let first = api(server.admin, "assets?limit=2&q=.mp4");
    assert_eq!(
        (&first["total"], &first["next-cursor"], &first["is-complete"]),
        (&json!(4), &json!("films/b.mp4"), &json!(true))
    );
    assert_eq!(paths("limit=2&q=.mp4"), ["films/a.mp4", "films/b.mp4"]);
    assert_eq!(paths("limit=2&q=.mp4&cursor=films/b.mp4"), ["films/series/c.mp4", "films/series/first/D.mp4"]);
    assert_eq!(api(server.admin, "assets?q=.mp4&cursor=films/b.mp4")["next-cursor"], Value::Null);
    assert_eq!(paths("q=d.MP4"), ["films/series/first/D.mp4"]);
    assert_eq!(paths("q=.mp4&folder=films/series/first/"), ["films/series/first/D.mp4"]);
    assert!(paths("place=none").is_empty() && paths("folder=films/ser").is_empty());
}

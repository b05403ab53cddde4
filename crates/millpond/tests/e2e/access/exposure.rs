//! Hidden files stay hidden, and the admin address is closed to web pages.

use crate::support::{Response, Server, api::send, get, read_response, request, rtsp::Client};
use std::{
    io::{BufReader, Read as _, Write as _},
    net::TcpStream,
    process::Command,
};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/sample/180p.mp4");

/// A folder of media with hidden files in every place where one could matter.
fn folder() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    for folder in [".git", "show", ".folder", ".well-known", "show/.more"] {
        std::fs::create_dir(path(folder)).unwrap();
    }
    for film in ["film.mp4", ".secret.mp4", "show/180p.mp4", "show/.hidden.mp4", ".folder/180p.mp4", "show/.more/a.mp4"]
    {
        std::fs::copy(SAMPLE, path(film)).unwrap();
    }
    for (name, text) in [
        (".env", "KEY=secret"),
        (".git/config", "secret"),
        (".well-known/security.txt", "secret"),
        ("film.mp4.txt", "shown"),
        ("show/.de.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\nsecret\n"),
        ("hidden.smil", r#"<smil><body><switch><video src=".secret.mp4"/></switch></body></smil>"#),
    ] {
        std::fs::write(path(name), text).unwrap();
    }
    root
}

/// Paths of hidden files and of what would be made from them, with a path of the same form where nothing is.
const HIDDEN: &[(&str, &str)] = &[
    (".env", "xenv"),
    ("%2eenv", "xenv"),
    (".git/config", "xgit/config"),
    (".git", "xgit"),
    (".well-known/security.txt", "xwell-known/security.txt"),
    (".secret.mp4", "xsecret.mp4"),
    (".secret.mp4/index.m3u8", "xsecret.mp4/index.m3u8"),
    (".secret.mp4/ts/index.m3u8", "xsecret.mp4/ts/index.m3u8"),
    (".secret.mp4/index.mpd", "xsecret.mp4/index.mpd"),
    (".secret.mp4/v1/index.m3u8", "xsecret.mp4/v1/index.m3u8"),
    (".secret.mp4/v1/init.mp4", "xsecret.mp4/v1/init.mp4"),
    (".secret.mp4/v1/1.m4s", "xsecret.mp4/v1/1.m4s"),
    (".folder/index.m3u8", "xfolder/index.m3u8"),
    (".folder/180p.mp4/index.mpd", "xfolder/180p.mp4/index.mpd"),
    ("show/.more/a.mp4", "show/xmore/a.mp4"),
    (".se,cret,.mp4.urlset/index.m3u8", "xse,cret,.mp4.urlset/index.m3u8"),
    (".millpond/asset?path=.secret.mp4", ".millpond/asset?path=xsecret.mp4"),
    (".millpond/assets?folder=.git", ".millpond/assets?folder=xgit"),
];

/// Status and text without what differs between two requests for nothing.
fn told(response: &Response) -> (u16, String) {
    let mut body: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
    let fields = body.as_object_mut().unwrap();
    fields.remove("request-id");
    fields.remove("asset");
    let text = body.to_string();
    let same = |text: String, name: &str| text.replace(&format!(".{name}"), &format!("x{name}"));
    (response.status, ["env", "git", "well-known", "secret", "folder", "more", "se"].into_iter().fold(text, same))
}

#[test]
fn hidden_files_are_answered_as_if_they_were_not_there() {
    let root = folder();
    let server = Server::start(&[root.path().to_str().unwrap()]);
    for (hidden, missing) in HIDDEN {
        let (hidden_reply, missing_reply) = (server.get(hidden), server.get(missing));
        assert_eq!(told(&hidden_reply), told(&missing_reply), "{hidden}");
        assert_eq!(hidden_reply.status, 404, "{hidden}");
        let head = request(server.port, "HEAD", &format!("/{hidden}"), &[]);
        assert_eq!(head.status, 404, "HEAD {hidden}");
    }
    assert_eq!(server.get("hidden.smil/index.m3u8").status, 404, "a manifest doesn't lead to them");
    let cached = get(server.port, "/.env", &[("Cache-Control", "only-if-cached")]);
    assert_eq!(cached.status, 504);

    // The rest of the folder is served, without the hidden members.
    assert_eq!(server.get("film.mp4").status, 200);
    let show = server.get("show/index.m3u8").text();
    assert_eq!(show.matches("#EXT-X-STREAM-INF").count(), 1, "{show}");
    assert!(!show.contains("SUBTITLES"), "{show}");
    for folder in ["", "show"] {
        let list = server.get(&format!(".millpond/assets?folder={folder}")).text();
        assert!(list.contains(".mp4") && !list.contains("/.") && !list.contains("\"."), "{list}");
    }

    for path in [".secret.mp4", ".folder", ".folder/180p.mp4", "show/.hidden.mp4"] {
        assert_eq!(Client::new(&server, path).ask("DESCRIBE", "", "").status, 404, "{path}");
        let explained = get(server.admin, &format!("/api/v1/explain?url={path}/v1/1.m4s"), &[]);
        assert_eq!(explained.status, 404, "{}", explained.text());
        let pinned = send(server.admin, "POST", "cache/pins", &serde_json::json!({ "path": path }), &[]);
        assert_eq!(pinned.status, 404, "{}", pinned.text());
    }
}

#[test]
fn hidden_files_are_served_where_that_is_configured() {
    let root = folder();
    let server = Server::start(&[root.path().to_str().unwrap(), "--hidden-files"]);
    for path in [".env", ".git/config", ".well-known/security.txt", ".secret.mp4/index.m3u8", "hidden.smil/index.m3u8"]
    {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    assert_eq!(Client::new(&server, ".secret.mp4").ask("DESCRIBE", "", "").status, 200);
    let list = server.get(".millpond/assets").text();
    assert!(!list.contains(".secret"), "they are not listed: {list}");

    // A place decides for itself.
    let config = root.path().join("config.toml");
    let place = |name: &str, more: &str| format!("[places.{name}]\nurl = {:?}\n{more}\n", root.path());
    std::fs::write(&config, place("open", "hidden-files = true") + &place("closed", "")).unwrap();
    let server = Server::start(&["--config", config.to_str().unwrap()]);
    assert_eq!(server.get("open/.env").status, 200);
    assert_eq!(server.get("closed/.env").status, 404);
}

/// The status of a request whose head is written by the test.
fn status(port: u16, head: &str) -> u16 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let response = read_response(&mut reader, false);
    let _ = reader.read_to_end(&mut Vec::new());
    response.status
}

#[test]
fn the_admin_address_answers_to_its_own_names_only() {
    let server = Server::start(&["--admin-hosts", "edge1.internal"]);
    for path in ["/", "/metrics", "/livez", "/readyz", "/api/v1/cache", "/api/v1/explain?url=sample"] {
        for (host, allowed) in [
            (format!("127.0.0.1:{}", server.admin), true),
            (format!("localhost:{}", server.admin), true),
            ("edge1.internal".to_owned(), true),
            (format!("rebound.example:{}", server.admin), false),
        ] {
            let status = status(server.admin, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n"));
            assert_eq!(status == 421, !allowed, "{path} {host}: {status}");
        }
        assert_eq!(status(server.admin, &format!("GET {path} HTTP/1.1\r\n")), 400, "{path} without Host");
    }
    let refused = get(server.admin, "/metrics", &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Dest", "script")]);
    assert_eq!(refused.status, 403);
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    let changed = send(
        server.admin,
        "PATCH",
        "cache",
        &serde_json::json!({ "prefetch": "full" }),
        &[("Origin", "http://page.example")],
    );
    assert_eq!(changed.status, 403);
}

#[test]
fn commands_reach_the_admin_address_by_every_name_of_the_loopback() {
    let server = Server::start(&[]);
    for host in ["127.0.0.1", "localhost"] {
        for args in [
            &["cache", "stat"][..],
            &["cache", "ls"],
            &["cache", "set", "--prefetch", "half"],
            &["explain", "sample/v1/1.m4s"],
        ] {
            let output = Command::new(env!("CARGO_BIN_EXE_millpond"))
                .args(args)
                .args(["--admin", &format!("{host}:{}", server.admin)])
                .output()
                .unwrap();
            assert!(output.status.success(), "{host} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

//! The page as browsers get it: at folders and streams, in place of errors, and its files.

use crate::support::{Server, clips, get, request};

/// `Accept` header field that browsers send with a navigation request.
const BROWSER: (&str, &str) =
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8");
const HTML: Option<&str> = Some("text/html; charset=utf-8");
const PROBLEM: Option<&str> = Some("application/problem+json");

/// A server of two places with a folder, a title and a file that is none, and a place for publishers.
fn serve(more: &[&str]) -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    for film in ["Movies/b.mp4", "Movies/Old & <new>/a.mp4"] {
        let path = folder.path().join(film);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(clips::folder().join("h264_aac.mp4"), path).unwrap();
    }
    std::fs::write(folder.path().join("broken.mp4"), b"no film at all").unwrap();
    let films = format!("films={}", folder.path().display());
    let server = Server::start(&[&[&*films, "live=publish:"], more].concat());
    (folder, server)
}

#[test]
fn a_browser_gets_the_page_at_a_folder_and_at_a_stream() {
    let (_folder, server) = serve(&[]);
    for (path, root, shown) in [
        ("/films", "./", "data-folder=\"films/\" data-stream=\"\""),
        ("/films/", "../", "data-folder=\"films/\" data-stream=\"\""),
        ("/films/Movies/", "../../", "data-folder=\"films/Movies/\" data-stream=\"\""),
        ("/films/Movies", "../", "data-folder=\"films/Movies/\" data-stream=\"\""),
        (
            "/films/Movies/Old%20%26%20%3Cnew%3E/",
            "../../../",
            "data-folder=\"films/Movies/Old &amp; &lt;new&gt;/\" data-stream=\"\"",
        ),
        ("/live/", "../", "data-folder=\"live/\" data-stream=\"\""),
        ("/live/door", "../", "data-folder=\"\" data-stream=\"live/door\""),
    ] {
        let page = get(server.port, path, &[BROWSER]);
        assert_eq!((page.status, page.header("content-type")), (200, HTML), "{path}");
        let text = page.text();
        assert!(text.contains(&format!("data-root=\"{root}\"")) && text.contains(shown), "{path}: {text:.300}");
        let vary: Vec<_> = page.headers.iter().filter(|(name, _)| name == "vary").map(|(_, value)| &**value).collect();
        assert_eq!(vary, ["accept-encoding", "accept"], "{path}");
        assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"), "{path}");
        // A second look costs no bytes.
        let again = get(server.port, path, &[BROWSER, ("If-None-Match", page.header("etag").unwrap())]);
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        let head = request(server.port, "HEAD", path, &[BROWSER]);
        assert_eq!((head.status, head.header("content-length")), (200, page.header("content-length")), "{path}");
        for accept in ["*/*", "application/json", "text/html;q=0.5, application/problem+json"] {
            let program = get(server.port, path, &[("Accept", accept)]);
            assert_eq!((program.status, program.header("content-type")), (404, PROBLEM), "{path} {accept}");
            assert_eq!(program.header("vary"), Some("accept"), "{path} {accept}");
        }
    }
    // A title stays a title, also for a browser that opens it.
    for path in ["/films/Movies/b.mp4", "/films/Movies/b.mp4/index.m3u8"] {
        let reply = get(server.port, path, &[BROWSER]);
        assert!(reply.status == 200 && reply.header("content-type") != HTML, "{path}");
    }
}

#[test]
fn a_browser_gets_errors_in_plain_words() {
    let (folder, users) = (tempfile::tempdir().unwrap(), "ann:pass\n");
    let file = folder.path().join("users");
    std::fs::write(&file, users).unwrap();
    let (_films, server) = serve(&[]);
    let (_films, closed) = serve(&["--access-users", file.to_str().unwrap()]);
    let (_films, far) = serve(&["--access-networks", "192.0.2.0/24"]);
    let (_films, busy) = serve(&["--client-requests", "1", "--client-burst", "1"]);
    get(busy.port, "/", &[]);
    for (of, method, path, status, words) in [
        (&server, "GET", "/films/none.mp4", 404, "Nothing is at this address"),
        (&server, "GET", "/none/%3Cscript%3Ealert(1)%3C/script%3E/", 404, "Nothing is at this address"),
        (&server, "GET", "/films/../x", 400, "This address can't be used"),
        (&server, "GET", "/films/broken.mp4/index.m3u8", 422, "This can't be played"),
        (&server, "POST", "/films/none.mp4", 405, "This address takes no forms"),
        (&closed, "GET", "/films/", 401, "A password or a token is needed"),
        (&far, "GET", "/films/", 403, "You may not open this"),
        (&busy, "GET", "/films/", 429, "Too many requests"),
    ] {
        let page = request(of.port, method, path, &[BROWSER]);
        let text = page.text();
        assert_eq!((page.status, page.header("content-type")), (status, HTML), "{path}: {text}");
        assert!(text.contains(&format!("<h1>{words}</h1>")), "{path}: {text}");
        assert!(!text.contains("<script"), "{path}: {text}");
        assert_eq!(page.header("cache-control"), Some("no-store"), "{path}");
        assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'; style-src"), "{path}");
        assert!(text.contains("<a href=\"../"), "{path}: a relative way to the page: {text}");
        let program = request(of.port, method, path, &[("Accept", "*/*")]);
        assert_eq!((program.status, program.header("content-type")), (status, PROBLEM), "{path}");
        for reply in [&page, &program] {
            assert!(reply.headers.iter().any(|(name, value)| name == "vary" && value == "accept"), "{path}");
        }
    }
    // A browser still asks for the password, and says when to come again.
    let challenge = get(closed.port, "/films/", &[BROWSER]);
    let schemes: Vec<_> = challenge.headers.iter().filter(|(name, _)| name == "www-authenticate").collect();
    assert!(schemes.len() > 1, "{:?}", challenge.headers);
    let limited = get(busy.port, "/films/", &[BROWSER]);
    assert!(limited.header("retry-after").is_some() && limited.text().contains("The server asks to wait"));
    // Behind the password there is the page.
    let admitted = get(closed.port, "/films/", &[BROWSER, ("Authorization", "Basic YW5uOnBhc3M=")]);
    assert_eq!((admitted.status, admitted.header("content-type")), (200, HTML));
    assert_eq!(admitted.header("cache-control"), Some("private, no-cache"));
}

#[test]
fn scripts_of_the_page_have_a_version_and_stay() {
    let (_folder, server) = serve(&[]);
    let page = server.get("");
    let text = page.text();
    let version = text.split_once("data-version=\"").unwrap().1.split_once('"').unwrap().0;
    for name in [
        "player.js",
        "player.css",
        "programmes.js",
        "vendor/hls.min.js",
        "vendor/dash.all.min.js",
        "vendor/shaka-player.compiled.js",
    ] {
        assert!(!text.contains(&format!("src=\".millpond/{name}")), "{name} waits until somebody plays");
        let script = server.get(&format!(".millpond/{version}/{name}"));
        assert_eq!(script.status, 200, "{name}");
        assert_eq!(script.header("cache-control"), Some("public, max-age=31536000, immutable"), "{name}");
        for other in [format!(".millpond/{name}"), format!(".millpond/0123456789abcdef/{name}")] {
            let script = server.get(&other);
            assert_eq!((script.status, script.header("cache-control")), (200, Some("no-cache")), "{other}");
        }
    }
    // The list needs the document alone.
    let coded = get(server.port, "/", &[("Accept-Encoding", "br")]);
    assert!(coded.body.len() < 16 << 10, "{} bytes over a slow link", coded.body.len());
}

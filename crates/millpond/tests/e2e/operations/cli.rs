//! The commands beside `serve`: what they print, how they fail.

use crate::support::{self, Server, clips};
use std::{path::Path, process::Command};

/// Runs a command: exit code, standard output, standard error.
fn millpond(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_millpond")).args(args).env("RUST_LOG", "off").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn probe_says_what_is_in_a_file_and_which_outputs_carry_it() {
    if !support::have("ffmpeg") {
        return;
    }
    let clip = |name: &str| clips::folder().join(name).display().to_string();
    let (code, out, _) = millpond(&["probe", &clip("h264_aac.mp4")]);
    assert_eq!(code, 0);
    for part in ["H.264 (avc1.", "AAC (mp4a.40.2)", "v1 Video 1: ", "HLS fMP4: yes", "HLS TS: yes", "DASH: yes"] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
    let (code, out, _) = millpond(&["probe", &clip("vp9_opus.mp4")]);
    assert_eq!(code, 0);
    assert!(out.contains("HLS TS: no"), "{out}");
    let (_, out, _) = millpond(&["probe", "--json", &clip("h264_aac.mp4")]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["tracks"].as_array().unwrap().len(), 2, "{out}");
}

#[test]
fn a_wrong_file_is_one_line_on_standard_error() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("x.mp4");
    std::fs::write(&file, "not a film").unwrap();
    for command in ["probe", "index"] {
        for path in [&file, &scratch.path().join("y.mp4")] {
            let (code, _, err) = millpond(&[command, path.to_str().unwrap()]);
            assert_eq!(code, 1, "{command} {err}");
            assert_eq!(err.trim_end().lines().count(), 1, "{command}: {err}");
            assert!(err.contains(path.file_name().unwrap().to_str().unwrap()), "{command}: {err}");
        }
    }
}

#[test]
fn check_names_line_key_and_nearest_valid_key() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("a.toml");
    std::fs::write(&file, "memroy = \"2GiB\"\nhttp = \"0.0.0.0:99999\"\n[places.films]\nurl = \"s3://\"\n").unwrap();
    let path = file.to_str().unwrap();
    let (code, _, err) = millpond(&["check", "--config", path]);
    assert_eq!(code, 1);
    for part in [":1:1: unknown key \"memroy\"; did you mean \"memory\"?", ":2:1: http: ", "the name of a bucket"] {
        assert!(err.contains(part), "no {part:?} in {err}");
    }
    let (serve, _, same) = millpond(&["serve", "--config", path]);
    assert_eq!((serve, same), (1, err));
    std::fs::write(&file, "memory = \"2GiB\"\n").unwrap();
    let (code, out, _) = millpond(&["check", "--config", path]);
    assert_eq!(code, 0);
    assert!(out.lines().any(|l| l.starts_with("memory = \"2GiB\"") && l.contains("a.toml")), "{out}");
}

#[test]
fn check_finds_missing_folders_and_taken_ports() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let free = ["--rtsp", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let (code, out, _) = millpond(&[&["check", "--http", &address][..], &free].concat());
    assert_eq!(code, 0, "a server of this configuration may have the port");
    assert!(out.contains(&format!("# warning: --http {address}: Address already in use")), "{out}");
    let places = ["a=/nowhere/at/all", "b=/nowhere/else", "c=."];
    let (code, out, err) = millpond(&[&["check", "--http", "127.0.0.1:0"][..], &free, &places].concat());
    assert_eq!(code, 1, "{out}");
    assert!(!out.contains("# ok") && !out.contains("# warning"), "{out}");
    assert_eq!(err.lines().count(), 2, "each missing folder: {err}");
    assert!(err.contains("/nowhere/at/all") && err.contains("/nowhere/else"), "{err}");
    let certificate = ["--tls-cert", "/nowhere/cert.pem", "--tls-key", "/nowhere/key.pem"];
    let addresses = ["--http", "127.0.0.1:0", "--https", "127.0.0.1:0", "--rtsps", "127.0.0.1:0"];
    let (code, _, err) = millpond(&[&["check"][..], &addresses, &free, &certificate].concat());
    assert!(code == 1 && err.contains("/nowhere/cert.pem"), "{err}");
}

#[test]
fn check_warns_of_channels_and_recordings_that_can_not_be() {
    let scratch = tempfile::tempdir().unwrap();
    let film = scratch.path().join("film.mp4");
    std::fs::write(&film, "").unwrap();
    let films = format!("films={}", scratch.path().display());
    let check = |args: &[&str]| {
        let (code, out, err) = millpond(&[&["check", &films, "cams=rtsp://10.0.0.7/"], args].concat());
        assert_eq!(code, 0, "{err}");
        let warnings = out.lines().filter_map(|line| line.strip_prefix("# warning: "));
        warnings.filter(|line| !line.contains("already in use")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(check(&["--rtsp-channels", "films/film.mp4,films/film.mp4/v1"]), [""; 0]);
    let found = check(&["--rtsp-channels", "film.mp4,films/other.mp4,cams/door"]);
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[0], "rtsp-channels: film.mp4: no place has this path (places: films, cams)");
    assert!(found[1].starts_with("rtsp-channels: films/other.mp4: there is no such file or folder in "), "{found:?}");
    assert_eq!(found[2], "rtsp-channels: cams/door: the place \"cams\" has live streams, not assets");
    let found = check(&["--rtsp-channels", "n=films/film.mp4 phase=4"]);
    let misspelt = "rtsp-channels: phase=4: no place has this path (places: films, cams); did you mean phases=4?";
    assert_eq!(found, [misspelt]);
    let found = check(&["--modules", "cams/door tee to=live/x,films/film.mp4 recorder"]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].ends_with("live/x is not in a place of publishers, such as live=publish:"), "{found:?}");
    assert!(found[1].contains("films/film.mp4 is not a channel (rtsp-channels)"), "{found:?}");
    let channel = ["--rtsp-channels", "films/film.mp4", "--record-folder"];
    assert_eq!(check(&[&channel[..], &[scratch.path().join("new/folder").to_str().unwrap()]].concat()), [""; 0]);
    let found = check(&[&channel[..], &[film.join("in").to_str().unwrap()]].concat());
    assert!(found.len() == 1 && found[0].ends_with("film.mp4 is no folder"), "{found:?}");
}

#[test]
fn check_warns_of_media_that_http_gives_without_a_password() {
    let scratch = tempfile::tempdir().unwrap();
    let users = scratch.path().join("users");
    std::fs::write(&users, "ann:secret\n").unwrap();
    let check = |http: &str| {
        let (_, out, _) = millpond(&["check", "--rtsp-users", users.to_str().unwrap(), "--http", http]);
        out.contains("protects RTSP only")
    };
    assert!(check("0.0.0.0:0") && !check("127.0.0.1:0"));
}

#[test]
fn switches_take_their_value_in_any_form() {
    for (args, value) in [
        (["--access-log", "false"].as_slice(), "access-log = \"off\""),
        (&["--access-log=false"], "access-log = \"off\""),
        (&["--hidden-files", "."], "hidden-files = true"),
        (&["--hidden-files", "off", "."], "hidden-files = false"),
    ] {
        let (code, out, err) = millpond(&[&["check"], args].concat());
        assert_eq!(code, 0, "{args:?}: {err}");
        assert!(out.contains(value), "{args:?}: {out}");
        assert_eq!(out.contains("places = ["), args.contains(&"."), "{args:?}: {out}");
    }
}

#[test]
fn a_wrong_value_is_named_once() {
    let (code, _, err) = millpond(&["check", "--policy", "best"]);
    assert_eq!(code, 1);
    assert!(err.contains("--policy: expected one of lru, "), "{err}");
    let output =
        Command::new(env!("CARGO_BIN_EXE_millpond")).arg("check").env("MILLPOND_POLICY", "best").output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("$MILLPOND_POLICY: expected one of lru, "), "{err}");
}

#[test]
fn help_lists_choices_and_the_options_of_places() {
    let (_, out, _) = millpond(&["serve", "--help"]);
    let words: String = out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "possible values: lru, lfu, ",
        "Form of the log's lines: auto, text or json [default",
        "possible values: none, ",
        "[places.NAME]",
        "path-style ",
        "anonymous ",
        "stall-timeout ",
        "follow-redirects-to ",
    ] {
        assert!(words.contains(part), "no {part:?} in {out}");
    }
    assert!(out.lines().all(|line| line.chars().count() <= 160), "{out}");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/handbook/configuration.md");
    let page = std::fs::read_to_string(page).unwrap();
    for setting in millpond_server::config::PLACE_SETTINGS {
        assert!(page.contains(&format!("| `{}` |", setting.name)), "configuration.md doesn't have {}", setting.name);
    }
}

/// The first words of a server.
fn greeting(args: &[&str], until: &str) -> String {
    use std::io::BufRead as _;
    let cache = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    command.arg("serve").args(args).args(["--cache", cache.path().to_str().unwrap()]);
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut process = support::Running(child);
    let mut text = String::new();
    for line in std::io::BufReader::new(process.0.stdout.take().unwrap()).lines() {
        text += &format!("{}\n", line.unwrap());
        if text.contains(until) {
            break;
        }
    }
    text
}

#[test]
fn the_first_words_have_names_as_they_are_and_say_how_many_more_there_are() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a film.mp4", "b\u{1b}[2J.mp4", "c.mp4", "d.mp4", "e.mp4", "f.mp4", "g.mp4"] {
        // A young file of no bytes may be a copy that has just begun.
        let file = std::fs::File::create(folder.path().join(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3600)).unwrap();
    }
    let addresses = ["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--rtsp", "127.0.0.1:0"];
    let text = greeting(&[&[folder.path().to_str().unwrap()][..], &addresses].concat(), " more asset");
    assert!(text.contains("\n  a film.mp4\n") && text.contains("/a%20film.mp4/index.m3u8"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert!(text.contains("\n  and 2 more assets: http://127.0.0.1:"), "{text}");
}

#[test]
fn the_first_words_count_the_assets_of_all_folders() {
    let folder = tempfile::tempdir().unwrap();
    for season in 0..40 {
        let season = folder.path().join(format!("show/season {season}"));
        std::fs::create_dir_all(&season).unwrap();
        for name in ["pilot.mp4", "finale.mp4"] {
            let file = std::fs::File::create(season.join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3600)).unwrap();
        }
    }
    let addresses = ["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--rtsp", "127.0.0.1:0"];
    // A busy machine may need longer than the quarter of a second that the start spends on counting.
    let texts = || greeting(&[&[folder.path().to_str().unwrap()][..], &addresses].concat(), " more asset");
    let all = (0..5).map(|_| texts()).find(|text| text.contains("\n  and 75 more assets: http://127.0.0.1:"));
    assert!(all.is_some(), "{}", texts());
}

#[test]
fn addresses_of_ipv6_have_their_brackets() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        support::skip("there is no IPv6 here");
        return;
    }
    let text = greeting(&["--http", "[::1]:0", "--admin", "[::1]:0", "--rtsp", "[::1]:0"], "    RTSP ");
    for url in ["serves http://[::1]:", "  rtsp     rtsp://[::1]:", "  metrics  http://[::1]:", "HLS     http://[::1]:"]
    {
        assert!(text.contains(url), "no {url:?} in {text}");
    }
}

/// All keys of a report.
fn keys(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::Object(map) => {
            map.iter().flat_map(|(key, value)| [vec![key.clone()], keys(value)].concat()).collect()
        }
        serde_json::Value::Array(all) => all.iter().flat_map(keys).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn serve_says_why_it_cannot_start() {
    for (args, parts) in [
        (["serve", "/nowhere/at/all"].as_slice(), ["/nowhere/at/all", "does not exist"]),
        (&["serve", "--http", "192.0.2.1:80"], ["--http 192.0.2.1:80", "doesn't have that address"]),
    ] {
        let (code, _, err) = millpond(args);
        assert_eq!(code, 1, "{err}");
        assert!(parts.iter().all(|p| err.contains(p)), "{err}");
    }
}

#[test]
fn load_plays_a_title_from_either_manifest_and_reports() {
    let server = Server::start(&[]);
    for manifest in ["sample/index.m3u8", "sample/ts/index.m3u8", "sample/index.mpd"] {
        let url = server.url(manifest);
        let plot = server.cache.path().join("plot.svg");
        let to = ["--json", "-", "--plot", plot.to_str().unwrap()];
        let (code, out, err) = millpond(&[&["load", &url, "--clients", "5", "--pace", "fast"][..], &to].concat());
        assert_eq!(code, 0, "{err}");
        assert!(!err.contains(['\r', '\u{1b}']), "what a terminal does means nothing in a pipe: {err:?}");
        let report: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
        assert!(keys(&report).iter().all(|key| !key.contains('_')), "{:?}", keys(&report));
        assert!(std::fs::read_to_string(plot).unwrap().contains("segment, first byte"));
        assert_eq!(report["clients"], 5);
        let segments = report["kinds"].as_array().unwrap().iter().find(|k| k["kind"] == "segment").unwrap();
        assert!(segments["requests"].as_u64().unwrap() >= 5 * 10, "{manifest}: {segments}");
        assert_eq!(report["errors"].as_array().map_or(0, Vec::len), 0, "{manifest}: {out}");
    }
}

#[test]
fn simulate_finds_again_what_the_sproxy_paper_found() {
    let scratch = tempfile::tempdir().unwrap();
    let (plots, trace) = (scratch.path().join("plots"), scratch.path().join("trace.csv"));
    let (plots, trace) = (plots.to_str().unwrap(), trace.to_str().unwrap());
    // The first third of the requests: `bench/paper.py` plays all of them.
    assert_eq!(millpond(&["simulate", "--save", trace]).0, 0);
    let requests: Vec<String> = std::fs::read_to_string(trace).unwrap().lines().take(6000).map(str::to_owned).collect();
    std::fs::write(trace, requests.join("\n")).unwrap();
    let simulate = |args: &[&str]| {
        let same = ["simulate", "--trace", trace, "--policy", "lru", "--cache", "256MiB", "--json", "-"];
        let (code, out, err) = millpond(&[&same[..], args].concat());
        assert_eq!(code, 0, "{err}");
        serde_json::from_str::<Vec<serde_json::Value>>(&out).unwrap()
    };
    // `active` with slices of 100 KB takes ten times as long as all the rest.
    let slices = ["--mode", "full,on-demand,half,window", "--slice", "100KB,500KB", "--plot", plots];
    let runs = [simulate(&slices), simulate(&["--mode", "active", "--slice", "500KB"])].concat();
    let of = |mode: &str, slice: u64, figure: &str| {
        let run = runs.iter().find(|run| run["mode"] == mode && run["slice-bytes"] == slice);
        run.unwrap_or_else(|| panic!("{mode} {slice}"))[figure].as_u64().unwrap() as f64
    };
    for slice in [100_000, 500_000] {
        let server = |mode| of(mode, slice, "server-bytes");
        assert!(of("full", 0, "server-bytes") > 10.0 * server("window"));
        assert!(server("on-demand") < server("half") && server("half") < server("window"));
        let wasted = |mode| of(mode, slice, "false-prefetch-bytes");
        assert!((0.35..0.6).contains(&(wasted("half") / wasted("window"))));
    }
    assert!(of("active", 500_000, "false-prefetch-bytes") < of("half", 500_000, "false-prefetch-bytes") / 2.0);
    assert!(of("half", 100_000, "false-prefetch-bytes") < of("half", 500_000, "false-prefetch-bytes"));
    for plot in ["server-traffic.svg", "false-prefetch.svg", "byte-miss-ratio.svg"] {
        assert!(std::fs::read_to_string(Path::new(plots).join(plot)).unwrap().contains("</svg>"));
    }
}

#[test]
fn simulate_plays_clusters() {
    let scratch = tempfile::tempdir().unwrap();
    let plots = scratch.path().join("plots");
    let few = ["--streams", "450,550", "--skew", "1.2", "--delay", "0,1", "--unit", "512KiB"];
    let (code, out, err) =
        millpond(&[&["simulate", "dispensers", "--plot", plots.to_str().unwrap()], &few[..]].concat());
    assert_eq!(code, 0, "{err}");
    assert!(out.lines().any(|line| line.contains("sosd, 20MiB, delay 1") && line.contains("550  +22 %")), "{out}");
    for plot in ["cached-1500k-512KiB", "delayed-1500k-512KiB", "missed-skew-1.2-1500k-512KiB"] {
        assert!(std::fs::read_to_string(plots.join(format!("{plot}.svg"))).unwrap().contains("</svg>"), "{plot}");
    }
    let (code, out, err) =
        millpond(&["simulate", "cluster", "--nodes", "10", "--assignment", "sosd,rr", "--json", "-"]);
    assert_eq!(code, 0, "{err}");
    let runs: Vec<serde_json::Value> = serde_json::from_str(&out).unwrap();
    let figure = |run: usize, name: &str| runs[run][name].as_f64().unwrap_or_else(|| panic!("{name}: {out}"));
    assert!(figure(0, "most-over-mean") < 1.3 && figure(0, "moved-leaving") < 1.3, "{out}");
    assert!(figure(0, "led-share") > figure(1, "led-share"), "{out}");
    let few = ["--nodes", "12", "--assets", "100", "--viewers", "20", "--lasts", "2m"];
    let (code, out, err) = millpond(&[&["simulate", "zones"][..], &few].concat());
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("without zones") && out.contains("slices from region 3 to 1"), "{out}");
    for (kind, wrong) in [
        ("cluster", ["--nodes", "0"]),
        ("cluster", ["--assignment", "best"]),
        ("dispensers", ["--unit", "3KB"]),
        ("zones", ["--nodes", "2"]),
        ("zones", ["--skew", "9"]),
    ] {
        let (code, _, err) = millpond(&["simulate", kind, wrong[0], wrong[1]]);
        assert!(code == 1 && err.contains(wrong[0]) && err.contains(wrong[1]), "{wrong:?}: {err}");
    }
}

#[test]
fn simulate_reads_traces_and_names_what_is_wrong() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("trace.csv");
    let path = file.to_str().unwrap();
    std::fs::write(&file, "0,a,1000000\n1,b,1000000\n2,a,1000000\n").unwrap();
    let (code, out, _) = millpond(&["simulate", "--trace", path, "--cache", "10MB", "--slice", "1MB", "--json", "-"]);
    let runs: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &runs[0]["hits"], &runs[0]["server-bytes"]), (0, &1.into(), &2_000_000.into()));
    std::fs::write(&file, "0,a,1000000\nzero\n").unwrap();
    let (code, _, err) = millpond(&["simulate", "--trace", path]);
    assert!(code == 1 && err.contains("trace.csv") && err.contains("line 2"), "{err}");
    for wrong in [["--mode", "sideways"], ["--policy", "best"], ["--cache", "much"], ["--slice", "0"], ["--delay", "-"]]
    {
        let (code, _, err) = millpond(&[&["simulate"][..], &wrong].concat());
        assert!(code == 1 && err.contains(wrong[1]) || err.contains(wrong[0]), "{wrong:?}: {err}");
    }
}

#[test]
fn doctor_names_what_is_wrong_and_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/sample");
    let scratch = tempfile::tempdir().unwrap();
    let cache = scratch.path().join("cache").display().to_string();
    let free = ["--rtsp", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--cache", &cache];
    let doctor = |args: &[&str]| millpond(&[&["doctor"][..], args, &free].concat());

    let (code, out, err) = doctor(&["--http", "127.0.0.1:0", sample]);
    assert_eq!(code, 0, "{out} {err}");
    for part in ["rtsp 127.0.0.1:0 is free", "ranges work; first byte after ", "MB/s", " files may be open"] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
    assert!(!out.contains('\x1b'), "no colours in a pipe: {out}");

    // This test has the port, and nobody listens where the origin should be.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (films, live) = (format!("films=http://{gone}/films"), format!("cams=rtsp://{gone}/"));
    let (code, out, err) = doctor(&["--http", &address, &films, &live, "--json"]);
    assert_eq!(code, 1, "{out} {err}");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let error = |area: &str| {
        let found = findings.iter().find(|found| found["area"] == area && found["severity"] == "error");
        found.unwrap_or_else(|| panic!("no error of {area} in {out}"))
    };
    assert_eq!(report["errors"], 3, "{out}");
    assert!(error("ports")["text"].as_str().unwrap().contains(&format!("(process {})", std::process::id())), "{out}");
    assert!(error("films")["advice"].as_str().unwrap().contains("firewall"), "{out}");
    assert!(error("cams")["text"].as_str().unwrap().contains(&gone.to_string()), "{out}");
}

#[test]
fn doctor_compares_clocks_with_those_of_origins() {
    let origin = tiny_origin("HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Length: 0\r\n\r\n");
    let free = ["--http", "127.0.0.1:0", "--rtsp", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--cache-size", "0"];
    let (_, out, _) = millpond(&[&["doctor", &format!("http://{origin}/")][..], &free].concat());
    assert!(out.contains("ahead of that of 127.0.0.1: object stores refuse requests"), "{out}");
}

#[test]
fn doctor_tells_that_a_server_ignores_ranges() {
    let origin = whole_origin("not read by doctor");
    let free = ["--http", "127.0.0.1:0", "--rtsp", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--cache-size", "0"];
    let place = format!("films=http://{origin}/");
    let (_, out, err) = millpond(&[&["doctor", &place, "--object", "a.mp4", "--json"][..], &free].concat());
    let report: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|why| panic!("{why}: {out} {err}"));
    let findings = report["findings"].as_array().unwrap();
    let ignored = findings.iter().find(|found| found["text"].as_str().unwrap().contains("ignores byte ranges"));
    let ignored = ignored.unwrap_or_else(|| panic!("{out}"));
    assert_eq!((&ignored["area"], &ignored["severity"]), (&"films".into(), &"warning".into()), "{out}");
    assert!(ignored["advice"].as_str().unwrap().contains("Accept-Ranges"), "{out}");
    assert!(!out.contains("ranges work"), "{out}");
}

/// A server that answers every request with the whole of an object, as `python3 -m http.server` does.
fn whole_origin(object: &'static str) -> std::net::SocketAddr {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let asked = client.read(&mut head).unwrap_or(0);
            let body = if head[..asked].starts_with(b"HEAD ") { "" } else { object };
            let len = object.len();
            let _ = write!(client, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n{body}");
        }
    });
    address
}

/// A server that gives every request the same reply.
fn tiny_origin(reply: &'static str) -> std::net::SocketAddr {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let _ = client.read(&mut head).and_then(|_| client.write_all(reply.as_bytes()));
        }
    });
    address
}

#[test]
fn man_pages_and_completions_are_written() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("man");
    let (code, out, err) = millpond(&["man", folder.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    assert!(folder.join("millpond-serve.1").is_file() && out.contains("pages"), "{out}");
    let (code, out, _) = millpond(&["man"]);
    assert!(code == 0 && out.contains(".TH millpond 1"), "{out}");
    let (code, out, _) = millpond(&["completions", "bash"]);
    assert!(code == 0 && out.contains("_millpond()"), "{out}");
    assert_eq!(millpond(&["completions", "dos"]).0, 2);
}

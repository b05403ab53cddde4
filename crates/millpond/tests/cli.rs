//! The commands beside `serve`: what they print, how they fail.

mod support;

use std::process::Command;
use support::{Server, clips};

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
        let (code, out, err) = millpond(&["load", &url, "--clients", "5", "--pace", "fast", "--json", "-"]);
        assert_eq!(code, 0, "{err}");
        let report: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
        assert_eq!(report["clients"], 5);
        let segments = report["kinds"].as_array().unwrap().iter().find(|k| k["kind"] == "segment").unwrap();
        assert!(segments["requests"].as_u64().unwrap() >= 5 * 10, "{manifest}: {segments}");
        assert_eq!(report["errors"].as_array().map_or(0, Vec::len), 0, "{manifest}: {out}");
    }
}

#[test]
fn simulate_finds_again_what_the_sproxy_paper_found() {
    let scratch = tempfile::tempdir().unwrap();
    let plots = scratch.path().join("plots");
    let modes = ["--mode", "full,on-demand,half,window,active", "--cache", "256MiB", "--slice", "100KB,500KB"];
    let mut args = vec!["simulate", "--policy", "lru", "--json", "-", "--plot", plots.to_str().unwrap()];
    args.extend(modes);
    let (code, out, err) = millpond(&args);
    assert_eq!(code, 0, "{err}");
    let runs: Vec<serde_json::Value> = serde_json::from_str(&out).unwrap();
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
        assert!(wasted("active") < wasted("half") / 2.0);
    }
    assert!(of("half", 100_000, "false-prefetch-bytes") < of("half", 500_000, "false-prefetch-bytes"));
    for plot in ["server-traffic.svg", "false-prefetch.svg", "byte-miss-ratio.svg"] {
        assert!(std::fs::read_to_string(plots.join(plot)).unwrap().contains("</svg>"));
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

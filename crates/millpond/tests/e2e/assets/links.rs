//! Symbolic links in a folder that is served.

use crate::support::{Server, api::items};
use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../millpond-server/sample/180p.mp4");

/// A folder with a film, and links to the folders above it and out of it.
fn folder(outside: &Path) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("tv/one")).unwrap();
    fs::copy(SAMPLE, root.path().join("tv/one/film.mp4")).unwrap();
    fs::write(outside.join("other.mp4"), "").unwrap();
    for (target, link) in [(Path::new(".."), "tv/one/up"), (root.path(), "all"), (outside, "tv/out")] {
        symlink(target, root.path().join(link)).unwrap();
    }
    root
}

#[test]
fn a_link_to_a_folder_above_it_repeats_no_title() {
    let outside = tempfile::tempdir().unwrap();
    let root = folder(outside.path());
    let server = Server::start(&[root.path().to_str().unwrap()]);
    let found = items(server.admin, "assets?q=film");
    let paths: Vec<_> = found.as_array().unwrap().iter().map(|item| item["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["tv/one/film.mp4"]);
    assert_eq!(server.get("tv/one/up/one/film.mp4").status, 200, "the path still works");
    let log = server.log_text();
    let told = |link: &str, words: &str| {
        log.lines().filter(|line| line.contains(&format!("\"link\":\"{link}\"")) && line.contains(words)).count()
    };
    assert_eq!(told("tv/out", "a symbolic link leads out of the place and is left out: serve its target"), 1, "{log}");
    for link in ["tv/one/up", "all"] {
        assert_eq!(told(link, "leads to a folder above it"), 1, "{link}: {log}");
    }
}

#[test]
fn doctor_names_links_that_lead_out() {
    let outside = tempfile::tempdir().unwrap();
    let root = folder(outside.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    let output = command.arg("doctor").arg(root.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("tv/out leads out of the place and is left out"), "{text}");
    assert!(text.contains("-> serve the target as a place of its own"), "{text}");
}

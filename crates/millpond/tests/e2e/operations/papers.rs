//! `millpond-lab paper`: the papers' figures beside ours, by the benches of the checkout.

use crate::support;
use std::{
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Output},
};

/// Runs `millpond-lab paper`.
fn paper(args: &[&str], path: Option<&Path>) -> Output {
    let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_millpond")).with_file_name("millpond-lab"));
    command.arg("paper").args(args);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn paper_plots_the_papers_values_beside_ours() {
    if !support::have("python3") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().to_str().unwrap();
    let output = paper(&["sproxy-table-1", "--quick", "--out", folder], None);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let record = std::fs::read_to_string(scratch.path().join("sproxy-table-1.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert!(record["holds"].as_str().unwrap().contains("within 2 %"), "{record}");
    assert!(record["ours"].as_str().unwrap().starts_with("16,238 requests; 92 % for one clip"), "{record}");
    let plot = std::fs::read_to_string(scratch.path().join("sproxy-table-1.svg")).unwrap();
    for part in
        ["SProxy: Table I", "simulate --preset sproxy", "rate of the clip, kbit/s", "prefers-color-scheme: dark"]
    {
        assert!(plot.contains(part), "no {part:?} in {plot}");
    }
}

#[test]
fn paper_lists_all_figures_and_names_what_is_missing() {
    if !support::have("python3") {
        return;
    }
    let listed = paper(&["list"], None);
    let names = text(&listed.stdout);
    for name in ["sproxy-11", "amps-table-2", "srinilta-8", "espeland-5", "kylili-fig-a-10"] {
        assert!(names.contains(name), "no {name} in {names}");
    }
    // A machine that has Python alone.
    let scratch = tempfile::tempdir().unwrap();
    let found = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    symlink(text(&found.stdout).trim(), scratch.path().join("python3")).unwrap();
    let folder = scratch.path().to_str().unwrap();
    let output = paper(&["kylili-table-3-4", "--quick", "--out", folder], Some(scratch.path()));
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("ffmpeg is not installed: apt install ffmpeg"), "{errors}");
    assert!(errors.contains("FAILED kylili-table-3-4"), "{errors}");
    for (args, part) in [
        (&["sproxy-9", "--checkout", folder], "no checkout of Millpond"),
        (&["sproxy-99", "--out", folder], "sproxy-99: no such figure or paper"),
    ] {
        let output = paper(args, None);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(text(&output.stderr).contains(part), "{args:?}: {}", text(&output.stderr));
    }
}

//! Each setting is applied, or keeps its value and is named.

use super::Report;
use crate::config::{Config, Inputs, Loaded, load};
use millpond_settings::value::Form;

/// Settings whose values refer to files that are read, or go together with others: with the settings that a text needs besides.
const TOGETHER: [(&str, &str); 16] = [
    ("admin-token", "admin-token = \"token-of-an-operator\""),
    ("https", "tls-self-signed = true\nhttps = \"127.0.0.1:4433\""),
    ("rtsps", "tls-self-signed = true\nrtsps = \"127.0.0.1:4434\""),
    ("rtmps", "tls-self-signed = true\nrtmps = \"127.0.0.1:4435\""),
    ("rtsp", "rtsp = \"0.0.0.0:5554\""),
    ("rtsp-multicast", "rtsp-channels = \"films/a.mp4\"\nrtsp-multicast = \"239.192.0.1:5004/16\""),
    ("intercept", "intercept = \"127.0.0.1:4436\"\nintercept-networks = \"10.0.0.0/8\""),
    ("node", "cluster = \"http://127.0.0.1:1\"\nnode = \"a\""),
    ("cluster", "cluster = \"http://127.0.0.1:1\""),
    ("cluster-nodes", "cluster-nodes = \"http://127.0.0.1:1,http://127.0.0.1:2\"\ncluster-secret = \"/a\""),
    ("modules", "modules = [\"cams/door recorder\"]"),
    ("record-to", "record-folder = \"/a\"\nrecord-to = \"s3://bucket/recordings\""),
    ("push", "push = [\"cams/door srt://h:9000\"]"),
    ("failover", "failover = [\"live/main=live/a live/b\"]"),
    ("schedule", concat!("schedule = [\"live/tv=", env!("CARGO_MANIFEST_DIR"), "/../../examples/schedule.toml\"]")),
    ("cluster-user", "cluster-user = \"a\"\ncluster-password-file = \"/a\""),
];

/// Values that are tried for a form, until one is taken and differs from the default.
fn values(form: Form) -> Vec<&'static str> {
    match form {
        Form::Address => vec!["127.0.0.1:4437"],
        Form::Count => vec!["7", "1"],
        Form::Size => vec!["48MiB", "64KiB"],
        Form::Duration => vec!["17s", "900ms", "20ms"],
        Form::Switch => vec!["true", "false"],
        Form::Choice(words) => words.to_vec(),
        Form::Output => vec!["off"],
        Form::Path | Form::Text | Form::List => vec![
            "10.0.0.0/8",
            "10.0.0.1 10.0.0.2",
            "films/a.mp4",
            "http://10.0.0.1:1/",
            "rtsp://10.0.0.1:1/",
            "239.192.0.1:5004/16",
            "700ms",
            "0.5",
            "a.example",
            "debug",
            "manager",
            "window",
            "/a/",
            "max-height=720",
            "a",
            "CC1=en",
            "10.0.0.1",
            "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
            "a-passphrase-of-srt",
        ],
    }
}

fn loaded(folder: &tempfile::TempDir, text: &str) -> Option<Loaded> {
    let file = folder.path().join("millpond.toml");
    let inputs = Inputs { file: Some(file), text: Some(text.to_owned()), ..Inputs::default() };
    load(&inputs).ok()
}

/// A file that changes a setting, and what it loads to.
fn changed(folder: &tempfile::TempDir, name: &str, form: Form, before: &Loaded) -> Loaded {
    let value = |loaded: &Loaded| loaded.effective.iter().find(|setting| setting.name == name).unwrap().value.clone();
    let together = TOGETHER.iter().find(|(of, _)| *of == name).map(|(_, text)| (*text).to_owned());
    let files = folder.path().join("users");
    std::fs::write(&files, "ann:secret\n").unwrap();
    let file = matches!(name, "access-users" | "rtsp-users" | "publish-users").then(|| files.display().to_string());
    let tls = matches!(name, "tls-cert" | "tls-key").then(|| "tls-cert = \"/a\"\ntls-key = \"/b\"".to_owned());
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=").unwrap();
    let secret = matches!(name, "access-tokens" | "access-revoked" | "admin-token-file" | "hook-secret-file")
        .then(|| secret.display().to_string());
    let pair = matches!(name, "cluster-cert" | "cluster-key")
        .then(|| "cluster-cert = \"/a\"\ncluster-key = \"/b\"".to_owned());
    let nodes = "cluster-node-ca = \"/a\"\ncluster-node-cert = \"/b\"\ncluster-node-key = \"/c\"";
    let nodes = match name {
        "cluster-node-cert" | "cluster-node-key" => Some(nodes.to_owned()),
        "cluster-node-listen" | "cluster-node-url" => {
            let listener = "cluster-node-listen = \"127.0.0.1:4438\"\ncluster-node-url = \"https://a.example:4438\"";
            Some(format!("{nodes}\n{listener}"))
        }
        _ => None,
    };
    let line = |value: &str| match form {
        Form::Count | Form::Switch => format!("{name} = {value}"),
        _ => format!("{name} = {value:?}"),
    };
    let whole = together.or(tls).or(pair).or(nodes);
    let given = file.or(secret);
    let lines = values(form).into_iter().map(line);
    let texts: Vec<_> = whole.into_iter().chain(given.as_deref().map(line)).chain(lines).collect();
    let taken = texts.iter().filter_map(|text| loaded(folder, text)).find(|loaded| value(loaded) != value(before));
    taken.unwrap_or_else(|| panic!("no other value of {name} is known to this test: {texts:?}"))
}

#[test]
fn each_setting_is_applied_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let before = loaded(&folder, "").unwrap();
    for setting in Config::settings() {
        let mut new = changed(&folder, setting.name, setting.form, &before);
        let wanted = new.effective.clone();
        let report = Report::new(&before, &mut new);
        let has = |changes: &[super::Change]| changes.iter().any(|change| change.setting == setting.name);
        assert_eq!(has(&report.needs_restart), setting.needs_restart, "{}: {report:?}", setting.name);
        assert_eq!(has(&report.applied), !setting.needs_restart, "{}: {report:?}", setting.name);
        let value = |all: &[crate::config::Effective]| {
            all.iter().find(|effective| effective.name == setting.name).unwrap().value.clone()
        };
        let expected = if setting.needs_restart { &before.effective } else { &wanted };
        assert_eq!(value(&new.effective), value(expected), "{}", setting.name);
    }
}

#[test]
fn another_token_is_told_but_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "token-of-an-operator").unwrap();
    let of_file = format!("admin-token-file = {:?}", file.display().to_string());
    let told = |before: &Loaded, text: &str| {
        let report = Report::new(before, &mut loaded(&folder, text).unwrap());
        report.applied.iter().map(|change| (change.setting.clone(), change.to.clone())).collect::<Vec<_>>()
    };
    let text = "admin-token = \"token-of-an-operator\"";
    let before = loaded(&folder, text).unwrap();
    assert_eq!(told(&before, text), []);
    let other = told(&before, "admin-token = \"token-of-the-next-one\"");
    assert_eq!(other, [("admin-token".to_owned(), Some("\"***\"".to_owned()))]);
    let before = loaded(&folder, &of_file).unwrap();
    assert_eq!(told(&before, &of_file), []);
    std::fs::write(&file, "token-of-the-next-one").unwrap();
    let other = told(&before, &of_file);
    assert!(other.len() == 1 && other[0].0 == "admin-token-file", "{other:?}");
}

#[test]
fn places_are_compared_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let text = |url: &str, more: &str| format!("[places.a]\nurl = \"{url}\"\n{more}");
    let before = loaded(&folder, &text("/a", "[places.b]\nurl = \"/b\"")).unwrap();
    let report = |text: &str| Report::new(&before, &mut loaded(&folder, text).unwrap()).places;
    let same = report(&text("/a", "[places.b]\nurl = \"/b\""));
    assert_eq!(same, super::PlaceChanges::default());
    let other = report(&text("/other", "[places.c]\nurl = \"/b\""));
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let expected = super::PlaceChanges { added: names(&["c"]), removed: names(&["b"]), changed: names(&["a"]) };
    assert_eq!(other, expected);
    let option = report(&text("/a", "retries = 9\n[places.b]\nurl = \"/b\""));
    assert_eq!(option.changed, names(&["a"]));
}

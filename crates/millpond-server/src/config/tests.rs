//! The configuration that flags, environment and file make, and the texts of their errors.

mod odd_values;
mod places;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use millpond_connections::tls::TlsSource;
use millpond_settings::nearest;

struct Case {
    folder: tempfile::TempDir,
    inputs: Inputs,
}

impl Case {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), inputs: Inputs::default() }
    }

    fn file(mut self, text: &str) -> Self {
        let path = self.path();
        std::fs::write(&path, text).unwrap();
        self.inputs.file = Some(path);
        self
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("millpond.toml")
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.inputs.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    fn flag(mut self, name: &str, value: &str) -> Self {
        self.inputs.flags.push((name.to_owned(), value.to_owned()));
        self
    }

    fn place(mut self, text: &str) -> Self {
        self.inputs.places.push(text.to_owned());
        self
    }

    fn ok(&self) -> Loaded {
        load(&self.inputs).unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// The errors with the folder of the file left out.
    fn errors(&self) -> Vec<String> {
        let folder = format!("{}/", self.folder.path().display());
        let errors = load(&self.inputs).expect_err("should be refused");
        errors.0.iter().map(|error| error.to_string().replace(&folder, "")).collect()
    }
}

#[test]
fn nothing_given_is_the_documented_default() {
    let config = Case::new().variable("HOME", "/home/op").ok().config;
    assert!(config.places.is_empty());
    assert_eq!(config.http.address.to_string(), "0.0.0.0:8080");
    assert_eq!(config.admin.address.to_string(), "127.0.0.1:8380");
    assert_eq!(config.http.https, None);
    assert_eq!(config.tls.source(), None);
    assert_eq!(config.storage.folder, Path::new("/home/op/.cache/millpond"));
    assert_eq!(config.http.segment_duration, Duration::from_secs(4));
    assert_eq!(config.log.filter, "info");
    assert!(config.log.access.is_on());
    assert_eq!(config.access.cors, millpond_access::CorsOrigins::All);
    assert!(config.limits.workers >= 1 && config.storage.memory <= 1 << 30 && config.limits.max_connections <= 20_000);
}

#[test]
fn flag_over_environment_over_file_over_default() {
    let case = Case::new().file("workers = 2\nhttp = \"1.1.1.1:1\"\nadmin = \"2.2.2.2:2\"\nplaces = [\"a=/a\"]\n");
    let case = case.variable("MILLPOND_WORKERS", "3").variable("MILLPOND_HTTP", "3.3.3.3:3");
    let case = case.flag("workers", "4").place("b=/b");
    let loaded = case.ok();
    assert_eq!(loaded.config.limits.workers, 4);
    assert_eq!(loaded.config.http.address.to_string(), "3.3.3.3:3");
    assert_eq!(loaded.config.admin.address.to_string(), "2.2.2.2:2");
    assert_eq!(loaded.config.limits.timeouts.idle, Duration::from_secs(75));
    let names: Vec<_> = loaded.config.places.iter().map(|place| place.spec.name.as_str()).collect();
    assert_eq!(names, ["b"]);

    let source = |name: &str| loaded.effective.iter().find(|e| e.name == name).unwrap().source.to_string();
    assert_eq!(source("workers"), "--workers");
    assert_eq!(source("http"), "$MILLPOND_HTTP");
    assert_eq!(source("admin"), format!("{}:3:1", case.path().display()));
    assert_eq!(source("idle-timeout"), "default");
    assert_eq!(source("places"), "argument");
}

#[test]
fn the_file_may_be_named_by_the_environment() {
    let mut case = Case::new().file("workers = 7\n");
    let path = case.inputs.file.take().unwrap();
    let case = case.variable("MILLPOND_CONFIG", path.to_str().unwrap());
    assert_eq!(case.ok().config.limits.workers, 7);
}

#[test]
fn an_empty_variable_is_as_good_as_none() {
    let case = Case::new().file("workers = 2\n").variable("MILLPOND_WORKERS", "");
    assert_eq!(case.ok().config.limits.workers, 2);
}

#[test]
fn a_missing_file_is_fatal() {
    let mut case = Case::new();
    case.inputs.file = Some(case.path());
    let errors = case.errors();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("millpond.toml: cannot read the configuration file: No such file"), "{errors:?}");
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_known_one() {
    let case = Case::new().file("# servers\n\nwrokers = 4\n[places.films]\nurl = \"/f\"\nregoin = \"eu\"\n\n[zebra]\n");
    assert_eq!(
        case.errors(),
        [
            "millpond.toml:3:1: unknown key \"wrokers\"; did you mean \"workers\"?",
            "millpond.toml:6:1: unknown key \"regoin\"; did you mean \"region\"?",
            "millpond.toml:8:2: unknown key \"zebra\"",
        ]
    );
}

#[test]
fn keys_of_other_sections_are_named_with_their_place() {
    let case = Case::new().file(
        "titles = \"file\"\n[server]\nhttp = \":80\"\n[places.films]\nurl = \"/f\"\nmemory = \"1GiB\"\ntitels = \"file\"\n",
    );
    assert_eq!(
        case.errors(),
        [
            "millpond.toml:1:1: \"titles\" is an option of a place: write it below [places.NAME]",
            "millpond.toml:2:2: \"server\" is no section: settings of the server stand at the top of the file, before the \
             first section",
            "millpond.toml:6:1: \"memory\" is a setting of the server, not of a place: move it to the top of the file, \
             before the first section",
            "millpond.toml:7:1: unknown key \"titels\"; did you mean \"titles\"?",
        ]
    );
}

#[test]
fn a_listener_that_somebody_wants_off_is_explained() {
    let case = Case::new().file("rtsp = \"off\"\nhttp = false\nhttps = \"no\"\nrtmp = \"off\"\n").flag("admin", "off");
    let expected = |port: u16, when: &str| {
        format!(
            "expected an address and port: this listener can't be switched off{when}; with \"127.0.0.1:{port}\" only this \
             machine reaches it, found"
        )
    };
    assert_eq!(
        case.errors(),
        [
            format!("millpond.toml:1:1: rtsp: {} \"off\"", expected(8554, "")),
            format!("millpond.toml:2:1: http: {} false", expected(8080, "")),
            format!("millpond.toml:3:1: https: {} \"no\"", expected(8443, " while TLS is on")),
            "millpond.toml:4:1: rtmp: expected an address and port: this listener is off where the setting is left out, \
             found \"off\""
                .to_owned(),
            format!("--admin: {} \"off\"", expected(8380, "")),
        ]
    );
}

#[test]
fn nearest_names() {
    let near = |name: &str| nearest(name, Config::settings().into_iter().map(|setting| setting.name).chain(["places"]));
    for (name, meant) in [
        ("segmentduration", "segment-duration"),
        ("Segment_Duration", "segment-duration"),
        ("tls-certificate", "tls-cert"),
        ("place", "places"),
        ("htpp", "http"),
        ("mem", "memory"),
    ] {
        assert_eq!(near(name).as_deref(), Some(meant), "{name}");
    }
    assert_eq!(near("bandwidth-limit"), None);
    assert_eq!(near("x"), None);
}

#[test]
fn wrong_values_say_where_and_what_is_expected() {
    let case = Case::new()
        .file(
            "workers = \"many\"\nmemory = true\nsegment-duration = 0.1\nhttp = \"nowhere\"\nlog-format = \"xml\"\n\
             access-log = \"yess\"\nmax-connections = 0\n[places.films]\nurl = \"/f\"\nretries = -1\n",
        )
        .variable("MILLPOND_LOG", "millpond=loud")
        .flag("idle-timeout", "soon");
    assert_eq!(
        case.errors(),
        [
            "millpond.toml:1:1: workers: expected a whole number such as 4, found \"many\"",
            "millpond.toml:2:1: memory: expected a size such as \"256MiB\", found true",
            "millpond.toml:3:1: segment-duration: expected a duration from 500ms to 60s such as \"4s\", found 0.1",
            "millpond.toml:4:1: http: expected an address and port such as \"0.0.0.0:8080\", found \"nowhere\"",
            "millpond.toml:5:1: log-format: expected one of auto, text, json, found \"xml\"",
            "millpond.toml:6:1: access-log: expected off, stderr, - or a file such as \"/var/log/millpond/access.log\", \
             found \"yess\"",
            "millpond.toml:7:1: max-connections: expected a whole number of at least 1, found 0",
            "millpond.toml:10:1: retries: expected a whole number of at least 0, found -1",
            "$MILLPOND_LOG: expected a level (off, error, warn, info, debug, trace) in place of \"loud\", found \"millpond=loud\"",
            "--idle-timeout: expected a duration such as \"4s\" or \"500ms\", found \"soon\"",
        ]
    );
}

#[test]
fn values_in_the_forms_that_toml_has() {
    let case = Case::new().file(
        "workers = 0x10\nmemory = 67_108_864\nsegment_duration = 2.5\nidle-timeout = 30\nwrite-timeout = \"2m\"\n\
         access_log = false\nhttp = 8000\ncors-origins = \"none\"\n",
    );
    let config = case.ok().config;
    assert_eq!(config.limits.workers, 16);
    assert_eq!(config.storage.memory, 64 << 20);
    assert_eq!(config.http.segment_duration, Duration::from_millis(2500));
    assert_eq!(config.limits.timeouts.idle, Duration::from_secs(30));
    assert_eq!(config.limits.timeouts.write, Duration::from_secs(120));
    assert!(!config.log.access.is_on());
    assert_eq!(config.http.address.to_string(), "0.0.0.0:8000");
    assert_eq!(config.access.cors, millpond_access::CorsOrigins::None);
}

#[test]
fn broken_toml_is_located() {
    let errors = Case::new().file("workers = 4\nhttp = \n").errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].starts_with("millpond.toml:2:"), "{errors:?}");
    assert!(errors[0].contains("not valid TOML"), "{errors:?}");

    let errors = Case::new().file("workers = 4\nworkers = 5\n").errors();
    assert!(errors[0].starts_with("millpond.toml:2:1: not valid TOML"), "{errors:?}");
    let errors = Case::new().file("log-format = \"text\"\nlog_format = \"json\"\n").errors();
    assert_eq!(errors, ["millpond.toml:2:1: log-format is set more than once here"]);
}

#[test]
fn tls_settings_go_together() {
    let files = Case::new().flag("tls-cert", "c.pem").flag("tls-key", "k.pem").ok().config;
    assert_eq!(files.tls.source(), Some(TlsSource::Files { cert: "c.pem".into(), key: "k.pem".into() }));
    assert_eq!(files.http.https.unwrap().to_string(), "0.0.0.0:8443");
    let own = Case::new().flag("tls-self-signed", "true").flag("https", ":443").ok().config;
    assert_eq!(own.tls.source(), Some(TlsSource::SelfSigned));
    assert_eq!(own.http.https.unwrap().port(), 443);

    for (case, says) in [
        (Case::new().flag("tls-cert", "c.pem"), "--tls-cert: tls-cert needs tls-key"),
        (Case::new().flag("tls-key", "k.pem"), "--tls-key: tls-key needs tls-cert"),
        (Case::new().flag("https", ":443"), "--https: https needs a certificate"),
        (
            Case::new().flag("tls-self-signed", "true").flag("tls-cert", "c").flag("tls-key", "k"),
            "--tls-self-signed: tls-self-signed and tls-cert exclude each other",
        ),
    ] {
        assert!(case.errors()[0].starts_with(says), "{:?}", case.errors());
    }
}

#[test]
fn groups_are_for_channels_and_enough_for_them() {
    let case = |channels| Case::new().flag("rtsp-multicast", "239.255.255.254:5004").flag("rtsp-channels", channels);
    let config = case("films/a.mp4, /b.mp4/").ok().config;
    assert_eq!(config.rtsp.channels.iter().map(ToString::to_string).collect::<Vec<_>>(), ["films/a.mp4", "b.mp4"]);
    let list = case("news=films/a.mp4 films/b.mp4,b.mp4").ok().config;
    assert_eq!(list.rtsp.channels[0].assets, ["films/a.mp4", "films/b.mp4"]);
    assert_eq!(config.rtsp.multicast.unwrap().to_string(), "239.255.255.254:5004/16");
    for (case, says) in [
        (case("a,b,c"), "--rtsp-multicast: the group of channel 3 lies behind"),
        (case("a,b=c d,a=e"), "--rtsp-channels:"),
        (case("news="), "--rtsp-channels:"),
        (Case::new().flag("rtsp-multicast", "239.0.0.1:2"), "--rtsp-multicast: rtsp-multicast is for channels"),
        (Case::new().flag("rtsp-multicast", "10.0.0.1:5004"), "--rtsp-multicast:"),
        (Case::new().flag("rtsp-overflow", "http://other/"), "--rtsp-overflow:"),
    ] {
        assert!(case.errors()[0].starts_with(says), "{:?}", case.errors());
    }
}

#[test]
fn rtsp_over_tls_listens_where_there_is_a_certificate() {
    assert_eq!(Case::new().ok().config.rtsp.rtsps, None);
    let config = Case::new().flag("tls-self-signed", "true").ok().config;
    assert_eq!(config.rtsp.rtsps.unwrap().to_string(), "0.0.0.0:8322");
    let errors = Case::new().flag("rtsps", ":322").errors();
    assert_eq!(errors, ["--rtsps: rtsps needs a certificate: set tls-cert and tls-key, or tls-self-signed"]);
    let errors = Case::new().flag("rtmp", ":1935").flag("rtmps", ":1936").errors();
    assert_eq!(errors, ["--rtmps: rtmps needs a certificate: set tls-cert and tls-key, or tls-self-signed"]);
    assert_eq!(Case::new().flag("rtmp", ":1935").ok().config.rtmp.address.unwrap().port(), 1935);
    let both = Case::new().flag("https", ":322").flag("rtsps", ":322").errors();
    assert_eq!(both.len(), 2, "without TLS their addresses don't clash: {both:?}");
}

#[test]
fn what_is_wrong_with_the_file_of_users_is_told_line_by_line() {
    let case = Case::new();
    let path = case.folder.path().join("users");
    let case = case.flag("rtsp-users", path.to_str().unwrap());
    assert!(case.errors()[0].starts_with("--rtsp-users: users: cannot read the file: No such file"));
    std::fs::write(&path, "ann:pass\nbob\n:hush\n").unwrap();
    assert_eq!(
        case.errors(),
        [
            "--rtsp-users: users: line 2: expected name:password, found no colon",
            "--rtsp-users: users: line 3: expected name:password, found no name",
        ]
    );
    std::fs::write(&path, "ann:hush\n").unwrap();
    let loaded = case.ok();
    assert!(show(&loaded, None).contains(&format!("rtsp-users = \"{}\"", path.display())));
    assert!(!format!("{:?}", loaded.config).contains("hush"));
    assert!(Case::new().ok().config.rtsp.users.is_none());
}

#[test]
fn listeners_need_addresses_of_their_own() {
    let errors = Case::new().flag("admin", "0.0.0.0:8080").errors();
    assert_eq!(errors, ["--admin: admin and http can't both listen on 0.0.0.0:8080"]);
    Case::new().flag("admin", "127.0.0.1:0").flag("http", "127.0.0.1:0").ok();
}

#[test]
fn a_flag_wins_over_a_variable_that_it_excludes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "token-of-the-server\n").unwrap();
    let case = || Case::new().variable("MILLPOND_ADMIN_TOKEN", "token-of-an-operator");
    let loaded = case().flag("admin-token-file", file.to_str().unwrap()).ok();
    assert!(loaded.config.admin.token.as_ref().is_some_and(|token| token.is("token-of-the-server")));
    assert_eq!(loaded.source("admin-token"), Source::Default);
    // Two of one kind are a mistake still.
    let both = case().variable("MILLPOND_ADMIN_TOKEN_FILE", file.to_str().unwrap()).errors();
    assert_eq!(both, ["$MILLPOND_ADMIN_TOKEN_FILE: admin-token and admin-token-file can't be set both"]);
    let cluster = Case::new().variable("MILLPOND_CLUSTER_NODES", "http://10.0.0.1:8080");
    let cluster = cluster.flag("cluster", "http://10.0.0.1:2379").ok().config.cluster;
    assert!(cluster.nodes.is_empty() && cluster.etcd.len() == 1);
    let tls = Case::new().variable("MILLPOND_TLS_CERT", "/c.pem").variable("MILLPOND_TLS_KEY", "/k.pem");
    assert_eq!(tls.flag("tls-self-signed", "true").ok().config.tls.source(), Some(TlsSource::SelfSigned));
}

#[test]
fn misspelt_variables_are_warned_about() {
    let case = Case::new()
        .variable("MILLPOND_WROKERS", "4")
        .variable("MILLPOND_PORT", "tcp://10.0.0.1:80")
        .variable("MILLPOND_PORT_8080_TCP", "tcp://10.0.0.1:80")
        .variable("MILLPOND_SERVICE_HOST", "10.0.0.1");
    assert_eq!(case.ok().warnings, ["$MILLPOND_WROKERS is not a setting; did you mean $MILLPOND_WORKERS?"]);
}

#[test]
fn an_open_admin_address_is_warned_about() {
    let warnings = |case: Case| case.ok().warnings;
    assert!(warnings(Case::new()).is_empty() && warnings(Case::new().flag("admin", "unix:/run/admin.sock")).is_empty());
    assert!(warnings(Case::new().flag("admin", "0.0.0.0:8380"))[0].contains("0.0.0.0:8380"));
    let token = Case::new().flag("admin", "0.0.0.0:8380").flag("admin-token", "token-of-an-operator");
    assert!(warnings(token).is_empty());
}

#[test]
fn what_is_shown_reads_back_as_the_same() {
    let case =
        Case::new().file("workers = 3\nmemory = \"64MiB\"\ntls-self-signed = true\n").place("films=/data/fi\"lms");
    let first = case.ok();
    let text = show(&first, None);
    assert!(text.contains("workers = 3 "), "{text}");
    let again = Case::new().file(&text).ok();
    let values = |loaded: &Loaded| -> HashMap<&str, Option<String>> {
        loaded.effective.iter().map(|e| (e.name, e.value.clone())).collect()
    };
    assert_eq!(values(&first), values(&again));
}

#[test]
fn names_are_unique_and_written_with_dashes() {
    let mut names: Vec<_> = Config::settings().iter().map(|setting| setting.name).collect();
    assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Config::settings().len());
    assert!(PLACE_SETTINGS.iter().all(|setting| !setting.name.contains('_')));
}

//! A new value of each setting that a reload applies reaches the part that uses it.

use super::*;
use crate::config::load;

/// Reads a setting where it is used: by its part in a running server.
type Probe = fn(&Running) -> String;

/// Settings that parts use which live as long as the server, with another value each.
const LASTING: &[(&str, &str, Probe)] = &[
    ("http", "\"127.0.0.1:0\"", |running| configured(running, "http")),
    ("rtsp", "\"127.0.0.1:0\"", |running| configured(running, "rtsp")),
    ("rtmp", "\"127.0.0.1:0\"", |running| configured(running, "rtmp")),
    ("https", "\"127.0.0.1:0\"\nrtsps = \"127.0.0.1:0\"\ntls-self-signed = true", |running| {
        configured(running, "https")
    }),
    ("rtsps", "\"127.0.0.1:0\"\nhttps = \"127.0.0.1:0\"\ntls-self-signed = true", |running| {
        configured(running, "rtsps")
    }),
    ("rtmps", "\"127.0.0.1:0\"\nhttps = \"127.0.0.1:0\"\nrtsps = \"127.0.0.1:0\"\ntls-self-signed = true", |running| {
        configured(running, "rtmps")
    }),
    ("tls-self-signed", "true\nhttps = \"127.0.0.1:0\"\nrtsps = \"127.0.0.1:0\"", |running| {
        format!("{:?}", running.sockets().tls.as_ref().map(|tls| tls.source()))
    }),
    ("mdns-name", "\"Films\"", |running| {
        running.generation.load().config.announce.name.clone().map(|name| name.host()).unwrap_or_default()
    }),
    ("captions", "\"CC1=en\"", |running| format!("{:?}", running.parts.library.options().places)),
    ("memory", "\"48MiB\"", |running| running.parts.store.memory().budget().to_string()),
    ("prefetch", "\"half\"", |running| running.parts.store.prefetch_mode().to_string()),
    ("max-connections", "777", |running| running.service.most_connections().to_string()),
    ("idle-timeout", "\"7s\"", |running| format!("{:?}", running.service.timeouts())),
    ("request-timeout", "\"7s\"", |running| format!("{:?}", running.service.timeouts())),
    ("write-timeout", "\"7s\"", |running| format!("{:?}", running.service.timeouts())),
    ("rtsp-sessions", "77", |running| format!("{:?}", running.parts.manager.admission().bounds())),
    ("rtsp-sessions-per-client", "77", |running| format!("{:?}", running.parts.manager.admission().bounds())),
    ("rtsp-waiting-per-client", "77", |running| format!("{:?}", running.parts.manager.admission().bounds())),
    ("rtsp-mbps", "77", |running| format!("{:?}", running.parts.manager.admission().bounds())),
    ("rtsp-origin-mbps", "77", |running| format!("{:?}", running.parts.manager.admission().bounds())),
    ("rtsp-channels", "\"sample\"", |running| format!("{:?}", running.parts.manager.options().channels)),
    ("rtsp-deadlines", "\"all\"", |running| format!("{:?}", running.parts.manager.options().lateness)),
    ("rtsp-start", "\"7s\"", |running| format!("{:?}", running.parts.manager.options().start_wait)),
    ("rtsp-rate-control", "\"tfrc\"", |running| format!("{:?}", running.parts.manager.options().rate_rule)),
    ("max-streams", "77", |running| running.parts.manager.options().max_streams.to_string()),
    ("stream-memory", "\"48MiB\"", |running| running.parts.manager.options().stream_memory.to_string()),
    ("viewer-queue", "\"7s\"", |running| format!("{:?}", running.parts.manager.options().viewer_queue)),
    ("modules", "[\"cams/door tee to=live/copy\"]", |running| {
        format!("{:?}", running.modules.list().iter().map(|module| module.line.to_string()).collect::<Vec<_>>())
    }),
    ("push", "[\"cams/door srt://10.0.0.1:9000\"]", |running| {
        format!("{:?}", running.modules.list().iter().map(|module| module.line.to_string()).collect::<Vec<_>>())
    }),
    ("failover", "[\"live/main=live/a live/b\"]", |running| format!("{:?}", running.failovers.settings())),
    ("schedule", concat!("[\"live/tv=", env!("CARGO_MANIFEST_DIR"), "/../../examples/schedule.toml\"]"), |running| {
        let schedules = running.parts.schedules.list();
        schedules.iter().map(|schedule| schedule.stream().to_owned()).collect()
    }),
    ("record", "[\"cams/door\"]", |running| {
        format!("{:?}", running.modules.list().iter().map(|module| module.line.to_string()).collect::<Vec<_>>())
    }),
    ("drop", "\"blind\"", |running| format!("{:?}", running.parts.manager.options().dropping)),
];

/// Settings that are read from the generation whenever they are used, or that its parts are made from.
const ANEW: &[&str] = &[
    "playlist-lifetime",
    "segment-lifetime",
    "file-lifetime",
    "filter",
    "access-users",
    "access-tokens",
    "access-issuer",
    "access-audience",
    "access-networks",
    "access-revoked",
    "auth-url",
    "auth-ttl",
    "auth-stale",
    "auth-timeout",
    "cors-origins",
    "client-requests",
    "client-burst",
    "client-connections",
    "client-streams",
    "token-requests",
    "token-streams",
    "admin",
    "admin-hosts",
    "admin-token",
    "admin-token-file",
    "rtsp-users",
    "rtsp-session-timeout",
    "rtsp-overflow",
    "linger",
    "source-transport",
    "source-retransmission",
    "stored-titles",
    "source-timeout",
    "source-kbps",
    "srt-passphrase",
    "srt-latency",
    // Hooks are begun and ended by each configuration; an end-to-end test reloads them.
    "hooks",
    "hook-secret",
    "hook-secret-file",
    "hook-run",
    "hook-timeout",
    "hook-retry",
    "hook-queue",
    "disk-low",
    "live-segment",
    "live-part",
    "playlist-window",
    "time-shift",
    "time-shift-size",
    "time-shift-total",
    "publish-users",
    "publish-open",
    "publish-conflict",
    "record-size",
    "record-duration",
    "failover-back",
    "recordings",
    "record-file-length",
    "record-name",
    "record-keep",
    "record-keep-size",
    "record-spool",
    "hidden-files",
    "search-folders",
    // Of a disk that only remote places have.
    "cache-size",
    "policy",
    "log",
    "access-log",
    "tls-cert",
    "tls-key",
    "shutdown-grace",
    "config-watch",
    "trusted-proxies",
    "forwarded-by",
    "drain",
];

fn configured(running: &Running, name: &str) -> String {
    // The port is 0 each time: a socket that was bound again has another one.
    format!("{:?}", running.sockets().listeners.get(name).and_then(Listener::address))
}

fn loaded(folder: &tempfile::TempDir, text: &str) -> Loaded {
    let here = |names: &[&str]| -> String {
        let unset = names.iter().filter(|name| !text.lines().any(|line| line.starts_with(&format!("{name} ="))));
        unset.map(|name| format!("{name} = \"127.0.0.2:0\"\n")).collect()
    };
    let cache = folder.path().display();
    let text = format!("cache = \"{cache}\"\n{}{text}", here(&["http", "admin", "rtsp"]));
    let file = Some(folder.path().join("millpond.toml"));
    load(&Inputs { file, text: Some(text), ..Inputs::default() }).unwrap()
}

#[test]
fn each_setting_that_a_reload_applies_is_known_here() {
    for setting in Config::settings().iter().filter(|setting| !setting.needs_restart) {
        let known = LASTING.iter().filter(|(name, ..)| *name == setting.name).count();
        let known = known + ANEW.iter().filter(|name| **name == setting.name).count();
        assert_eq!(known, 1, "{}: how does a new value reach what uses it?", setting.name);
    }
}

/// Senders of the orders to a server, which live as long as it.
type Ends = (watch::Sender<bool>, watch::Sender<bool>);

async fn running(loaded: &Loaded) -> (Arc<Running>, watch::Receiver<Duration>, Ends) {
    let inherited = (Predecessor::default(), Inherited::default());
    let server = Server::bind(loaded.clone(), Inputs::default(), Vec::new(), inherited).await.unwrap();
    let Server { parts, generation, sockets, service, rtsp, rtmp, srt, intercept, .. } = server;
    let ((stops, stop), (cuts, end)) = (watch::channel(false), watch::channel(false));
    let (grace, graces) = watch::channel(loaded.config.limits.shutdown_grace);
    let made = Made { parts, service, generation, rtsp, rtmp, srt, intercept, sockets };
    let running = Arc::new(Running::new(made, Ending { stop, end, grace }));
    (running, graces, (stops, cuts))
}

/// A server with a configuration file, and its reloader.
async fn reloadable(folder: &tempfile::TempDir) -> (Reloader, Arc<Running>, Ends) {
    let file = folder.path().join("millpond.toml");
    let here = "http = \"127.0.0.2:0\"\nrtsp = \"127.0.0.2:0\"\nadmin = \"127.0.0.2:0\"";
    std::fs::write(&file, format!("cache = \"{}\"\n{here}\n", folder.path().display())).unwrap();
    let inputs = Inputs { file: Some(file), ..Inputs::default() };
    let loaded = load(&inputs).unwrap();
    let (running, _, ends) = running(&loaded).await;
    let metrics = running.parts.metrics.reload.clone();
    (Reloader::new(inputs, loaded, running.clone(), metrics), running, ends)
}

/// A change of the file that sets one setting.
fn set(
    name: &'static str,
    text: &'static str,
) -> impl FnOnce(&str) -> Result<String, crate::config::EditError> + Send + 'static {
    move |file| {
        let set = std::iter::once((name.to_owned(), text.to_owned())).collect();
        crate::config::edit::settings(file, &set, &[])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_at_the_same_time_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (reloader, ..) = reloadable(&folder).await;
    let all = [("memory", "48MiB"), ("max-streams", "77"), ("linger", "7s"), ("drain", "7s"), ("rtsp-sessions", "77")];
    let changes = all.map(|(name, text)| {
        let reloader = reloader.clone();
        tokio::spawn(async move { reloader.apply(set(name, text)).await })
    });
    for change in changes {
        change.await.unwrap().unwrap();
    }
    let file = std::fs::read_to_string(folder.path().join("millpond.toml")).unwrap();
    for (name, _) in all {
        assert!(file.contains(&format!("{name} = ")), "{name}: {file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_change_is_no_failed_reload_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (reloader, running, _ends) = reloadable(&folder).await;
    let is_successful = || {
        let text = running.parts.metrics.render(crate::metrics::TextFormat::Prometheus);
        text.contains("millpond_config_last_reload_successful 1\n")
    };
    assert!(reloader.apply(set("memory", "much")).await.is_err() && is_successful());
    let other = folder.path().join("millpond.toml");
    let meanwhile = move |text: &str| {
        std::fs::write(&other, format!("{text}# by hand\n")).unwrap();
        Ok(format!("{text}linger = \"7s\"\n"))
    };
    let refused = reloader.apply(meanwhile).await;
    assert!(matches!(refused, Err(crate::reload::ReloadError::Changed)), "{refused:?}");
    let file = folder.path().join("millpond.toml");
    assert!(std::fs::read_to_string(&file).unwrap().ends_with("# by hand\n"));
    std::fs::write(&file, "memory = \"much\"").unwrap();
    assert!(reloader.reload().await.is_err() && !is_successful());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_waits_for_an_upgrade() {
    let folder = tempfile::tempdir().unwrap();
    let (reloader, running, _ends) = reloadable(&folder).await;
    let upgrade = running.turn().await;
    assert!(timeout(Duration::from_millis(100), reloader.reload()).await.is_err());
    drop(upgrade);
    assert!(reloader.reload().await.is_ok());
    let upgrade = running.turn().await;
    running.leave("");
    drop(upgrade);
    assert!(matches!(reloader.reload().await, Err(crate::reload::ReloadError::Stopping)));
}

#[tokio::test(flavor = "multi_thread")]
async fn lasting_parts_get_new_values() {
    let folder = tempfile::tempdir().unwrap();
    let before = loaded(&folder, "");
    let (running, graces, _ends) = running(&before).await;
    let commit = |loaded: &Loaded| {
        let prepared = running.prepare(loaded).unwrap();
        running.commit(prepared);
    };
    for (name, value, probe) in LASTING {
        let old = probe(&running);
        // Another host: the address differs, and the port is the system's.
        commit(&loaded(&folder, &format!("{name} = {value}")));
        let new = probe(&running);
        assert_ne!(old, new, "{name}");
        commit(&before);
    }
    commit(&loaded(&folder, "shutdown-grace = \"7s\""));
    assert_eq!(*graces.borrow(), Duration::from_secs(7), "the thread of signals knows it too");
}

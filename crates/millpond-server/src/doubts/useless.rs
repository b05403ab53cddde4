//! Settings and options that are given, but have no effect without others.

use crate::config::{Config, Effective, Loaded, PlaceConfig};
use millpond_place::OptionGroup;
use millpond_settings::Source;

/// Settings that have an effect under a condition only.
struct Rule {
    /// The settings.
    names: &'static [&'static str],
    /// Whether they have an effect in a configuration.
    holds: fn(&Config) -> bool,
    /// Missing setting or place, and how to add it, as the warning prints them.
    why: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        names: &["publish-users", "publish-open", "publish-conflict"],
        holds: |config| config.places.iter().any(|place| place.spec.is_pushed()),
        why: "no place takes pushed streams: add one, such as live = \"publish:\" below [places]",
    },
    Rule {
        names: &["webrtc"],
        holds: |config| {
            !config.rtsp.channels.is_empty()
                || config.intercept.address.is_some()
                || config.places.iter().any(|place| place.spec.is_live())
        },
        why: "WebRTC sends live streams, and there are none: add a place with live sources, or channels (rtsp-channels)",
    },
    Rule {
        names: &["hook-secret", "hook-secret-file"],
        holds: |config| !config.hooks.endpoints.is_empty(),
        why: "no endpoint gets events: set hooks, such as \"https://app.example/events\"",
    },
    Rule {
        names: &["hook-timeout"],
        holds: |config| !config.hooks.endpoints.is_empty() || !config.hooks.run.is_empty(),
        why: "nobody gets events: set hooks or hook-run",
    },
    Rule {
        names: &["rtmp", "rtmps"],
        holds: |config| config.places.iter().any(|place| place.spec.is_live()) || !config.rtsp.channels.is_empty(),
        why: "RTMP takes and sends live streams, and there are none: add a place such as live = \"publish:\", or channels (rtsp-channels)",
    },
    Rule {
        names: &["srt"],
        holds: |config| config.places.iter().any(|place| place.spec.is_live()) || !config.rtsp.channels.is_empty(),
        why: "SRT takes and sends live streams, and there are none: add a place such as live = \"publish:\", or channels (rtsp-channels)",
    },
    Rule {
        names: &["srt-passphrase", "srt-latency"],
        holds: |config| config.srt.address.is_some(),
        why: "SRT is off: set srt, such as \":9710\"",
    },
    Rule {
        names: &["webrtc-hosts", "webrtc-tcp"],
        holds: |config| config.webrtc.address.is_some(),
        why: "WebRTC is off: set webrtc, such as \":8189\"",
    },
    Rule {
        names: &[
            "intercept-networks",
            "intercept-rtsp-port",
            "intercept-keep-client",
            "intercept-mark",
            "intercept-idle-timeout",
            "intercept-per-client",
            "intercept-share-rtsp",
            "intercept-memory",
        ],
        holds: |config| config.intercept.address.is_some(),
        why: "interception is off: set intercept, such as \"0.0.0.0:8081\"",
    },
    Rule {
        names: &[
            "cluster-prefix",
            "cluster-id",
            "cluster-zone",
            "cluster-http",
            "cluster-rtsp",
            "cluster-roles",
            "cluster-weight",
            "cluster-mbps",
            "cluster-storage-mbps",
            "cluster-store-mbps",
            "cluster-assignment",
            "cluster-steering",
            "cluster-lease",
            "cluster-secret",
            "cluster-node-ca",
            "cluster-node-cert",
            "cluster-node-key",
            "cluster-node-listen",
            "cluster-node-url",
        ],
        holds: |config| config.cluster.is_on(),
        why: "this server is no node of a cluster: set cluster, the addresses of etcd, or cluster-nodes, those of the nodes",
    },
    Rule {
        names: &["cluster-user", "cluster-password-file", "cluster-ca", "cluster-cert", "cluster-key"],
        holds: |config| !config.cluster.etcd.is_empty(),
        why: "etcd is not asked: set cluster, the addresses of etcd",
    },
    Rule {
        names: &["access-issuer", "access-audience", "access-revoked", "token-requests", "token-streams"],
        holds: |config| all_rules(config).any(|access| access.keys.is_some()),
        why: "no client needs a token: set access-tokens, the file with the keys",
    },
    Rule {
        names: &["auth-ttl", "auth-stale", "auth-timeout"],
        holds: |config| all_rules(config).any(|access| access.external.url.is_some()),
        why: "no server is asked: set auth-url",
    },
    Rule {
        names: &["client-burst"],
        holds: |config| config.client_limits.requests.is_some() || config.client_limits.token_requests.is_some(),
        why: "requests are not limited: set client-requests or token-requests",
    },
    Rule {
        names: &["forwarded-by"],
        holds: |config| !config.proxies.networks.is_empty(),
        why: "no proxy is trusted: set trusted-proxies, the networks of the proxies",
    },
    Rule {
        names: &["record-size", "record-duration", "recordings", "record", "record-to"],
        holds: |config| config.record.folder.is_some(),
        why: "recording is off: set record-folder",
    },
    Rule {
        names: &["record-file-length", "record-name", "record-keep", "record-keep-size"],
        holds: |config| config.record.folder.is_some(),
        why: "recording is off: set record-folder",
    },
    Rule {
        names: &["record-keep", "record-keep-size"],
        holds: |config| config.record.to.is_none(),
        why: "record-to moves files to a bucket, whose own rules delete them; record-spool limits the files that wait",
    },
    Rule {
        names: &["record-spool"],
        holds: |config| config.record.to.is_some(),
        why: "no file waits for a bucket: set record-to",
    },
    Rule {
        names: &["trace-ratio", "trace-parents"],
        holds: |config| config.traces.endpoint.is_some(),
        why: "traces are off: set trace-endpoint, the address of the collector",
    },
    Rule {
        names: &["time-shift-size", "time-shift-folder", "time-shift-total"],
        holds: |config| config.places.iter().any(|place| !place.live.shift.is_zero()) || !config.live.shift.is_zero(),
        why: "no past is kept: set time-shift, such as \"2h\"",
    },
    Rule {
        names: &["source-transport", "source-retransmission", "stored-titles", "source-timeout", "linger"],
        holds: |config| config.intercept.address.is_some() || config.places.iter().any(|place| place.spec.is_live()),
        why: "no place has live sources: add one, such as cams = \"rtsp://10.0.0.7/\" below [places]",
    },
    Rule {
        names: &["live-segment", "live-part", "playlist-window", "time-shift", "viewer-queue", "drop", "stream-memory"],
        holds: |config| {
            !config.rtsp.channels.is_empty()
                || config.intercept.address.is_some()
                || config.places.iter().any(|place| place.spec.is_live())
        },
        why: "there are no live streams: add a place with live sources, or channels (rtsp-channels)",
    },
    Rule {
        names: &["access-log-format"],
        holds: |config| config.log.access.is_on(),
        why: "access-log is off: remove one of the two",
    },
    Rule {
        names: &["cache-size", "policy"],
        holds: |config| config.places.is_empty() || config.has_remote(),
        why: "all places are local, and their files are read where they are: remove it, or add a remote place",
    },
];

fn all_rules(config: &Config) -> impl Iterator<Item = &millpond_access::AccessSettings> {
    config.places.iter().map(|place| &place.access).chain([&config.access])
}

/// Warns of settings, and of options of places, that have no effect.
pub(super) fn warnings(loaded: &Loaded) -> Vec<String> {
    let config = &loaded.config;
    let given = loaded.effective.iter().filter(|setting| setting.source != Source::Default);
    let settings = given.filter_map(|setting| {
        let is_useless = |rule: &&Rule| rule.names.contains(&setting.name) && !(rule.holds)(config);
        RULES.iter().find(is_useless).map(|rule| told(setting, "", rule.why))
    });
    let places = config.places.iter().zip(&loaded.own);
    let options = places.flat_map(|(place, keys)| keys.iter().filter_map(move |key| of_place(place, key)));
    settings.chain(options).collect()
}

fn told(setting: &Effective, place: &str, why: &str) -> String {
    match &setting.source {
        Source::File { .. } => format!("{}: {place}{} has no effect: {why}", setting.source, setting.name),
        source => format!("{source} has no effect: {why}"),
    }
}

/// Warns of an option that a place of this kind does not use.
fn of_place(place: &PlaceConfig, key: &Effective) -> Option<String> {
    let kind = place.spec.kind();
    let of = match key.name {
        "sibling-timeout" if place.options.siblings.is_empty() => "places with siblings",
        "stripe-batch" | "stripe-timeout" | "stripe-start" | "stripe-repair" if !place.is_striped() => {
            "places with stripe-over"
        }
        name => {
            let group = group(name)?;
            // Stores of stripes are web servers and buckets too.
            let is_used = kind.takes(group) || (group == OptionGroup::Remote && place.is_striped());
            if is_used {
                return None;
            }
            group.places()
        }
    };
    let why = format!("it is for {of}, and this place is {}: remove it", kind.about);
    Some(told(key, &place.in_errors(), &why))
}

/// The group of an option of a place; `None` for one that all places use.
fn group(option: &str) -> Option<OptionGroup> {
    Some(match option {
        "endpoint" | "anonymous" | "credentials" => OptionGroup::Bucket,
        "region" | "path-style" => OptionGroup::S3,
        "account" => OptionGroup::Azure,
        "connect-timeout" | "first-byte-timeout" | "stall-timeout" | "retries" | "siblings" => OptionGroup::Remote,
        "follow-redirects-to" => OptionGroup::WebServer,
        "source-kbps" => OptionGroup::Pulled,
        "stripe-over" | "hidden-files" | "key-uri" | "key-format" | "titles" => OptionGroup::Files,
        "ladders" | "linger" | "live-segment" | "live-part" | "playlist-window" | "time-shift" | "time-shift-size"
        | "source-timeout" => OptionGroup::Live,
        "source-transport" | "source-retransmission" | "stored-titles" => OptionGroup::RtspServer,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Inputs, load};

    fn found(text: &str) -> Vec<String> {
        let inputs = Inputs { file: Some("a.toml".into()), text: Some(text.to_owned()), ..Inputs::default() };
        warnings(&load(&inputs).unwrap_or_else(|errors| panic!("{errors}")))
    }

    #[test]
    fn rules_name_settings_that_exist() {
        for name in RULES.iter().flat_map(|rule| rule.names) {
            assert!(Config::settings().iter().any(|setting| setting.name == *name), "{name}");
        }
    }

    #[test]
    fn settings_without_effect_are_told_with_their_line_and_cure() {
        let rtmp = found("rtmp = \":1935\"\n");
        assert_eq!(rtmp.len(), 1, "{rtmp:?}");
        assert!(
            rtmp[0].starts_with(
                "a.toml:1:1: rtmp has no effect: RTMP takes and sends live streams, and there are none: add"
            ),
            "{rtmp:?}"
        );
        assert_eq!(found("rtmp = \":1935\"\n[places]\nlive = \"publish:\"\n"), [""; 0]);
        assert_eq!(
            found("webrtc = \":8189\"\nwebrtc-hosts = [\"203.0.113.7\"]\n[places]\nlive = \"publish:\"\n"),
            [""; 0]
        );
        assert_eq!(found("webrtc = \":8189\"\nrtsp-channels = [\"news=films/a.mp4 films/b.mp4\"]\n"), [""; 0]);
        for text in [
            "webrtc = \":8189\"\n",
            "webrtc-hosts = [\"203.0.113.7\"]\n",
            "publish-open = true\n",
            "intercept-mark = 7\n",
            "cluster-mbps = 100\n",
            "access-issuer = \"x\"\n",
            "token-streams = 3\n",
            "auth-ttl = \"1m\"\n",
            "client-burst = 7\n",
            "forwarded-by = \"forwarded\"\n",
            "record-size = \"1GiB\"\n",
            "trace-ratio = \"0.5\"\n",
            "time-shift-size = \"1GiB\"\n",
            "linger = \"3s\"\n",
            "live-part = \"off\"\n",
            "access-log = \"off\"\naccess-log-format = \"json\"\n",
            "cache-size = \"1GiB\"\n[places]\nfilms = \"/\"\n",
        ] {
            assert_eq!(found(text).len(), 1, "{text}: {:?}", found(text));
        }
    }

    #[test]
    fn options_that_a_place_does_not_use_are_told() {
        let place = |url: &str, option: &str| found(&format!("[places.films]\nurl = \"{url}\"\n{option}\n"));
        let told = place("/data", "endpoint = \"http://minio:9000\"");
        let why = "it is for buckets (s3, gs, az), and this place is a folder: remove it";
        assert_eq!(told, [format!("a.toml:3:1: place \"films\": endpoint has no effect: {why}")]);
        for (url, option, count) in [
            ("s3://b", "endpoint = \"http://minio:9000\"\npath-style = true\nregion = \"x\"", 0),
            ("gs://b", "region = \"x\"\npath-style = true", 2),
            ("http://h/", "retries = 3\nfollow-redirects-to = [\"a\"]", 0),
            ("s3://b", "follow-redirects-to = [\"a\"]\nsibling-timeout = \"1s\"", 2),
            ("/data", "stripe-batch = 3\nstripe-repair = true\nladders = [\"a=b\"]\nretries = 1", 4),
            ("rtsp://h/", "titles = \"file\"\nlinger = \"1s\"\nsource-transport = \"tcp\"", 1),
            ("publish:", "source-transport = \"tcp\"", 1),
        ] {
            assert_eq!(place(url, option).len(), count, "{url}: {:?}", place(url, option));
        }
    }
}

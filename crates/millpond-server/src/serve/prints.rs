//! Prints of the settings in force, by which the nodes of a cluster notice that they serve something else.
//!
//! Prints have what forms output, and no secrets: URLs are without users, passwords and queries, and of access rules only their kinds. They do not have what differs
//! between machines that serve the same: paths of folders, addresses to listen on, sizes of caches.

use super::generation::SAMPLE;
use crate::config::{Config, ManifestSettings, PlaceConfig};
use millpond_access::AccessSettings;
use millpond_cluster::{Print, Prints};
use millpond_place::{LiveReach, PlaceSpec};
use millpond_settings::Settings;
use millpond_store::{OriginLocation, StripeStore, without_secrets};
use std::collections::BTreeMap;
use url::Url;

/// Settings of HTTP that form the output of all places.
const SERVER: [&str; 2] = ["segment-duration", "thumbnails"];
/// Settings of live sources that form the output of their place.
const LIVE: [&str; 6] = ["stored-titles", "source-kbps", "live-segment", "live-part", "playlist-window", "time-shift"];
/// Settings of manifests that form the output of their place.
const MANIFESTS: [&str; 2] = ["filter", "captions"];

/// Returns the prints of a configuration.
pub(super) fn prints(config: &Config) -> Prints {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for place in &config.places {
        texts.insert(place.spec.name.clone(), of_place(place));
    }
    if config.places.is_empty() {
        texts.insert(SAMPLE.to_owned(), shown(&config.manifests, &MANIFESTS));
    }
    for channel in &config.rtsp.channels {
        // Lists and what else has no place's name in its path are of the place without a name.
        let first = channel.name.split('/').next().unwrap_or_default();
        let place = if channel.is_list || !texts.contains_key(first) { "" } else { first };
        texts.entry(place.to_owned()).or_default().push(format!("{channel:?}"));
    }
    let print = |texts: &[String]| Print::of(texts.iter().map(String::as_str));
    let places = texts.iter().map(|(name, texts)| (name.clone(), print(texts))).collect();
    Prints::new(print(&shown(&config.http, &SERVER)), places)
}

fn of_place(place: &PlaceConfig) -> Vec<String> {
    let (bucket, address) = (&place.options.remote.bucket, place.key_address.as_deref());
    let endpoint = bucket.endpoint.as_deref().and_then(|text| Url::parse(text).ok());
    let mut texts = vec![
        location(&place.spec),
        endpoint.as_ref().map(without_secrets).unwrap_or_default(),
        bucket.account.clone().unwrap_or_default(),
        format!("{:?} {}", place.titles, place.options.hidden_files),
        format!("{:?}", address.map(|address| address.origin())),
        format!("{:?}", kinds_of_rules(&place.access)),
    ];
    texts.extend(place.options.striping.stores.iter().map(store));
    texts.extend(place.ladders.iter().map(|ladder| format!("{ladder:?}")));
    texts.extend(shown::<ManifestSettings>(&place.manifests, &MANIFESTS));
    if place.spec.is_live() {
        texts.extend(shown(&place.live, &LIVE));
    }
    texts
}

/// The location of a place, without secrets. Folders and addresses at which packets arrive are those of a machine: only their kind counts.
fn location(spec: &PlaceSpec) -> String {
    let arrives = spec.live().is_some_and(|live| live.kind().reach == LiveReach::Packets);
    match spec.folder() {
        Some(_) => spec.kind().name.to_owned(),
        None if arrives => spec.kind().name.to_owned(),
        None => spec.source.to_string(),
    }
}

fn store(store: &StripeStore) -> String {
    match store.location() {
        // Without a name of its own the store has that of its folder.
        OriginLocation::Folder(folder) if folder.display().to_string() == store.name() => "folder".to_owned(),
        OriginLocation::Folder(_) => store.name().to_owned(),
        location => format!("{}={location}", store.name()),
    }
}

/// Whether a place has users, tokens, networks, and a server that decides.
fn kinds_of_rules(access: &AccessSettings) -> [bool; 4] {
    [access.users.is_some(), access.keys.is_some(), !access.networks.is_empty(), access.external.url.is_some()]
}

/// The values of settings as texts.
fn shown<T: Settings>(values: &T, names: &[&str]) -> Vec<String> {
    let settings = names.iter().filter_map(|name| T::find(name));
    settings.map(|setting| (setting.show)(values).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{HttpSettings, Inputs, LiveSettings, load};

    fn of(text: &str) -> Prints {
        let folder = tempfile::tempdir().unwrap();
        let file = Some(folder.path().join("millpond.toml"));
        let inputs = Inputs { file, text: Some(text.to_owned()), ..Inputs::default() };
        prints(&load(&inputs).unwrap().config)
    }

    /// Whether nodes with these settings serve a place alike.
    fn agree(place: &str, one: &str, other: &str) -> bool {
        of(one).agrees(&of(other), place)
    }

    /// Whether these lines of a place `films` form the same output.
    fn are_alike(one: &str, other: &str) -> bool {
        let place = |lines: &str| format!("[places.films]\n{lines}\n");
        agree("films", &place(one), &place(other))
    }

    #[test]
    fn what_forms_output_makes_a_difference() {
        for (one, other) in [
            ("url = \"s3://a\"", "url = \"s3://b\""),
            ("url = \"/a\"", "url = \"s3://b\""),
            ("url = \"https://a/x\"", "url = \"https://b/x\""),
            ("url = \"s3://a\"", "url = \"s3://a\"\nendpoint = \"http://minio:9000\""),
            ("url = \"/a\"", "url = \"/a\"\ntitles = \"file\""),
            ("url = \"/a\"", "url = \"/a\"\nfilter = \"max-height=720\""),
            ("url = \"/a\"", "url = \"/a\"\nkey-uri = \"https://keys.example/{kid}\""),
            ("url = \"/a\"", "url = \"/a\"\naccess-networks = [\"10.0.0.0/8\"]"),
            ("url = \"rtsp://a/\"", "url = \"rtsp://a/\"\nlive-segment = \"4s\""),
            ("url = \"rtsp://a/\"", "url = \"rtsp://b/\""),
            ("url = \"publish:\"", "url = \"publish:\"\nladders = [\"door=hi lo\"]"),
        ] {
            assert!(!are_alike(one, other), "{one} {other}");
        }
        assert!(!agree("films", "", "segment-duration = \"6s\""), "it is the same for all places");
        assert!(!agree("sample", "", "captions = \"off\""));
        let channel = "rtsp-channels = [\"films/a.mp4\"]\n[places.films]\nurl = \"/a\"\n";
        assert!(!agree("films", channel, "[places.films]\nurl = \"/a\"\n"));
        let list = "rtsp-channels = [\"news=films/a.mp4 films/b.mp4\"]\n[places.films]\nurl = \"/a\"\n";
        assert!(
            !agree("", list, "[places.films]\nurl = \"/a\"\n")
                && agree("films", list, "[places.films]\nurl = \"/a\"\n")
        );
    }

    #[test]
    fn secrets_and_what_is_of_a_machine_make_none() {
        for (one, other) in [
            ("url = \"/a\"", "url = \"/mnt/b\""),
            ("url = \"https://ann:secret@a/x?token=secret\"", "url = \"https://a/x\""),
            ("url = \"rtsp://ann:secret@a/\"", "url = \"rtsp://bob:word@a/\""),
            ("url = \"udp://10.0.0.1:5000\"", "url = \"udp://10.0.0.2:5000\""),
            ("url = \"s3://a\"", "url = \"s3://a\"\nregion = \"x\"\nretries = 7\nsibling-timeout = \"1s\""),
            ("url = \"/a\"\nplaylist-lifetime = \"1s\"", "url = \"/a\""),
            ("url = \"rtsp://a/\"\nlinger = \"always\"", "url = \"rtsp://a/\""),
        ] {
            assert!(are_alike(one, other), "{one} {other}");
        }
        for text in ["http = \"127.0.0.1:1\"", "memory = \"48MiB\"", "cache-size = \"1GiB\"", "live-segment = \"4s\""] {
            let place = "[places.films]\nurl = \"/a\"\n";
            assert!(agree("films", place, &format!("{text}\n{place}")), "{text}");
        }
    }

    #[test]
    fn each_setting_that_places_may_have_forms_output_or_not() {
        let no_output = ["linger", "source-transport", "source-retransmission", "source-timeout", "time-shift-size"];
        let live = LiveSettings::LIST.iter().map(|setting| setting.name);
        let unknown: Vec<_> = live.filter(|name| LIVE.contains(name) == no_output.contains(name)).collect();
        assert!(unknown.is_empty(), "do they form output? {unknown:?}");
        assert!(ManifestSettings::LIST.iter().all(|setting| MANIFESTS.contains(&setting.name)));
        let all = SERVER.iter().all(|name| HttpSettings::find(name).is_some());
        assert!(all && LIVE.iter().all(|name| LiveSettings::find(name).is_some()));
        assert!(MANIFESTS.iter().all(|name| ManifestSettings::find(name).is_some()));
    }
}

//! Places and their options.

use super::*;
use millpond_stream::{Linger, reception::SourceTransport};

#[test]
fn places_in_each_way_to_write_them() {
    let list = Case::new().file("places = [\"films=/data/films\", \"s3://bucket/live\"]\n").ok().config;
    assert_eq!(list.places.len(), 2);
    assert_eq!(list.places[0].spec.name, "films");

    let short = Case::new().file("[places]\nfilms = \"/data/films\"\n").ok().config;
    assert_eq!(short.places[0].spec.name, "films");

    let full = Case::new().file(
        "[places.films]\nurl = \"s3://bucket/films\"\nendpoint = \"http://minio:9000\"\nregion = \"eu-1\"\n\
         path_style = true\nanonymous = true\ncredentials = \"instance\"\nconnect-timeout = \"2s\"\nfirst-byte-timeout = 3\n\
         stall-timeout = 1.5\nretries = 5\nfollow-redirects-to = [\"cdn.example\", \"b.example\"]\n",
    );
    let place = full.ok().config.places.remove(0);
    assert_eq!(place.spec.name, "films");
    let remote = &place.options.remote;
    assert_eq!(remote.bucket.endpoint.as_deref(), Some("http://minio:9000"));
    assert_eq!(remote.bucket.region.as_deref(), Some("eu-1"));
    assert!(remote.bucket.path_style == Some(true) && remote.bucket.anonymous && remote.bucket.instance_credentials);
    assert_eq!(remote.timeouts.connect, Duration::from_secs(2));
    assert_eq!(remote.timeouts.first_byte, Duration::from_secs(3));
    assert_eq!(remote.timeouts.stall, Duration::from_millis(1500));
    assert_eq!(remote.retry.tries, 6, "the first attempt counts");
    assert_eq!(remote.follow_redirects_to, ["cdn.example", "b.example"]);

    let spaced = Case::new().variable("MILLPOND_PLACES", "a=/a, b=/b").ok().config;
    assert_eq!(spaced.places.len(), 2);
}

#[test]
fn places_that_are_wrong() {
    let errors = Case::new().file("places = [\"a=/x\", \"a=/y\", 5]\n").errors();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].contains("expected places such as"), "{errors:?}");
    assert_eq!(errors[1], "millpond.toml:1:19: the name \"a\" is taken by /x: write NAME=/y");
    let errors = Case::new().file("[places.films]\nretries = 3\n").errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("place \"films\" needs a url"), "{errors:?}");
    assert!(Case::new().file("places = 5\n").errors()[0].contains("found 5"));
}

#[test]
fn several_places_without_names_get_them_from_their_locations() {
    let names =
        |case: Case| -> Vec<String> { case.ok().config.places.into_iter().map(|place| place.spec.name).collect() };
    assert_eq!(names(Case::new().place("/data/films")), [""]);
    assert_eq!(names(Case::new().place("/data/films/").place("s3://bucket").place("x=/y")), ["films", "bucket", "x"]);
    let errors = Case::new().place("/data/films").place("/data/my shows").errors();
    assert_eq!(errors, ["argument: with several places each needs a name: write NAME=/data/my shows"]);
    let errors = Case::new().file("[places.\"my films\"]\nurl = \"/f\"\n").errors();
    assert!(errors[0].contains("place name \"my films\": expected letters"), "{errors:?}");
}

#[test]
fn secrets_of_places_are_not_shown() {
    let case = Case::new().place("films=https://user:hush@media.example/films?token=hush");
    let text = show(&case.ok(), None);
    assert!(text.contains("films=https://media.example/films"), "{text}");
    assert!(!text.contains("hush"), "{text}");
    let errors = Case::new().place("films=ftp://user:hush@media.example/").errors();
    assert!(!errors[0].contains("hush"), "{errors:?}");
}

#[test]
fn live_places_have_settings_of_their_own() {
    let file = "linger = \"always\"\nlive-segment = 4\nlive-part = \"off\"\n[places.a]\nurl = \
                \"rtsp://user:hush@10.0.0.7/\"\nlinger = \"0s\"\nsource-transport = \"tcp\"\nsource-timeout = 5\nsource-retransmission = false\n\
                live-part = \"500ms\"\nplaylist-window = 30\n[places.b]\nurl = \"rtsps://h/door\"\n";
    let case = Case::new().file(file);
    let text = show(&case.ok(), None);
    assert!(
        text.contains("[places.a]\nurl = \"rtsp://10.0.0.7\"")
            && text.contains("linger = \"always\"")
            && !text.contains("hush"),
        "{text}"
    );
    let [a, b] = <[PlaceConfig; 2]>::try_from(case.ok().config.places).unwrap();
    assert!(a.spec.is_live() && b.spec.is_live());
    let (linger, transport) = (Linger::For(Duration::ZERO), SourceTransport::Tcp);
    let (part, window) = (Some(Duration::from_millis(500)), Duration::from_secs(30));
    let common = LiveSettings { segment: Duration::from_secs(4), retransmission: true, ..a.live };
    let timeout = Duration::from_secs(5);
    assert_eq!(a.live, LiveSettings { linger, transport, timeout, part, window, retransmission: false, ..common });
    let (linger, transport) = (Linger::Always, SourceTransport::Auto);
    let window = Duration::from_secs(60);
    assert_eq!(
        b.live,
        LiveSettings { linger, transport, timeout: Duration::from_secs(10), part: None, window, ..common }
    );
    for (key, value) in [
        ("linger", "\"soon\""),
        ("source-transport", "\"sctp\""),
        ("source-timeout", "\"0s\""),
        ("live-segment", "\"500ms\""),
        ("live-part", "\"2s\""),
        ("playlist-window", "\"1s\""),
        ("time-shift", "\"25h\""),
        ("time-shift-size", "\"1MiB\""),
    ] {
        let errors = Case::new().file(&format!("[places.a]\nurl = \"rtsp://h/\"\n{key} = {value}\n")).errors();
        assert!(errors.len() == 1 && errors[0].contains(key), "{errors:?}");
    }
}

#[test]
fn keys_of_encrypted_files_have_an_address_for_each_place() {
    let place = |keys: &str| Case::new().file(&format!("[places.films]\nurl = \"/data\"\n{keys}"));
    let address = |keys: &str| place(keys).ok().config.places[0].key_address.as_deref().cloned();
    assert_eq!(address(""), None);
    let expected = |format| millpond_package::KeyAddress::new("https://keys.example/{kid}", format);
    assert_eq!(address("key-uri = \"https://keys.example/{kid}\""), expected(None));
    let both = "key-uri = \"https://keys.example/{kid}\"\nkey-format = \"org.w3.clearkey\"";
    assert_eq!(address(both), expected(Some("org.w3.clearkey")));
    let quoted = place("key-uri = 'a\"b'").errors();
    assert!(quoted[0].contains("key-uri") && quoted[0].contains("without quotation marks"), "{quoted:?}");
    let alone = place("key-format = \"identity\"").errors();
    assert!(alone[0].contains("key-format \"identity\" has no effect without key-uri"), "{alone:?}");
}

#[test]
fn a_place_may_have_lifetimes_of_its_own() {
    let text = "playlist-lifetime = \"4s\"\nsegment-lifetime = \"1h\"\n\
                [places.news]\nurl = \"/news\"\nplaylist-lifetime = \"1s\"\nfile_lifetime = 5\n[places.films]\nurl = \"/films\"\n";
    let config = Case::new().file(text).flag("segment-lifetime", "2h").ok().config;
    let lifetimes = |playlists, segments, files| {
        let [playlists, segments, files] = [playlists, segments, files].map(Duration::from_secs);
        Lifetimes { playlists, segments, files }
    };
    let places: Vec<_> = config.places.iter().map(|place| (place.spec.name.as_str(), place.lifetimes)).collect();
    assert_eq!(config.lifetimes, lifetimes(4, 7200, 60));
    assert_eq!(places, [("news", lifetimes(1, 7200, 5)), ("films", lifetimes(4, 7200, 60))]);
    let wrong =
        "[places.news]\nurl = \"/news\"\nplaylist-lifetime = \"soon\"\nsegment-lifetimes = \"1h\"\nworkers = 2\n";
    let errors = Case::new().file(wrong).errors();
    assert!(errors[0].contains("playlist-lifetime") && errors[0].contains("\"soon\""), "{errors:?}");
    assert!(errors[1].contains("segment-lifetimes") && errors[1].contains("segment-lifetime"), "{errors:?}");
    assert!(errors[2].contains("workers"), "a setting of the whole server is none of a place: {errors:?}");
    assert_eq!(errors.len(), 3, "{errors:?}");
}

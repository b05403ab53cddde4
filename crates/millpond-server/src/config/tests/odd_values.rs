//! Odd values of each option of a place: each is refused with the option's name, or taken without a panic.

use super::*;
use millpond_store::ObjectPath;
use std::time::Duration;

/// Values that people, scripts and other programs write.
const ODD: &[&str] = &[
    "",
    " ",
    "\t",
    "\n",
    "  x  ",
    "a b",
    "über",
    "☃",
    "\u{202e}x",
    "\u{0}",
    "'",
    "\"",
    "\\",
    "%",
    "%00",
    "$HOME",
    "../..",
    "//",
    "/",
    ".",
    "..",
    "-",
    "_",
    "-a",
    "a..b",
    "a/b",
    "a@b",
    "a:b",
    "a?b",
    "a#b",
    "a=b",
    "a,b",
    "http:",
    "http://",
    "https://h",
    "http://h/path",
    "http://h/path/",
    "http://h?q=1",
    "http://h/#f",
    "http://u:hush@h",
    "http://[::1]:9000",
    "http://[::1",
    "http://127.0.0.1:9000",
    "http://10.1",
    "http://0x7f.1:80/",
    "127.0.0.1:9000",
    "minio:9000",
    "//h",
    "ftp://h",
    "s3://h",
    "http://h:0",
    "http://h:99999",
    "http://h:x",
    "http://xn--",
    "http://xn--a/",
    "http://a b/",
    "http://bücher.example",
    "http://\u{202e}h",
    "http://h/\u{0}",
    "http://h/%zz",
    "http://h/ü",
    "http://.",
    "http://-",
    "http://a_b:1",
    "http://*",
    "HTTP://H:9000",
    "unix:/run/x",
    "0",
    "-1",
    "1",
    "1e9",
    "0.5",
    "true",
    "18446744073709551615",
    "99999999999999999999",
    "0s",
    "1ms",
    "100ms",
    "24h",
    "25h",
    "9999d",
    "{kid}",
    "a=s3://b",
    "a=s3://b?endpoint=x",
    "a=s3://b?region=a b",
    "a=s3://b/a//b",
    "a=b c",
];

const LOCATIONS: [&str; 6] =
    ["s3://films", "gs://films", "az://films", "http://127.0.0.1:1/films", "rtsp://127.0.0.1:1/", "/"];

/// A place of a file: location, options that are beside the odd one, and the odd one.
fn place(url: &str, beside: &str, key: &str, value: &str) -> Result<Loaded, ConfigErrors> {
    let text = format!("[places.films]\nurl = {}\n{beside}{key} = {value}\n", quoted(url));
    let inputs = Inputs { file: Some("millpond.toml".into()), text: Some(text), ..Inputs::default() };
    load(&inputs)
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Lists a place that was taken. A panic of a client library is told in the error.
async fn list(loaded: &Loaded) -> Result<(), String> {
    let place = &loaded.config.places[0];
    let mut options = place.options.clone();
    options.remote.retry.tries = 1;
    let Ok(origin) = place.spec.origin(&options, None) else { return Ok(()) };
    let root = ObjectPath::root();
    match tokio::time::timeout(Duration::from_millis(50), origin.list(&root)).await {
        Ok(Err(error)) if error.to_string().contains("could not be written") => Err(error.to_string()),
        _ => Ok(()),
    }
}

#[test]
fn an_odd_value_is_refused_by_name_or_taken() {
    let numbers = ["0", "-1", "1", "9223372036854775807", "1.5", "inf", "true", "[]", "[\"\"]", "{}", "1979-05-27"];
    for setting in PLACE_SETTINGS {
        for url in LOCATIONS {
            let beside = if url.starts_with("az") && setting.name != "account" { "account = \"a\"\n" } else { "" };
            let values = ODD.iter().map(|text| quoted(text)).chain(numbers.map(str::to_owned));
            for value in values {
                let Err(errors) = place(url, beside, setting.name, &value) else { continue };
                for error in errors.0 {
                    let text = error.to_string();
                    let case = format!("{url}: {} = {value}: {text}", setting.name);
                    assert!(text.contains(setting.name) && text.starts_with("millpond.toml:"), "{case}");
                    assert!(!text.contains("hush"), "{case}");
                }
            }
        }
    }
}

/// Addresses, regions and accounts that are taken get through the client libraries, which panic on those that they can't send.
#[tokio::test]
async fn what_is_taken_can_be_asked() {
    for (url, key, beside) in [
        ("s3://films", "endpoint", ""),
        ("s3://films", "endpoint", "path-style = false\n"),
        ("s3://films.and.more", "endpoint", "path-style = false\n"),
        ("s3://films/a/b", "endpoint", "anonymous = true\n"),
        ("s3://films", "region", "endpoint = \"http://127.0.0.1:1\"\n"),
        ("s3://films", "region", ""),
        ("gs://films", "endpoint", ""),
        ("az://films", "endpoint", "account = \"a\"\n"),
        ("az://films", "account", "endpoint = \"http://127.0.0.1:1\"\n"),
        ("az://films", "account", ""),
    ] {
        for odd in ODD {
            let Ok(loaded) = place(url, beside, key, &quoted(odd)) else { continue };
            assert_eq!(list(&loaded).await, Ok(()), "{url}: {beside}{key} = {odd:?}");
        }
    }
}

#[tokio::test]
async fn odd_locations_are_refused_by_name_or_can_be_asked() {
    for scheme in ["s3://", "gs://", "az://", "http://", "https://", "rtsp://", "udp://", ""] {
        for odd in ODD {
            let url = quoted(&format!("{scheme}{odd}"));
            let text = format!("[places.films]\nurl = {url}\naccount = \"a\"\n");
            let inputs = Inputs { file: Some("millpond.toml".into()), text: Some(text), ..Inputs::default() };
            match load(&inputs) {
                Ok(loaded) if loaded.config.places[0].spec.is_live() => {}
                Ok(loaded) => assert_eq!(list(&loaded).await, Ok(()), "{url}"),
                Err(errors) => {
                    let text = errors.to_string();
                    assert!(text.starts_with("millpond.toml:") && text.contains("place"), "{url}: {text}");
                }
            }
        }
    }
}

#[test]
fn a_bucket_before_an_address_is_refused_with_line_key_and_cure() {
    let text = "[places.films]\nurl = \"s3://films\"\nendpoint = \"http://127.0.0.1:9000\"\npath-style = false\n";
    let errors = Case::new().file(text).errors();
    assert_eq!(
        errors,
        [
            "millpond.toml:4:1: place \"films\": path-style: expected true, found false: the endpoint 127.0.0.1 is an address, so the \
          bucket \"films\" can't stand before it: remove path-style, or give endpoint a host name"
        ]
    );
}

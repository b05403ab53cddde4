//! Paths and queries of URLs (RFC 3986), and the objects that URIs in files name.

use crate::url_list;
use millpond_store::ObjectPath;
use std::borrow::Cow;

/// Decodes a percent-encoded path. Returns `None` if it is not UTF-8 text or contains a NUL.
pub fn decode_path(path: &str) -> Option<Cow<'_, str>> {
    url_list::decode_path(path).filter(|path| !path.contains('\0'))
}

/// Percent-encodes a path for a URL. Slashes stay.
pub fn encode(path: &str) -> String {
    const KEEP: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
        .remove(b'/')
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'~')
        .remove(b',');
    percent_encoding::utf8_percent_encode(path, KEEP).to_string()
}

/// Returns the decoded value of a query's first parameter of a name. Missing ones are empty.
pub fn parameter(query: &str, name: &str) -> String {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| {
            percent_encoding::percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned()
        })
        .unwrap_or_default()
}

/// Returns the object that a URI in a file names: relative to the file's folder, never outside the place. `shown` is the file in errors.
pub(crate) fn beside(file: &ObjectPath, uri: &str, shown: &str) -> Result<ObjectPath, String> {
    if uri.contains("://") || uri.starts_with('/') {
        return Err(format!("{uri:?}: expected a path relative to {shown}"));
    }
    let decoded = decoded(uri)?;
    let decoded = decoded.strip_prefix("./").unwrap_or(&decoded);
    file.parent().join(decoded).map_err(|error| format!("{uri:?}: {error}"))
}

/// Returns the object that a URI in an HLS playlist names (RFC 8216 4.1, RFC 3986 5.2). The query is dropped, because it
/// opens nothing here.
///
/// `address` is the address of the place's storage. If this is a web server, whole URLs and paths from its root must lead into the place.
/// In other places, a path that begins with a slash counts from the top of the place.
pub(crate) fn in_playlist(playlist: &ObjectPath, address: &str, uri: &str) -> Result<ObjectPath, String> {
    let outside = |found: &str| format!("{uri:?}: found {found}, expected a file of the playlist's place");
    let plain = uri.split(['?', '#']).next().unwrap_or_default();
    let (server, root) = server_and_root(address);
    let host = plain.find("//").filter(|at| plain.get(..*at).is_some_and(is_scheme));
    let path = match host.and_then(|at| plain.get(at + 2..)) {
        None => plain,
        Some(rest) => {
            let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
            if server.is_empty() || !host.eq_ignore_ascii_case(server) {
                return Err(outside("another server"));
            }
            path
        }
    };
    let decoded = decoded(path)?;
    let (mut names, decoded) = match decoded.strip_prefix('/') {
        None if host.is_some() => return Err(outside("no path")),
        None => (playlist.parent().components().map(str::to_owned).collect::<Vec<_>>(), &*decoded),
        // A base path is followed by a slash.
        Some(path) => match strip_root(path, root) {
            Some(path) => (Vec::new(), path),
            None => return Err(outside("a path outside of the place")),
        },
    };
    for name in decoded.split('/') {
        match name {
            "." => {}
            ".." if names.pop().is_none() => return Err(outside("a path above the top of the place")),
            ".." => {}
            name => names.push(name.to_owned()),
        }
    }
    ObjectPath::parse(&names.join("/")).map_err(|error| format!("{uri:?}: {error}"))
}

/// Returns the host with its port, and the path without slashes at its ends, of a web server; empty for other storage.
fn server_and_root(address: &str) -> (&str, &str) {
    let url = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"));
    let Some(url) = url else { return ("", "") };
    let (host, path) = url.split_once('/').unwrap_or((url, ""));
    (host, path.trim_matches('/'))
}

/// Whether a text before two slashes begins a URL: it is empty, or a scheme such as `https:`.
fn is_scheme(text: &str) -> bool {
    text.is_empty() || text.strip_suffix(':').is_some_and(|scheme| !scheme.contains(['/', ':']))
}

/// Returns the part of a path behind the root of a place.
fn strip_root<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    let root = decoded(root).ok()?;
    if root.is_empty() { Some(path) } else { path.strip_prefix(&*root)?.strip_prefix('/') }
}

fn decoded(uri: &str) -> Result<Cow<'_, str>, String> {
    percent_encoding::percent_decode_str(uri).decode_utf8().map_err(|_| format!("{uri:?} is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_of_playlists_stay_in_their_place() {
        let playlist = ObjectPath::parse("films/show/main.m3u8").unwrap();
        let found =
            |address: &str, uri: &str| in_playlist(&playlist, address, uri).map(|path| path.as_str().to_owned());
        for uri in [
            "a b/1.ts",
            "a%20b/1.ts",
            "./a%20b/1.ts?token=x/../y#z",
            "a%20b/./1.ts",
            "../show/a%20b/1.ts",
            "../../films/show/a b/1.ts",
            "x/%2e%2e/a%20b/1.ts",
            "/films/show/a%20b/1.ts?x",
        ] {
            assert_eq!(found("/srv/media", uri).as_deref(), Ok("films/show/a b/1.ts"), "{uri}");
        }
        assert_eq!(found("s3://bucket/x", "10:30.ts").as_deref(), Ok("films/show/10:30.ts"));
        let server = "https://cdn.example:8443/vod%20x/";
        for uri in [
            "https://cdn.example:8443/vod%20x/films/1.ts",
            "http://CDN.example:8443/vod x/films/1.ts?token=y",
            "//cdn.example:8443/vod%20x/films/1.ts",
            "/vod%20x/films/1.ts",
            "/vod%20x/a/../films/1.ts",
            "../1.ts",
        ] {
            assert_eq!(found(server, uri).as_deref(), Ok("films/1.ts"), "{uri}");
        }
        let above = "a path above the top of the place";
        let outside = "a path outside of the place";
        for (address, uri, expected) in [
            ("/srv", "../../../1.ts", above),
            ("/srv", "%2e%2e/%2e%2e/../1.ts", above),
            ("/srv", "/../1.ts", above),
            ("/srv", "https://b.example/1.ts", "another server"),
            ("/srv", "//b.example/1.ts", "another server"),
            ("/srv", "file:///etc/passwd", "another server"),
            (server, "https://cdn.example/vod%20x/1.ts", "another server"),
            (server, "https://user@cdn.example:8443/vod%20x/1.ts", "another server"),
            (server, "https://cdn.example:8443", "no path"),
            (server, "/1.ts", outside),
            (server, "/vod%20xy/1.ts", outside),
            (server, "/vod%20x/../1.ts", above),
        ] {
            let error = found(address, uri).unwrap_err();
            assert_eq!(error, format!("{uri:?}: found {expected}, expected a file of the playlist's place"));
        }
        for (uri, expected) in [
            ("%ff.ts?x", "\"%ff.ts\" is not UTF-8"),
            ("a//1.ts", "\"a//1.ts\": path \"films/show/a//1.ts\" has an empty component"),
            ("a%00.ts", "\"a%00.ts\": path \"films/show/a\\0.ts\" contains '\\0', which is not allowed"),
            ("?x", "\"?x\": path \"films/show/\" has an empty component"),
        ] {
            assert_eq!(found("/srv", uri).unwrap_err(), expected);
        }
    }

    #[test]
    fn an_encoded_path_decodes_to_itself() {
        for path in ["films/a b.mp4", "100%", "ü/é", "a?b#c", ""] {
            assert_eq!(decode_path(&encode(path)).as_deref(), Some(path));
        }
        assert_eq!(decode_path("%00"), None);
        assert_eq!(decode_path("%ff"), None);
    }

    #[test]
    fn parameters_are_decoded() {
        assert_eq!(parameter("a=1&folder=x%2Fy+z&folder=2", "folder"), "x/y z");
        assert_eq!(parameter("folder", "folder"), "");
        assert_eq!(parameter("", "folder"), "");
    }
}

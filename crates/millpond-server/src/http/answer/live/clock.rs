//! The server's time, with which players of live DASH compare their clocks.

use super::super::target::TIME;
use millpond_http::request::Request;
use std::sync::LazyLock;

/// Levels of folders for which [`reference()`] is relative.
const DEEPEST: usize = 32;

/// Returns the reference to the server's time for the MPD of a live stream. It is relative: a proxy may have removed a prefix of the
/// path.
pub(super) fn reference(request: &Request) -> &'static str {
    // Players take the first levels of a text for them all.
    static RELATIVE: LazyLock<String> = LazyLock::new(|| format!("{}{}", "../".repeat(DEEPEST), &TIME[1..]));
    let levels = request.split().0.matches('/').count().saturating_sub(1);
    DEEPEST.checked_sub(levels).map_or(TIME, |less| &RELATIVE[less * "../".len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_relative_to_a_manifest() {
        for (target, expected) in [
            ("/index.mpd", ".millpond/time"),
            ("/cams/door/index.mpd?dvr", "../../.millpond/time"),
            ("/~eyJh.b.c/door/index.mpd", "../.millpond/time"),
        ] {
            let request = Request::new(http::Method::GET, target.to_owned(), http::HeaderMap::new());
            assert_eq!(reference(&request), expected, "{target}");
        }
        let deep = Request::new(http::Method::GET, format!("{}/index.mpd", "/a".repeat(99)), http::HeaderMap::new());
        assert_eq!(reference(&deep), TIME);
    }
}

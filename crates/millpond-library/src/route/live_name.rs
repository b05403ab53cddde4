//! Names of live streams inside their places.

use crate::{error::LibraryError, route::live::is_live_track};

/// Most components of a name.
const COMPONENTS: usize = 8;
/// Most bytes of a name.
const BYTES: usize = 512;

/// Checks the name of a live stream inside its place, without slashes at its ends. The empty name is the place itself.
///
/// A name has at most 8 components and 512 bytes. No component is empty, begins with `.` or `~`, has control characters, marks that
/// reverse text or a backslash, or is the name of something made of a stream.
///
/// # Errors
/// [`LibraryError::NoResource`] where the name ends with something that no stream has; [`LibraryError::BadPath`] for other
/// faults.
pub fn live_name(name: &str) -> Result<&str, LibraryError> {
    if name.is_empty() {
        return Ok(name);
    }
    let bad = |why: String| LibraryError::BadPath { path: name.chars().take(BYTES).collect(), why };
    if name.len() > BYTES {
        return Err(bad(format!("found {} bytes, expected a name of at most {BYTES}", name.len())));
    }
    let count = name.split('/').count();
    if count > COMPONENTS {
        return Err(bad(format!("found {count} components, expected a name of at most {COMPONENTS}")));
    }
    for component in name.split('/') {
        if component.is_empty() || component.starts_with(['.', '~']) {
            return Err(bad(format!("found the component {component:?} in the name of a live stream")));
        }
        if component.contains(is_hidden) {
            let why = "found a control character or a mark of the direction of text in the component";
            return Err(bad(format!("{why} {component:?}, expected a name without")));
        }
        if component.contains('\\') {
            return Err(bad(format!("found a backslash in the component {component:?}, expected a slash")));
        }
        if is_reserved(component) {
            let what = format!("a live stream has no {component:?}");
            return Err(LibraryError::NoResource { asset: name.to_owned(), what });
        }
    }
    Ok(name)
}

/// Whether a character makes a name look like another one: control characters, line separators, and marks of direction (UAX #9).
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a component names something made of a stream.
fn is_reserved(component: &str) -> bool {
    matches!(component, "ts" | "snapshot.jpg" | "epg.xml" | "epg.json" | "stream.mp4" | "stream.ts")
        || component.starts_with("index.")
        || is_live_track(component)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_streams() {
        for name in [
            "",
            "door",
            "floor 2/door",
            "a/b/c/d/e/f/g/h",
            "käse",
            "video1",
            "v",
            "tsx",
            "v0",
            "axis-media/media.amp",
            "s1",
            "text",
            "texts1",
        ] {
            assert_eq!(live_name(name).unwrap(), name);
        }
        let long = "x".repeat(BYTES + 1);
        for name in
            ["/door", "door/", "a//b", ".", "..", "a/../b", ".git", "~0123", "a\nb", "a\\b", "1/2/3/4/5/6/7/8/9", &long]
                .into_iter()
                .chain(["\u{202e}4pm.rood", "a\u{2066}b", "a\u{9b}b", "a\u{200f}", "a\u{2028}b"])
        {
            assert!(matches!(live_name(name), Err(LibraryError::BadPath { .. })), "{name:?}");
        }
        for name in
            ["door/index.m3u8", "index.mpd", "door/v1", "a12/x", "text1", "door/ts", "door/stream.ts/x", "stream.mp4"]
        {
            assert!(matches!(live_name(name), Err(LibraryError::NoResource { .. })), "{name:?}");
        }
    }
}

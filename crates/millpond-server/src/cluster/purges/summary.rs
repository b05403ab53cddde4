//! Purges in a line of the log.

use millpond_cluster::{PurgeEntry, PurgedObjects};

/// Most purges that are named.
const MOST: usize = 8;
/// Most characters of each of them.
const LONGEST: usize = 200;

/// The objects of purges: paths and patterns, with their places.
pub(super) fn summary(entries: &[PurgeEntry]) -> String {
    let mut named = entries.iter().take(MOST).map(named).collect::<Vec<_>>().join(", ");
    if let Some(more) = entries.len().checked_sub(MOST).filter(|more| *more > 0) {
        named.push_str(&format!(" and {more} more"));
    }
    named
}

fn named(entry: &PurgeEntry) -> String {
    let place = entry.place.as_deref().unwrap_or_default();
    let parts = |inside| [place, inside].into_iter().filter(|part: &&str| !part.is_empty()).collect::<Vec<_>>();
    let whole = match &entry.objects {
        PurgedObjects::Path(inside) | PurgedObjects::Pattern(inside) => parts(inside).join("/"),
        PurgedObjects::Tag(tag) => [parts("").concat(), format!("tag {tag}")].join(" ").trim_start().to_owned(),
    };
    match whole.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &whole[..end]),
        None => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_line_names_some_purges_and_counts_the_others() {
        let entry = |place: &str, objects| PurgeEntry {
            place: Some(place.into()),
            objects,
            is_soft: false,
            at: Duration::ZERO,
        };
        let path = |text: &str| PurgedObjects::Path(text.into());
        let entries = [
            entry("films", path("a.mp4")),
            entry("films", PurgedObjects::Pattern("**/*.ts".into())),
            entry("films", path("")),
            entry("", path("a")),
            entry("films", PurgedObjects::Tag("film-7".into())),
            PurgeEntry { place: None, ..entry("", PurgedObjects::Tag("film-7".into())) },
        ];
        assert_eq!(summary(&entries), "films/a.mp4, films/**/*.ts, films, a, films tag film-7, tag film-7");
        let many = vec![entry("p", path("a")); 1024];
        assert!(summary(&many).ends_with("p/a and 1016 more"));
        let long = summary(&vec![entry("p", path(&"é".repeat(2000))); 1024]);
        assert!(long.chars().count() < MOST * (LONGEST + 3) + 20, "{long}");
    }
}

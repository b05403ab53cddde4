//! Rendered playlists and manifests, shared by all viewers that request the same text.

use bytes::Bytes;
use millpond_package::{hls::Container, live::Extent};
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hasher as _},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Most texts of one version: viewers choose where theirs begin.
const MOST: usize = 32;

/// A playlist or manifest, shared by all viewers that get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveText {
    /// The text.
    pub bytes: Bytes,
    /// A hash of the text. Equal texts have equal ones.
    pub hash: u64,
}

impl From<String> for LiveText {
    fn from(text: String) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(text.as_bytes());
        Self { hash: hasher.finish(), bytes: text.into() }
    }
}

/// Steps in which the time without media is told.
const AWAY_STEP: Duration = Duration::from_secs(10);

/// Time for which nothing has changed, in whole steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Away(u32);

impl Away {
    /// Returns the steps since a change at a wall time.
    pub(super) fn since(changed: Duration) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let steps = now.saturating_sub(changed).as_secs() / AWAY_STEP.as_secs();
        // A window that never changed tells nothing.
        Self(if changed.is_zero() { 0 } else { u32::try_from(steps).unwrap_or(u32::MAX) })
    }

    /// Time since the change at the end of the present step; zero in the first one.
    pub(super) fn time(self) -> Duration {
        if self.0 == 0 { Duration::ZERO } else { AWAY_STEP.saturating_mul(self.0.saturating_add(1)) }
    }

    /// Wall time at which the present step began.
    pub(super) fn began(self, changed: Duration) -> Duration {
        changed.saturating_add(AWAY_STEP.saturating_mul(self.0))
    }
}

/// A text that is rendered from a window, or from the windows of a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Text {
    Multivariant {
        container: Container,
    },
    /// `away` tells how long the source has been away.
    Mpd {
        clock: &'static str,
        extent: Extent,
        away: Away,
    },
    /// `others` is the version of the other streams of a ladder, whose positions are reported.
    Media {
        container: Container,
        track: usize,
        skip: bool,
        extent: Extent,
        others: u64,
    },
}

/// Texts of one version.
#[derive(Debug, Default)]
pub(super) struct Texts {
    version: u64,
    texts: HashMap<Text, LiveText>,
}

impl Texts {
    /// Returns a text of a version that was rendered before.
    pub(super) fn known(&self, version: u64, text: &Text) -> Option<LiveText> {
        self.texts.get(text).filter(|_| self.version == version).cloned()
    }

    /// Returns a text of a version, and renders it where it is not known. Texts of another version are forgotten.
    pub(super) fn get(
        &mut self,
        version: u64,
        text: Text,
        render: impl FnOnce() -> Option<String>,
    ) -> Option<LiveText> {
        if self.version != version {
            *self = Self { version, texts: HashMap::new() };
        }
        if let Some(known) = self.texts.get(&text) {
            return Some(known.clone());
        }
        let rendered = LiveText::from(render()?);
        if self.texts.len() >= MOST {
            self.texts.clear();
        }
        self.texts.insert(text, rendered.clone());
        Some(rendered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_media_is_told_in_steps() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        assert_eq!(Away::since(Duration::ZERO), Away(0));
        assert_eq!(Away::since(now), Away(0));
        assert_eq!(Away(0).time(), Duration::ZERO, "segments end every few seconds");
        let changed = now - Duration::from_secs(25);
        let away = Away::since(changed);
        assert!(away.time() >= Duration::from_secs(25) && away.time() <= Duration::from_secs(40), "{away:?}");
        assert!(away.began(changed) <= SystemTime::now().duration_since(UNIX_EPOCH).unwrap());
    }

    #[test]
    fn texts_are_rendered_once_a_version() {
        let mut texts = Texts::default();
        let (list, mpd) = (
            Text::Multivariant { container: Container::Fmp4 },
            Text::Mpd { clock: "/time", extent: Extent::Edge, away: Away(0) },
        );
        let mut rendered = 0;
        let mut get = |version, text| {
            let made = texts.get(version, text, || {
                rendered += 1;
                Some(format!("{text:?} {version}"))
            });
            made.unwrap().hash
        };
        let first = get(1, list);
        assert!(get(1, list) == first && get(1, mpd) != first && get(2, list) != first);
        assert_eq!(get(1, list), first, "equal texts have equal hashes");
        assert_eq!(rendered, 4);
        assert!(texts.known(1, &list).is_some() && texts.known(2, &list).is_none() && texts.known(1, &mpd).is_none());
        assert_eq!(texts.get(3, list, || None), None);
    }
}

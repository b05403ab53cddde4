//! Channels as they are configured: assets that play one after the other, round and round.

use super::titles::Shelf;
use crate::library::{Places, live_name};
use millpond_stream::{ChannelSource, Linger, LiveRequest, Source};
use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

/// Most assets of one channel.
const MOST: usize = 1000;

/// A channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// Path of the channel.
    pub name: String,
    /// Paths of its assets, in the order in which they play.
    pub assets: Vec<String>,
    /// Whether the name is that of a list, and not that of an asset.
    pub is_list: bool,
}

impl ChannelConfig {
    /// Parses the path of an asset, or `news=films/a.mp4 films/b.mp4`. `None` for a list without assets, and for a name that no
    /// stream can have.
    pub fn parse(text: &str) -> Option<Self> {
        let trimmed = |path: &str| path.trim_matches('/').to_owned();
        let Some((name, assets)) = text.split_once('=') else {
            return Some(Self { name: trimmed(text), assets: vec![trimmed(text)], is_list: false });
        };
        let name = trimmed(name.trim());
        let assets: Vec<_> = assets.split_whitespace().map(trimmed).collect();
        let is_named = !name.is_empty() && live_name(&name).is_ok();
        (is_named && (1..=MOST).contains(&assets.len())).then_some(Self { name, assets, is_list: true })
    }
}

/// The text that is parsed to it.
impl fmt::Display for ChannelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_list {
            true => write!(f, "{}={}", self.name, self.assets.join(" ")),
            false => f.write_str(&self.name),
        }
    }
}

/// The channels of a server, by their paths.
#[derive(Debug, Default)]
pub(crate) struct Channels(HashMap<Box<str>, Channel>);

#[derive(Debug)]
struct Channel {
    source: ChannelSource,
    is_list: bool,
    /// Index of the place of its first asset.
    place: Option<usize>,
}

impl Channels {
    /// Makes those of a configuration. `shelf` opens their assets.
    pub(crate) fn new(configs: &[ChannelConfig], places: &Places, shelf: &Arc<Shelf>) -> Self {
        let of = |config: &ChannelConfig| {
            let source = ChannelSource::new(shelf.clone(), config.assets.iter().map(String::as_str));
            let place = config.assets.first().and_then(|first| places.find(first)).map(|found| found.index);
            (config.name.as_str().into(), Channel { source, is_list: config.is_list, place })
        };
        Self(configs.iter().map(of).collect())
    }

    /// Tells whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whether a path is that of an asset that plays as a channel.
    pub(super) fn is_asset(&self, path: &str) -> bool {
        self.0.get(path).is_some_and(|channel| !channel.is_list)
    }

    /// Returns the index of the place of a list's first asset; `None` where the path is no list.
    pub(super) fn list(&self, path: &str) -> Option<usize> {
        self.0.get(path).filter(|channel| channel.is_list)?.place
    }

    /// Returns the stream of the channel at `path`: of the rendition of a name, which its last part is, or of the best one.
    pub(super) fn request(&self, path: &str, rendition: Option<&str>) -> Option<LiveRequest> {
        let source = match rendition {
            None => self.0.get(path)?.source.clone(),
            Some(name) => {
                let channel = self.0.get(path.strip_suffix(name)?.trim_end_matches('/'))?;
                channel.source.clone().with_rendition(name)
            }
        };
        let linger = Linger::For(Duration::ZERO);
        Some(LiveRequest { path: path.into(), source: Source::Channel(source), relayed: None, linger, shift: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_assets_or_lists() {
        let one = ChannelConfig::parse("/films/a b.mp4").unwrap();
        assert_eq!(
            (&*one.name, &*one.assets, one.is_list),
            ("films/a b.mp4", &["films/a b.mp4".to_owned()][..], false)
        );
        let list = ChannelConfig::parse("news = films/a.mp4  /films/b.mp4").unwrap();
        assert_eq!((&*list.name, list.is_list), ("news", true));
        assert_eq!(list.assets, ["films/a.mp4", "films/b.mp4"]);
        for channel in [one, list] {
            assert_eq!(ChannelConfig::parse(&channel.to_string()), Some(channel));
        }
        for text in ["news=", "=films/a.mp4", "a/index.m3u8=b.mp4", "../a=b.mp4"] {
            assert_eq!(ChannelConfig::parse(text), None, "{text}");
        }
    }
}

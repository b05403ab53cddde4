//! Channels as they are configured: assets that play one after the other, round and round.

use super::titles::Shelf;
use crate::library::{Places, live_name};
use millpond_settings::value::BadValue;
use millpond_stream::{
    ChannelSource, Linger, LiveRequest, Source, TimedStart,
    broadcast::{BroadcastPhase, MOST_PHASES, PHASES},
};
use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

/// Most assets of one channel.
const MOST: usize = 1000;
/// Begins the word that tells the number of phases.
const PHASES_WORD: &str = "phases=";
/// Ends the text before the first sign of equality, if the name of a channel with phases is missing.
const NAMELESS: &str = " phases";
/// Begins the last part of the path of a phase.
const PHASE: &str = "phase-";

/// A channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// Path of the channel.
    pub name: String,
    /// Paths of its assets, in the order in which they play.
    pub assets: Vec<String>,
    /// Whether the name is that of a list, and not that of an asset.
    pub is_list: bool,
    /// Number of phases in which its only asset plays; `None` for a channel at one position.
    pub phases: Option<u16>,
}

impl ChannelConfig {
    /// Parses the path of an asset, `news=films/a.mp4 films/b.mp4`, or `movie=films/a.mp4 phases=4`.
    ///
    /// # Errors
    /// A list has no assets, or a name that no stream can have. Phases are not of one asset, or too many.
    pub fn parse(text: &str) -> Result<Self, BadValue> {
        let trimmed = |path: &str| path.trim_matches('/').to_owned();
        let Some((name, assets)) = text.split_once('=') else {
            return Ok(Self { name: trimmed(text), assets: vec![trimmed(text)], is_list: false, phases: None });
        };
        if let Some(asset) = name.trim().strip_suffix(NAMELESS) {
            let asset = asset.trim();
            return Err(BadValue::new(format!("a name before the asset, such as \"movie={asset} {PHASES_WORD}4\"")));
        }
        let name = trimmed(name.trim());
        let mut assets: Vec<_> = assets.split_whitespace().collect();
        if let Some(behind) = behind_phases(&assets) {
            let last = format!("{PHASES_WORD} as the last word, such as \"movie=films/a.mp4 {PHASES_WORD}4\"");
            return Err(BadValue::new(format!("{last}, and not {behind:?} behind it")));
        }
        let phases = assets.pop_if(|word| word.starts_with(PHASES_WORD));
        let phases = phases.map(|word| phases_of(word, assets.len())).transpose()?;
        let is_named = !name.is_empty() && live_name(&name).is_ok();
        if !is_named || !(1..=MOST).contains(&assets.len()) {
            return Err(Self::expected());
        }
        Ok(Self { name, assets: assets.into_iter().map(trimmed).collect(), is_list: true, phases })
    }

    /// Returns the error of a value that is no list of channels.
    pub(crate) fn expected() -> BadValue {
        BadValue::new("paths of assets, and lists such as \"news=films/a.mp4 films/b.mp4\", each name once")
    }

    /// Returns the paths of its streams: its own one, or those of its phases.
    pub(crate) fn streams(&self) -> Vec<String> {
        match self.phases {
            Some(_) => self.phases().map(|phase| phase.path()).collect(),
            None => vec![self.name.clone()],
        }
    }

    /// Its phases, in the order in which they begin.
    fn phases(&self) -> impl Iterator<Item = BroadcastPhase> {
        let (channel, of): (Arc<str>, _) = (self.name.as_str().into(), self.phases.unwrap_or(0));
        (1..=of).map(move |number| BroadcastPhase { channel: channel.clone(), number, of })
    }
}

/// Returns the word behind the number of phases, which must be the last word.
fn behind_phases<'a>(words: &[&'a str]) -> Option<&'a str> {
    let place = words.iter().position(|word| word.starts_with(PHASES_WORD))?;
    words.get(place + 1).copied()
}

/// Parses the word that tells the number of phases of a list of assets.
fn phases_of(word: &str, assets: usize) -> Result<u16, BadValue> {
    let phases = word.strip_prefix(PHASES_WORD).and_then(|number| number.parse().ok());
    match phases.filter(|phases| PHASES.contains(phases)) {
        None => Err(BadValue::new(format!("1 to {MOST_PHASES} phases, such as \"movie=films/a.mp4 phases=4\""))),
        Some(_) if assets != 1 => {
            Err(BadValue::new("one asset in a channel with phases, such as \"movie=films/a.mp4 phases=4\""))
        }
        Some(phases) => Ok(phases),
    }
}

/// The text that is parsed to it.
impl fmt::Display for ChannelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_list {
            return f.write_str(&self.name);
        }
        write!(f, "{}={}", self.name, self.assets.join(" "))?;
        self.phases.map_or(Ok(()), |phases| write!(f, " {PHASES_WORD}{phases}"))
    }
}

/// The channels of a server, by their paths.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    /// Channels at one position, and phases.
    streams: HashMap<Box<str>, Channel>,
    /// Channels with phases.
    phased: HashMap<Box<str>, PhasedChannel>,
}

#[derive(Debug)]
struct Channel {
    source: ChannelSource,
    is_list: bool,
    /// Index of the place of its first asset.
    place: Option<usize>,
}

/// A title that plays in phases.
#[derive(Debug)]
pub(crate) struct PhasedChannel {
    /// Path of the channel.
    pub(crate) name: Arc<str>,
    /// Path of its asset.
    pub(crate) asset: Box<str>,
    /// Index of the place of its asset.
    place: Option<usize>,
    /// Paths of its phases, in their order.
    phases: Vec<String>,
}

impl Channels {
    /// Makes those of a configuration. `shelf` opens their assets.
    pub(crate) fn new(configs: &[ChannelConfig], places: &Places, shelf: &Arc<Shelf>) -> Self {
        let mut new = Self::default();
        for config in configs {
            let source = ChannelSource::new(shelf.clone(), config.assets.iter().map(String::as_str));
            let Some(first) = config.assets.first() else { continue };
            let place = places.find(first).map(|found| found.index);
            if config.phases.is_none() {
                let channel = Channel { source, is_list: config.is_list, place };
                new.streams.insert(config.name.as_str().into(), channel);
                continue;
            }
            for phase in config.phases() {
                let (path, source) = (phase.path().into(), source.clone().with_phase(phase));
                new.streams.insert(path, Channel { source, is_list: true, place });
            }
            let (name, asset, phases) = (config.name.as_str().into(), first.as_str().into(), config.streams());
            new.phased.insert(config.name.as_str().into(), PhasedChannel { name, asset, place, phases });
        }
        new
    }

    /// Tells whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Tells whether a path is that of an asset that plays as a channel.
    pub(super) fn is_asset(&self, path: &str) -> bool {
        self.streams.get(path).is_some_and(|channel| !channel.is_list)
    }

    /// Returns the index of the place of a list's first asset; `None` where the path is no list.
    pub(super) fn list(&self, path: &str) -> Option<usize> {
        let list = self.streams.get(path).filter(|channel| channel.is_list);
        list.map_or_else(|| self.phased(path).or_else(|| self.above(path))?.place, |channel| channel.place)
    }

    /// Returns the channel with phases above `path`, if its last part is like that of a phase.
    fn above(&self, path: &str) -> Option<&PhasedChannel> {
        let (channel, last) = path.rsplit_once('/')?;
        self.phased(channel).filter(|_| last.starts_with(PHASE))
    }

    /// Returns the phases that the channel above `path` has, in words; `None` unless `path` looks like a phase that the channel lacks.
    pub(super) fn without_phase(&self, path: &str) -> Option<(Arc<str>, String)> {
        let channel = self.above(path).filter(|_| !self.streams.contains_key(path))?;
        let (first, last) = (channel.phases.first()?, channel.phases.last()?);
        let count = channel.phases.len();
        Some((channel.name.clone(), format!("it plays in phases, which are {first} to {last} ({count})")))
    }

    /// Returns the channel with phases at `path`.
    pub(super) fn phased(&self, path: &str) -> Option<&PhasedChannel> {
        self.phased.get(path)
    }

    /// Returns the streams of the phases of a channel, in their order.
    pub(super) fn requests(&self, channel: &PhasedChannel) -> Vec<LiveRequest> {
        channel.phases.iter().filter_map(|path| self.request(path, None)).collect()
    }

    /// Returns a stream of an asset that plays round and round for itself, beside the channels of the configuration.
    pub(super) fn looped(shelf: &Arc<Shelf>, asset: &str) -> LiveRequest {
        // A path of assets has no such sign at its end.
        Self::timed(shelf, format!("{asset}#slate"), (asset, None))
    }

    /// Returns a stream of an asset, under a name: it plays round and round, or as its start says.
    pub(super) fn timed(shelf: &Arc<Shelf>, name: String, (asset, start): (&str, Option<TimedStart>)) -> LiveRequest {
        let source = ChannelSource::new(shelf.clone(), [asset]);
        let source = Source::Channel(match start {
            Some(start) => source.with_start(start),
            None => source,
        });
        let linger = Linger::For(Duration::ZERO);
        LiveRequest { path: name.into(), source, relayed: None, linger, shift: None }
    }

    /// Returns the stream of the channel at `path`: of the rendition of a name, which its last part is, or of the best one.
    pub(super) fn request(&self, path: &str, rendition: Option<&str>) -> Option<LiveRequest> {
        let source = match rendition {
            None => self.streams.get(path)?.source.clone(),
            Some(name) => {
                let channel = self.streams.get(path.strip_suffix(name)?.trim_end_matches('/'))?;
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
            assert_eq!(ChannelConfig::parse(&channel.to_string()).unwrap(), channel);
        }
        for text in ["news=", "=films/a.mp4", "a/index.m3u8=b.mp4", "../a=b.mp4"] {
            assert!(ChannelConfig::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn one_asset_plays_in_phases() {
        let movie = ChannelConfig::parse("movie=films/a.mp4 phases=3").unwrap();
        assert_eq!((&*movie.name, &*movie.assets, movie.phases), ("movie", &["films/a.mp4".to_owned()][..], Some(3)));
        assert_eq!(movie.streams(), ["movie/phase-1", "movie/phase-2", "movie/phase-3"]);
        assert_eq!(ChannelConfig::parse(&movie.to_string()).unwrap(), movie);
        for (text, expected) in [
            ("movie=films/a.mp4 phases=0", "1 to 64 phases"),
            ("movie=films/a.mp4 phases=65", "1 to 64 phases"),
            ("movie=films/a.mp4 phases=many", "1 to 64 phases"),
            ("movie=films/a.mp4 films/b.mp4 phases=4", "one asset"),
            ("movie=phases=4", "one asset"),
            ("movie=films/a.mp4 phases=4 loop=yes", "phases= as the last word"),
            ("films/a.mp4 phases=4", "a name before the asset, such as \"movie=films/a.mp4 phases=4\""),
        ] {
            let error = ChannelConfig::parse(text).unwrap_err().expected;
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}

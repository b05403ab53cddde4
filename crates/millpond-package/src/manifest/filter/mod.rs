//! Filters of manifests: the tracks of an asset that its multivariant playlist and its MPD list.
//!
//! A filter is text in the form of a query, such as `max-height=720&audio=en,de`. Viewers write it in the URL, operators in a
//! setting, issuers of tokens in a claim. Tracks keep their URLs: a filter decides only which of them manifests list.

mod attribution;
mod choice;
mod codec_name;
mod error;
mod language_range;
mod list;
mod parameter;
mod rate;
#[cfg(test)]
mod tests;

pub(crate) use choice::restore_defaults;
pub use error::BadTrackFilter;

use codec_name::CodecName;
use language_range::LanguageRange;
use list::List;
use parameter::Parameter;
use rate::BitRate;
use std::fmt;

/// The tracks of an asset that manifests list. The default filter keeps all of them.
///
/// Its display is a query in canonical form: one order of parameters, one form of each value. The query parses to the same
/// filter.
///
/// ```
/// # use millpond_package::TrackFilter;
/// let filter = TrackFilter::parse("audio=deu,EN&max-rate=3000k&session=7").unwrap();
/// assert_eq!(filter.to_string(), "max-rate=3M&audio=de,en");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TrackFilter {
    /// Greatest height of pictures, as displayed.
    max_height: Option<u32>,
    /// Greatest bit rate of pictures.
    max_rate: Option<BitRate>,
    /// Least bit rate of pictures.
    min_rate: Option<BitRate>,
    /// Codecs of pictures.
    video: Option<List<CodecName>>,
    /// Languages of sound.
    audio: Option<List<LanguageRange>>,
    /// Languages of subtitles.
    text: Option<List<LanguageRange>>,
    /// Bit rate near which HLS players begin.
    first: Option<BitRate>,
}

impl TrackFilter {
    /// The filter that keeps all tracks in their order: the default.
    pub const ALL: Self =
        Self { max_height: None, max_rate: None, min_rate: None, video: None, audio: None, text: None, first: None };

    /// Parses the query of a request. Other parameters than those of filters are ignored: players, CDNs and tokens have their own.
    ///
    /// # Errors
    /// A parameter of filters is empty, appears twice, or has an invalid value.
    pub fn parse(query: &str) -> Result<Self, BadTrackFilter> {
        let mut filter = Self::default();
        for (name, value) in pairs(query) {
            if let Some(parameter) = Parameter::named(name) {
                filter.set(parameter, value)?;
            }
        }
        Ok(filter)
    }

    /// Parses a filter that is no request's query, such as a setting: it has parameters of filters only.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and a parameter that filters don't have.
    pub fn parse_strictly(text: &str) -> Result<Self, BadTrackFilter> {
        let mut filter = Self::default();
        for (name, value) in pairs(text) {
            let parameter = Parameter::named(name).ok_or_else(|| BadTrackFilter::unknown(name, value))?;
            filter.set(parameter, value)?;
        }
        Ok(filter)
    }

    /// Whether it keeps all tracks in their order.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the filter that keeps the tracks which both filters keep. HLS players begin near the rate that `self` names, else
    /// near that of `other`.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            max_height: self.max_height.into_iter().chain(other.max_height).min(),
            max_rate: self.max_rate.into_iter().chain(other.max_rate).min(),
            min_rate: self.min_rate.into_iter().chain(other.min_rate).max(),
            video: List::both(self.video.as_ref(), other.video.as_ref()),
            audio: List::both(self.audio.as_ref(), other.audio.as_ref()),
            text: List::both(self.text.as_ref(), other.text.as_ref()),
            first: self.first.or(other.first),
        }
    }

    /// Returns the reason why no title can have pictures or sound that the filter keeps; `None` where some can.
    #[must_use]
    pub fn contradiction(&self) -> Option<String> {
        let is_none = |parameter| self.value(parameter).as_deref() == Some(list::NONE);
        if !is_none(Parameter::Audio) {
            return None;
        }
        let sound = self.stated(Parameter::Audio);
        if is_none(Parameter::Video) {
            let pictures = self.stated(Parameter::Video);
            return Some(format!("{pictures} and {sound} exclude all pictures and all sound: leave one of them out"));
        }
        let (least, most) = (self.stated(Parameter::MinRate), self.stated(Parameter::MaxRate));
        let excludes_pictures = self.min_rate.zip(self.max_rate).is_some_and(|(least, most)| least > most);
        excludes_pictures
            .then(|| format!("{least} and {most} exclude all pictures, and {sound} all sound: lower min-rate"))
    }

    /// Upper estimate of the bytes of heap held.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let lists = [&self.audio, &self.text].into_iter().flatten().map(List::heap_bytes);
        lists.sum::<usize>() + self.video.as_ref().map_or(0, List::heap_bytes)
    }

    fn set(&mut self, parameter: Parameter, value: &str) -> Result<(), BadTrackFilter> {
        match parameter {
            Parameter::MaxHeight => put(&mut self.max_height, parameter, value, height),
            Parameter::MaxRate => put(&mut self.max_rate, parameter, value, BitRate::parse),
            Parameter::MinRate => put(&mut self.min_rate, parameter, value, BitRate::parse),
            Parameter::Video => put(&mut self.video, parameter, value, List::parse),
            Parameter::Audio => put(&mut self.audio, parameter, value, List::parse),
            Parameter::Text => put(&mut self.text, parameter, value, List::parse),
            Parameter::First => put(&mut self.first, parameter, value, BitRate::parse),
        }
    }

    /// Returns the value of a parameter in its canonical form; `None` where the filter does not have it.
    fn value(&self, parameter: Parameter) -> Option<String> {
        match parameter {
            Parameter::MaxHeight => self.max_height.map(|height| height.to_string()),
            Parameter::MaxRate => self.max_rate.map(|rate| rate.to_string()),
            Parameter::MinRate => self.min_rate.map(|rate| rate.to_string()),
            Parameter::Video => self.video.as_ref().map(ToString::to_string),
            Parameter::Audio => self.audio.as_ref().map(ToString::to_string),
            Parameter::Text => self.text.as_ref().map(ToString::to_string),
            Parameter::First => self.first.map(|rate| rate.to_string()),
        }
    }

    /// Returns a parameter with its value, for messages.
    fn stated(&self, parameter: Parameter) -> String {
        format!("{parameter}={}", self.value(parameter).unwrap_or_default())
    }
}

impl fmt::Display for TrackFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has = |parameter: &Parameter| self.value(*parameter).is_some();
        let all: Vec<String> = Parameter::ALL.into_iter().filter(has).map(|one| self.stated(one)).collect();
        f.write_str(&all.join("&"))
    }
}

/// Sets a parameter that the filter must not have yet.
fn put<T>(
    slot: &mut Option<T>,
    parameter: Parameter,
    value: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<(), BadTrackFilter> {
    if slot.is_some() {
        return Err(BadTrackFilter::second(parameter, value));
    }
    let parsed = decoded(value).and_then(|text| parse(text.trim()));
    *slot = Some(parsed.ok_or_else(|| BadTrackFilter::value(parameter, value))?);
    Ok(())
}

/// Reads a number of lines: decimal, from 1.
fn height(text: &str) -> Option<u32> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse::<u32>().ok().filter(|height| is_decimal && *height > 0)
}

/// Returns the names and values of a query, still percent-encoded.
fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Decodes a value of a query; `None` where it is no UTF-8 text.
fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => digit(rest.next()?)? * 16 + digit(rest.next()?)?,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Returns the value of a hexadecimal digit.
fn digit(byte: u8) -> Option<u8> {
    u8::try_from(char::from(byte).to_digit(16)?).ok()
}

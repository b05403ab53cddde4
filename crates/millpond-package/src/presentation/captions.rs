//! The rule of an operator for captions within pictures.

use crate::language;
use millpond_media::CaptionChannel;
use std::fmt;

/// Most characters of a language tag (RFC 5646 4.4.1).
const LONGEST: usize = 35;
/// Most characters of a found text in a message.
const SHOWN: usize = 64;
/// The language of captions whose language is unknown.
const UNKNOWN: &str = "und";

/// The rule by which manifests announce captions within pictures (CEA-608, CEA-708).
///
/// Its display is text in canonical form, which parses to the same rule.
///
/// ```
/// # use millpond_package::CaptionRule;
/// let rule = CaptionRule::parse("CC1=eng, CC3=es").unwrap();
/// assert_eq!(rule.to_string(), "CC1=en,CC3=es");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CaptionRule {
    /// The channels that the index knows, or that a live stream has shown, without languages.
    #[default]
    Auto,
    /// None. Playlists of HLS say that there are none.
    Off,
    /// The stated channels, for all titles and live streams whose pictures can carry captions.
    Stated(Vec<StatedCaptions>),
}

/// A channel of captions that an operator states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedCaptions {
    /// The channel.
    pub channel: CaptionChannel,
    /// BCP 47 tag; `None` where the language is unknown.
    pub language: Option<String>,
}

/// The reason why a rule can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found}, expected {expected}")]
pub struct BadCaptionRule {
    /// Text found, in quotes.
    pub found: String,
    /// Text allowed, with an example.
    pub expected: &'static str,
}

impl CaptionRule {
    /// Parses `auto`, `off`, or a list of channels such as `CC1=en,SERVICE1=en`.
    ///
    /// # Errors
    /// A channel that there is not, or that appears twice; a language that is no tag.
    pub fn parse(text: &str) -> Result<Self, BadCaptionRule> {
        match text {
            "" | "auto" => return Ok(Self::Auto),
            "off" => return Ok(Self::Off),
            _ => {}
        }
        let mut all: Vec<StatedCaptions> = Vec::new();
        for item in text.split(',') {
            let (name, language) = item.split_once('=').map_or((item, None), |(name, tag)| (name, Some(tag)));
            let channel = CaptionChannel::named(name.trim())
                .ok_or_else(|| BadCaptionRule::of(name, "CC1 to CC4, or SERVICE1 to SERVICE63, such as CC1=en"))?;
            if all.iter().any(|other| other.channel == channel) {
                return Err(BadCaptionRule::of(name, "each channel once, such as CC1=en,CC3=es"));
            }
            let language = language.map_or(Ok(None), parse_language)?;
            all.push(StatedCaptions { channel, language });
        }
        Ok(Self::Stated(all))
    }
}

impl fmt::Display for CaptionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = match self {
            Self::Auto => return f.write_str("auto"),
            Self::Off => return f.write_str("off"),
            Self::Stated(all) => all,
        };
        let items = all.iter().map(|stated| match &stated.language {
            Some(language) => format!("{}={language}", stated.channel),
            None => stated.channel.to_string(),
        });
        f.write_str(&items.collect::<Vec<_>>().join(","))
    }
}

impl BadCaptionRule {
    fn of(found: &str, expected: &'static str) -> Self {
        Self { found: format!("{:?}", found.chars().take(SHOWN).collect::<String>()), expected }
    }
}

/// Reads a language: a BCP 47 tag, an ISO 639-2 code, or `und`.
fn parse_language(text: &str) -> Result<Option<String>, BadCaptionRule> {
    let text = text.trim();
    if text.eq_ignore_ascii_case(UNKNOWN) {
        return Ok(None);
    }
    // Longer words are names of languages.
    let is_code = |tag: &String| tag.split('-').next().is_some_and(|primary| matches!(primary.len(), 2 | 3));
    let tag = language::tag(text).filter(|tag| tag.len() <= LONGEST).filter(is_code);
    tag.map(Some).ok_or_else(|| BadCaptionRule::of(text, "a language tag such as en or pt-BR, or und"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_has_one_form() {
        for (text, expected) in [
            ("", "auto"),
            ("auto", "auto"),
            ("off", "off"),
            ("CC1", "CC1"),
            ("CC1=und", "CC1"),
            (" CC3 = spa , CC1=EN-us", "CC3=es,CC1=en-US"),
            ("SERVICE1=en,SERVICE63=fil", "SERVICE1=en,SERVICE63=fil"),
        ] {
            let rule = CaptionRule::parse(text).unwrap();
            assert_eq!(rule.to_string(), expected, "{text}");
            assert_eq!(CaptionRule::parse(expected), Ok(rule), "{text}");
        }
    }

    #[test]
    fn a_wrong_rule_is_named_with_its_cure() {
        for (text, expected) in [
            ("on", "found \"on\", expected CC1 to CC4, or SERVICE1 to SERVICE63, such as CC1=en"),
            ("CC5=en", "found \"CC5\", expected CC1 to CC4"),
            ("CC1=en,", "found \"\", expected CC1 to CC4"),
            ("CC1=en,CC1=es", "found \"CC1\", expected each channel once"),
            ("CC1=", "found \"\", expected a language tag such as en or pt-BR, or und"),
            ("CC1=English", "found \"English\", expected a language tag"),
            ("CC1=e\"n", "found \"e\\\"n\", expected a language tag"),
        ] {
            let error = CaptionRule::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}

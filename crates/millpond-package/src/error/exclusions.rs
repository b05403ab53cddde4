//! Tracks that the parameters of a filter exclude, for the message of a filter that leaves nothing to play.

use std::fmt;

/// Source of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterSource {
    /// The query of the request.
    Url,
    /// A claim of the viewer's token.
    Token,
    /// An option of the place.
    Place,
    /// The server's setting, where the place has no option of its own.
    Server,
}

impl FilterSource {
    const ALL: [Self; 4] = [Self::Url, Self::Token, Self::Place, Self::Server];

    const fn name(self) -> &'static str {
        match self {
            Self::Url => "URL",
            Self::Token => "claim of the token",
            Self::Place => "option of the place",
            Self::Server => "setting of the server",
        }
    }

    /// Returns the cure of a filter from this source, where others have part in it.
    const fn cure(self) -> &'static str {
        match self {
            Self::Url => "widen the filter of the URL, or leave it out",
            Self::Token => "use a token whose claim `filter` is wider",
            Self::Place => "have the operator widen the option `filter` of the place",
            Self::Server => "have the operator widen the setting `filter` of the server",
        }
    }
}

/// Tracks of one kind that a parameter excludes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exclusion {
    /// Name of the parameter.
    pub(crate) parameter: &'static str,
    /// Values of the parameter, each with the sources that state it. Without sources, the whole filter has one.
    pub(crate) values: Vec<(String, Vec<FilterSource>)>,
    /// Number of tracks that it excludes.
    pub(crate) excluded: usize,
    /// Number of tracks that the parameters before it leave.
    pub(crate) left: usize,
    /// Whether a parameter before it excludes tracks of the kind.
    pub(crate) is_further: bool,
    /// Name of the kind of track.
    pub(crate) kind: &'static str,
    /// Properties of the tracks that it excludes.
    pub(crate) tracks: String,
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (value, sources)) in self.values.iter().enumerate() {
            let and = if place == 0 { "" } else { " and " };
            write!(f, "{and}{}={value}", self.parameter)?;
            let names: Vec<&str> = sources.iter().map(|source| source.name()).collect();
            if !names.is_empty() {
                write!(f, " ({})", names.join(", "))?;
            }
        }
        let verb = if self.values.len() > 1 { "exclude" } else { "excludes" };
        let remaining = if self.is_further { "the remaining " } else { "" };
        let Self { excluded, left, kind, tracks, .. } = self;
        write!(f, " {verb} {excluded} of {remaining}{left} {kind} ({tracks})")
    }
}

/// The tracks that a filter excludes, in the order of its parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exclusions(pub(crate) Vec<Exclusion>);

impl Exclusions {
    /// Returns what a client or an operator can do.
    fn cure(&self) -> String {
        let states = |source: &FilterSource| {
            let mut values = self.0.iter().flat_map(|exclusion| &exclusion.values);
            values.any(|(_, sources)| sources.contains(source))
        };
        match FilterSource::ALL.into_iter().filter(states).collect::<Vec<_>>()[..] {
            [] | [FilterSource::Url] => "widen it, or leave the parameter out".to_owned(),
            ref sources => sources.iter().map(|source| source.cure()).collect::<Vec<_>>().join("; or "),
        }
    }
}

impl fmt::Display for Exclusions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        write!(f, "{}; {}", all.join(", "), self.cure())
    }
}

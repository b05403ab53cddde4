//! The prefetch modes (section III.B of the SProxy paper).

use std::{fmt, str::FromStr};

/// When slices that a viewer will need are fetched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// When a viewer asks for them.
    OnDemand,
    /// This many slices ahead of the viewer's position: 1 is the paper's Window, 0.5 its Half.
    Window(f64),
    /// At the latest moment at which they still arrive in time, by the measured link.
    Active,
    /// The whole object before its first byte is sent: caching without slices, the baseline.
    Full,
}

/// The largest window, in slices.
const FURTHEST: f64 = 1024.0;

impl Mode {
    /// The names that [`FromStr`] accepts, beside `window:N`.
    pub const NAMES: &[&str] = &["on-demand", "window", "half", "active", "full"];

    /// Each mode and its meaning, for help texts.
    pub const HELP: &str = "When upcoming slices are fetched: `active`: just in time, by the measured link; `half`, `window`, \
                            `window:N`: half a slice, one slice or N slices ahead of each viewer; `on-demand`: when a viewer \
                            asks; `full`: the whole file before its first byte";

    /// Returns whether this mode fetches slices by the positions of viewers.
    pub fn follows_viewers(self) -> bool {
        !matches!(self, Self::OnDemand | Self::Full)
    }

    /// Returns how many slices ahead of the position a slice is fetched; `None` for Active, which goes by time.
    pub(super) fn ahead(self) -> Option<f64> {
        match self {
            // Full has fetched all slices before there is a position.
            Self::OnDemand | Self::Full => Some(0.0),
            Self::Window(slices) => Some(slices),
            Self::Active => None,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnDemand => f.write_str("on-demand"),
            Self::Window(1.0) => f.write_str("window"),
            Self::Window(0.5) => f.write_str("half"),
            Self::Window(slices) => write!(f, "window:{slices}"),
            Self::Active => f.write_str("active"),
            Self::Full => f.write_str("full"),
        }
    }
}

/// A text names no prefetch mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no prefetch mode: expected on-demand, window, window:N (0 to 1024 slices), half, active or full")]
pub struct BadMode {
    text: String,
}

impl FromStr for Mode {
    type Err = BadMode;

    fn from_str(text: &str) -> Result<Self, BadMode> {
        let bad = || BadMode { text: text.to_owned() };
        Ok(match text {
            "on-demand" => Self::OnDemand,
            "window" => Self::Window(1.0),
            "half" => Self::Window(0.5),
            "active" => Self::Active,
            "full" => Self::Full,
            _ => {
                let slices: f64 = text.strip_prefix("window:").ok_or_else(bad)?.parse().map_err(|_| bad())?;
                if !(0.0..=FURTHEST).contains(&slices) {
                    return Err(bad());
                }
                Self::Window(slices)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in Mode::NAMES.iter().copied().chain(["window:0.25", "window:7"]) {
            assert_eq!(text.parse::<Mode>().unwrap().to_string(), text);
        }
        for text in ["", "windows", "window:", "window:-1", "window:x", "window:9999", "window:NaN"] {
            assert!(text.parse::<Mode>().unwrap_err().to_string().contains("no prefetch mode"));
        }
    }
}

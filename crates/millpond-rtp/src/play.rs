//! Headers of PLAY: time range, speed and scale (RFC 2326 12.29, 12.34, 12.35).

/// A time range of the presentation (npt), in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NptRange {
    /// Start; `None` for the paused position, or else the beginning.
    pub from: Option<f64>,
    /// End; `None` for the end of the presentation.
    pub to: Option<f64>,
}

/// The reason why a header is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlayError {
    /// The header is malformed: 400.
    #[error("{header}: found {value:?}, expected {expected}")]
    Malformed {
        /// Name of the header.
        header: &'static str,
        /// Value found.
        value: String,
        /// Value expected.
        expected: &'static str,
    },
    /// The range is in units other than npt (RFC 2326 3.5, 3.7): 501.
    #[error("Range: {0:?} is in units other than npt")]
    Units(String),
}

/// Reads a `Range` (RFC 2326 12.29); parameters after a semicolon are ignored.
///
/// # Errors
/// The range is malformed, or in units other than npt.
pub fn npt_range(range: &str) -> Result<NptRange, PlayError> {
    let text = range.split(';').next().unwrap_or(range).trim();
    let malformed = || PlayError::Malformed {
        header: "Range",
        value: range.to_owned(),
        expected: "npt= and a range such as 10.5- or 0:01:00-90",
    };
    let Some((units, times)) = text.split_once('=') else {
        return if text == "npt" { Ok(NptRange::default()) } else { Err(malformed()) };
    };
    if units.trim() != "npt" {
        return match units.trim() {
            "clock" | "smpte" | "smpte-30-drop" | "smpte-25" => Err(PlayError::Units(range.to_owned())),
            _ => Err(malformed()),
        };
    }
    let (from, to) = times.split_once('-').ok_or_else(malformed)?;
    let time = |text: &str| match text.trim() {
        "" | "now" => Ok(None),
        text => npt(text).map(Some).ok_or_else(malformed),
    };
    Ok(NptRange { from: time(from)?, to: time(to)? })
}

/// Returns the seconds of a normal play time (RFC 2326 3.6): `12.5` or `1:02:03.5`.
fn npt(text: &str) -> Option<f64> {
    let number = |text: &str| -> Option<f64> {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        text.parse().ok().filter(|number: &f64| plain && number.is_finite())
    };
    match text.split(':').collect::<Vec<_>>()[..] {
        [seconds] => number(seconds),
        [hours, minutes, seconds] => Some(number(hours)? * 3600.0 + number(minutes)? * 60.0 + number(seconds)?),
        _ => None,
    }
}

/// Reads a `Scale` or `Speed` (RFC 2326 12.34, 12.35).
///
/// # Errors
/// The value is no number, or is 0.
pub fn rate(header: &'static str, value: &str) -> Result<f64, PlayError> {
    let rate = value.trim().parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate != 0.0);
    rate.ok_or_else(|| PlayError::Malformed { header, value: value.to_owned(), expected: "a number that is not 0" })
}

/// Returns the `Range` of a reply, to the millisecond.
#[must_use]
pub fn range(from: f64, to: f64) -> String {
    format!("npt={from:.3}-{to:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_in_all_forms() {
        for (text, from, to) in [
            ("npt=0-", Some(0.0), None),
            ("npt=10.5-20", Some(10.5), Some(20.0)),
            ("npt=0:01:10.25-", Some(70.25), None),
            ("npt=now-", None, None),
            ("npt=-30", None, Some(30.0)),
            ("npt=5-;time=19970123T143720Z", Some(5.0), None),
            ("npt", None, None),
        ] {
            assert_eq!(npt_range(text), Ok(NptRange { from, to }), "{text}");
        }
        for text in ["", "npt=", "npt=5", "npt=a-", "npt=1:2-", "npt=inf-", "npt=-1-", "npt=+1-", "bytes=0-"] {
            assert!(matches!(npt_range(text), Err(PlayError::Malformed { .. })), "{text}");
        }
        assert!(matches!(npt_range("clock=19961108T143720.25Z-"), Err(PlayError::Units(_))));
        assert_eq!(npt_range(&range(1.5, 2.0)), Ok(NptRange { from: Some(1.5), to: Some(2.0) }));
    }

    #[test]
    fn rates_are_numbers() {
        assert_eq!(rate("Scale", " -2.5"), Ok(-2.5));
        for text in ["", "x", "0", "NaN", "inf"] {
            assert!(rate("Scale", text).is_err(), "{text}");
        }
    }
}

//! Decoder configurations in the parameters of a stream.

use super::MediaDescription;
use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// Base64 as devices write it: with or without padding, and with any bits after the last byte.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);
/// Parameters with parameter sets: those of RFC 6184 8.1 and RFC 7798 7.1.
const SETS: [&str; 4] = ["sprop-parameter-sets", "sprop-vps", "sprop-sps", "sprop-pps"];
/// Start code of a NAL unit (H.264 and H.265, B.1), which some devices write though it does not belong there.
const START_CODE: [u8; 3] = [0, 0, 1];

impl MediaDescription {
    /// Returns the parameter sets of H.264 or H.265: NAL units without start codes. What can't be read is left out, as
    /// streams often have the sets too.
    #[must_use]
    pub fn parameter_sets(&self) -> Vec<Vec<u8>> {
        let texts = SETS.iter().filter_map(|name| self.parameters.get(*name));
        let sets = texts.flat_map(|text| text.split(',')).filter_map(base64);
        sets.flat_map(|bytes| units(&bytes)).collect()
    }

    /// Returns the `config` parameter of MPEG-4 streams (RFC 3640 4.1, RFC 6416 7.1): hexadecimal digits. `None` where it
    /// is missing or no whole bytes.
    #[must_use]
    pub fn configuration(&self) -> Option<Vec<u8>> {
        Self::hexadecimal(self.parameters.get("config")?)
    }

    /// Reads hexadecimal digits. `None` where they are no whole bytes.
    pub(super) fn hexadecimal(text: &str) -> Option<Vec<u8>> {
        let text = text.trim_matches(|c: char| c == '"' || c.is_ascii_whitespace());
        let digits: Option<Vec<u8>> = text.chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect();
        let digits = digits.filter(|digits| !digits.is_empty() && digits.len().is_multiple_of(2))?;
        Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
    }
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let text: String = text.chars().filter(|c| !c.is_ascii_whitespace() && *c != '"').collect();
    BASE64.decode(text).ok()
}

/// Divides bytes at start codes.
fn units(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut rest, mut units) = (bytes, Vec::new());
    loop {
        let code = rest.windows(START_CODE.len()).position(|window| window == START_CODE);
        let (unit, after) = match code {
            Some(at) => (&rest[..at], &rest[at + START_CODE.len()..]),
            None => (rest, &[][..]),
        };
        let end = unit.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        if end > 0 {
            units.push(unit[..end].to_vec());
        }
        if code.is_none() {
            return units;
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(parameters: &[(&str, &str)]) -> MediaDescription {
        MediaDescription {
            section: 0,
            media: "video".to_owned(),
            control: String::new(),
            payload_type: 96,
            encoding: "h264".to_owned(),
            clock_rate: 90_000,
            channels: None,
            parameters: parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            bandwidth: None,
            language: None,
            feedback: crate::sdp_reader::FeedbackOffer::default(),
            is_send_only: false,
        }
    }

    #[test]
    fn sets_are_read_as_devices_write_them() {
        let of = |text| stream(&[("sprop-parameter-sets", text)]).parameter_sets();
        let sets = [vec![0x67, 0x4d, 0, 0x1f], vec![0x68, 0xee, 0x3c, 0x80]];
        for text in [
            "Z00AHw==,aO48gA==",
            "Z00AHw,aO48gA",
            " Z00AHw== , aO48gA== ,",
            "\"Z00AHw==,aO48gA==\"",
            "AAAAAWdNAB8AAAABaO48gA==",
            "Z00AHwAAAAFo7jyA",
            "Z00AHwA=,aO48gAAA",
        ] {
            assert_eq!(of(text), sets, "{text}");
        }
        assert_eq!(of("Z00AHw==,!,aO48gA=="), sets, "without what is unreadable");
        assert!(of("").is_empty() && of(",").is_empty() && stream(&[]).parameter_sets().is_empty());
        let hevc = stream(&[("sprop-sps", "QgE="), ("sprop-vps", "QAE="), ("sprop-pps", "RAE=,RAI=")]);
        assert_eq!(hevc.parameter_sets(), [vec![0x40, 1], vec![0x42, 1], vec![0x44, 1], vec![0x44, 2]]);
    }

    #[test]
    fn configurations_are_whole_bytes() {
        let of = |text| stream(&[("config", text)]).configuration();
        assert_eq!(of("1190"), Some(vec![0x11, 0x90]));
        assert_eq!(of(" \"11B0\" "), Some(vec![0x11, 0xb0]));
        assert_eq!(
            (of(""), of("119"), of("11 90"), of("xy"), stream(&[]).configuration()),
            (None, None, None, None, None)
        );
    }
}

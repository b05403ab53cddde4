//! WebVTT in MP4 (ISO/IEC 14496-30 7.5).

use super::Made;
use crate::{codec::from_quicktime, error::MediaError};

/// Makes WebVTT without styles and regions.
///
/// # Errors
/// None that is known.
pub fn wvtt() -> Result<Made, MediaError> {
    // Six reserved bytes, and data reference 1.
    let mut body = vec![0, 0, 0, 0, 0, 0, 0, 1];
    from_quicktime::put(&mut body, b"vttC", &[b"WEBVTT"]);
    Made::parsed(from_quicktime::boxed(*b"wvtt", &body), b"text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Codec, TrackKind};

    #[test]
    fn the_entry_reads_back() {
        let made = wvtt().unwrap();
        assert_eq!(made.kind, TrackKind::Text);
        assert!(matches!(&made.codec, Codec::Wvtt(config) if config.header == "WEBVTT"), "{made:?}");
    }
}

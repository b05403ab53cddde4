//! Captions within a picture of NAL units, to their channels, and rules of captions. The first byte chooses the standard and the
//! length of the units' lengths.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_media::{CaptionChannel, CaptionChannels, CaptionSearch, NalSyntax};
use millpond_package::CaptionRule;

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, picture)) = bytes.split_first() else { return };
    let syntax = if kind & 1 == 0 { NalSyntax::Avc } else { NalSyntax::Hevc };
    let mut search = CaptionSearch::default();
    search.picture((syntax, kind >> 1 & 7), picture);
    for channel in search.finish().into_iter().flat_map(CaptionChannels::iter) {
        assert_eq!(CaptionChannel::named(&channel.to_string()), Some(channel));
    }
    if let Ok(rule) = CaptionRule::parse(&String::from_utf8_lossy(picture)) {
        assert_eq!(CaptionRule::parse(&rule.to_string()), Ok(rule));
    }
});

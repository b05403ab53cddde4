//! Search for captions in the pictures of a track.

use super::{CaptionChannels, cc_data};
use crate::codec::nal::{ATSC_CAPTIONS, NalSyntax};

/// The search for channels of captions in the pictures of a track.
#[derive(Debug, Default)]
pub struct CaptionSearch {
    /// Channels found so far.
    found: CaptionChannels,
    /// Whether there are captions whose channel is not read.
    is_unclear: bool,
}

impl CaptionSearch {
    /// Examines a picture of NAL units, each after its length in `length_size` bytes. The picture may be truncated.
    pub fn picture(&mut self, (syntax, length_size): (NalSyntax, u8), picture: &[u8]) {
        let mut rest = picture;
        while let Some((field, after)) = rest.split_at_checked(usize::from(length_size).max(1)) {
            let length = field.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
            let (unit, behind) = after.split_at_checked(length).unwrap_or((after, &[]));
            syntax.for_captions(unit, |data| self.user_data(data));
            rest = behind;
        }
    }

    /// Returns the channels found so far.
    #[must_use]
    pub const fn found(&self) -> CaptionChannels {
        self.found
    }

    /// Returns the channels of a search that did not examine all pictures; `None` if it found no channel.
    #[must_use]
    pub fn partial(&self) -> Option<CaptionChannels> {
        Some(self.found).filter(|found| !found.is_empty())
    }

    /// Returns the channels; `None` where there are captions and no channel is known.
    #[must_use]
    pub fn finish(self) -> Option<CaptionChannels> {
        (!self.is_unclear || !self.found.is_empty()).then_some(self.found)
    }

    fn user_data(&mut self, data: &[u8]) {
        self.is_unclear |= match data.strip_prefix(ATSC_CAPTIONS) {
            Some(data) => cc_data::read(data, &mut self.found),
            // The form of DirecTV.
            None => true,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A unit with a message of user data, after its length in 4 bytes.
    fn message(header: &[u8], user_data: &[u8]) -> Vec<u8> {
        let unit = [header, &[4, user_data.len() as u8], user_data, &[0x80]].concat();
        [&(unit.len() as u32).to_be_bytes()[..], &unit].concat()
    }

    fn found(syntax: NalSyntax, pictures: &[Vec<u8>]) -> Option<Vec<String>> {
        let mut search = CaptionSearch::default();
        pictures.iter().for_each(|picture| search.picture((syntax, 4), picture));
        Some(search.finish()?.iter().map(|channel| channel.to_string()).collect())
    }

    #[test]
    fn all_pictures_count() {
        let captions = |pair: [u8; 2]| {
            let head = [0xb5, 0, 0x31, b'G', b'A', b'9', b'4', 3, 0xc1, 0xff, 0xfc];
            [&head[..], &pair, &[0xff]].concat()
        };
        let slice = [0, 0, 0, 2, 0x65, 0x88];
        let picture = |pair| [&message(&[6], &captions(pair))[..], &slice].concat();
        let none = Some(Vec::new());
        assert_eq!(found(NalSyntax::Avc, &[slice.to_vec(), picture([0x80, 0x80])]), none);
        assert_eq!(
            found(NalSyntax::Avc, &[picture([0x80, 0x80]), picture([0x94, 0x20])]),
            Some(vec!["CC1".to_owned()])
        );
        // Letters alone, and another form: there is something, and its channel is not known.
        assert_eq!(found(NalSyntax::Avc, &[picture([0xc8, 0xe9])]), None);
        assert_eq!(found(NalSyntax::Avc, &[message(&[6], &[0xb5, 0, 0x2f, 3, 1, 0xc0])]), None);
        // A suffix message of H.265, and the second field of a picture.
        let suffix = [&slice[..], &message(&[40 << 1, 1], &captions([0x94, 0x25]))].concat();
        assert_eq!(found(NalSyntax::Hevc, &[suffix]), Some(vec!["CC1".to_owned()]));
        let fields = [picture([0x80, 0x80]), picture([0x1c, 0x20])].concat();
        assert_eq!(found(NalSyntax::Avc, std::slice::from_ref(&fields)), Some(vec!["CC2".to_owned()]));
        // A length beyond the end.
        (0..fields.len()).for_each(|end| drop(found(NalSyntax::Avc, &[fields[..end].to_vec()])));
    }
}

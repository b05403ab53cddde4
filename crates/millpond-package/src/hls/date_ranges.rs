//! Events of a stream in media playlists (`EXT-X-DATERANGE`, RFC 8216 4.3.2.7).

use super::live::push_seconds;
use crate::live::{CueAttribute, CueRange};
use bytes::Bytes;

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// Appends the tag of an event, with its splice information sections (4.3.2.7.1).
pub(super) fn push(out: &mut String, range: &CueRange) {
    out.push_str("#EXT-X-DATERANGE:ID=\"");
    out.push_str(&range.id);
    out.push_str("\",START-DATE=\"");
    millpond_utc::push(out, range.begin.wall);
    out.push('"');
    let end = range.end.as_ref();
    // The end of a break whose beginning is unknown.
    let date = end.or((range.attribute == CueAttribute::In).then_some(&range.begin));
    if let Some(date) = date {
        out.push_str(",END-DATE=\"");
        millpond_utc::push(out, date.wall);
        out.push('"');
    }
    if let Some(end) = end {
        out.push_str(",DURATION=");
        push_seconds(out, end.wall.saturating_sub(range.begin.wall));
    }
    if let Some(planned) = range.planned {
        out.push_str(",PLANNED-DURATION=");
        push_seconds(out, planned);
    }
    let name = match range.attribute {
        CueAttribute::Out => ",SCTE35-OUT=0x",
        CueAttribute::In => ",SCTE35-IN=0x",
        CueAttribute::Command => ",SCTE35-CMD=0x",
    };
    push_section(out, name, range.begin.section.as_ref());
    push_section(out, ",SCTE35-IN=0x", end.and_then(|end| end.section.as_ref()));
    out.push('\n');
}

fn push_section(out: &mut String, name: &str, section: Option<&Bytes>) {
    let Some(section) = section else { return };
    out.push_str(name);
    out.reserve(section.len() * 2);
    for byte in section {
        for digit in [byte >> 4, byte & 15] {
            out.push(char::from(DIGITS[usize::from(digit)]));
        }
    }
}

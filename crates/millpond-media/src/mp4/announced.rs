//! Makes the sample entry that stands for several ones of a track in init segments and manifests.

use crate::{
    boxes::Node,
    codec::{
        Av1Config, AvcConfig, Codec, HevcConfig, TrackKind, Vp9Config, from_quicktime, video::hevc::state_completeness,
    },
    mp4::sample_entries::StoredEntry,
};

/// Length in bytes of a visual sample entry's fields before its boxes (ISO/IEC 14496-12 12.1.3).
const FIELDS: usize = 78;
/// Offset of width and height in those fields.
const SIZE: std::ops::Range<usize> = 24..28;
/// Length of `av1C` without its sequence header (AV1 Codec ISO Media File Format Binding 2.3).
const AV1_FIELDS: usize = 4;

/// Returns an entry that announces the needs of all entries together: the highest profile and level, and the largest picture. Its
/// type allows parameter sets in samples. Its own parameter sets come from the entry with the highest profile. Colours, with
/// the light of HDR pictures, and pixel aspect are left out where they differ: the parameter sets tell them. `None` without entries.
pub(crate) fn of(entries: &[&StoredEntry]) -> Option<StoredEntry> {
    let highest = *entries.iter().rev().max_by_key(|entry| rank(&entry.codec))?;
    let mut all = highest.clone();
    for entry in entries {
        all.codec = with(&all.codec, &entry.codec);
        all.kind = larger(all.kind, entry.kind);
    }
    let mut left_out: Vec<&[u8; 4]> = Vec::new();
    if entries.iter().any(|entry| entry.codec.color() != highest.codec.color()) {
        left_out.extend([b"colr", b"mdcv", b"clli"]);
    }
    if entries.iter().any(|entry| aspect(entry.kind) != aspect(highest.kind)) {
        left_out.push(b"pasp");
    }
    if let Some(written) = written(highest, &all, &left_out) {
        all.sample_entry = written;
    }
    Some(all)
}

/// Returns profile and level.
fn rank(codec: &Codec) -> (u8, u8) {
    match codec {
        Codec::Avc(config) => (config.profile, config.level),
        Codec::Hevc(config) => (config.profile, config.level),
        Codec::Av1(config) => (config.profile, config.level),
        Codec::Vp9(config) => (config.profile, config.level),
        _ => (0, 0),
    }
}

/// Returns a configuration that covers both, with the parameter sets of `a`.
fn with(a: &Codec, b: &Codec) -> Codec {
    match (a, b) {
        (Codec::Avc(a), Codec::Avc(b)) => Codec::Avc(AvcConfig {
            fourcc: *b"avc3",
            profile: a.profile.max(b.profile),
            compatibility: a.compatibility & b.compatibility,
            level: a.level.max(b.level),
            ..a.clone()
        }),
        (Codec::Hevc(a), Codec::Hevc(b)) => {
            let profile = a.profile.max(b.profile);
            let mut constraints = a.constraints;
            constraints.iter_mut().zip(b.constraints).for_each(|(byte, other)| *byte &= other);
            Codec::Hevc(HevcConfig {
                fourcc: *b"hev1",
                profile,
                high_tier: a.high_tier | b.high_tier,
                compatibility: a.compatibility & b.compatibility | 1 << (31 - u32::from(profile & 31)),
                constraints,
                level: a.level.max(b.level),
                ..a.clone()
            })
        }
        (Codec::Av1(a), Codec::Av1(b)) => {
            Codec::Av1(Av1Config { level: a.level.max(b.level), high_tier: a.high_tier | b.high_tier, ..a.clone() })
        }
        (Codec::Vp9(a), Codec::Vp9(b)) => Codec::Vp9(Vp9Config { level: a.level.max(b.level), ..a.clone() }),
        (a, _) => a.clone(),
    }
}

/// Returns a kind with the larger picture size of both.
fn larger(a: TrackKind, b: TrackKind) -> TrackKind {
    match (a, b) {
        (
            TrackKind::Video { width, height, orientation, pixel_aspect },
            TrackKind::Video { width: other_width, height: other_height, .. },
        ) => TrackKind::Video {
            width: width.max(other_width),
            height: height.max(other_height),
            orientation,
            pixel_aspect,
        },
        (a, _) => a,
    }
}

fn aspect(kind: TrackKind) -> Option<(u32, u32)> {
    match kind {
        TrackKind::Video { pixel_aspect, .. } => Some(pixel_aspect),
        _ => None,
    }
}

/// Returns the sample entry of `highest` with the properties of `all`, without some boxes. `None` where it is not changed.
fn written(highest: &StoredEntry, all: &StoredEntry, left_out: &[&[u8; 4]]) -> Option<Vec<u8>> {
    let node = Node::new(&highest.sample_entry, 0, "stsd")?;
    let TrackKind::Video { width, height, .. } = all.kind else { return None };
    let kind = match &all.codec {
        Codec::Avc(config) => config.fourcc,
        Codec::Hevc(config) => config.fourcc,
        _ => node.kind,
    };
    let mut body = node.body.get(..FIELDS)?.to_vec();
    let (width, height) = (width.to_be_bytes(), height.to_be_bytes());
    body.get_mut(SIZE)?.copy_from_slice(&[width[0], width[1], height[0], height[1]]);
    for child in node.children_after(FIELDS).filter(|child| !left_out.contains(&&child.kind)) {
        from_quicktime::put(&mut body, &child.kind, &[&configuration(&child, &all.codec)]);
    }
    Some(from_quicktime::boxed(kind, &body))
}

/// Returns the content of a box of a sample entry, with the properties of `codec` if it is the decoder's configuration.
fn configuration(child: &Node<'_>, codec: &Codec) -> Vec<u8> {
    let mut body = child.body.to_vec();
    match (&child.kind, codec) {
        (b"avcC", Codec::Avc(config)) => {
            put(&mut body, 1, &[config.profile, config.compatibility, config.level]);
        }
        (b"hvcC", Codec::Hevc(config)) => {
            let tier = u8::from(config.high_tier) << 5;
            put(&mut body, 1, &[config.profile_space << 6 | tier | config.profile]);
            put(&mut body, 2, &config.compatibility.to_be_bytes());
            put(&mut body, 6, &config.constraints);
            put(&mut body, 12, &[config.level]);
            // Samples hold sets too.
            state_completeness(&mut body, false);
        }
        (b"av1C", Codec::Av1(config)) => {
            put(&mut body, 1, &[config.profile << 5 | config.level]);
            if let Some(flags) = body.get_mut(2) {
                *flags |= u8::from(config.high_tier) << 7;
            }
            body.truncate(AV1_FIELDS);
        }
        (b"vpcC", Codec::Vp9(config)) => put(&mut body, 5, &[config.level]),
        _ => {}
    }
    body
}

fn put(body: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = body.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

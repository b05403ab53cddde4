//! Synthetic encrypted movies for tests: files of boxes, which are then indexed.

use crate::{
    fmp4::BoxWriter,
    presentation::{Presentation, PresentationOptions, SourceObject},
    testing::avc_entry,
};
use millpond_media::{Movie, Scheme, Work, index_bytes};
use std::sync::Arc;

pub(crate) const KEY: [u8; 16] = *b"0123456789abcdef";
pub(crate) const OTHER: [u8; 16] = *b"fedcba9876543210";
pub(crate) const WIDEVINE: [u8; 16] = *b"\xed\xef\x8b\xa9\x79\xd6\x4a\xce\xa3\xc8\x27\xdc\xd5\x1d\x21\xed";
/// Bytes of each sample.
pub(crate) const SIZE: u32 = 100_000;

/// A second of ten samples, the first of which is a sync sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Second {
    /// Encrypted, with subsamples.
    Encrypted,
    /// Clear, with the sample entry that is not encrypted.
    Clear,
    /// Encrypted with [`OTHER`], with a header of its own.
    OtherKey,
}

/// Returns a file of these seconds encrypted by `scheme`, with headers of these protection systems.
pub(crate) fn movie(scheme: Scheme, seconds: &[Second], systems: &[[u8; 16]]) -> Arc<Movie> {
    let mut w = BoxWriter::default();
    w.put(b"ftyp", |w| w.bytes(b"iso6\0\0\0\0"));
    w.put(b"moov", |w| {
        w.full(b"mvhd", 0, 0, |w| {
            w.zeros(8);
            w.u32(1000);
            w.zeros(84);
        });
        w.put(b"trak", |w| track(w, scheme));
        w.put(b"mvex", |w| {
            w.full(b"trex", 0, 0, |w| [1, 1, 100, SIZE, 0x0101_0000].into_iter().for_each(|value| w.u32(value)));
        });
        systems.iter().for_each(|system| header(w, system, b"movie"));
    });
    for second in seconds {
        fragment(&mut w, scheme, *second);
    }
    Arc::new(index_bytes(&w.out).unwrap())
}

pub(crate) fn presentation(movie: &Arc<Movie>) -> Presentation {
    let source = SourceObject::new(movie.clone(), "film.mp4".into());
    let options = PresentationOptions { target_duration: 1.0 };
    Presentation::build(vec![source], Vec::new(), &options, &Work::unlimited()).unwrap()
}

fn header(w: &mut BoxWriter, system: &[u8; 16], data: &[u8]) {
    w.full(b"pssh", 0, 0, |w| {
        w.bytes(system);
        w.u32(data.len() as u32);
        w.bytes(data);
    });
}

fn parameters(w: &mut BoxWriter, scheme: Scheme, key: &[u8; 16]) {
    let constant = scheme == Scheme::Cbcs;
    w.bytes(if constant { &[0, 0x19, 1, 0] } else { &[0, 0, 1, 8] });
    w.bytes(key);
    if constant {
        w.bytes(&[16; 17]);
    }
}

fn track(w: &mut BoxWriter, scheme: Scheme) {
    w.full(b"tkhd", 0, 7, |w| {
        w.zeros(8);
        w.u32(1);
        w.zeros(68);
    });
    w.put(b"mdia", |w| {
        w.full(b"mdhd", 0, 0, |w| {
            w.zeros(8);
            w.u32(1000);
            w.zeros(8);
        });
        w.full(b"hdlr", 0, 0, |w| {
            w.zeros(4);
            w.bytes(b"vide");
            w.zeros(13);
        });
        w.put(b"minf", |w| w.put(b"stbl", |w| w.full(b"stsd", 0, 0, |w| entries(w, scheme))));
    });
}

/// Writes the encrypted sample entry and the clear one.
fn entries(w: &mut BoxWriter, scheme: Scheme) {
    w.u32(2);
    w.put(b"encv", |w| {
        w.bytes(&avc_entry()[8..]);
        w.put(b"sinf", |w| {
            w.put(b"frma", |w| w.bytes(b"avc1"));
            w.full(b"schm", 0, 0, |w| {
                w.bytes(scheme.name().as_bytes());
                w.u32(0x1_0000);
            });
            w.put(b"schi", |w| w.full(b"tenc", 1, 0, |w| parameters(w, scheme, &KEY)));
        });
    });
    w.bytes(&avc_entry());
}

fn fragment(w: &mut BoxWriter, scheme: Scheme, second: Second) {
    w.put(b"moof", |w| {
        if second == Second::OtherKey {
            header(w, &OTHER, b"fragment");
        }
        w.put(b"traf", |w| {
            w.full(b"tfhd", 0, 0x2_0002, |w| {
                [1, if second == Second::Clear { 2 } else { 1 }].into_iter().for_each(|v| w.u32(v))
            });
            w.full(b"trun", 0, 4, |w| [10, 0x0200_0000].into_iter().for_each(|value| w.u32(value)));
            if second == Second::OtherKey {
                w.full(b"sbgp", 0, 0, |w| {
                    w.bytes(b"seig");
                    [1, 10, 0x1_0001].into_iter().for_each(|value| w.u32(value));
                });
                w.full(b"sgpd", 1, 0, |w| {
                    w.bytes(b"seig");
                    [0, 1, if scheme == Scheme::Cbcs { 37 } else { 20 }].into_iter().for_each(|value| w.u32(value));
                    parameters(w, scheme, &OTHER);
                });
            }
            if second != Second::Clear {
                w.full(b"senc", 0, 2, |w| {
                    w.u32(10);
                    for number in 0..10_u8 {
                        w.bytes(&[number + 1; 8][..if scheme == Scheme::Cbcs { 0 } else { 8 }]);
                        w.u16(1 + u16::from(number % 2));
                        let rest = if number % 2 == 1 { 50_000 } else { 0 };
                        w.u16(10);
                        w.u32(SIZE - 10 - rest);
                        if rest > 0 {
                            w.u16(0);
                            w.u32(rest);
                        }
                    }
                });
            }
        });
    });
    w.put(b"mdat", |w| w.zeros(10 * SIZE as usize));
}

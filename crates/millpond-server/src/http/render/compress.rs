//! Content codings of texts: brotli and gzip.

use millpond_http::request::coding::Coding;
use std::{
    io::{self, Write as _},
    ops::RangeInclusive,
};

/// Quality of brotli. At these two levels, the playlist of a two-hour film takes a few milliseconds.
const BROTLI_QUALITY: i32 = 5;
/// Level of gzip.
const GZIP_LEVEL: u32 = 6;
/// Window sizes of brotli, as powers of two. Encoder and decoder keep a window in memory.
const BROTLI_WINDOW: RangeInclusive<u32> = 16..=20;

/// Returns an estimate of the memory that compressing `len` bytes takes, input and output included.
pub(super) fn memory(coding: Coding, len: usize) -> u64 {
    let own = match coding {
        Coding::Brotli => (3 << 19) + (4_u64 << brotli_window(len)),
        Coding::Gzip => 512 << 10,
    };
    own + 2 * len as u64
}

/// Compresses a text.
///
/// # Errors
/// Those of the encoder. Writing to memory gives it no reason for one.
pub(crate) fn encode(coding: Coding, text: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 + 64);
    match coding {
        Coding::Brotli => {
            let params = brotli::enc::BrotliEncoderParams {
                quality: BROTLI_QUALITY,
                lgwin: brotli_window(text.len()) as i32,
                size_hint: text.len(),
                ..Default::default()
            };
            brotli::BrotliCompress(&mut &*text, &mut out, &params)?;
        }
        Coding::Gzip => {
            let mut coder = flate2::write::GzEncoder::new(&mut out, flate2::Compression::new(GZIP_LEVEL));
            coder.write_all(text)?;
            coder.finish()?;
        }
    }
    Ok(out)
}

/// Returns the smallest window that holds `len` bytes.
fn brotli_window(len: usize) -> u32 {
    len.max(1).next_power_of_two().ilog2().clamp(*BROTLI_WINDOW.start(), *BROTLI_WINDOW.end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn compressed_text_decodes_to_the_same_in_a_fraction_of_its_size() {
        let text: String = (1..1800).map(|n| format!("#EXTINF:4.000000,\n{n}.m4s\n")).collect();
        for coding in Coding::ALL {
            for text in [text.as_bytes(), b""] {
                let coded = encode(coding, text).unwrap();
                let mut decoded = Vec::new();
                match coding {
                    Coding::Brotli => drop(brotli::Decompressor::new(&*coded, 4096).read_to_end(&mut decoded).unwrap()),
                    Coding::Gzip => drop(flate2::read::GzDecoder::new(&*coded).read_to_end(&mut decoded).unwrap()),
                }
                assert!(decoded == text, "{coding:?}");
                assert!(text.is_empty() || coded.len() * 5 < text.len(), "{coding:?}: {}", coded.len());
            }
        }
    }
}

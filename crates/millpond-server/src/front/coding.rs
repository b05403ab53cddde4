//! Content codings: which one a client prefers (RFC 9110 12.5.3), and the coding itself.

use super::Request;
use http::header;
use std::{
    io::{self, Write as _},
    ops::RangeInclusive,
};

/// A content coding. Of equally welcome ones the first is used: it makes playlists smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Coding {
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
    /// RFC 1952.
    Gzip,
}

/// Effort of each coding: a two-hour playlist takes a few milliseconds, once.
const BROTLI_QUALITY: i32 = 5;
const ZSTD_LEVEL: i32 = 6;
const GZIP_LEVEL: u32 = 6;
/// Windows of brotli, as powers of two: what coder and decoder have in memory.
const BROTLI_WINDOW: RangeInclusive<u32> = 16..=20;

impl Coding {
    const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// Its name in `Content-Encoding`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The coding that a client prefers to none.
    ///
    /// A range of a coded reply is of no use to anyone who has parts of another coding: a request for one gets none.
    pub(crate) fn preferred(request: &Request) -> Option<Self> {
        if request.headers.contains_key(header::RANGE) {
            return None;
        }
        let fields = request.headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|field| field.to_str().ok());
        let said = Weights::of(fields);
        let mut best: Option<(u16, Self)> = None;
        for coding in Self::ALL {
            let weight = said.codings[coding as usize].or(said.any).unwrap_or(0);
            if weight > best.map_or(0, |(weight, _)| weight) {
                best = Some((weight, coding));
            }
        }
        // No coding is always acceptable unless it is refused; only one that is named competes.
        best.filter(|(weight, _)| said.identity.is_none_or(|identity| *weight >= identity)).map(|(_, coding)| coding)
    }

    /// Bytes of memory, about, that coding a text of `len` bytes takes, text and result included.
    pub(super) fn memory(self, len: usize) -> u64 {
        let own = match self {
            Self::Brotli => (3 << 19) + (4_u64 << brotli_window(len)),
            Self::Zstd => (1 << 20) + 8 * len.min(1 << 20) as u64,
            Self::Gzip => 512 << 10,
        };
        own + 2 * len as u64
    }

    /// Codes a text.
    ///
    /// # Errors
    /// Where the coder fails, which it has no reason to.
    pub(super) fn encode(self, text: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::with_capacity(text.len() / 4 + 64);
        match self {
            Self::Brotli => {
                let params = brotli::enc::BrotliEncoderParams {
                    quality: BROTLI_QUALITY,
                    lgwin: brotli_window(text.len()) as i32,
                    size_hint: text.len(),
                    ..Default::default()
                };
                brotli::BrotliCompress(&mut &*text, &mut out, &params)?;
            }
            // Sizes its tables by the text.
            Self::Zstd => out = zstd::bulk::compress(text, ZSTD_LEVEL)?,
            Self::Gzip => {
                let mut coder = flate2::write::GzEncoder::new(&mut out, flate2::Compression::new(GZIP_LEVEL));
                coder.write_all(text)?;
                coder.finish()?;
            }
        }
        Ok(out)
    }
}

/// The smallest window that a text of `len` bytes fits in.
fn brotli_window(len: usize) -> u32 {
    len.max(1).next_power_of_two().ilog2().clamp(*BROTLI_WINDOW.start(), *BROTLI_WINDOW.end())
}

/// What `Accept-Encoding` says, in thousandths.
#[derive(Debug, Default, PartialEq, Eq)]
struct Weights {
    /// By the number of the coding.
    codings: [Option<u16>; 3],
    identity: Option<u16>,
    /// Of those that are not named.
    any: Option<u16>,
}

impl Weights {
    fn of<'a>(fields: impl Iterator<Item = &'a str>) -> Self {
        let mut said = Self::default();
        for member in fields.flat_map(|field| field.split(',')) {
            let (name, parameters) = member.split_once(';').unwrap_or((member, ""));
            let Some(weight) = weight(parameters) else { continue };
            let slot = match name.trim().to_ascii_lowercase().as_str() {
                "br" => &mut said.codings[Coding::Brotli as usize],
                "zstd" => &mut said.codings[Coding::Zstd as usize],
                "gzip" | "x-gzip" => &mut said.codings[Coding::Gzip as usize],
                "identity" => &mut said.identity,
                "*" => &mut said.any,
                _ => continue,
            };
            *slot = Some(weight);
        }
        said
    }
}

/// The weight that parameters give, in thousandths (RFC 9110 12.4.2): all of it without one, none for one that can't be
/// read.
fn weight(parameters: &str) -> Option<u16> {
    let parameters = parameters.trim();
    if parameters.is_empty() {
        return Some(1000);
    }
    let (name, value) = parameters.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    let (whole, part) = value.trim().split_once('.').unwrap_or((value.trim(), ""));
    if part.len() > 3 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let thousandths = format!("{part:0<3}").parse().ok()?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn preferred(fields: &[&str]) -> Option<Coding> {
        let mut headers = http::HeaderMap::new();
        for field in fields {
            headers.append(header::ACCEPT_ENCODING, field.parse().unwrap());
        }
        Coding::preferred(&Request { method: http::Method::GET, target: "/".to_owned(), headers })
    }

    #[test]
    fn the_heaviest_wins_and_of_equals_the_smallest() {
        use Coding::{Brotli, Gzip, Zstd};
        for (field, coding) in [
            ("gzip, deflate, br, zstd", Some(Brotli)),
            ("gzip, zstd", Some(Zstd)),
            ("gzip", Some(Gzip)),
            ("X-GZIP", Some(Gzip)),
            ("br;q=0.5, gzip;q=0.501", Some(Gzip)),
            ("br ; q=0.2 , zstd; Q=0.3,gzip;q=0.1", Some(Zstd)),
            ("*", Some(Brotli)),
            ("*, br;q=0", Some(Zstd)),
            ("*;q=0, gzip", Some(Gzip)),
            ("identity;q=0, gzip;q=0.001", Some(Gzip)),
            ("identity;q=0.5, gzip;q=0.5", Some(Gzip)),
            ("identity, gzip;q=0.5", None),
            ("gzip;q=0", None),
            ("gzip;q=0.000", None),
            ("", None),
            ("deflate, compress", None),
            ("identity", None),
            ("*;q=0", None),
            ("gzip;q=2", None),
            ("gzip;q=1.001", None),
            ("gzip;q=0.0001", None),
            ("gzip;q=-1", None),
            ("gzip;level=9", None),
            (";;q=1,=,*;=", None),
        ] {
            assert_eq!(preferred(&[field]), coding, "{field}");
        }
        assert_eq!(preferred(&[]), None);
        assert_eq!(preferred(&["gzip;q=0.1", "br"]), Some(Brotli), "a list goes on in the next field");
    }

    #[test]
    fn a_range_is_of_what_has_no_coding() {
        let mut headers = http::HeaderMap::new();
        headers.append(header::ACCEPT_ENCODING, "gzip".parse().unwrap());
        headers.append(header::RANGE, "bytes=0-1".parse().unwrap());
        let request = Request { method: http::Method::GET, target: "/".to_owned(), headers };
        assert_eq!(Coding::preferred(&request), None);
    }

    #[test]
    fn what_is_coded_decodes_to_the_same_in_a_fraction_of_its_size() {
        let text: String = (1..1800).map(|n| format!("#EXTINF:4.000000,\n{n}.m4s\n")).collect();
        for coding in Coding::ALL {
            for text in [text.as_bytes(), b""] {
                let coded = coding.encode(text).unwrap();
                let mut decoded = Vec::new();
                match coding {
                    Coding::Brotli => drop(brotli::Decompressor::new(&*coded, 4096).read_to_end(&mut decoded).unwrap()),
                    Coding::Zstd => decoded = zstd::stream::decode_all(&*coded).unwrap(),
                    Coding::Gzip => drop(flate2::read::GzDecoder::new(&*coded).read_to_end(&mut decoded).unwrap()),
                }
                assert!(decoded == text, "{coding:?}");
                assert!(text.is_empty() || coded.len() * 5 < text.len(), "{coding:?}: {}", coded.len());
            }
        }
    }
}

//! Content codings that a client accepts (RFC 9110 section 12.5.3).

use super::Request;
use http::header;

/// A content coding. Browsers that take `zstd` take `br` too, so it is not among them. The first of equally preferred ones is used, because it makes playlists smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `br` (RFC 7932).
    Brotli,
    /// `gzip` (RFC 1952).
    Gzip,
}

impl Coding {
    /// All codings, the most preferred first.
    pub const ALL: [Self; 2] = [Self::Brotli, Self::Gzip];

    /// Returns its name in `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    /// Returns the coding that a client prefers to an uncoded reply.
    ///
    /// A request with `Range` gets no coding: a client can't join ranges of different codings.
    pub fn preferred(request: &Request) -> Option<Self> {
        if request.headers.contains_key(header::RANGE) {
            return None;
        }
        let fields = request.headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|field| field.to_str().ok());
        let accepted = Weights::of(fields);
        let mut best: Option<(u16, Self)> = None;
        for coding in Self::ALL {
            let weight = accepted.codings[coding as usize].or(accepted.any).unwrap_or(0);
            if weight > best.map_or(0, |(weight, _)| weight) {
                best = Some((weight, coding));
            }
        }
        // An uncoded reply is acceptable unless refused. Its weight counts only if the client states one.
        best.filter(|(weight, _)| accepted.identity.is_none_or(|identity| *weight >= identity))
            .map(|(_, coding)| coding)
    }
}

/// Weights in `Accept-Encoding`, in thousandths.
#[derive(Debug, Default, PartialEq, Eq)]
struct Weights {
    /// Weights of the codings, by their numbers.
    codings: [Option<u16>; 2],
    /// Weight of an uncoded reply.
    identity: Option<u16>,
    /// Weight of all codings without one of their own.
    any: Option<u16>,
}

impl Weights {
    fn of<'a>(fields: impl Iterator<Item = &'a str>) -> Self {
        let mut weights = Self::default();
        for member in fields.flat_map(|field| field.split(',')) {
            let (name, parameters) = member.split_once(';').unwrap_or((member, ""));
            let Some(weight) = weight(parameters) else { continue };
            let slot = match name.trim().to_ascii_lowercase().as_str() {
                "br" => &mut weights.codings[Coding::Brotli as usize],
                "gzip" | "x-gzip" => &mut weights.codings[Coding::Gzip as usize],
                "identity" => &mut weights.identity,
                "*" => &mut weights.any,
                _ => continue,
            };
            *slot = Some(weight);
        }
        weights
    }
}

/// Parses a weight, in thousandths (RFC 9110 section 12.4.2). The default is 1000; `None` stands for a malformed one.
pub(super) fn weight(parameters: &str) -> Option<u16> {
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

    fn preferred(fields: &[&str]) -> Option<Coding> {
        let mut headers = http::HeaderMap::new();
        for field in fields {
            headers.append(header::ACCEPT_ENCODING, field.parse().unwrap());
        }
        Coding::preferred(&Request::new(http::Method::GET, "/".to_owned(), headers))
    }

    #[test]
    fn the_heaviest_wins_and_of_equals_the_smallest() {
        use Coding::{Brotli, Gzip};
        for (field, coding) in [
            ("gzip, deflate, br, zstd", Some(Brotli)),
            ("gzip, zstd", Some(Gzip)),
            ("zstd", None),
            ("gzip", Some(Gzip)),
            ("X-GZIP", Some(Gzip)),
            ("br;q=0.5, gzip;q=0.501", Some(Gzip)),
            ("br ; q=0.2 , gzip; Q=0.3,zstd;q=0.5", Some(Gzip)),
            ("*", Some(Brotli)),
            ("*, br;q=0", Some(Gzip)),
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
        let request = Request::new(http::Method::GET, "/".to_owned(), headers);
        assert_eq!(Coding::preferred(&request), None);
    }
}

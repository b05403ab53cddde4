//! Media types of replies that a client accepts (RFC 9110 section 12.5.1).

use super::{Request, coding::weight};
use http::header;

/// Media types of problem documents, which programs may ask for.
const DOCUMENTS: [&str; 2] = ["application/problem+json", "application/json"];

/// Tells whether the client is a browser that opens an address for a person: it names HTML, and prefers no problem document.
///
/// `*/*` names no type: players and other programs send it.
pub fn prefers_html(request: &Request) -> bool {
    let fields = request.headers.get_all(header::ACCEPT).iter().filter_map(|field| field.to_str().ok());
    let members: Vec<(String, u16)> = fields.flat_map(|field| field.split(',')).filter_map(member).collect();
    let weight_of = |wanted: &str| members.iter().filter(|(name, _)| name == wanted).map(|(_, weight)| *weight).max();
    let html = weight_of("text/html").unwrap_or(0);
    html > 0 && DOCUMENTS.iter().all(|document| weight_of(document).is_none_or(|weight| weight <= html))
}

/// Parses a member of the list: the name of its type in lower case, and its weight in thousandths. `None` stands for a
/// malformed one.
fn member(text: &str) -> Option<(String, u16)> {
    let (name, parameters) = text.split_once(';').unwrap_or((text, ""));
    let is_weight = |parameter: &&str| parameter.trim_start().get(..2).is_some_and(|q| q.eq_ignore_ascii_case("q="));
    let weight = weight(parameters.split(';').find(is_weight).unwrap_or_default())?;
    Some((name.trim().to_ascii_lowercase(), weight))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, Method};

    fn prefers(fields: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(header::ACCEPT, field.parse().unwrap());
        }
        prefers_html(&Request::new(Method::GET, "/".to_owned(), headers))
    }

    #[test]
    fn browsers_that_open_an_address_prefer_html() {
        for field in [
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
            "text/html, application/xhtml+xml, image/jxr, */*",
            "TEXT/HTML;Q=0.5",
            "text/html;level=1;q=0.4, application/json;q=0.4",
        ] {
            assert!(prefers(&[field]), "{field}");
        }
        assert!(prefers(&["image/png", "text/html"]), "a list goes on in the next field");
    }

    #[test]
    fn programs_do_not() {
        for field in [
            "*/*",
            "",
            "application/json",
            "text/*",
            "text/html;q=0",
            "text/html;q=2",
            "text/html;q=0.5, application/problem+json",
            "text/html;q=0.8, application/json;q=0.9",
            "text/htmlx",
            ";;q=1,=,text/html=;q",
        ] {
            assert!(!prefers(&[field]), "{field}");
        }
        assert!(!prefers(&[]));
    }

    #[test]
    fn the_root_is_relative() {
        for (target, root) in [
            ("/", "./"),
            ("/films", "./"),
            ("/films/", "../"),
            ("/films/a.mp4/index.m3u8?x=/y/", "../../"),
            ("/a//b", "../../"),
            ("/a%2Fb/", "../"),
            ("/~eyJh.b.c/films/", "../"),
            ("*", "./"),
        ] {
            let request = Request::new(Method::GET, target.to_owned(), HeaderMap::new());
            assert_eq!(request.root(), root, "{target}");
        }
    }
}

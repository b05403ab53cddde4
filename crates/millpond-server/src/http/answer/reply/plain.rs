//! Errors in plain words, for people whose browser opens an address. Programs get a problem document.

use super::{
    Reply,
    html::{escaped, source},
};
use crate::problem::Problem;
use http::{HeaderValue, StatusCode, header};
use millpond_http::{
    body::Body,
    request::{Request, accept::prefers_html},
};
use std::sync::LazyLock;

const STYLE: &str = include_str!("../../../../page/error.css");

/// `Content-Security-Policy` of the page of an error: it loads and runs nothing.
static POLICY: LazyLock<Option<HeaderValue>> = LazyLock::new(|| {
    let policy = format!(
        "default-src 'none'; style-src {}; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        source(STYLE)
    );
    HeaderValue::from_str(&policy).ok()
});

/// Puts a page in the place of a problem document that a browser would show to a person. The status and all fields stay, so that a
/// browser still asks for a password. Both replies tell caches what they depend on.
pub(in crate::http::answer) fn put_page(request: &Request, reply: &mut Reply) {
    let Some(problem) = reply.problem.take() else { return };
    reply.headers.append(header::VARY, HeaderValue::from_static("accept"));
    if !prefers_html(request) {
        return;
    }
    let wait = reply.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    reply.body = Body::bytes(page(&problem, &request.root(), wait).into());
    let fields = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in fields {
        reply.headers.insert(name, HeaderValue::from_static(value));
    }
    if let Some(policy) = &*POLICY {
        reply.headers.insert(header::CONTENT_SECURITY_POLICY, policy.clone());
    }
}

/// Returns the page of a problem. `root` leads from the request's path to the server's root; `wait` is the time after which the
/// client may try again, in seconds.
fn page(problem: &Problem, root: &str, wait: Option<u64>) -> String {
    let (heading, advice) = words(problem.status);
    let detail =
        detail(problem).map_or(String::new(), |detail| format!("<p class=\"detail\">{}</p>\n", escaped(&detail)));
    let wait = wait.map_or(String::new(), |seconds| {
        let unit = if seconds == 1 { "second" } else { "seconds" };
        format!(" The server asks to wait {seconds} {unit}.")
    });
    let id = problem.request_id.as_ref().map_or(String::new(), |id| format!(", request {}", escaped(id.as_str())));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{heading} – Millpond</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <header>Millpond</header>\n<main>\n<h1>{heading}</h1>\n{detail}<p>{advice}{wait}</p>\n\
         <p><a href=\"{root}\">All titles on this server</a></p>\n\
         <p class=\"facts\">{} {}{id}</p>\n</main>\n</body>\n</html>\n",
        problem.status.as_u16(),
        escaped(&problem.title),
    )
}

/// Returns the detail of a problem as a sentence, with the path that was asked for.
fn detail(problem: &Problem) -> Option<String> {
    let detail = problem.detail.as_deref().filter(|detail| !detail.is_empty())?;
    let mut sentence = detail.to_owned();
    // A path is not a word.
    if detail
        .split(' ')
        .next()
        .is_some_and(|first| !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_lowercase()))
    {
        sentence[..1].make_ascii_uppercase();
    }
    if let Some(asset) = problem.asset.as_deref().filter(|asset| !asset.is_empty() && !detail.contains(asset)) {
        sentence = format!("{}: {asset}", sentence.trim_end_matches('.'));
    }
    if !sentence.ends_with(['.', '!', '?', '…']) {
        sentence.push('.');
    }
    Some(sentence)
}

/// Returns a heading and advice for a status.
fn words(status: StatusCode) -> (&'static str, &'static str) {
    match status {
        StatusCode::BAD_REQUEST => ("This address can't be used", "Check the address, or find the title in the list."),
        StatusCode::UNAUTHORIZED => (
            "A password or a token is needed",
            "Reload this page to enter a user and a password, or open the link that you were given.",
        ),
        StatusCode::FORBIDDEN => ("You may not open this", "Ask the operator of this server for access."),
        StatusCode::NOT_FOUND => ("Nothing is at this address", "Check the address, or find the title in the list."),
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
            ("This address takes no forms", "Its server sends media. Open the address without a form.")
        }
        StatusCode::UNPROCESSABLE_ENTITY => (
            "This can't be played",
            "The file is at fault, or it has nothing in this form. Tell the operator of this server.",
        ),
        StatusCode::TOO_MANY_REQUESTS => ("Too many requests", "Wait a moment, then reload this page."),
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => (
            "The source does not answer",
            "The storage or the camera behind this server failed. Reload this page in a moment, or tell the operator of this server.",
        ),
        StatusCode::SERVICE_UNAVAILABLE => ("Not available now", "Reload this page in a moment."),
        status if status.is_server_error() => {
            ("The server failed", "Reload this page in a moment. Its operator finds the request in the log.")
        }
        _ => ("This did not work", "Check the address, or find the title in the list."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, Method};

    fn answered(accept: &'static str, problem: Problem) -> Reply {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        let request = Request::new(Method::GET, "/films/none/a.mp4".to_owned(), headers);
        let (status, body) = (problem.status, Body::bytes(problem.to_json()));
        let mut reply =
            Reply { status, headers: HeaderMap::new(), body, is_last: false, problem: Some(Box::new(problem)) };
        put_page(&request, &mut reply);
        reply
    }

    #[test]
    fn people_get_plain_words_and_programs_a_document() {
        let problem = || Problem::new(StatusCode::NOT_FOUND).detail("no file \"<script>alert(1)</script>\" & more");
        let page = answered("text/html,*/*;q=0.8", problem());
        assert_eq!(page.headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
        let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        let text = String::from_utf8(page.body.as_bytes().unwrap().to_vec()).unwrap();
        assert!(
            text.contains(
                "<p class=\"detail\">No file &quot;&lt;script&gt;alert(1)&lt;/script&gt;&quot; &amp; more.</p>"
            ),
            "{text}"
        );
        assert!(text.contains("<a href=\"../../\">") && text.contains("404 Not Found"), "{text}");
        let style = text.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
        assert!(policy.contains(&source(style)), "{policy}");
        let document = answered("*/*", problem());
        assert!(!document.headers.contains_key(header::CONTENT_TYPE), "as it was");
        assert_eq!(document.headers[header::VARY], "accept");
        assert_eq!(document.body.as_bytes().unwrap(), problem().to_json());
    }

    #[test]
    fn details_are_sentences_with_the_path() {
        let problem = |detail: &str, asset: &str| Problem::new(StatusCode::NOT_FOUND).detail(detail).asset(asset);
        for (asked, expected) in [
            (problem("no such file", "films/a.mp4"), "No such file: films/a.mp4."),
            (problem("films/a.mp4: too long", "films/a.mp4"), "films/a.mp4: too long."),
            (problem("what is it?", ""), "What is it?"),
            (problem(" or so", ""), " or so."),
        ] {
            assert_eq!(detail(&asked).unwrap(), expected);
        }
        assert_eq!(detail(&problem("", "x")), None);
    }

    #[test]
    fn every_status_has_words() {
        for code in [400, 401, 403, 404, 405, 408, 409, 415, 422, 429, 431, 500, 501, 502, 503, 504, 508] {
            let (heading, advice) = words(StatusCode::from_u16(code).unwrap());
            assert!(!heading.is_empty() && advice.ends_with('.') && !heading.ends_with('.'), "{code}");
        }
        let text = page(&Problem::new(StatusCode::SERVICE_UNAVAILABLE), "./", Some(1));
        assert!(text.contains("The server asks to wait 1 second.") && text.contains("href=\"./\""), "{text}");
    }
}

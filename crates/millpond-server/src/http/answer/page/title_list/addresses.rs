//! Addresses of titles in lists, as the client reaches the server.

use super::super::{super::Context, seen::SeenPlace};
use http::header;
use millpond_library::uri::encode;

/// Makes addresses of HLS.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    /// Address of the server, with a slash at its end: scheme, `Host` and the token of the path.
    base: String,
    /// Prefixes of the paths of places with the token of the query that their rules take, as a part of a path.
    tokens: Vec<(String, String)>,
}

impl Addresses {
    /// Reads the address of the server from a request. Without `Host` the addresses are relative to that of the list.
    pub(super) fn new<'a>(context: &Context<'_>, places: impl Iterator<Item = &'a SeenPlace>) -> Self {
        let request = context.request;
        let scheme = if context.is_secure() { "https" } else { "http" };
        let base = match request.header(header::HOST).filter(|host| !host.is_empty()) {
            Some(host) => format!("{scheme}://{host}{}/", request.prefix()),
            None => request.root(),
        };
        let gates = context.front.gates();
        let token = |place: &SeenPlace| {
            let token = gates.of(&place.name).filter(|_| request.token.is_none())?.in_path(context.query())?;
            Some((place.prefix.clone(), format!("~{token}/")))
        };
        Self { base, tokens: places.filter_map(token).collect() }
    }

    /// Returns the address of the HLS of a title or live stream.
    pub(super) fn of_hls(&self, path: &str) -> String {
        self.of(path, "index.m3u8")
    }

    /// Returns the address of the programmes of a stream, as XMLTV.
    pub(super) fn of_guide(&self, path: &str) -> String {
        self.of(path, "epg.xml")
    }

    fn of(&self, path: &str, name: &str) -> String {
        let of_place = |prefix: &str| path.starts_with(prefix) || path == prefix.trim_end_matches('/');
        let token = self.tokens.iter().find(|(prefix, _)| of_place(prefix)).map_or("", |(_, token)| token.as_str());
        let slash = if path.is_empty() { "" } else { "/" };
        format!("{}{token}{}{slash}{name}", self.base, encode(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_its_own_token() {
        let tokens = vec![("closed/".to_owned(), "~eyJa.b.c/".to_owned())];
        let addresses = Addresses { base: "http://tv.example:8080/".to_owned(), tokens };
        let address = |path| addresses.of_hls(path);
        assert_eq!(
            address("closed/a, \"b\" 100%\n.mp4"),
            "http://tv.example:8080/~eyJa.b.c/closed/a,%20%22b%22%20100%25%0A.mp4/index.m3u8"
        );
        assert_eq!(addresses.of_guide("closed/tv"), "http://tv.example:8080/~eyJa.b.c/closed/tv/epg.xml");
        assert_eq!(address("closed"), "http://tv.example:8080/~eyJa.b.c/closed/index.m3u8");
        assert_eq!(address("open/a.mp4"), "http://tv.example:8080/open/a.mp4/index.m3u8");
        assert_eq!(address(""), "http://tv.example:8080/index.m3u8");
    }
}

//! Several servers of one asset, in a manifest of it.
//!
//! A player that loses its server continues at the next pathway. HLS lists each variant once for each server: players without
//! content steering see redundant variants (RFC 8216 6.2.4), others see pathways (draft-pantos-hls-rfc8216bis 4.4.6.2). DASH
//! lists a `BaseURL` for each server (ISO/IEC 23009-1 5.6.4).
//!
//! The functions change finished manifests of this crate, so that one text of an asset can be cached whatever servers there are.

use crate::writing::xml::escape;
use std::{borrow::Cow, collections::HashSet};

/// A server of an asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pathway {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub id: String,
    /// URL of the manifest's folder there, with a slash at its end. May be empty for the server that sends the manifest.
    pub base: String,
    /// Query of the playlists there, with its question mark. May be empty.
    pub query: String,
}

/// The servers of an asset, the best first, and where players learn of another order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pathways<'a> {
    /// The servers.
    pub all: &'a [Pathway],
    /// URL of the steering manifest; `None` without content steering.
    pub steering: Option<&'a str>,
}

/// Returns a multivariant playlist that lists each variant and rendition once for each server.
#[must_use]
pub fn multivariant(list: &str, pathways: Pathways<'_>) -> String {
    let Some(first) = pathways.all.first() else { return list.to_owned() };
    let groups = groups(list);
    let mut out = String::with_capacity(list.len() * (pathways.all.len() + 1));
    let mut is_steered = false;
    for line in list.lines().filter(|line| !is_listed(line)) {
        out.push_str(line);
        out.push('\n');
        // After the version, before what refers to pathways.
        if let Some(server) = pathways.steering.filter(|_| !is_steered && line.starts_with("#EXT-X-VERSION")) {
            is_steered = true;
            out.push_str(&format!("#EXT-X-CONTENT-STEERING:SERVER-URI=\"{server}\",PATHWAY-ID=\"{}\"\n", first.id));
        }
    }
    for (index, pathway) in pathways.all.iter().enumerate() {
        for line in list.lines().filter(|line| is_listed(line)) {
            match line.strip_prefix('#') {
                None => out.push_str(&reference(line, pathway)),
                Some(_) if index > 0 && !has_copies(line, &groups) => continue,
                Some(_) => copy(&mut out, line, pathway, (index > 0).then_some(&groups)),
            }
            out.push('\n');
        }
    }
    out
}

/// Returns an MPD with a `BaseURL` for each server.
#[must_use]
pub fn mpd(text: &str, pathways: Pathways<'_>) -> String {
    let Some(first) = pathways.all.first() else { return text.to_owned() };
    let Some(at) = text.find("<MPD").and_then(|start| Some(start + end_of_tag(text.get(start..)?)?)) else {
        return text.to_owned();
    };
    let (head, rest) = text.split_at(at);
    let mut out = String::with_capacity(text.len() + 512);
    out.push_str(head);
    for pathway in pathways.all {
        let base = if pathway.base.is_empty() { "./" } else { &pathway.base };
        out.push_str(&format!("\n  <BaseURL serviceLocation=\"{}\">", pathway.id));
        escape(&mut out, base);
        out.push_str("</BaseURL>");
    }
    if let Some(server) = pathways.steering {
        let (open, close) = (format!("<ContentSteering defaultServiceLocation=\"{}\"", first.id), "</ContentSteering>");
        out.push_str(&format!("\n  {open} queryBeforeStart=\"false\">"));
        escape(&mut out, server);
        out.push_str(close);
    }
    out.push_str(rest);
    out
}

/// Whether a line is one of those that are listed for each server: variants, their URIs, and renditions.
fn is_listed(line: &str) -> bool {
    const TAGS: [&str; 3] = ["#EXT-X-MEDIA:", "#EXT-X-STREAM-INF:", "#EXT-X-I-FRAME-STREAM-INF:"];
    !line.is_empty() && (!line.starts_with('#') || TAGS.iter().any(|tag| line.starts_with(tag)))
}

/// The groups of renditions that have playlists of their own, as `AUDIO="aac"`.
fn groups(list: &str) -> HashSet<String> {
    let media = list.lines().filter_map(|line| line.strip_prefix("#EXT-X-MEDIA:"));
    let with_uri = media.filter(|text| attributes(text).any(|(name, _)| name == "URI"));
    let group = |text: &str| {
        let value = |wanted| attributes(text).find(|(name, _)| *name == wanted).map(|(_, value)| value);
        Some(format!("{}={}", value("TYPE")?, value("GROUP-ID")?))
    };
    with_uri.filter_map(group).collect()
}

/// Whether a tag is listed again for other servers: renditions without playlists are in the variants.
fn has_copies(line: &str, groups: &HashSet<String>) -> bool {
    let Some(text) = line.strip_prefix("#EXT-X-MEDIA:") else { return true };
    let value = |wanted| attributes(text).find(|(name, _)| *name == wanted).map_or("", |(_, value)| value);
    groups.contains(&format!("{}={}", value("TYPE"), value("GROUP-ID")))
}

/// Writes a tag for a server. Groups of other servers than the first have names of their own.
fn copy(out: &mut String, line: &str, pathway: &Pathway, renamed: Option<&HashSet<String>>) {
    let Some((tag, text)) = line.split_once(':') else { return };
    let is_media = tag == "#EXT-X-MEDIA";
    out.push_str(tag);
    for (index, (name, value)) in attributes(text).enumerate() {
        out.push(if index == 0 { ':' } else { ',' });
        out.push_str(name);
        out.push('=');
        let bare = value.trim_matches('"');
        let is_group = (is_media && name == "GROUP-ID")
            || renamed.is_some_and(|groups| groups.contains(&format!("{name}={value}")));
        match name {
            "URI" => out.push_str(&format!("\"{}\"", reference(bare, pathway))),
            _ if is_group && renamed.is_some() => out.push_str(&format!("\"{bare}-{}\"", pathway.id)),
            _ => out.push_str(value),
        }
    }
    if !is_media {
        out.push_str(&format!(",PATHWAY-ID=\"{}\"", pathway.id));
    }
}

/// A reference of the manifest at a server.
fn reference<'a>(relative: &'a str, pathway: &Pathway) -> Cow<'a, str> {
    match pathway.base.is_empty() && pathway.query.is_empty() {
        true => relative.into(),
        false => {
            let query =
                if relative.contains('?') { pathway.query.replacen('?', "&", 1) } else { pathway.query.clone() };
            format!("{}{relative}{query}", pathway.base).into()
        }
    }
}

/// The attributes of a list (RFC 8216 4.2). Values keep their quotes.
fn attributes(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (name, after) = rest.split_once('=')?;
        let length = match after.strip_prefix('"') {
            Some(quoted) => quoted.find('"')? + 2,
            None => after.find(',').unwrap_or(after.len()),
        };
        let (value, next) = after.split_at_checked(length)?;
        rest = next.strip_prefix(',').unwrap_or(next);
        Some((name, value))
    })
}

/// Length of the start tag at the beginning of a text.
fn end_of_tag(text: &str) -> Option<usize> {
    let mut quoted = false;
    let end = text.find(|c| {
        quoted ^= c == '"';
        c == '>' && !quoted
    })?;
    Some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers() -> [Pathway; 2] {
        let (base, query) = ("https://c:81/films/a%20b.mp4/".to_owned(), "?_millpond_node=b".to_owned());
        [
            Pathway { id: "b".to_owned(), base: String::new(), query: String::new() },
            Pathway { id: "c".to_owned(), base, query },
        ]
    }

    const LIST: &str = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-INDEPENDENT-SEGMENTS\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"aac\",NAME=\"one, URI=\",DEFAULT=YES,URI=\"a1/index.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID=\"cc\",NAME=\"x\",INSTREAM-ID=\"CC1\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=2,CODECS=\"avc1,mp4a\",AUDIO=\"aac\",CLOSED-CAPTIONS=\"cc\"\nv1/index.m3u8\n\
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI=\"v1/iframes.m3u8\"\n";

    #[test]
    fn variants_and_groups_are_listed_for_each_server() {
        let servers = servers();
        let expected = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-INDEPENDENT-SEGMENTS\n\
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"aac\",NAME=\"one, URI=\",DEFAULT=YES,URI=\"a1/index.m3u8\"\n\
            #EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID=\"cc\",NAME=\"x\",INSTREAM-ID=\"CC1\"\n\
            #EXT-X-STREAM-INF:BANDWIDTH=2,CODECS=\"avc1,mp4a\",AUDIO=\"aac\",CLOSED-CAPTIONS=\"cc\",PATHWAY-ID=\"b\"\n\
            v1/index.m3u8\n\
            #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI=\"v1/iframes.m3u8\",PATHWAY-ID=\"b\"\n\
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"aac-c\",NAME=\"one, URI=\",DEFAULT=YES,URI=\"https://c:81/films/a%20b.mp4/a1/index.m3u8?_millpond_node=b\"\n\
            #EXT-X-STREAM-INF:BANDWIDTH=2,CODECS=\"avc1,mp4a\",AUDIO=\"aac-c\",CLOSED-CAPTIONS=\"cc\",PATHWAY-ID=\"c\"\n\
            https://c:81/films/a%20b.mp4/v1/index.m3u8?_millpond_node=b\n\
            #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI=\"https://c:81/films/a%20b.mp4/v1/iframes.m3u8?_millpond_node=b\",PATHWAY-ID=\"c\"\n";
        assert_eq!(multivariant(LIST, Pathways { all: &servers, steering: None }), expected);
        let steered = multivariant(LIST, Pathways { all: &servers, steering: Some("/s?x") });
        assert!(
            steered.contains("VERSION:7\n#EXT-X-CONTENT-STEERING:SERVER-URI=\"/s?x\",PATHWAY-ID=\"b\"\n"),
            "{steered}"
        );
        assert_eq!(multivariant(LIST, Pathways::default()), LIST);
    }

    #[test]
    fn an_mpd_has_a_base_for_each_server() {
        let servers = servers();
        let text = "<?xml version=\"1.0\"?>\n<MPD a=\">\" b=\"x\">\n  <Period/>\n</MPD>\n";
        let expected = "<?xml version=\"1.0\"?>\n<MPD a=\">\" b=\"x\">\n  <BaseURL serviceLocation=\"b\">./</BaseURL>\n  \
            <BaseURL serviceLocation=\"c\">https://c:81/films/a%20b.mp4/</BaseURL>\n  \
            <ContentSteering defaultServiceLocation=\"b\" queryBeforeStart=\"false\">/s?x&amp;y</ContentSteering>\n  \
            <Period/>\n</MPD>\n";
        assert_eq!(mpd(text, Pathways { all: &servers, steering: Some("/s?x&y") }), expected);
        for odd in ["", "<MPD", "text"] {
            assert_eq!(mpd(odd, Pathways { all: &servers, steering: None }), odd);
        }
    }
}

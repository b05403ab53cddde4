//! Lists of renditions in a URL: `PREFIX,NAME1,NAME2,SUFFIX.urlset` means the files `PREFIXNAME1SUFFIX` and so on.
//!
//! A comma of a file's name stands in the list as `%2C`. In a URL both `%2C` and `%252C` mean that.

use crate::names;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// A list that is split into its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UrlList {
    /// Paths of the files, in order.
    pub(crate) files: Vec<String>,
}

impl UrlList {
    /// Splits the decoded path of a list. Returns `None` where it has fewer than two commas.
    ///
    /// Commas of its folders are part of their names where the last component is a list by itself.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let list = path.strip_suffix(".urlset").unwrap_or(path);
        let inside = list.rsplit_once('/').filter(|(_, name)| name.matches(',').count() > 1);
        let (folder, list) = inside.map_or(("", list), |(folder, name)| (folder, name));
        let parts: Vec<&str> = list.split(',').collect();
        let [prefix, middles @ .., suffix] = parts.as_slice() else { return None };
        if middles.is_empty() {
            return None;
        }
        let slash = if folder.is_empty() { "" } else { "/" };
        let file = |middle: &&str| format!("{folder}{slash}{}", unescaped(&format!("{prefix}{middle}{suffix}")));
        Some(Self { files: middles.iter().map(file).collect() })
    }

    /// Returns the list of some files of one folder.
    pub(crate) fn of(files: &[&str]) -> Option<String> {
        let names: Vec<String> = files.iter().map(|name| escaped(name)).collect();
        let first = names.first()?;
        let prefix = shared(&names);
        let begin = first.get(..prefix)?;
        // The extension stands behind the list, unless the names differ in it.
        let extension = first.rfind('.').filter(|dot| *dot >= prefix).and_then(|dot| first.get(dot..));
        let is_common =
            |end: &&str| names.iter().all(|name| name.get(prefix..).is_some_and(|rest| rest.ends_with(end)));
        let extension = extension.filter(is_common).unwrap_or_default();
        let middles = names.iter().map(|name| name.get(prefix..name.len() - extension.len()));
        let middles: Vec<&str> = middles.collect::<Option<_>>()?;
        Some(format!("{begin},{},{extension}.urlset", middles.join(",")))
    }
}

/// Returns the length of the start that all names share, in bytes.
pub(crate) fn shared(names: &[impl AsRef<str>]) -> usize {
    let Some((first, rest)) = names.split_first() else { return 0 };
    let first = first.as_ref();
    let common =
        |name: &str| first.chars().zip(name.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    rest.iter().fold(first.len(), |most, name| most.min(common(name.as_ref())))
}

/// Whether text is one of the escapes in a list: those of a comma and of a percent sign.
fn is_escape(text: &str) -> bool {
    ["%2C", "%2c", "%25"].iter().any(|escape| text.starts_with(escape))
}

/// Escapes the name of a file for a list.
fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (place, c) in name.char_indices() {
        match c {
            ',' => out.push_str("%2C"),
            '%' if name.get(place..).is_some_and(is_escape) => out.push_str("%25"),
            c => out.push(c),
        }
    }
    out
}

/// Returns the name of a file that a list has escaped.
fn unescaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(place) = rest.find('%') {
        let (before, from) = rest.split_at(place);
        out.push_str(before);
        let (text, length) = match is_escape(from) {
            true if from.starts_with("%25") => ("%", 3),
            true => (",", 3),
            false => ("%", 1),
        };
        out.push_str(text);
        rest = from.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Decodes a percent-encoded path of an asset or of a resource. Returns `None` if it is not UTF-8 text.
///
/// A percent-encoded comma of a list is part of a name, and stays encoded. Where all commas of a list are encoded, they
/// separate its names: many clients encode every comma.
#[must_use]
pub fn decode_path(path: &str) -> Option<Cow<'_, str>> {
    let is_kept = |component: &str| {
        component.contains(',')
            && names::is_url_set(component)
            && (component.contains("%2C") || component.contains("%2c"))
    };
    if !path.contains(',') || !path.split('/').any(is_kept) {
        return percent_decode_str(path).decode_utf8().ok();
    }
    let kept = |component: &str| match is_kept(component) {
        true => component.replace("%2C", "%252C").replace("%2c", "%252C"),
        false => component.to_owned(),
    };
    let path = path.split('/').map(kept).collect::<Vec<_>>().join("/");
    Some(Cow::Owned(percent_decode_str(&path).decode_utf8().ok()?.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

    fn files(list: &str) -> Vec<String> {
        UrlList::parse(list).map(|list| list.files).unwrap_or_default()
    }

    #[test]
    fn lists_in_urls_name_every_file() {
        for (names, expected) in [
            (&["a.mp4", "a_de.m4a"][..], "a,.mp4,_de.m4a,.urlset"),
            (&["é720p.mp4", "è360p.mp4"], ",é720p,è360p,.mp4.urlset"),
            (&["a.mp4", "a.mov"], "a.m,p4,ov,.urlset"),
            (&["a.mp4", "aa.mp4"], "a,,a,.mp4.urlset"),
            (&["E03,.mp4", "E03, 240p.mp4"], "E03%2C,, 240p,.mp4.urlset"),
            (&["a,b.mp4", "a%2Cb.mp4", "a%b.mp4"], "a%,2Cb,252Cb,b,.mp4.urlset"),
            (&["50%25,1.mp4", "50%2,2.mp4"], "50%2,525%2C1,%2C2,.mp4.urlset"),
        ] {
            let list = UrlList::of(names).unwrap();
            assert_eq!(list, expected);
            assert_eq!(files(&list), names, "{list}");
            assert_eq!(
                files(&format!("x, y/{list}")),
                names.iter().map(|name| format!("x, y/{name}")).collect::<Vec<_>>()
            );
            // As the page and as browsers encode it.
            let encoded = utf8_percent_encode(&list, NON_ALPHANUMERIC).to_string().replace("%2E", ".");
            for url in [encoded.clone(), encoded.replace("%2C", ",")] {
                assert_eq!(files(&decode_path(&url).unwrap()), names, "{url}");
            }
        }
    }

    #[test]
    fn an_encoded_comma_is_part_of_a_name() {
        let decoded = |path| decode_path(path).unwrap().into_owned();
        let list = decoded("Old%2C%20bad/E_%2c1,240,480,%20x.mp4.urlset/index.m3u8");
        assert_eq!(list, "Old, bad/E_%2C1,240,480, x.mp4.urlset/index.m3u8");
        assert_eq!(
            files(list.strip_suffix("/index.m3u8").unwrap()),
            ["Old, bad/E_,1240 x.mp4", "Old, bad/E_,1480 x.mp4"]
        );
        assert_eq!(decoded("a%2C240%2C480%2C.mp4.urlset"), "a,240,480,.mp4.urlset");
        assert_eq!(decoded("a%2Cb,c.mp4"), "a,b,c.mp4");
        assert!(decode_path("%ff").is_none() && decode_path("%ff,%2C.urlset").is_none());
    }

    #[test]
    fn files_of_several_folders_are_a_list() {
        assert_eq!(files("films/,a/1,b/2,.mp4.urlset"), ["films/a/1.mp4", "films/b/2.mp4"]);
        assert!(UrlList::parse("a,b.mp4.urlset").is_none() && UrlList::parse("a.urlset").is_none());
    }
}

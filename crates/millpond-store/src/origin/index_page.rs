//! The index page that a web server makes of a folder (nginx's autoindex, Apache's mod_autoindex, Caddy's browse):
//! the links in it that lead one level down.

use percent_encoding::percent_decode_str;
use url::Url;

/// Entries taken of one page.
const MOST: usize = 65_536;

/// What a page's links name, one level below `folder` (whose path ends with a slash): name, and whether it is a folder.
///
/// Links that lead elsewhere, have a query (the columns' sort links), or whose name is no single component of a path
/// are left out. Sorted, without doubles.
pub(crate) fn entries(folder: &Url, page: &str) -> Vec<(String, bool)> {
    let mut found: Vec<_> = links(page).filter_map(|link| below(folder, &link)).take(MOST).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Values of `href` attributes (HTML, 13.1.2.3: quoted, or up to a space or `>`).
fn links(page: &str) -> impl Iterator<Item = String> {
    let mut rest = page;
    std::iter::from_fn(move || {
        loop {
            let at = rest.as_bytes().windows(4).position(|w| w.eq_ignore_ascii_case(b"href"))?;
            rest = rest.get(at + 4..)?;
            let Some(value) = rest.trim_start().strip_prefix('=') else { continue };
            let value = value.trim_start();
            let (value, end) = match value.chars().next()? {
                quote @ ('"' | '\'') => (&value[1..], value[1..].find(quote)),
                _ => (value, value.find([' ', '>', '\n', '\t', '\r'])),
            };
            let Some(link) = end.and_then(|end| value.get(..end)) else { continue };
            rest = &value[link.len()..];
            return Some(link.replace("&amp;", "&").replace("&#39;", "'"));
        }
    })
}

fn below(folder: &Url, link: &str) -> Option<(String, bool)> {
    let url = folder.join(link).ok()?;
    if url.origin() != folder.origin() || url.query().is_some() {
        return None;
    }
    let name = url.path().strip_prefix(folder.path())?;
    let (name, is_folder) = name.strip_suffix('/').map_or((name, false), |name| (name, true));
    let name = percent_decode_str(name).decode_utf8().ok()?;
    let single = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0']);
    single.then(|| (name.into_owned(), is_folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(page: &str) -> Vec<(String, bool)> {
        entries(&Url::parse("http://host.example/media/a%20b/").unwrap(), page)
    }

    #[test]
    fn what_nginx_and_apache_write_is_read() {
        let nginx = "<html>\r\n<head><title>Index of /media/a b/</title></head>\r\n<body>\r\n<h1>Index of /media/a b/</h1><hr><pre><a href=\"../\">../</a>\r\n<a href=\"extras/\">extras/</a>  21-Nov-2026 01:00  -\r\n<a href=\"film%20one.mp4\">film one.mp4</a>  21-Nov-2026 01:00  123\r\n</pre><hr></body>\r\n</html>\r\n";
        assert_eq!(names(nginx), [("extras".to_owned(), true), ("film one.mp4".to_owned(), false)]);
        let apache = "<a href=\"?C=N;O=D\">Name</a> <A HREF='/media/'>Parent Directory</A> <a href=/media/a%20b/x&amp;y.mp4>x&amp;y.mp4</a>";
        assert_eq!(names(apache), [("x&y.mp4".to_owned(), false)]);
    }

    #[test]
    fn links_elsewhere_are_left_out() {
        let page = r#"<a href="http://other.example/media/a%20b/x.mp4"> <a href="deeper/x.mp4"> <a href="a%2fb"> <a href="%2e%2e"> <a href="x.mp4"> <a href="./x.mp4"> <a href="unended"#;
        assert_eq!(names(page), [("x.mp4".to_owned(), false)]);
    }
}

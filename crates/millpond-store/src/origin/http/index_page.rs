//! The index page that a web server makes of a folder (nginx's autoindex, Apache's mod_autoindex, Caddy's browse):
//! the links in it that lead one level down.
//!
//! The page is tokenized as HTML (13.2.5) in one pass, so that its cost is linear in its length. Only `href` of `<a>`
//! counts: text, comments and scripts hold no links. Links are relative to the address of the folder, and `<base>` is
//! ignored: no such page needs one, and a link that leads elsewhere is left out in any case.

use html5gum::Tokenizer;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use percent_encoding::percent_decode_str;
use url::Url;

/// Most links of one page that are resolved; later ones are left out.
const MOST_LINKS: usize = 65_536;
/// Longest link in bytes: names of files have at most 255, each of which may be encoded as three.
const LONGEST_LINK: usize = 2048;
/// Most bytes that are resolved for one page. The folder's address counts with each link, because it is parsed as
/// often.
const MOST_BYTES: usize = 16 << 20;

/// Returns the names of a page's links one level below `folder` (whose path ends with a slash). The flag says whether
/// the name is a folder. Names are sorted and unique.
///
/// A link is left out if it leads elsewhere, has a query (the columns' sort links), has a name that is no single path
/// component, or follows the first 65,536 links.
pub fn entries(folder: &Url, page: &[u8]) -> Vec<(String, bool)> {
    let mut links = Links { folder, links: 0, bytes: 0, found: Vec::new(), is_anchor: false, is_href: false };
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: html5gum::Span<()>| links.take(event));
    emitter.naively_switch_states(true);
    let _end = Tokenizer::new_with_emitter(page, emitter).next();
    let mut found = links.found;
    found.sort_unstable();
    found.dedup();
    found
}

/// The limit of links is reached: the rest of the page is not read.
struct Full;

/// Gathers links from the tokens of a page.
struct Links<'a> {
    folder: &'a Url,
    links: usize,
    bytes: usize,
    found: Vec<(String, bool)>,
    /// Whether the open tag is an `<a>` whose `href` has not been seen.
    is_anchor: bool,
    is_href: bool,
}

impl Links<'_> {
    fn take(&mut self, event: CallbackEvent<'_>) -> Option<Full> {
        match event {
            CallbackEvent::OpenStartTag { name } => self.is_anchor = name == b"a",
            CallbackEvent::AttributeName { name } => self.is_href = self.is_anchor && name == b"href",
            CallbackEvent::AttributeValue { value } if std::mem::take(&mut self.is_href) => {
                // Only the first `href` of a tag counts (13.2.5.33).
                self.is_anchor = false;
                return self.resolve(value);
            }
            CallbackEvent::CloseStartTag { .. } | CallbackEvent::EndTag { .. } => {
                self.is_anchor = false;
                self.is_href = false;
            }
            _ => {}
        }
        None
    }

    fn resolve(&mut self, link: &[u8]) -> Option<Full> {
        if link.len() > LONGEST_LINK {
            return None;
        }
        self.links += 1;
        self.bytes += link.len() + self.folder.as_str().len();
        if self.links > MOST_LINKS || self.bytes > MOST_BYTES {
            return Some(Full);
        }
        let link = std::str::from_utf8(link).ok()?;
        self.found.extend(below(self.folder, link));
        None
    }
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
        entries(&Url::parse("http://host.example/media/a%20b/").unwrap(), page.as_bytes())
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

    #[test]
    fn only_anchors_count() {
        let page = r#"href=no1 <!-- <a href="no2"> --> <script>"<a href='no3'>"</script> <title><a href=no4></title>
            <link href="no5"> <base href="http://other.example/"> <a title="href=no6" href="yes.mp4" href="no7">no8</a>
            <a href="no9?C=N"> <area href=no10> <A id=x HREF = 'yes&#50;.mp4' class=y> </a href=no11>"#;
        assert_eq!(names(page), [("yes.mp4".to_owned(), false), ("yes2.mp4".to_owned(), false)]);
        assert!(entries(&Url::parse("http://h/").unwrap(), b"<a href=\xff\xfe> <a href='a").is_empty());
    }

    /// Returns the CPU time of this thread, which other tests do not change.
    fn cpu() -> std::time::Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        std::time::Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    }

    #[test]
    fn the_largest_page_costs_little_whatever_is_in_it() {
        let folder = format!("http://host.example/{}/", "f".repeat(4000));
        for (what, piece) in [
            ("bare attributes", "href=X".to_owned()),
            ("anchors", "<a href=X>".to_owned()),
            ("anchors that end nowhere", "<a href=\"X ".to_owned()),
            ("attributes of one tag", "<a x href=X y ".to_owned()),
            ("distinct attributes", "<a b1 b2 b3 b4=5 ".to_owned()),
            ("comments that end nowhere", "<!-- <a href".to_owned()),
            ("character references", "<a href=&amp;&notit;&#x41".to_owned()),
            ("long links", format!("<a href={}>", "x/".repeat(1000))),
            ("dots", format!("<a href={}>", "../".repeat(600))),
            ("scripts", "<script><!--<script>".to_owned()),
        ] {
            let page = piece.repeat((8 << 20) / piece.len());
            for folder in ["http://host.example/", &folder] {
                let folder = Url::parse(folder).unwrap();
                let before = cpu();
                let found = entries(&folder, page.as_bytes());
                let took = cpu() - before;
                println!("{what}: {} names in {took:?}", found.len());
                // A quadratic parser took hours.
                assert!(took.as_secs() < 5, "{what}: {took:?}");
            }
        }
    }

    #[test]
    fn links_have_a_bound() {
        let page: String = (0..100_000).map(|n| format!("<a href={n}.mp4>")).collect();
        assert_eq!(names(&page).len(), MOST_LINKS);
        let folder = Url::parse(&format!("http://host.example/{}/", "f".repeat(8000))).unwrap();
        let found = entries(&folder, page.as_bytes());
        assert!((1000..=MOST_BYTES / 8000).contains(&found.len()), "{}", found.len());
    }
}

//! Attribute lists of tags (RFC 8216 4.2).

/// Returns the value of an attribute, without its quotes. A comma within quotes separates nothing.
pub(super) fn value<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = list;
    while let Some((found, after)) = rest.split_once('=') {
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => {
                let (value, behind) = quoted.split_once('"')?;
                (value, behind.split_once(',').map_or("", |(_, next)| next))
            }
            None => after.split_once(',').unwrap_or((after, "")),
        };
        if found.trim() == name {
            return Some(value.trim());
        }
        rest = next;
    }
    None
}

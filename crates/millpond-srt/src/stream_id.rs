//! Stream ids: what a caller asks for.
//!
//! Two ways of writing are read: that of SRT's access control, `#!::r=live/cam,m=publish,u=ann,s=secret`, and the shorter one of other
//! servers, `publish:live/cam:ann:secret` or `read:live/cam`.

use percent_encoding::percent_decode_str;
use std::fmt;

/// Begins ids of SRT's access control.
const STANDARD: &str = "#!::";

/// Direction of the stream that a caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamAction {
    /// Receive a stream.
    Play,
    /// Send a stream.
    Publish,
}

/// Request of a caller. `Debug` shows no secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct StreamId {
    /// Direction of the stream.
    pub action: StreamAction,
    /// Path of the stream, without a slash before it.
    pub path: String,
    /// Name of the user.
    pub user: Option<String>,
    /// Password of the user, or a token.
    pub secret: Option<String>,
    /// A token.
    pub token: Option<String>,
}

/// Why a stream id can't be read. The words contain no part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamIdError {
    /// There is none, or no name in it.
    #[error("no stream id: expected streamid=publish:NAME, read:NAME or #!::r=NAME,m=publish")]
    None,
    /// Its bytes are no text.
    #[error("the stream id is not UTF-8")]
    Encoding,
    /// Its mode is none that is served.
    #[error("the mode of the stream id: expected m=publish or m=request, publish:NAME or read:NAME")]
    Mode,
    /// Its parts are too many: a password in the short form has no colon.
    #[error(
        "the stream id has more than five parts: a password with a colon needs the form #!::r=NAME,u=USER,s=PASSWORD"
    )]
    Parts,
    /// It asks for something other than a stream.
    #[error("the type of the stream id: expected t=stream")]
    Type,
}

impl StreamId {
    /// Reads a stream id.
    ///
    /// # Errors
    /// The id has no valid form, action or path.
    pub fn parse(id: &[u8]) -> Result<Self, StreamIdError> {
        let id = std::str::from_utf8(id).map_err(|_| StreamIdError::Encoding)?;
        let read = match id.strip_prefix(STANDARD) {
            Some(pairs) => standard(pairs)?,
            None => short(id)?,
        };
        let path = read.path.trim_matches('/');
        if path.is_empty() {
            return Err(StreamIdError::None);
        }
        Ok(Self { path: path.to_owned(), ..read })
    }
}

/// Reads the pairs of SRT's access control. Programs that write braces around them mean the same.
fn standard(pairs: &str) -> Result<StreamId, StreamIdError> {
    let pairs = pairs.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(pairs);
    let mut id = StreamId { action: StreamAction::Play, path: String::new(), user: None, secret: None, token: None };
    for (key, value) in pairs.split(',').filter_map(|pair| pair.split_once('=')) {
        match key.trim() {
            "r" => value.clone_into(&mut id.path),
            "u" => id.user = Some(value.to_owned()),
            "s" => id.secret = Some(value.to_owned()),
            "token" => id.token = Some(value.to_owned()),
            "m" => {
                id.action = match value {
                    "publish" => StreamAction::Publish,
                    "request" => StreamAction::Play,
                    _ => return Err(StreamIdError::Mode),
                }
            }
            "t" if value != "stream" => return Err(StreamIdError::Type),
            _ => {}
        }
    }
    Ok(id)
}

/// Reads `ACTION:NAME`, `ACTION:NAME:QUERY`, `ACTION:NAME:USER:PASSWORD` or `ACTION:NAME:USER:PASSWORD:QUERY`. The query may have a
/// token; other parts of it are left out.
fn short(id: &str) -> Result<StreamId, StreamIdError> {
    if id.is_empty() {
        return Err(StreamIdError::None);
    }
    let parts: Vec<&str> = id.split(':').collect();
    let (action, path, login, query) = match parts[..] {
        [action, path] => (action, path, None, ""),
        [action, path, query] => (action, path, None, query),
        [action, path, user, password] => (action, path, Some((user, password)), ""),
        [action, path, user, password, query] => (action, path, Some((user, password)), query),
        [_] => return Err(StreamIdError::Mode),
        _ => return Err(StreamIdError::Parts),
    };
    let action = match action {
        "publish" => StreamAction::Publish,
        "read" => StreamAction::Play,
        _ => return Err(StreamIdError::Mode),
    };
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let token = pairs.find(|(key, _)| *key == "token").map(|(_, value)| value);
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let login = login.filter(|(user, _)| !user.is_empty());
    let (user, secret) = login.map(|(user, password)| (user.to_owned(), password.to_owned())).unzip();
    Ok(StreamId { action, path: path.to_owned(), user, secret, token: token.map(decoded) })
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { action, path, user, .. } = self;
        f.debug_struct("StreamId").field("action", action).field("path", path).field("user", user).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_writing_are_read() {
        use StreamAction::{Play, Publish};
        let text = |text: &str| Some(text.to_owned());
        for (id, action, path, user, secret, token) in [
            ("#!::r=live/cam,m=publish,u=ann,s=a:b=c", Publish, "live/cam", text("ann"), text("a:b=c"), None),
            ("#!::r=live/cam", Play, "live/cam", None, None, None),
            ("#!::{m=request,r=/live/cam,t=stream,h=host,token=x.y}", Play, "live/cam", None, None, text("x.y")),
            ("publish:live/cam:ann:a,b", Publish, "live/cam", text("ann"), text("a,b"), None),
            ("read:live/cam", Play, "live/cam", None, None, None),
            ("read:/live/cam:a=b&token=x%2ey", Play, "live/cam", None, None, text("x.y")),
            ("read:live/cam:ann:pw:token=x", Play, "live/cam", text("ann"), text("pw"), text("x")),
            ("publish:live/cam::", Publish, "live/cam", None, None, None),
        ] {
            let expected = StreamId { action, path: path.to_owned(), user, secret, token };
            assert!(StreamId::parse(id.as_bytes()) == Ok(expected), "{id}");
        }
    }

    #[test]
    fn other_ids_are_refused_without_their_words() {
        for (id, error) in [
            ("", StreamIdError::None),
            ("#!::m=publish", StreamIdError::None),
            ("publish:", StreamIdError::None),
            ("live/cam", StreamIdError::Mode),
            ("write:live/cam", StreamIdError::Mode),
            ("read:a:b:c:d:e", StreamIdError::Parts),
            ("#!::r=a,m=bidirectional", StreamIdError::Mode),
            ("#!::r=a,t=file", StreamIdError::Type),
        ] {
            assert_eq!(StreamId::parse(id.as_bytes()), Err(error), "{id}");
        }
        assert_eq!(StreamId::parse(b"read:\xff"), Err(StreamIdError::Encoding));
        let id = StreamId::parse(b"publish:a:ann:secret").unwrap();
        assert!(!format!("{id:?}").contains("secret"));
    }
}

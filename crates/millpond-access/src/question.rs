//! Questions to the server of `auth-url`: a client, its credentials, an action and a path. Their form is that of MediaMTX.

use super::token::{self, PARAMETERS};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use millpond_library::uri::parameter;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv6Addr};

/// Most bytes of a query that is put into paths.
const MOST_QUERY: usize = 2048;

/// The action for which a client needs admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthAction {
    /// Play.
    Read,
    /// Push a stream.
    Publish,
}

/// A question. It has secrets, and its text for the log has none.
#[derive(Clone, Serialize)]
pub(crate) struct Question {
    user: String,
    password: String,
    token: String,
    ip: IpAddr,
    action: AuthAction,
    /// Path of the asset or stream.
    path: String,
    protocol: &'static str,
    id: String,
    query: String,
    #[serde(rename = "userAgent")]
    agent: String,
}

/// A client and its request, for a question.
#[derive(Clone, Copy, Debug)]
pub struct AskingClient<'a> {
    /// Address of the client.
    pub address: IpAddr,
    /// Action for which the client asks permission: to watch or to publish.
    pub action: AuthAction,
    /// Name of its protocol, such as `https`.
    pub protocol: &'static str,
    /// The token in the path: what `carried` made, or another one.
    pub token: Option<&'a str>,
    /// Query of the request, percent-encoded.
    pub query: &'a str,
    /// Value of `Authorization`.
    pub authorization: Option<&'a str>,
    /// Value of `User-Agent`.
    pub agent: Option<&'a str>,
}

impl Question {
    /// Asks about the path of an asset or a stream.
    pub(crate) fn new(path: &str, asker: &AskingClient<'_>) -> Self {
        let from_path = asker.token.and_then(query_of);
        let query = from_path.unwrap_or_else(|| without_directives(asker.query));
        let first = |names: [&str; 2]| names.iter().map(|name| parameter(&query, name)).find(|text| !text.is_empty());
        let (mut user, mut password) = asker.authorization.and_then(basic).unwrap_or_default();
        if user.is_empty() && password.is_empty() {
            (user, password) = (parameter(&query, "user"), first(["pass", "password"]).unwrap_or_default());
        }
        let bearer = asker.authorization.and_then(|text| scheme(text, "bearer")).map(str::to_owned);
        let own = asker.token.filter(|token| query_of(token).is_none()).map(str::to_owned);
        let token = own.or(bearer).or_else(|| first(PARAMETERS)).unwrap_or_default();
        Self {
            user,
            password,
            token,
            ip: asker.address.to_canonical(),
            action: asker.action,
            path: path.trim_matches('/').to_owned(),
            protocol: asker.protocol,
            id: format!("{:016x}", fastrand::u64(..)),
            query,
            agent: asker.agent.unwrap_or_default().to_owned(),
        }
    }

    /// All that an answer depends on. Requests with the same key belong to one session.
    pub(super) fn key(&self) -> impl std::hash::Hash + '_ {
        let Self { user, password, token, ip, action, path, protocol, query, id: _, agent: _ } = self;
        (user, password, token, ip, action, path, protocol, query)
    }

    /// The client, whose questions have a bound. Addresses of IPv6 in one network of 64 bits are one client.
    pub(super) fn client(&self) -> IpAddr {
        match self.ip {
            IpAddr::V4(_) => self.ip,
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        }
    }

    /// Name of the user, and the token. Limits count both: which of them the other server decides on is unknown, and a client could
    /// change the other one with each request.
    pub(super) fn subjects(&self) -> [Option<(&'static str, &str)>; 2] {
        let stated = |kind, text| Some((kind, text)).filter(|(_, text): &(_, &str)| !text.is_empty());
        [stated("user", &self.user), stated("token", &self.token)]
    }
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { ip, action, path, protocol, .. } = self;
        write!(f, "{action:?} {path:?} by {ip} ({protocol})")
    }
}

fn scheme<'a>(authorization: &'a str, name: &str) -> Option<&'a str> {
    let (scheme, value) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case(name).then(|| value.trim())
}

/// Name and password of Basic authentication (RFC 7617).
fn basic(authorization: &str) -> Option<(String, String)> {
    let text = String::from_utf8(STANDARD.decode(scheme(authorization, "basic")?).ok()?).ok()?;
    text.split_once(':').map(|(name, password)| (name.to_owned(), password.to_owned()))
}

/// A query without the directives of HLS, which change with each request, and the moments of live streams.
fn without_directives(query: &str) -> String {
    let kept: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("_HLS_")).collect();
    kept.join("&")
}

#[derive(Serialize, Deserialize)]
struct Carried {
    query: String,
}

/// A query as the token of a path, so that the relative URLs of playlists have it. `None` where it is empty, too long, or has no
/// credentials that a path could carry.
pub(super) fn carried(query: &str) -> Option<String> {
    let query = without_directives(query);
    if query.is_empty() || query.len() > MOST_QUERY {
        return None;
    }
    let json = serde_json::to_vec(&Carried { query }).ok()?;
    let text = URL_SAFE_NO_PAD.encode(json);
    token::is_component(&format!("~{text}")).then_some(text)
}

/// The query in the token of a path.
fn query_of(token: &str) -> Option<String> {
    let json = URL_SAFE_NO_PAD.decode(token).ok()?;
    serde_json::from_slice(&json).ok().map(|Carried { query }| query)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker<'a>(token: Option<&'a str>, query: &'a str, authorization: Option<&'a str>) -> AskingClient<'a> {
        let (address, action, agent) = ("192.0.2.7".parse().unwrap(), AuthAction::Read, Some("vlc"));
        AskingClient { address, action, protocol: "http", token, query, authorization, agent }
    }

    #[test]
    fn the_form_is_that_of_mediamtx() {
        let question = Question::new("/films/a.mp4", &asker(None, "token=t&x=1", Some("Basic YW5uOnBhOnNz")));
        let mut json = serde_json::to_value(&question).unwrap();
        assert_eq!(json["id"].as_str().unwrap().len(), 16);
        json["id"] = "".into();
        let expected = serde_json::json!({
            "user": "ann", "password": "pa:ss", "token": "t", "ip": "192.0.2.7", "action": "read", "path": "films/a.mp4",
            "protocol": "http", "id": "", "query": "token=t&x=1", "userAgent": "vlc",
        });
        assert_eq!(json, expected);
        let shown = format!("{question:?}");
        assert!(!shown.contains("pa:ss") && !shown.contains("token"), "{shown}");
    }

    #[test]
    fn a_path_carries_a_query() {
        let carried = carried("user=ann&pass=secret&_HLS_msn=4").unwrap();
        assert!(token::is_component(&format!("~{carried}")));
        let direct = Question::new("a", &asker(None, "user=ann&pass=secret&_HLS_msn=5", None));
        let by_path = Question::new("a", &asker(Some(&carried), "_HLS_msn=6", None));
        let of = |question: &Question| (question.user.clone(), question.password.clone(), question.query.clone());
        assert_eq!(of(&direct), ("ann".into(), "secret".into(), "user=ann&pass=secret".into()));
        assert_eq!(of(&direct), of(&by_path));
        assert_eq!(by_path.token, "");
        assert_eq!(
            (super::carried(""), super::carried("_HLS_msn=1"), super::carried(&"a".repeat(5000))),
            (None, None, None)
        );
    }

    #[test]
    fn tokens_stand_in_paths_fields_and_queries() {
        let of = |asker: &AskingClient<'_>| Question::new("a", asker).token;
        assert_eq!(of(&asker(Some("eyJ0.a.b"), "token=t", Some("Bearer b"))), "eyJ0.a.b");
        assert_eq!(of(&asker(None, "token=t", Some("Bearer b"))), "b");
        assert_eq!(of(&asker(None, "jwt=t", None)), "t");
        assert_eq!(of(&asker(None, "", None)), "");
    }
}

//! The rights of viewers: the rules of access for what the query of a stream's name has.

use super::{Rtmp, refusal::Refused};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use millpond_access::{AskingClient, AuthAction, ClientHold, Pass, RtspDecision};
use percent_encoding::percent_decode_str;
use std::net::IpAddr;

/// A client and its connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    pub(super) address: IpAddr,
    /// Whether it is connected over TLS.
    pub(super) is_secure: bool,
}

impl Client {
    /// Name of the protocol.
    pub(super) fn protocol(self) -> &'static str {
        if self.is_secure { "rtmps" } else { "rtmp" }
    }

    /// Whether a password in its query may be looked at: nobody else reads it.
    fn may_state_password(self) -> bool {
        self.is_secure || self.address.to_canonical().is_loopback()
    }
}

impl Rtmp {
    /// Checks the right to play the stream at `path`.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub(super) async fn admit_viewer(
        &self,
        client: Client,
        (path, query): (&str, &str),
    ) -> Result<(Pass, ClientHold), Refused> {
        let now = self.sources.manager().clock().elapsed();
        let (user, password) = (parameter(query, "user"), parameter(query, "pass"));
        let login = user.as_deref().zip(password.as_deref());
        let basic = login.map(|(user, password)| format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))));
        let token = parameter(query, "token");
        let asker = AskingClient {
            address: client.address,
            action: AuthAction::Read,
            protocol: client.protocol(),
            token: token.as_deref(),
            query,
            authorization: basic.as_deref(),
            agent: None,
        };
        let pass = match self.gates.rtsp((path, true), path, &asker) {
            RtspDecision::Open => Pass::default(),
            RtspDecision::Admitted(pass) => pass,
            RtspDecision::Ask(question) => Box::pin(question.answer()).await.map_err(Refused::Access)?,
            RtspDecision::Refused(why) => return Err(Refused::Access(why)),
            RtspDecision::Users(_) if !client.may_state_password() => return Err(Refused::Exposed),
            RtspDecision::Users(passwords) => {
                let (name, password) = login.ok_or(Refused::Credentials)?;
                let is_known = passwords.knows(name, password, client.address, now).map_err(Refused::Guesses)?;
                if !is_known {
                    return Err(Refused::Credentials);
                }
                Pass::default()
            }
        };
        if let Some(limits) = self.gates.limits() {
            limits.token_request(&pass, now)?;
        }
        let hold = self.gates.hold(client.address, &pass)?;
        Ok((pass, hold))
    }
}

/// Returns the decoded value of a query's first parameter with a name. A plus sign means itself: passwords have some.
pub(super) fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    Some(percent_decode_str(value).decode_utf8().ok()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = "a&user=ann&pass=a+b%26c=&pass=other";
        assert_eq!(parameter(query, "user").as_deref(), Some("ann"));
        assert_eq!(parameter(query, "pass").as_deref(), Some("a+b&c="));
        assert_eq!((parameter(query, "a"), parameter("", "user"), parameter("user=%ff", "user")), (None, None, None));
    }
}

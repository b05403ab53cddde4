//! The rights of callers: the rules of access for what their stream id asks for.

use super::{Srt, refusal::Refused};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use millpond_access::{AskingClient, AuthAction, ClientHold, Pass, Publishers, RtspDecision};
use millpond_srt::StreamId;
use std::{net::IpAddr, time::Duration};

/// Name of the protocol in questions to another server.
const PROTOCOL: &str = "srt";

/// A caller, and what its stream id asks for.
pub(super) struct Asker<'a> {
    pub(super) client: IpAddr,
    pub(super) id: &'a StreamId,
    /// Whether the caller knows the passphrase.
    pub(super) is_encrypted: bool,
    pub(super) agent: &'a str,
}

impl Asker<'_> {
    /// Name and password.
    fn login(&self) -> Option<(&str, &str)> {
        Some((self.id.user.as_deref()?, self.id.secret.as_deref().unwrap_or_default()))
    }

    /// The token: a secret without a user is one.
    fn token(&self) -> Option<&str> {
        self.id.token.as_deref().or(self.id.secret.as_deref().filter(|_| self.id.user.is_none()))
    }

    /// Whether its password may be looked at. Stream ids are never encrypted. Who overhears one still lacks the passphrase.
    fn may_state_password(&self) -> bool {
        self.is_encrypted || self.client.to_canonical().is_loopback()
    }

    /// Calls a function with the caller as the rules of access know it.
    fn asks<T>(&self, action: AuthAction, ask: impl FnOnce(&AskingClient<'_>) -> T) -> T {
        let basic = self.login().map(|(user, secret)| format!("Basic {}", STANDARD.encode(format!("{user}:{secret}"))));
        ask(&AskingClient {
            address: self.client,
            action,
            protocol: PROTOCOL,
            token: self.token(),
            query: "",
            authorization: basic.as_deref(),
            agent: Some(self.agent),
        })
    }
}

impl Srt {
    /// Checks the right to publish.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub(super) async fn admit_publisher(
        &self,
        publishers: &Publishers,
        asker: &Asker<'_>,
        now: Duration,
    ) -> Result<(), Refused> {
        let question = asker.asks(AuthAction::Publish, |asking| self.gates.ask_to_publish(&asker.id.path, asking));
        match question {
            Some(question) => drop(Box::pin(question.answer()).await.map_err(Refused::Access)?),
            None => publishers.admit_open((asker.client, asker.is_encrypted), asker.login(), now)?,
        }
        Ok(())
    }

    /// Checks the right to play.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub(super) async fn admit_viewer(&self, asker: &Asker<'_>, now: Duration) -> Result<(Pass, ClientHold), Refused> {
        let path = asker.id.path.as_str();
        let decision = asker.asks(AuthAction::Read, |asking| self.gates.rtsp((path, true), path, asking));
        let pass = match decision {
            RtspDecision::Open => Pass::default(),
            RtspDecision::Admitted(pass) => pass,
            RtspDecision::Ask(question) => Box::pin(question.answer()).await.map_err(Refused::Access)?,
            RtspDecision::Refused(why) => return Err(Refused::Access(why)),
            RtspDecision::Users(_) if !asker.may_state_password() => return Err(Refused::Exposed),
            RtspDecision::Users(passwords) => {
                let (name, password) = asker.login().ok_or(Refused::Credentials)?;
                let is_known = passwords.knows(name, password, asker.client, now).map_err(Refused::Guesses)?;
                if !is_known {
                    return Err(Refused::Credentials);
                }
                Pass::default()
            }
        };
        if let Some(limits) = self.gates.limits() {
            limits.token_request(&pass, now)?;
        }
        let hold = self.gates.hold(asker.client, &pass)?;
        Ok((pass, hold))
    }
}

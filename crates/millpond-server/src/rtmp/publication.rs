//! The publication that a client asks for.

use super::Rtmp;
use crate::library::LibraryError;
use millpond_access::{AskingClient, AuthAction, OpenRefusal, Publishers};
use millpond_rtmp::{PublishTarget, Refusal};
use millpond_stream::{Publication, PublishRefused, PublishRequest, PublishedMedia, Source};
use percent_encoding::percent_decode_str;
use std::{net::IpAddr, time::Duration};

/// A stream that a client publishes.
pub(super) struct Published {
    pub(super) path: String,
    pub(super) publication: Publication,
    /// Longest silence of the client.
    pub(super) patience: Duration,
}

/// Why a publication is refused. The words never contain the query, which may have a password.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoPublication {
    #[error("the name is not UTF-8")]
    Encoding,
    #[error("{0}")]
    Name(#[from] LibraryError),
    #[error("streams of this place are not pushed")]
    NotPublished,
    #[error("{0}")]
    Users(#[from] OpenRefusal),
    #[error("{0}")]
    NotAdmitted(millpond_access::AccessRefusal),
    #[error("{0}")]
    Refused(#[from] PublishRefused),
}

impl NoPublication {
    /// Returns the refusal that the client is sent.
    pub(super) fn refusal(&self) -> Refusal {
        match self {
            Self::Users(_) | Self::NotAdmitted(_) => Refusal::Denied,
            Self::Encoding | Self::Name(_) | Self::NotPublished => Refusal::Name,
            Self::Refused(PublishRefused::Taken | PublishRefused::NotPublished) => Refusal::Name,
            Self::Refused(PublishRefused::Streams(_) | PublishRefused::Source(_) | PublishRefused::HandedOver) => {
                Refusal::Failed
            }
        }
    }
}

impl Rtmp {
    /// Begins to receive the stream of a target. `is_secure` tells whether its client is connected over TLS.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub(super) async fn publish(
        &self,
        target: &PublishTarget,
        (client, is_secure): (IpAddr, bool),
    ) -> Result<Published, NoPublication> {
        let publishers: &Publishers = self.publishers.as_deref().ok_or(NoPublication::NotPublished)?;
        let path = percent_decode_str(&target.path).decode_utf8().map_err(|_| NoPublication::Encoding)?.into_owned();
        let asker = AskingClient {
            address: client,
            action: AuthAction::Publish,
            protocol: if is_secure { "rtmps" } else { "rtmp" },
            token: None,
            query: &target.query,
            authorization: None,
            agent: None,
        };
        match self.gates.ask_to_publish(&path, &asker) {
            Some(question) => drop(question.answer().await.map_err(NoPublication::NotAdmitted)?),
            None => {
                let (user, password) = (parameter(&target.query, "user"), parameter(&target.query, "pass"));
                let credentials = user.as_deref().zip(password.as_deref());
                publishers.admit_open((client, is_secure), credentials, self.sources.manager().clock().elapsed())?;
            }
        }
        let at = self.sources.find(&path);
        let stream = self.sources.live(&at)?;
        let stream = stream.filter(|stream| stream.source == Source::Published).ok_or(NoPublication::NotPublished)?;
        let request = PublishRequest { stream, media: PublishedMedia::Flv, conflict: publishers.conflict() };
        let publication = self.sources.manager().publish(request)?;
        let patience = self.sources.patience(&at);
        Ok(Published { path, publication, patience })
    }
}

/// Returns the decoded value of a query's first parameter with a name. A plus sign means itself: passwords have some.
fn parameter(query: &str, name: &str) -> Option<String> {
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

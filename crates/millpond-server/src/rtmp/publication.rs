//! The publication that a client asks for.

use super::{
    Rtmp,
    rights::{Client, parameter},
};
use crate::library::LibraryError;
use millpond_access::{AskingClient, AuthAction, OpenRefusal, Publishers};
use millpond_rtmp::{Refusal, StreamTarget};
use millpond_stream::{Publication, PublishRefused, PublishRequest, PublishedMedia, Source};
use percent_encoding::percent_decode_str;
use std::time::Duration;

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
    #[error("no publisher can push streams to this place: only to those of publish:")]
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
    /// Begins to receive the stream of a target.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub(super) async fn publish(&self, target: &StreamTarget, client: Client) -> Result<Published, NoPublication> {
        let publishers: &Publishers = self.publishers.as_deref().ok_or(NoPublication::NotPublished)?;
        let path = percent_decode_str(&target.path).decode_utf8().map_err(|_| NoPublication::Encoding)?.into_owned();
        let asker = AskingClient {
            address: client.address,
            action: AuthAction::Publish,
            protocol: client.protocol(),
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
                let now = self.sources.manager().clock().elapsed();
                publishers.admit_open((client.address, client.is_secure), credentials, now)?;
            }
        }
        let at = self.sources.find(&path);
        self.sources.placed(&at)?;
        let stream = self.sources.live(&at)?;
        let stream = stream.filter(|stream| stream.source == Source::Published).ok_or(NoPublication::NotPublished)?;
        let request = PublishRequest { stream, media: PublishedMedia::Flv, conflict: publishers.conflict() };
        let publication = self.sources.manager().publish(request)?;
        let patience = self.sources.patience(&at);
        Ok(Published { path, publication, patience })
    }
}

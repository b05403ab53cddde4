//! Notices of the stream engine, as events.

use super::{Events, Kind};
use crate::own_streams;
use millpond_stream::{Notice, NoticeBoard};
use serde_json::json;

impl NoticeBoard for Events {
    fn post(&self, path: &str, notice: Notice) {
        // Nobody publishes it.
        if own_streams::is_own(path) {
            return;
        }
        match notice {
            Notice::PublisherBegan { media } => self.emit(Kind::PublisherBegan, path, json!({ "media": media })),
            Notice::PublisherEnded { media, reason, words, lasted, bytes } => {
                let seconds = lasted.as_secs_f64();
                let data =
                    json!({ "media": media, "reason": reason, "why": words, "seconds": seconds, "bytes": bytes });
                self.emit(Kind::PublisherEnded, path, data);
            }
            Notice::SourceLost { why } => self.emit(Kind::SourceLost, path, json!({ "why": why.to_string() })),
            Notice::SourceBack { away } => {
                self.emit(Kind::SourceBack, path, json!({ "seconds": away.as_secs_f64() }));
            }
        }
    }
}

//! States of streams, as the page and the admin address tell them.

use millpond_stream::StreamState;
use serde_json::{Map, Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the beginning of a state, in seconds since the Unix epoch, and the words of its cause. Words contain no address.
pub(crate) fn since(state: &StreamState) -> (Option<f64>, Option<String>) {
    let (since, why) = match state {
        StreamState::Waiting | StreamState::Scheduled { .. } => (None, None),
        StreamState::Running { since } => (Some(*since), None),
        StreamState::Lost { since, why } => (Some(*since), Some(why.words.clone())),
        StreamState::Failed { at, why } => (SystemTime::now().checked_sub(at.elapsed()), Some(why.words.clone())),
    };
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    (since.map(seconds), why)
}

/// Returns the fields of a state: its name, its beginning and its cause.
pub(crate) fn fields(state: &StreamState) -> Map<String, Value> {
    let (since, why) = since(state);
    let fields = [("state", json!(state.name())), ("since", json!(since)), ("why", json!(why))];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_stream::reception::{SourceError, SourceErrorKind};
    use std::{
        sync::Arc,
        time::{Duration, Instant},
    };

    #[test]
    fn states_have_their_time_and_cause_without_an_address() {
        let why = SourceError {
            kind: SourceErrorKind::TimedOut,
            address: "rtsp://10.0.0.7/door".to_owned(),
            words: "DESCRIBE: nothing in 10 s".to_owned(),
        };
        let (why, since) = (Arc::new(why), UNIX_EPOCH + Duration::from_millis(90_500));
        let text = |state: &StreamState| Value::Object(fields(state)).to_string();
        assert_eq!(text(&StreamState::Waiting), r#"{"since":null,"state":"waiting","why":null}"#);
        assert_eq!(text(&StreamState::Running { since }), r#"{"since":90.5,"state":"running","why":null}"#);
        let lost = text(&StreamState::Lost { since, why: why.clone() });
        assert_eq!(lost, r#"{"since":90.5,"state":"lost","why":"DESCRIBE: nothing in 10 s"}"#);
        let failed = fields(&StreamState::Failed { at: Instant::now(), why });
        assert!(failed["since"].as_f64().unwrap() > 1e9 && failed["state"] == "failed");
    }
}

//! A watch: the changes of a prefix as they are made.

use crate::{
    client::chain,
    error::EtcdError,
    message::{KeyEvent, Revision, Streamed, WatchReply, parse},
};
use bytes::BytesMut;
use reqwest::Response;

/// Longest message of a watch, in bytes.
const LONGEST: usize = 8 << 20;

/// A running watch. It ends when it is dropped.
///
/// etcd's JSON gateway sends nothing while nothing changes. A caller that waits for long can't tell a quiet etcd from a
/// member that hangs: it reads the keys again from time to time.
#[derive(Debug)]
pub struct KeyWatch {
    response: Response,
    member: String,
    /// Bytes that are no whole message yet.
    input: BytesMut,
}

impl KeyWatch {
    pub(crate) fn new(response: Response, member: String) -> Self {
        Self { response, member, input: BytesMut::new() }
    }

    /// Waits for the next changes; returns them with etcd's revision.
    ///
    /// Cancel safe: no change is lost.
    ///
    /// # Errors
    /// The watch is over: the member is gone, or the revision is compacted.
    pub async fn next(&mut self) -> Result<(Vec<KeyEvent>, Revision), EtcdError> {
        let reply = self.message().await?;
        Ok((reply.events.into_iter().map(KeyEvent::from).collect(), reply.header.revision.0))
    }

    pub(crate) async fn message(&mut self) -> Result<WatchReply, EtcdError> {
        let line = self.line().await;
        let member = || self.member.clone();
        let line = line.map_err(|reason| EtcdError::Unreachable { member: member(), reason })?;
        let streamed: Streamed<WatchReply> =
            parse(&line).map_err(|reason| EtcdError::Malformed { member: member(), reason })?;
        match streamed {
            Streamed { error: Some(failure), .. } => {
                Err(EtcdError::Refused { member: member(), code: failure.code(), message: failure.message })
            }
            Streamed { result: Some(reply), .. } if reply.compact_revision.0 > 0 => {
                Err(EtcdError::Compacted { member: member(), revision: reply.compact_revision.0 })
            }
            Streamed { result: Some(reply), .. } if reply.canceled && !reply.created => {
                let reason = format!("the watch was canceled: {}", reply.cancel_reason);
                Err(EtcdError::Unreachable { member: member(), reason })
            }
            Streamed { result: Some(reply), .. } => Ok(reply),
            Streamed { .. } => {
                Err(EtcdError::Malformed { member: member(), reason: "a message without a result".to_owned() })
            }
        }
    }

    /// The next line.
    async fn line(&mut self) -> Result<BytesMut, String> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.input[searched..].iter().position(|byte| *byte == b'\n') {
                return Ok(self.input.split_to(searched + end + 1));
            }
            searched = self.input.len();
            if searched > LONGEST {
                return Err(format!("a message of more than {LONGEST} bytes"));
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.input.extend_from_slice(&chunk),
                Ok(None) => return Err("the watch ended".to_owned()),
                Err(error) => return Err(chain(&error.without_url())),
            }
        }
    }
}

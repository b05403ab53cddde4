//! Requests of the server (RFC 2326 10).

use super::{RtspClient, State, action::ClientAction, error::ClientError};
use crate::message::{Method, Request, headers};
use bytes::Bytes;
use std::time::Duration;

impl RtspClient {
    /// Replies to a request of the server, and obeys REDIRECT and TEARDOWN.
    pub(super) fn requested(&mut self, request: &Request<Vec<u8>>, now: Duration) {
        let status = match request.method() {
            Method::Options | Method::GetParameter | Method::SetParameter => "200 OK",
            Method::Announce | Method::Redirect | Method::Teardown => "200 OK",
            _ => "501 Not Implemented",
        };
        let number = request.header(&headers::CSEQ).map_or("", |number| number.as_str().trim());
        let number = number.parse::<u32>().unwrap_or(0);
        let reply = format!("RTSP/1.0 {status}\r\nCSeq: {number}\r\n\r\n");
        self.actions.push_back(ClientAction::Send(Bytes::from(reply)));
        match request.method() {
            Method::Redirect if self.state != State::Leaving => {
                let location = request.header(&headers::LOCATION).map_or("", |location| location.as_str());
                self.redirected(None, location, now);
            }
            Method::Teardown => {
                let url = self.target.url.clone();
                self.session = None;
                self.fail(ClientError::Ended { url });
            }
            _ => {}
        }
    }
}

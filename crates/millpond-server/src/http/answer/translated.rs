//! Replies to GETs of intercepted connections: the stream of an RTSP server, or its failure.

use super::{Front, Reply, ReplyInfo, long::unfit};
use crate::http::{AnswerError, Kind, render::Muxer};
use millpond_package::hls::Container;
use millpond_stream::Program;

impl Front {
    /// Answers with the stream of a program, in `container` or in the other one where that can't carry it. `asset` is the path
    /// that was asked for.
    pub(crate) async fn translated(
        &self,
        program: Result<Program, AnswerError>,
        container: Container,
        asset: &str,
    ) -> (Reply, ReplyInfo) {
        let mut info = self.info(Kind::Stream);
        let reply = match program {
            Ok(program) => self.stream_of(&program, container, &mut info).await,
            Err(error) => Err(error),
        };
        let mut reply = reply.unwrap_or_else(|error| self.failure(info.id, asset, &error));
        self.gates().cors("").add(None, &mut reply.headers);
        self.add_common_headers(&mut reply.headers, info.id);
        (reply, info)
    }

    async fn stream_of(
        &self,
        program: &Program,
        container: Container,
        info: &mut ReplyInfo,
    ) -> Result<Reply, AnswerError> {
        let other = match container {
            Container::Fmp4 => Container::Ts,
            Container::Ts => Container::Fmp4,
        };
        let muxer = [container, other].into_iter().find_map(|of| Some((of, Muxer::of(program, of)?)));
        self.long_of(program, muxer.ok_or_else(|| unfit(program, container))?, info).await
    }
}

//! Viewers: a live stream is sent as FLV tags.

use super::{
    Rtmp,
    connection::{Connection, End},
    metrics::CountedViewer,
    refusal::Refused,
    rights::Client,
    sessions::Held,
};
use millpond_access::{ClientHold, Pass};
use millpond_media::flv::FlvMessage;
use millpond_rtmp::{RtmpEvent, RtmpMedia, StreamTarget};
use millpond_stream::{Admitted, LiveRequest, Program, Run, Viewing, flv_stream::FlvStream};
use percent_encoding::percent_decode_str;
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::sleep_until,
};

/// Longest wait for the formats of a live stream. Its source has time limits of its own for each step before.
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval between looks at the rights of a viewer, and whether it takes anything.
const LOOK: Duration = Duration::from_secs(1);

/// A stream that a client plays.
pub(super) struct Viewed {
    pub(super) path: String,
    /// Its session, as operators see it.
    held: Held,
    viewing: Viewing,
    muxer: FlvStream,
    rights: (Pass, ClientHold),
    admitted: Admitted,
    /// Number of the current epoch; `None` before the first frame.
    epoch: Option<u32>,
    messages: Vec<FlvMessage>,
}

/// Opens the stream of a target. A live source is waited for until its formats are known.
///
/// # Errors
/// The reason of the refusal.
pub(super) async fn open(
    rtmp: &Rtmp,
    target: &StreamTarget,
    (peer, client): (SocketAddr, Client),
    reads_tracks: bool,
) -> Result<Viewed, Refused> {
    let path = percent_decode_str(&target.path).decode_utf8().map_err(|_| Refused::Encoding)?.into_owned();
    let manager = rtmp.sources.manager();
    let rights = rtmp.admit_viewer(client, (&path, &target.query)).await?;
    let admitted = manager.admission().admit(client.address, &Arc::default()).map_err(|full| {
        manager.counters().refuse(full);
        Refused::Full(full)
    })?;
    let program = program(rtmp, &path).await?;
    let fitting = |program: &Program| FlvStream::new(program.formats(), program.lead(), reads_tracks);
    // Nothing is forked for tracks that could not be sent.
    let muxer = fitting(&program).ok_or(Refused::Unfit)?;
    let held = rtmp.sessions.begin(peer, &path, false);
    let viewing = manager.branch(&program, &format!("rtmp {:x}", held.number())).await?;
    Ok(Viewed { path, held, viewing, muxer, rights, admitted, epoch: None, messages: Vec::new() })
}

/// Returns the frames of a path: those of one rendition at a time where it is a ladder.
async fn program(rtmp: &Rtmp, path: &str) -> Result<Program, Refused> {
    let (sources, manager) = (&rtmp.sources, rtmp.sources.manager());
    let at = sources.find(path);
    sources.placed(&at)?;
    if let Some(program) = sources.follow(&at).await? {
        return Ok(program);
    }
    let request: LiveRequest = sources.stream(&at).await?.ok_or(Refused::Stored)?;
    let stream = manager.live(request)?;
    let feed = manager.live_feed(&stream, PATIENCE).await.map_err(Refused::Source)?;
    Ok(Program::live(&feed))
}

impl Viewed {
    /// Sends the stream until it or the connection ends.
    ///
    /// # Errors
    /// The reason of the end.
    pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        connection: &mut Connection<'_, S>,
        counted: &CountedViewer,
    ) -> Result<(), End> {
        self.admitted.play();
        let stall = connection.rtmp.timeouts.write;
        let (mut look, mut progress) = (Instant::now() + LOOK, Instant::now());
        let (mut kicked, before) = (self.held.kicked(), connection.sent);
        loop {
            let is_busy = connection.queue();
            if is_busy {
                let sent = connection.sent;
                tokio::select! {
                    read = connection.exchange_or_hold(&self.viewing) => read?,
                    _ = kicked.wait_for(|kicked| *kicked) => return Err(End::Kicked),
                    () = sleep_until(look.into()) => {}
                }
                if connection.sent > sent {
                    counted.sent(connection.sent - sent);
                    self.held.count(connection.sent - before);
                    progress = Instant::now();
                }
                if progress.elapsed() > stall {
                    return Err(End::Slow(stall));
                }
            } else {
                progress = Instant::now();
                tokio::select! {
                    biased;
                    run = self.viewing.next() => self.send(&run.map_err(|_| End::Over)?, connection)?,
                    read = connection.read() => read?,
                    _ = kicked.wait_for(|kicked| *kicked) => return Err(End::Kicked),
                    () = sleep_until(look.into()) => {}
                }
            }
            while let Some(event) = connection.next_event()? {
                if event == RtmpEvent::End {
                    return Ok(());
                }
            }
            if Instant::now() >= look {
                look = Instant::now() + LOOK;
                if self.rights.0.is_over() {
                    return Err(End::Rights);
                }
            }
        }
    }

    /// Gives the messages of a run to the connection.
    fn send<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        run: &Run,
        connection: &mut Connection<'_, S>,
    ) -> Result<(), End> {
        for frame in run.iter() {
            if self.epoch.replace(frame.epoch) != Some(frame.epoch) {
                let epoch = self.viewing.program().feed().epoch(frame.epoch);
                if !epoch.is_none_or(|epoch| self.muxer.enter(&epoch.formats)) {
                    return Err(End::Over);
                }
            }
            self.muxer.push(frame, &mut self.messages);
            for FlvMessage { kind, timestamp, head, data } in self.messages.drain(..) {
                connection.send(&RtmpMedia { kind, timestamp, head: &head, data: &data });
            }
        }
        Ok(())
    }
}

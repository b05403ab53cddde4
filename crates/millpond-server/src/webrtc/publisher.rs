//! The session of one publisher: a task that owns its connection and its publication.

use super::{
    connection::{Connection, ConnectionEvent, told},
    end::End,
    metrics::WebRtcMetrics,
    record::Record,
};
use millpond_stream::{
    Admitted, Conflict, LiveRequest, Manager, Observer as _, Publication, PublishRequest, PublishedMedia, SentTotals,
    reception::{AnnouncedMedia, Backchannel, ReceivedPackets, ReceivedTrack},
};
use millpond_webrtc::SrtpKeys;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, watch};

/// Interval between looks at the publication of a session.
const LOOK: Duration = Duration::from_secs(1);
/// Reports and requests of the reception that wait, at most. Further ones are dropped; the next ones say the same.
const REPORTS: usize = 64;

/// A session of a publisher.
pub(super) struct Publisher {
    pub(super) manager: Arc<Manager>,
    pub(super) connection: Connection,
    pub(super) stream: LiveRequest,
    pub(super) conflict: Conflict,
    /// Longest time without media.
    pub(super) patience: Duration,
    pub(super) tracks: Vec<ReceivedTrack>,
    /// Number of the header extension of arrivals.
    pub(super) arrivals: Option<u8>,
    /// The media; `None` once it is published.
    pub(super) media: Option<AnnouncedMedia>,
    pub(super) admitted: Admitted,
    pub(super) record: Arc<Record>,
    pub(super) metrics: WebRtcMetrics,
    /// Bytes of media that arrived.
    pub(super) received: Arc<AtomicU64>,
}

/// The publication of a connected peer.
struct Publishing {
    publication: Publication,
    packets: ReceivedPackets,
    /// Reports and requests of the reception.
    reports: mpsc::Receiver<Vec<u8>>,
}

/// The event that a session waited for.
enum Awaited {
    Event(Option<ConnectionEvent>),
    Report(Vec<u8>),
    Time,
}

impl Publisher {
    /// Serves the session to its end.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut publishing = None;
        let end = self.serve(&mut publishing, &mut stop).await;
        if let Some(Publishing { publication, .. }) = publishing {
            let (packets, bytes) = publication.received();
            self.record.stopped(SentTotals { packets, bytes, lost: 0 });
        }
        self.connection.close();
        self.metrics.end(end.reason());
        self.record.ends(&end);
    }

    async fn serve(&mut self, publishing: &mut Option<Publishing>, stop: &mut watch::Receiver<bool>) -> End {
        let mut end = self.connection.end();
        let mut look = Instant::now() + LOOK;
        loop {
            let report = publishing.as_ref().and_then(|publishing| publishing.packets.next());
            let next = [Some(self.connection.peer.next()), Some(look), report].into_iter().flatten().min();
            let awaited = tokio::select! {
                received = self.connection.entry.inbox.recv() => match received {
                    Some(received) => self.connection.receive(received).map(Awaited::Event).map_err(End::from),
                    None => Err(End::Deleted),
                },
                report = next_report(publishing.as_mut()) => Ok(Awaited::Report(report)),
                () = tokio::time::sleep_until(next.unwrap_or(look).into()) => Ok(Awaited::Time),
                by = told(&mut end) => Err(by.flatten().map_or(End::Stop, End::from)),
                _ = told(stop) => Err(End::Stop),
            };
            let taken = match awaited {
                Ok(Awaited::Event(event)) => self.take(event, publishing).await,
                Ok(Awaited::Report(report)) => {
                    let sealed = publishing.as_mut().and_then(|publishing| publishing.packets.seal(report));
                    self.send(sealed);
                    Ok(())
                }
                Ok(Awaited::Time) => self.tick(publishing, &mut look).await,
                Err(end) => Err(end),
            };
            if let Err(end) = taken {
                return end;
            }
        }
    }

    /// Takes an event of the connection.
    async fn take(&mut self, event: Option<ConnectionEvent>, publishing: &mut Option<Publishing>) -> Result<(), End> {
        match (event, publishing.as_mut()) {
            (Some(ConnectionEvent::Connected(keys)), _) => *publishing = Some(self.begin(&keys)?),
            (Some(ConnectionEvent::Media(bytes)), Some(Publishing { publication, packets, .. })) => {
                for (channel, packet) in packets.take(&bytes) {
                    publication.push(channel, packet).await?;
                }
                let report = packets.report();
                self.send(report);
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes the time, and looks whether the session goes on.
    async fn tick(&mut self, publishing: &mut Option<Publishing>, look: &mut Instant) -> Result<(), End> {
        let event = self.connection.tick()?;
        self.take(event, publishing).await?;
        let Some(Publishing { publication, packets, .. }) = publishing else {
            *look = Instant::now() + LOOK;
            return Ok(());
        };
        let report = packets.report();
        self.send(report);
        if Instant::now() < *look {
            return Ok(());
        }
        *look = Instant::now() + LOOK;
        self.received.store(publication.received().1, Ordering::Relaxed);
        if let Some(end) = publication.ended() {
            return Err(end.into());
        }
        if publication.silence() > self.patience {
            return Err(End::Mute(self.patience));
        }
        Ok(())
    }

    /// Begins to receive under the keys of the connection.
    fn begin(&mut self, keys: &SrtpKeys) -> Result<Publishing, End> {
        // A connection has keys once.
        let Some(mut media) = self.media.take() else { return Err(End::Over) };
        let (outbox, reports) = mpsc::channel(REPORTS);
        let back: Backchannel = Arc::new(move |_, report| _ = outbox.try_send(report.to_vec()));
        media.set_backchannel(back);
        for (stream, track) in self.tracks.iter().enumerate() {
            media.set_up_passed(stream, track.channel);
        }
        let (stream, media) = (self.stream.clone(), PublishedMedia::Rtp(Box::new(media)));
        let publication = self.manager.publish(PublishRequest { stream, media, conflict: self.conflict })?;
        self.admitted.play();
        self.record.publishes();
        let packets = ReceivedPackets::new(keys, std::mem::take(&mut self.tracks), self.arrivals);
        Ok(Publishing { publication, packets, reports })
    }

    /// Sends a report, if there is one.
    fn send(&self, report: Option<Vec<u8>>) {
        if let Some(report) = report {
            self.connection.send_media(&report);
        }
    }
}

/// Waits for a report of the reception. Cancel safe.
async fn next_report(publishing: Option<&mut Publishing>) -> Vec<u8> {
    match publishing {
        Some(Publishing { reports, .. }) => match reports.recv().await {
            Some(report) => report,
            // The reception is over, which the next look finds.
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

//! Viewers: a stream is sent as a transport stream.

use super::{
    Srt,
    refusal::Refused,
    rights::Asker,
    session::{End, Session},
};
use futures_util::future::BoxFuture;
use millpond_access::{ClientHold, Pass};
use millpond_stream::{Admitted, CannotOpen, FormatsChanged, LiveRequest, Manager, Program, TransportPayloads};
use std::{sync::Arc, time::Duration};

/// Longest wait for the formats of a live stream. Its source has time limits of its own for each step before.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time for which a request waits for its stream. Callers give up after three seconds: a stream that takes longer is accepted first.
const EARLY: Duration = Duration::from_secs(2);

/// A stream that a caller plays.
pub(super) struct Viewed {
    manager: Arc<Manager>,
    opening: Opening,
    rights: (Pass, ClientHold),
    admitted: Admitted,
}

/// A stream that is open, or will be.
enum Opening {
    Open(Program),
    Waits(BoxFuture<'static, Result<Program, Refused>>),
}

/// Opens the stream that a caller plays.
///
/// # Errors
/// The reason of the refusal.
pub(super) async fn open(srt: &Arc<Srt>, asker: &Asker<'_>) -> Result<Viewed, Refused> {
    let manager = srt.sources.manager().clone();
    let rights = srt.admit_viewer(asker, manager.clock().elapsed()).await?;
    let full = |full| {
        manager.counters().refuse(full);
        Refused::Full(full)
    };
    let admitted = manager.admission().admit(asker.client, &Arc::default()).map_err(full)?;
    let mut opening: BoxFuture<'static, _> = Box::pin(program(srt.clone(), asker.id.path.clone()));
    let early = tokio::time::timeout(EARLY, &mut opening).await;
    let opening = match early {
        Ok(program) => Opening::Open(fitting(program?)?),
        Err(_) => Opening::Waits(opening),
    };
    Ok(Viewed { manager, opening, rights, admitted })
}

/// Opens a stream: one rendition at a time where it is a ladder. A live source is waited for until its formats are known.
async fn program(srt: Arc<Srt>, path: String) -> Result<Program, Refused> {
    let (sources, manager) = (&srt.sources, srt.sources.manager());
    let at = sources.find(&path);
    sources.placed(&at)?;
    if let Some(program) = sources.follow(&at).await? {
        return Ok(program);
    }
    let request: Option<LiveRequest> = sources.stream(&at).await?;
    let request = request.ok_or(Refused::Stored)?;
    let stream = manager.live(request)?;
    let feed = manager.live_feed(&stream, PATIENCE).await.map_err(Refused::Source)?;
    Ok(Program::live(&feed))
}

/// Returns a stream that a transport stream can carry.
fn fitting(program: Program) -> Result<Program, Refused> {
    if program.transport_stream().is_some() { Ok(program) } else { Err(Refused::Unfit) }
}

/// Sends the stream until it or the connection ends.
///
/// # Errors
/// The reason of the end.
pub(super) async fn serve(session: &mut Session, viewed: Viewed) -> Result<(), End> {
    let Viewed { manager, opening, rights, mut admitted } = viewed;
    let program = match opening {
        Opening::Open(program) => program,
        Opening::Waits(mut opening) => meanwhile(session, &mut opening).await?.map_err(end)?,
    };
    let mut payloads = TransportPayloads::new(&program).ok_or(End::Unfit)?;
    let label = format!("srt {:x}", session.record.number);
    let mut branch = Box::pin(async { manager.branch(&program, &label).await });
    let mut viewing = meanwhile(session, &mut branch).await??;
    admitted.play();
    loop {
        let run = tokio::select! {
            biased;
            run = viewing.next() => Some(run.map_err(|_| End::Over)?),
            stepped = session.step() => stepped.map(|()| None)?,
        };
        if let Some(run) = run {
            let made = payloads.of(&run, viewing.program(), session.link.longest_payload());
            session.link.send(made.map_err(|FormatsChanged| End::Over)?.into_iter());
            session.link.advance()?;
        }
        while session.link.deliver().is_some() {}
        if session.looks()? && rights.0.is_over() {
            return Err(End::Rights);
        }
    }
}

/// Waits for something, and keeps the connection meanwhile.
async fn meanwhile<T>(session: &mut Session, waited: &mut (impl Future<Output = T> + Unpin)) -> Result<T, End> {
    loop {
        tokio::select! {
            done = &mut *waited => return Ok(done),
            stepped = session.step() => stepped?,
        }
        session.looks()?;
    }
}

/// Why a session ends whose stream was waited for.
fn end(refused: Refused) -> End {
    match refused {
        Refused::Open(error) => End::Stream(error),
        Refused::Source(error) => End::Source(error),
        Refused::Unfit => End::Unfit,
        _ => End::Stream(CannotOpen::Ended),
    }
}

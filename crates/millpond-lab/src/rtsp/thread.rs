//! One thread of a run: its share of the clients, on a runtime of its own, with a receiving thread beside it.

use super::{
    arrivals::arrivals,
    clock::Clock,
    connection::Scratch,
    figures::{Counters, MediaCounts, MediaFigures},
    media::Media,
    options::{Audience, Options},
    ports::Ports,
    receiver::{self, Receiver, Reception},
    session::Session,
    tally::Tally,
    titles::Titles,
};
use crate::tally::Ending;
use bytes::BytesMut;
use std::{
    cell::{Cell, RefCell},
    io,
    net::{IpAddr, SocketAddr},
    rc::Rc,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{oneshot, watch},
    task::{JoinSet, LocalSet},
};

/// How long a place stays empty after a client that failed, so that a dead server is not asked in a tight loop.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// How long clients may take to leave at the end of the run.
const GRACE: Duration = Duration::from_secs(5);
/// Between two additions to what is shown.
const COUNT: Duration = Duration::from_millis(200);

/// State that the sessions of a thread share.
pub(crate) struct Common {
    pub(crate) options: Options,
    pub(crate) clock: Clock,
    pub(crate) counters: Arc<Counters>,
    pub(crate) tally: RefCell<Tally>,
    /// Of media that comes on connections; none holds it over a wait.
    pub(crate) figures: Rc<RefCell<MediaFigures>>,
    pub(crate) scratch: Scratch,
    titles: Titles,
    receiver: Receiver,
    /// Sessions handed to the receiving thread.
    handed: Cell<u64>,
    /// The ports of all clients that don't listen.
    unread: RefCell<Option<(IpAddr, Arc<Ports>)>>,
}

impl Common {
    /// Hands media to the receiving thread.
    pub(crate) fn receive(&self, media: Media, ports: Vec<(Arc<Ports>, Option<SocketAddr>)>) -> Reception {
        self.handed.set(self.handed.get() + 1);
        self.receiver.add(self.handed.get(), media, ports)
    }

    /// Ports that are never read, at a local address.
    pub(crate) fn unread(&self, address: IpAddr) -> io::Result<Arc<Ports>> {
        let mut unread = self.unread.borrow_mut();
        match &*unread {
            Some((at, ports)) if *at == address => Ok(ports.clone()),
            _ => {
                let ports = Arc::new(Ports::open_unread(address)?);
                *unread = Some((address, ports.clone()));
                Ok(ports)
            }
        }
    }
}

/// The share of one thread.
pub(crate) struct Share {
    pub(crate) options: Options,
    pub(crate) clock: Clock,
    pub(crate) counters: Arc<Counters>,
    /// Which of how many.
    pub(crate) thread: usize,
    pub(crate) threads: usize,
}

/// Measurements of a thread.
pub(crate) type Measured = (Tally, MediaFigures);

impl Share {
    /// Starts the thread; what it measured comes when it has ended, nothing where it broke.
    pub(crate) fn spawn(self, stopped: watch::Receiver<bool>) -> io::Result<oneshot::Receiver<Measured>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let name = format!("receive-{}", self.thread);
        let (receiver, receiving) = receiver::start(name, self.clock, self.counters.clone())?;
        let (done, result) = oneshot::channel();
        let name = format!("load-{}", self.thread);
        let body = move || {
            let common = Rc::new(self.common(receiver));
            LocalSet::new().block_on(&runtime, self.audience(&common, stopped));
            common.receiver.stop();
            let (tally, mut figures) = (common.tally.take(), common.figures.take());
            if let Ok(received) = receiving.join() {
                figures.merge(&received);
                // The receiver is gone when the run was dropped.
                let _ = done.send((tally, figures));
            }
        };
        std::thread::Builder::new().name(name).spawn(body)?;
        Ok(result)
    }

    fn common(&self, receiver: Receiver) -> Common {
        Common {
            options: self.options.clone(),
            clock: self.clock,
            counters: self.counters.clone(),
            tally: RefCell::default(),
            figures: Rc::default(),
            scratch: Rc::new(RefCell::new(BytesMut::new())),
            titles: Titles::new(self.options.urls.clone(), self.options.zipf),
            receiver,
            handed: Cell::new(0),
            unread: RefCell::new(None),
        }
    }

    /// Lets clients in when it is their time, and waits until all have left.
    async fn audience(&self, common: &Rc<Common>, mut stopped: watch::Receiver<bool>) {
        let mut places = JoinSet::new();
        let counting = tokio::task::spawn_local(count(common.clone()));
        let mine = arrivals(&self.options).enumerate().skip(self.thread).step_by(self.threads);
        for (client, at) in mine {
            tokio::select! {
                biased;
                () = stop(&mut stopped) => break,
                () = tokio::time::sleep_until(self.clock.instant(at).into()) => {}
            }
            while places.try_join_next().is_some() {}
            let rng = fastrand::Rng::with_seed(self.options.seed.wrapping_add(1 + client as u64));
            places.spawn_local(occupy(common.clone(), rng, stopped.clone()));
        }
        let all_left = async { while places.join_next().await.is_some() {} };
        let late = async {
            stop(&mut stopped).await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            () = all_left => {}
            () = late => {}
        }
        common.tally.borrow_mut().cut_off += places.len() as u64;
        counting.abort();
    }
}

/// Adds the media of connections to the figures that are shown.
async fn count(common: Rc<Common>) {
    let mut told = MediaCounts::default();
    loop {
        tokio::time::sleep(COUNT).await;
        let counts = common.figures.borrow().counts;
        common.counters.add(&mut told, counts);
    }
}

/// One client after the other, until the run ends or each has had its turn.
async fn occupy(common: Rc<Common>, mut rng: fastrand::Rng, mut stopped: watch::Receiver<bool>) {
    let options = &common.options;
    let is_place = matches!(options.audience, Audience::Places { .. });
    let again = is_place && options.length.is_some() && !options.once;
    loop {
        let ending = visit(&common, &mut rng, &mut stopped).await;
        common.tally.borrow_mut().ended(ending);
        if !again || ending == Ending::CutOff {
            return;
        }
        if ending == Ending::Failed {
            tokio::select! {
                () = stop(&mut stopped) => return,
                () = tokio::time::sleep(AFTER_FAILURE) => {}
            }
        }
    }
}

/// One session from beginning to end.
async fn visit(common: &Rc<Common>, rng: &mut fastrand::Rng, stopped: &mut watch::Receiver<bool>) -> Ending {
    let Some(url) = common.titles.draw(rng) else { return Ending::Done };
    let connected = tokio::select! {
        biased;
        () = stop(stopped) => return Ending::CutOff,
        connected = Session::connect(common, url) => connected,
    };
    let mut session = match connected {
        Ok(session) => session,
        Err(failure) => {
            common.tally.borrow_mut().failure(failure, &common.counters);
            return Ending::Failed;
        }
    };
    let played = tokio::select! {
        biased;
        () = stop(stopped) => {
            // Whatever comes of it is no part of the run.
            let _ = session.tear_down(false).await;
            return Ending::CutOff;
        }
        played = async {
            session.open().await?;
            session.watch(rng).await
        } => played,
    };
    let ended = match played {
        Ok(()) => session.tear_down(true).await,
        Err(failure) => {
            // The failure that there was says more than another one.
            let _ = session.tear_down(false).await;
            Err(failure)
        }
    };
    match ended {
        Ok(()) => Ending::Done,
        Err(failure) => {
            common.tally.borrow_mut().failure(failure, &common.counters);
            Ending::Failed
        }
    }
}

/// Ready when the run ends, or its future was dropped.
async fn stop(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|&stopped| stopped).await;
}

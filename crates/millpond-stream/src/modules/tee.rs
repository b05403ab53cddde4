//! Passes the frames of a stream on to a publication, at once or later.

use super::attachable::{AttachableKind, MadeModule, ModuleDeclaration, ModuleInput, ModuleOption, ModuleOptions};
use crate::{
    Run,
    graph::{Inputs, LiveMemory, Module, ModuleError, Output},
    kind::ModuleKind,
    live::Program,
};
use futures_util::future::BoxFuture;
use millpond_settings::value::{self, Form};
use millpond_store::Hold;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

pub(super) const KIND: ModuleKind = ModuleKind {
    name: "tee",
    about: "publishes the frames of a channel or live stream as a stream of another name, at once or later",
    inputs: 1,
    outputs: 1,
};

/// Longest delay.
const LONGEST: Duration = Duration::from_secs(600);

const OPTIONS: &[ModuleOption] = &[ModuleOption {
    name: "delay",
    form: Form::Duration,
    default: "0s",
    help: "Time by which the frames are passed on later, at most 10 minutes and stream-memory",
    is_required: false,
    check: |text| value::duration_in(text, Duration::ZERO, LONGEST).map(drop),
}];

/// The kind of modules that publish a stream under another name.
pub const TEE: ModuleDeclaration =
    ModuleDeclaration { kind: KIND, input: ModuleInput::Any, options: OPTIONS, is_kept: false };

/// The kind of tees.
pub(crate) struct Tee {
    memory: LiveMemory,
}

/// One tee.
struct Passing {
    delay: Duration,
    /// Counts the frames that wait.
    memory: LiveMemory,
    /// Runs that wait, with their moments.
    waiting: VecDeque<(Instant, Run, Hold)>,
    bytes: u64,
}

/// The delay needs more memory than a stream may take.
#[derive(Debug, thiserror::Error)]
#[error(
    "{held:?} of the delay of {delay:?} take {bytes} bytes, and there is no memory for more (stream-memory, memory)"
)]
struct NoRoom {
    delay: Duration,
    held: Duration,
    bytes: u64,
}

impl Tee {
    pub(crate) fn new(memory: LiveMemory) -> Self {
        Self { memory }
    }

    /// Makes a module that passes frames on at once.
    pub(crate) fn at_once(memory: &LiveMemory) -> Box<dyn Module> {
        Box::new(Passing { delay: Duration::ZERO, memory: memory.of_channel(), waiting: VecDeque::new(), bytes: 0 })
    }
}

impl AttachableKind for Tee {
    fn declaration(&self) -> &'static ModuleDeclaration {
        &TEE
    }

    fn make<'a>(
        &'a self,
        _: &'a Program,
        options: &'a ModuleOptions,
        _: u64,
    ) -> BoxFuture<'a, Result<MadeModule, ModuleError>> {
        let delay = options.get("delay").and_then(|text| value::duration(text).ok()).unwrap_or_default();
        let label = options.get("to").unwrap_or_default().trim_matches('/').to_owned();
        let memory = self.memory.of_channel();
        let module = Box::new(Passing { delay, memory, waiting: VecDeque::new(), bytes: 0 });
        Box::pin(async move { Ok(MadeModule { module, label, results: None }) })
    }
}

impl Passing {
    /// Keeps a run until its moment.
    ///
    /// # Errors
    /// There is no memory for it.
    fn keep(&mut self, run: Run, now: Instant) -> Result<(), NoRoom> {
        let bytes = bytes(&run);
        let hold = self.memory.try_take(bytes).filter(|_| self.bytes + bytes <= self.memory.most());
        let Some(hold) = hold else {
            let held = self.waiting.front().map_or(Duration::ZERO, |(due, ..)| now + self.delay - *due);
            return Err(NoRoom { delay: self.delay, held, bytes: self.bytes });
        };
        self.bytes += bytes;
        self.waiting.push_back((now + self.delay, run, hold));
        Ok(())
    }

    /// The first run whose moment has come.
    fn due(&mut self, now: Instant) -> Option<Run> {
        self.waiting.front().filter(|(due, ..)| *due <= now)?;
        let (_, run, _) = self.waiting.pop_front()?;
        self.bytes -= bytes(&run);
        Some(run)
    }

    /// Waits for the moment of the first run.
    async fn wait(&self) {
        match self.waiting.front() {
            Some((due, ..)) => tokio::time::sleep_until((*due).into()).await,
            None => std::future::pending().await,
        }
    }
}

fn bytes(run: &Run) -> u64 {
    run.iter().map(|frame| frame.data.len() as u64).sum()
}

impl Module for Passing {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn run(mut self: Box<Self>, mut inputs: Inputs, output: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            let Some(mut input) = inputs.pop() else { return Ok(()) };
            let mut has_ended = false;
            while !has_ended || !self.waiting.is_empty() {
                let run = tokio::select! {
                    () = self.wait() => self.due(Instant::now()),
                    run = input.next(), if !has_ended => match run {
                        Ok(run) if self.delay.is_zero() => Some(run),
                        Ok(run) => {
                            self.keep(run, Instant::now())?;
                            None
                        }
                        Err(_) => {
                            has_ended = true;
                            None
                        }
                    },
                };
                if let Some(run) = run
                    && output.send(run).await.is_err()
                {
                    break;
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Frame;
    use millpond_media::Importance;
    use millpond_store::{Holds, Memory, policy::PolicyName};

    fn run(number: u32) -> Run {
        let due = Duration::from_millis(40) * number;
        let data = vec![0; 1000].into();
        let frame =
            Frame { track: 0, number, due, pts: 0, epoch: 0, is_sync: true, importance: Importance::BASE, data };
        [frame].into()
    }

    fn passing(delay: Duration, most: u64) -> Passing {
        let holds = Holds::of(&Memory::new(64 << 20, PolicyName::Sieve), "live");
        let memory = LiveMemory::new(holds, Default::default(), most).of_channel();
        Passing { delay, memory, waiting: VecDeque::new(), bytes: 0 }
    }

    #[test]
    fn runs_wait_for_the_delay_and_keep_their_order() {
        let mut tee = passing(Duration::from_secs(2), 1 << 20);
        let began = Instant::now();
        for number in 0..100 {
            tee.keep(run(number), began + Duration::from_millis(40) * number).unwrap();
        }
        assert!(tee.due(began + Duration::from_millis(1999)).is_none());
        let due = |tee: &mut Passing, millis| tee.due(began + Duration::from_millis(millis)).map(|run| run[0].number);
        assert_eq!((due(&mut tee, 2000), due(&mut tee, 2039), due(&mut tee, 2090)), (Some(0), None, Some(1)));
        assert_eq!((due(&mut tee, 2090), due(&mut tee, 2090), tee.bytes), (Some(2), None, 97_000));
    }

    #[test]
    fn a_delay_that_needs_more_memory_than_a_stream_has_ends_the_module() {
        let mut tee = passing(Duration::from_secs(60), 10_000);
        let began = Instant::now();
        let at = |number: u32| began + Duration::from_millis(40) * number;
        (0..10).for_each(|number| tee.keep(run(number), at(number)).unwrap());
        let error = tee.keep(run(10), at(10)).unwrap_err().to_string();
        assert_eq!(
            error,
            "400ms of the delay of 60s take 10000 bytes, and there is no memory for more (stream-memory, memory)"
        );
    }
}

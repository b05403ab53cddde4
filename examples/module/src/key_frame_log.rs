//! A kind of modules that writes a line of JSON for each key frame.

use millpond_settings::value::{self, Form};
use millpond_stream::{
    AttachableKind, Frame, MadeModule, ModuleDeclaration, ModuleInput, ModuleKind, ModuleOption, ModuleOptions,
    Program,
    graph::{Inputs, Module, ModuleError, Output},
};
use std::{path::PathBuf, pin::Pin, time::Duration};
use tokio::{fs::File, io::AsyncWriteExt as _};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

static DECLARATION: ModuleDeclaration = ModuleDeclaration {
    kind: ModuleKind {
        name: "key-frame-log",
        about: "writes a line of JSON for each key frame of a channel or live stream",
        inputs: 1,
        outputs: 0,
    },
    input: ModuleInput::Pictures,
    is_kept: false,
    options: &[ModuleOption {
        name: "every",
        form: Form::Count,
        default: "1",
        help: "Writes one key frame of so many",
        is_required: false,
        check: |text| value::count(text, 1).map(drop),
    }],
};

/// The kind. Its files lie in a folder that the program chooses, not the client of the admin API.
pub(crate) struct KeyFrameLog {
    pub(crate) folder: PathBuf,
}

impl AttachableKind for KeyFrameLog {
    fn declaration(&self) -> &'static ModuleDeclaration {
        &DECLARATION
    }

    fn make<'a>(
        &'a self,
        stream: &'a Program,
        options: &'a ModuleOptions,
        id: u64,
    ) -> BoxFuture<'a, Result<MadeModule, ModuleError>> {
        Box::pin(async move {
            let name = format!("key-frames-{id}.jsonl");
            let file = File::create(self.folder.join(&name)).await?;
            let every = options.get("every").and_then(|text| value::count(text, 1).ok()).unwrap_or(1);
            let module = Writer { file, track: stream.lead(), every, seen: 0, last: None };
            Ok(MadeModule { module: Box::new(module), label: name, results: None })
        })
    }
}

struct Writer {
    file: File,
    /// The track with the pictures.
    track: u16,
    every: usize,
    seen: usize,
    /// Decode time of the last key frame.
    last: Option<Duration>,
}

impl Writer {
    /// The line of a frame, where it gets one.
    fn line(&mut self, frame: &Frame) -> Option<String> {
        if frame.track != self.track || !frame.is_sync {
            return None;
        }
        let interval = self.last.replace(frame.due).map(|last| frame.due.saturating_sub(last).as_secs_f64());
        self.seen += 1;
        let line = serde_json::json!({
            "seconds": frame.due.as_secs_f64(),
            "bytes": frame.data.len(),
            "interval": interval,
        });
        (self.seen - 1).is_multiple_of(self.every).then(|| format!("{line}\n"))
    }
}

impl Module for Writer {
    fn kind(&self) -> &'static str {
        DECLARATION.kind.name
    }

    fn run(mut self: Box<Self>, mut inputs: Inputs, _: Output) -> BoxFuture<'static, Result<(), ModuleError>> {
        Box::pin(async move {
            let Some(mut input) = inputs.pop() else { return Ok(()) };
            while let Ok(run) = input.next().await {
                let lines: String = run.iter().filter_map(|frame| self.line(frame)).collect();
                self.file.write_all(lines.as_bytes()).await?;
                self.file.flush().await?;
            }
            Ok(())
        })
    }
}

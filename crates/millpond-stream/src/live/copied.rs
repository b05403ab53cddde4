//! Windows that are copies of those of other servers.

use super::{LiveWindow, WindowOptions, windows::Windows};
use crate::graph::LiveMemory;
use bytes::Bytes;
use millpond_package::live::{CopyError, CopyHead, CopyReader, CopyRecord, Cut, Part, Window};
use std::{fmt, sync::Arc, time::Duration};

/// Time for which a copy waits for another source.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Why a copy ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotCopy {
    /// The records can't be read.
    #[error(transparent)]
    Unreadable(#[from] CopyError),
    /// This server has the stream itself.
    #[error("the stream runs here, so that it needs no copy")]
    Running,
    /// The memory for live streams is full.
    #[error("no memory for a copy of the stream: raise memory or stream-memory")]
    Memory,
}

/// The copy of a stream's window that another server has, while its records arrive.
///
/// The window is found by the path of its stream, and by its run. It ends with this, unless it is [left](Self::leave).
pub struct WindowCopy {
    windows: Windows,
    path: Box<str>,
    options: WindowOptions,
    linger: Duration,
    memory: LiveMemory,
    reader: CopyReader,
    window: Option<Arc<LiveWindow>>,
}

impl WindowCopy {
    /// Begins the copy of the window of a path. `linger` is the time for which viewers keep it.
    pub(crate) fn new(
        windows: Windows,
        path: &str,
        (options, linger): (WindowOptions, Duration),
        memory: &LiveMemory,
    ) -> Self {
        let memory = memory.of_channel();
        let options = WindowOptions { bytes: options.bytes.min(memory.window_bytes()), ..options };
        Self { windows, path: path.into(), options, linger, memory, reader: CopyReader::default(), window: None }
    }

    /// Takes bytes of the other server. Returns whether the window there has ended.
    ///
    /// # Errors
    /// The copy can't go on.
    pub fn push(&mut self, bytes: &[u8]) -> Result<bool, CannotCopy> {
        self.reader.push(bytes);
        while let Some(record) = self.reader.read()? {
            match record {
                CopyRecord::Ended => return Ok(true),
                CopyRecord::Alive => {}
                CopyRecord::Head(head) => self.begin(head)?,
                CopyRecord::Cut(Cut::Part(part)) => self.follow(CopyRecord::Cut(Cut::Part(self.held(part)?))),
                record => self.follow(record),
            }
        }
        Ok(false)
    }

    /// Begins to read from the beginning: another connection follows.
    pub fn reconnected(&mut self) {
        self.reader = CopyReader::default();
    }

    fn begin(&mut self, head: CopyHead) -> Result<(), CannotCopy> {
        if let Some(window) = self.window.take_if(|window| window.run() != head.run) {
            self.windows.forget_copy(&self.path, &window);
        }
        if self.window.is_some() {
            return Ok(());
        }
        let CopyHead { run, discontinuity, tracks } = head;
        let window = Window::new(self.options.limits(), tracks, discontinuity);
        let window = window.with_captions(self.options.captions.clone());
        let window = LiveWindow::new(run, window, self.linger, None).counted_in(self.memory.clone()).into_copy();
        let window = Arc::new(window);
        if !self.windows.add_copy(&self.path, &window) {
            return Err(CannotCopy::Running);
        }
        self.window = Some(window);
        Ok(())
    }

    fn follow(&self, record: CopyRecord) {
        if let Some(window) = &self.window {
            window.change(|window| window.follow(record));
        }
    }

    /// Returns a part whose bytes are counted in the memory of live streams.
    fn held(&self, part: Part) -> Result<Part, CannotCopy> {
        let hold = |bytes: &Bytes| self.memory.hold_bytes(bytes.clone()).ok_or(CannotCopy::Memory);
        let bytes = part.bytes.iter().map(hold).collect::<Result<Vec<_>, _>>()?;
        Ok(Part { bytes: bytes.into(), ..part })
    }

    /// The window, once its first record has arrived.
    pub fn window(&self) -> Option<&Arc<LiveWindow>> {
        self.window.as_ref()
    }

    /// Leaves the window to the stream of its path, which goes on in it when it is opened within half a minute. Called within a
    /// runtime.
    pub fn leave(mut self) {
        if let Some(window) = self.window.take() {
            self.windows.leave_copy(&self.path, window);
        }
    }
}

impl Drop for WindowCopy {
    fn drop(&mut self) {
        if let Some(window) = self.window.take() {
            self.windows.forget_copy(&self.path, &window);
        }
    }
}

impl fmt::Debug for WindowCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowCopy").field("path", &self.path).field("window", &self.window).finish_non_exhaustive()
    }
}

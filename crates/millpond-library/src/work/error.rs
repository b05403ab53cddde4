//! Errors of the pool for heavy work.

/// A share of the memory budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryShare {
    /// The limit of all jobs together.
    Half,
    /// The limit of one body that is made in memory.
    Eighth,
}

impl MemoryShare {
    /// Returns the share of a budget.
    #[must_use]
    pub fn of(self, budget: u64) -> u64 {
        match self {
            Self::Half => budget / 2,
            Self::Eighth => budget / 8,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Half => "half",
            Self::Eighth => "an eighth",
        }
    }
}

/// Why a job gave no result, apart from errors that its input causes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The queue of jobs is full.
    #[error("found {waiting} jobs waiting, expected fewer than {most}: the server is busy, try again later")]
    Full {
        /// Jobs that wait for a thread.
        waiting: usize,
        /// Bound of the queue.
        most: usize,
    },
    /// The job needs more memory than jobs may have. Only a larger budget helps.
    #[error("needs {wanted} bytes of memory, expected at most {most}: {} of the budget of {budget} (memory)", .share.words())]
    TooLarge {
        /// Bytes that the job needs.
        wanted: u64,
        /// Bytes that the job may have.
        most: u64,
        /// Share of the budget that `most` is.
        share: MemoryShare,
        /// The memory budget in bytes.
        budget: u64,
    },
    /// Other jobs hold the memory.
    #[error("found no room for {wanted} bytes within {seconds} s, expected it in a budget of {budget} (memory)")]
    NoRoom {
        /// Bytes that the job needs.
        wanted: u64,
        /// Seconds that it waited for them.
        seconds: u64,
        /// The memory budget in bytes.
        budget: u64,
    },
    /// The server shuts down.
    #[error("the server is shutting down")]
    Stopping,
    /// The job panicked: a fault of the program.
    #[error("the job ended without a result")]
    Failed,
}

//! Errors of the pool for heavy work.

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
    /// The job needs more memory than all jobs together may have.
    #[error("needs {wanted} bytes of memory, expected at most {most}: half of the budget of {budget} (memory)")]
    TooLarge {
        /// Bytes that the job needs.
        wanted: u64,
        /// Bytes that all jobs may have together.
        most: u64,
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

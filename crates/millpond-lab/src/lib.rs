//! The load generators: players in numbers, against any HLS or DASH server, any RTSP server ([`rtsp`]) and any server of WebRTC
//! ([`whep`]); and the cache simulator ([`simulate`]).
//!
//! A load run plays the request sequence of real players: the manifest, the media playlists of video and audio
//! where there are such, the init segments, then segments at the pace of playback or as fast as they come. It
//! measures what operators ask for (requests and bytes a second, latencies by kind of request) and what viewers
//! notice (startup delay, stalls, changes of rendition). Any other URL is simply fetched over and over. [`replay`] plays a
//! trace: the visits of viewers, with the bytes they read, when and how fast.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use millpond_lab::{LoadOptions, run};
//!
//! let mut options = LoadOptions::new("http://localhost:8080/film.mp4/index.m3u8".parse()?);
//! options.clients = 100;
//! let report = run(options, |progress| eprintln!("{progress}")).await?;
//! println!("{report}");
//! # Ok(())
//! # }
//! ```
//!
//! The types to know are [`LoadOptions`], [`Report`], and inside [`Playout`](player::Playout), the model of a
//! player's buffer, which has no I/O and no clock.
//!
//! # What it does not do
//! It decodes nothing, and fetches no subtitles, thumbnails or encryption keys. Of live streams it plays those of Low-Latency HLS
//! ([`Target::Live`]).
//!
//! # Limits
//! The generator must be faster than what it measures. One of its threads, built for release, made 45,000
//! requests a second for a 1 kB file from nginx on the same 2-core machine (16 connections over HTTP/1.1, 18 µs of
//! CPU a request, where `wrk` made 54,000), and took 3 to 4.5 GB/s of 1.1 MB segments. A figure near these
//! is the generator's own: add threads or machines. Each client has a connection and a file descriptor, or two
//! while it fetches video and audio at once. Over https, making a client costs some milliseconds, because it reads
//! the system's certificates; [`LoadOptions::players_per_pool`] and [`LoadOptions::ramp_up`] spread that.

pub mod abr;
mod client;
pub mod histogram;
mod library;
mod live;
pub mod llhls;
mod load;
pub mod m3u8;
mod mpd;
mod options;
pub mod player;
mod replay;
mod report;
mod resource;
pub mod rtsp;
pub mod simulate;
mod tally;
mod title;
mod viewer;
pub mod whep;
mod xml;

pub use load::{LoadError, run, run_until};
pub use mpd::MpdError;
pub use options::{Abr, Arrivals, HttpVersion, LoadOptions, Pace, RunLength, Target};
pub use replay::{ReplayReport, replay};
pub use report::{ErrorReport, KindReport, Late, Latency, Progress, Report, Stalls, SwitchReport, Viewers};
pub use resource::ByteSpan;
pub use title::TitleError;

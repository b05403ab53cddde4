//! Live streams and channels as their viewers read them: feeds, programs, windows, ladders and the past.
//!
//! A [`LiveFeed`] is what viewers play: the formats of one moment, and a share of the graph. A [`Program`] is its tracks, and a
//! [`Viewing`] gives their frames to one reader. A [`LiveWindow`] has the last segments of a stream, for players that ask for
//! them one by one; `TimeShift` keeps its past on the disk. This module does not know which streams exist, and who opens them.

mod channel;
mod copied;
mod ended;
mod feed;
mod following;
mod ladder;
mod lease;
mod lent;
mod past;
mod payloads;
mod program;
mod shift;
mod stored_past;
mod texts;
mod transport;
mod viewing;
mod window;
mod window_track;
mod windows;

pub(crate) use channel::{AssetTurn, FirstFrames, Joint, Lap, Schedule};
pub use channel::{ChannelSource, TimedStart, Titles};
pub use copied::{CannotCopy, WindowCopy};
pub(crate) use ended::EndedWindows;
pub use feed::LiveFeed;
pub(crate) use following::{Follower, Given, area, can_follow};
pub(crate) use ladder::Ladder;
pub use ladder::LadderView;
pub(crate) use past::{Begun, PastFeed, PastReader, live_point};
pub use past::{PastPoint, PastStart};
pub use payloads::{FormatsChanged, TransportPayloads};
pub use program::Program;
pub use shift::{Clip, NoClip, ShiftOptions, ShiftReport};
pub(crate) use shift::{PartReader, TimeShift};
pub use stored_past::is_ahead;
pub use texts::LiveText;
pub use transport::{TransportError, TransportJob};
pub(crate) use viewing::KIND as VIEWING;
pub use viewing::Viewing;
pub use window::{FoundPart, FoundSegment, LiveWindow, PartBytes};
pub(crate) use window_track::{PackagedTrack, live_formats, packaged};
pub(crate) use windows::{Found, NewWindow, Windows};
pub use windows::{LadderId, WindowOptions};

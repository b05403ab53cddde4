//! What a fake camera does, and what is to come out of it.

/// A camera.
pub(super) struct Scenario {
    /// Its name in failures.
    pub(super) name: &'static str,
    /// Texts of the description, and what it has instead.
    pub(super) sdp: &'static [(&'static str, &'static str)],
    pub(super) habits: &'static [Habit],
    pub(super) steps: &'static [Step],
    /// Names of the tracks of each epoch.
    pub(super) tracks: &'static [&'static str],
    /// Pictures and frames of sound that come out.
    pub(super) frames: [usize; 2],
    /// Milliseconds from the first picture to the first sound.
    pub(super) apart: Option<i64>,
}

/// How a camera deviates from the standards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Habit {
    /// Replies to SETUP have no `Session`.
    NoSession,
    /// Each slice has a marker.
    MarkedSlices,
    /// All NAL units of a picture are in one payload, with start codes between.
    StartCodes,
    /// The same in fragments.
    StartCodesInFragments,
    /// Each NAL unit is one fragment, which is the first one and the last one.
    WholeFragments,
    /// A delimiter and a message are sent before each picture, with a time and a marker of their own.
    LoneMessages,
    /// Packets of sound have another payload type than the description says.
    OtherPayloadType,
    /// A packet without a payload has the marker of each picture.
    EmptyPackets,
    /// Bytes that are no message follow each picture.
    Junk,
    /// SETUP of sound is refused.
    NoSound,
    /// Frames are not compared with those that were sent.
    Changed,
}

/// A step of a camera.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Sends the next picture of the film. Every fifth one is a key frame.
    Picture,
    /// Sends a frame of sound.
    Sound,
    /// Sends a sender report of each track.
    Report,
    /// Sends sound later than it was made, by milliseconds.
    LateSound(u64),
    /// Goes on with other SSRCs.
    OtherSource,
    /// Does nothing for some milliseconds.
    Wait(u64),
    /// Repeats steps.
    Times(usize, &'static [Step]),
}

//! Cameras that strangers have met. The next one is ten lines.

use super::scenario::{
    Habit::{
        self, Changed, EmptyPackets, Junk, LoneMessages, MarkedSlices, NoSession, NoSound, OtherPayloadType,
        StartCodes, StartCodesInFragments, WholeFragments,
    },
    Scenario,
    Step::{self, LateSound, OtherSource, Picture, Report, Sound, Times, Wait},
};

/// Forty milliseconds of pictures and sound.
const BOTH: &[Step] = &[Picture, Sound, Wait(20), Sound, Wait(20)];
/// Forty milliseconds of pictures alone.
const PICTURES: &[Step] = &[Picture, Wait(40)];
/// Forty milliseconds of sound alone.
const SOUND: &[Step] = &[Sound, Wait(20), Sound, Wait(20)];
/// A camera without oddities.
const PLAIN: Scenario = Scenario {
    name: "plain",
    sdp: &[],
    habits: &[],
    steps: &[Times(10, BOTH)],
    tracks: &["v1 a1"],
    frames: [10, 20],
    apart: Some(0),
};

/// A camera with a habit in its packets or replies.
const fn habit(name: &'static str, habits: &'static [Habit]) -> Scenario {
    Scenario { name, habits, ..PLAIN }
}

/// A camera with an odd description.
const fn described(name: &'static str, sdp: &'static [(&'static str, &'static str)]) -> Scenario {
    Scenario { name, sdp, ..PLAIN }
}

pub(super) const ODDITIES: &[Scenario] = &[
    PLAIN,
    described(
        "a section of no format",
        &[("m=audio", "m=application/TP-LINK 0 RTP/AVP smart/1/90000\r\na=rtpmap:95 /90000\r\nm=audio")],
    ),
    described("a section without rtpmap", &[("m=audio", "m=application 0 RTP/AVP 107\r\na=control:x\r\nm=audio")]),
    described("a fraction of a time", &[("t=0 0", "t=1698143674.9 0")]),
    described("an origin without an address", &[("IN IP4 10.0.0.7", "")]),
    described("an empty connection", &[("c=IN IP4 0.0.0.0", "c=IN ")]),
    described("an unknown kind of address", &[("c=IN IP4", "c=IN IPV4")]),
    described("a space in the version", &[("v=0", "v= 0")]),
    described("no version", &[("v=0\r\n", "")]),
    described("a NUL at the end", &[("a=control:a\r\n", "a=control:a\r\n\0")]),
    described("no space before the payload type", &[("RTP/AVP 96", "RTP/AVP96")]),
    described("a speaker", &[("m=audio", "m=audio 0 RTP/AVP 0\r\na=sendonly\r\na=control:back\r\nm=audio")]),
    habit("no Session", &[NoSession]),
    // The first picture is given twice, once with a part of it.
    Scenario { frames: [10, 20], ..habit("a marker on each slice", &[MarkedSlices, Changed]) },
    habit("start codes in a NAL unit", &[StartCodes]),
    habit("start codes in fragments", &[StartCodesInFragments]),
    habit("fragments that are whole", &[WholeFragments]),
    habit("delimiters and messages alone", &[LoneMessages]),
    habit("markers on packets without a payload", &[EmptyPackets]),
    habit("bytes between packets that are no message", &[Junk]),
    Scenario {
        steps: &[Times(10, PICTURES)],
        tracks: &["v1"],
        frames: [10, 0],
        apart: None,
        ..habit("a microphone that can't be set up", &[NoSound])
    },
    Scenario {
        steps: &[Times(100, BOTH)],
        tracks: &["v1"],
        frames: [100, 0],
        apart: None,
        ..habit("sound of another payload type", &[OtherPayloadType])
    },
    Scenario {
        name: "a muted microphone",
        steps: &[Times(100, PICTURES)],
        tracks: &["v1"],
        frames: [100, 0],
        apart: None,
        ..PLAIN
    },
    Scenario {
        name: "a microphone that is opened late",
        steps: &[Times(100, PICTURES), Times(10, BOTH)],
        tracks: &["v1", "v1 a1"],
        // Sound begins with the key frame after it.
        frames: [110, 10],
        apart: None,
        ..PLAIN
    },
    Scenario {
        name: "a microphone that falls silent",
        steps: &[Times(10, BOTH), Times(150, PICTURES)],
        tracks: &["v1 a1", "v1"],
        frames: [160, 20],
        ..PLAIN
    },
    Scenario {
        name: "pictures that do not come",
        steps: &[Times(160, SOUND)],
        tracks: &["a1"],
        frames: [0, 320],
        apart: None,
        ..PLAIN
    },
    Scenario {
        name: "another source among pictures",
        // It is followed after 2 s of silence from its second packet on, and its first picture is no key frame.
        steps: &[Times(8, BOTH), Wait(2100), OtherSource, Times(12, BOTH)],
        frames: [18, 39],
        habits: &[Changed],
        ..PLAIN
    },
    Scenario {
        name: "reports before the first packets, and sound that is sent late",
        steps: &[LateSound(150), Report, Times(10, BOTH)],
        apart: Some(-150),
        ..PLAIN
    },
];

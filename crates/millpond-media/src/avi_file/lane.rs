//! A stream that is being read, and the track that it becomes.

use super::{
    format::Form,
    framed::FramedStream,
    gaps::Gaps,
    header::Stream,
    pace::Pace,
    parameter_sets,
    whole::{StreamChunk, WholeStream},
};
use crate::{
    codec::{Codec, StreamForm, TrackKind, captions::CaptionChannels, make::Made, nal::NalSyntax},
    error::MediaError,
    movie::{
        Edit, Track,
        descriptions::Descriptions,
        extraction::{ExtractedStream, ExtractedStreamBuilder},
        sample_table::SampleTable,
        whole_frames::Extracted,
    },
    ts::{StreamCoding, TsConfiguration},
    units::{ByteRange, Timescale},
};
use bytes::Bytes;

/// `alternate_group` of tracks of pictures, and of sound.
const GROUPS: [u16; 2] = [1, 2];
/// Language of tracks: muxers don't write the language field of AVI.
const UNKNOWN: &str = "und";

/// A stream that is being read.
#[derive(Debug)]
pub(super) struct Lane {
    stream: Stream,
    state: State,
    /// Chunks so far.
    chunks: u64,
    /// First and last chunk with data.
    ends: Option<(ByteRange, ByteRange)>,
    /// Offset of the last chunk.
    last: Option<u64>,
    gaps: Gaps,
    /// Damaged places of the file before the last chunk.
    damages: u64,
    /// Chunks that are left out because they are too large.
    too_large: u64,
}

#[derive(Debug)]
enum State {
    /// NAL units whose form is not known: the first chunk shows it.
    Undecided(NalSyntax, Box<Made>),
    Framed(Box<FramedStream>),
    Whole(Box<WholeStream>),
    Left(MediaError),
}

/// The parts of a track.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) made: Made,
    pub(super) clock: Timescale,
    pub(super) samples: SampleTable,
    /// Earliest time of presentation on the samples' timeline, and counted from the beginning of the file, in ticks of `clock`.
    pub(super) media_time: i64,
    pub(super) first: i64,
    pub(super) captions: Option<CaptionChannels>,
    pub(super) descriptions: Option<Box<Descriptions>>,
    pub(super) source: Option<(ExtractedStreamBuilder, StreamForm)>,
    /// Reason why some frames are left out.
    pub(super) reason: Option<MediaError>,
}

impl Lane {
    /// Creates the lane of a stream whose chunks have this form.
    pub(super) fn new(stream: &Stream, form: Form) -> Self {
        let state = State::of(stream, form).unwrap_or_else(State::Left);
        let (stream, gaps) = (stream.clone(), Gaps::default());
        Self { stream, state, chunks: 0, ends: None, last: None, gaps, damages: 0, too_large: 0 }
    }

    /// Number of the lane's stream.
    pub(super) fn number(&self) -> usize {
        self.stream.number
    }

    /// Steps of work so far, besides those for chunks and bytes.
    pub(super) fn steps(&self) -> u64 {
        match &self.state {
            State::Framed(framed) => framed.steps(),
            State::Whole(whole) => whole.len().into(),
            State::Undecided(..) | State::Left(_) => 0,
        }
    }

    /// Bytes of heap held.
    pub(super) fn heap_bytes(&self) -> usize {
        let state = match &self.state {
            State::Framed(framed) => framed.heap_bytes(),
            State::Whole(whole) => whole.heap_bytes(),
            State::Undecided(..) | State::Left(_) => 0,
        };
        state + self.gaps.heap_bytes()
    }

    /// Whether samples are parts of chunks, so that chunks may be larger than samples.
    pub(super) fn is_divided(&self) -> bool {
        matches!(&self.state, State::Whole(whole) if whole.is_divided())
    }

    /// Chunks that are left out because they are too large.
    pub(super) fn too_large(&self) -> u64 {
        self.too_large
    }

    /// Gaps whose length an index could tell.
    pub(super) fn gaps(&mut self) -> &mut Gaps {
        &mut self.gaps
    }

    /// Whether an index could tell the length of a gap.
    pub(super) fn has_unknown_gaps(&self) -> bool {
        self.gaps.are_unknown()
    }

    /// First and last chunk with data, if an index listed any.
    pub(super) fn ends(&self) -> Option<(ByteRange, ByteRange)> {
        self.ends
    }

    /// The chunk whose beginning describes the codec, if the codec is not known from the header.
    pub(super) fn describes_itself(&self) -> Option<ByteRange> {
        match &self.state {
            State::Whole(whole) => whole.describes_itself(),
            _ => None,
        }
    }

    /// Takes the beginning of the chunk that [`describes_itself`](Self::describes_itself) named. Returns `false` if samples are no
    /// whole chunks.
    pub(super) fn describe(&mut self, beginning: &[u8]) -> bool {
        match &mut self.state {
            State::Whole(whole) => whole.describe(beginning),
            _ => true,
        }
    }

    /// Takes the next chunk that an index lists.
    pub(super) fn listed(&mut self, place: ByteRange, is_key: bool) {
        let chunk = self.next(place, Some(is_key), None);
        if let State::Whole(whole) = &mut self.state {
            whole.push(chunk, None);
        }
    }

    /// Notes that the next chunk is at `place`. `damages` damaged places of the file precede it: chunks of the stream may be missing.
    pub(super) fn reach(&mut self, place: ByteRange, damages: u64) {
        if std::mem::replace(&mut self.damages, damages) != damages {
            self.gaps.note(self.time(), self.last, place.start);
        }
    }

    /// Leaves out the next chunk, which is too large. Time passes for it: pictures count their chunks, sound gets a gap.
    pub(super) fn pass(&mut self, place: ByteRange) {
        self.too_large += 1;
        if !self.stream.is_video() {
            self.gaps.add(self.time(), place);
        }
        self.last = Some(place.start);
        self.chunks += 1;
    }

    /// Time of the next chunk in ticks, without gaps.
    fn time(&self) -> i64 {
        match &self.state {
            State::Framed(framed) => framed.time(self.chunks),
            State::Whole(whole) => whole.time(self.chunks),
            State::Undecided(..) => Pace::of(&self.stream).map_or(0, |pace| pace.time(self.chunks)),
            State::Left(_) => 0,
        }
    }

    /// Takes the next chunk with its data.
    pub(super) fn read(&mut self, place: ByteRange, data: &Bytes, extracted: &mut Extracted) {
        let chunk = self.next(place, None, Some(data));
        if let State::Undecided(syntax, made) = &self.state
            && !data.is_empty()
        {
            self.state = State::decided(&self.stream, *syntax, made, data).unwrap_or_else(State::Left);
        }
        match &mut self.state {
            State::Framed(framed) => framed.push(chunk.number, place, data.clone(), extracted),
            State::Whole(whole) => whole.push(chunk, Some(extracted)),
            State::Undecided(..) | State::Left(_) => {}
        }
    }

    fn next<'a>(&mut self, place: ByteRange, is_key: Option<bool>, data: Option<&'a Bytes>) -> StreamChunk<'a> {
        let number = self.chunks;
        self.chunks += 1;
        self.last = Some(place.start);
        if !place.is_empty() {
            self.ends = Some((self.ends.map_or(place, |(first, _)| first), place));
        }
        StreamChunk { number, place, is_key, data: data.map(|data| &data[..]) }
    }

    /// Returns the track's parts.
    ///
    /// # Errors
    /// No frame of it can be played.
    pub(super) fn finish(self, extracted: &mut Extracted) -> Result<(Stream, Finished), MediaError> {
        let Self { stream, state, gaps, .. } = self;
        let finished = match state {
            State::Framed(framed) => framed.finish(&stream, gaps, extracted)?,
            State::Whole(whole) => whole.finish(&stream, gaps)?,
            State::Left(error) => return Err(error),
            State::Undecided(..) => {
                let found = format!("no frame in stream {}", stream.number);
                return Err(MediaError::invalid("movi", 0, found, "frames that can be played"));
            }
        };
        Ok((stream, finished))
    }
}

impl State {
    fn of(stream: &Stream, form: Form) -> Result<Self, MediaError> {
        Ok(match form {
            Form::Stream(coding, known) => Self::framed(stream, coding, known)?,
            Form::Units(syntax, made) => Self::Undecided(syntax, made),
            Form::Picture(codec) => Self::Whole(Box::new(WholeStream::of_pictures(codec, Pace::of(stream)?))),
            Form::Sound(made, length) => Self::Whole(Box::new(WholeStream::of_sound(*made, length))),
            Form::Pcm(made) => Self::Whole(Box::new(WholeStream::of_pcm(*made).ok_or_else(|| unreadable(stream))?)),
        })
    }

    fn framed(stream: &Stream, coding: StreamCoding, known: Option<TsConfiguration>) -> Result<Self, MediaError> {
        let framed = FramedStream::new(stream, coding, known).ok_or_else(|| unreadable(stream))?;
        Ok(Self::Framed(Box::new(framed)))
    }

    /// Returns the state of a stream of NAL units whose first chunk is `first`. ffmpeg writes byte streams even if the header has a
    /// configuration record.
    fn decided(stream: &Stream, syntax: NalSyntax, made: &Made, first: &[u8]) -> Result<Self, MediaError> {
        let length_size = NalSyntax::of(&made.codec).map_or(4, |(_, length_size)| length_size);
        if !parameter_sets::is_byte_stream((syntax, length_size), first) {
            let whole = WholeStream::of_units(syntax, made.clone(), Pace::of(stream)?)?;
            return Ok(Self::Whole(Box::new(whole)));
        }
        let sets: Vec<&[u8]> = match &made.codec {
            Codec::Avc(config) => config.parameter_sets().collect(),
            Codec::Hevc(config) => config.parameter_sets().collect(),
            _ => Vec::new(),
        };
        let coding = match syntax {
            NalSyntax::Avc => StreamCoding::Avc,
            NalSyntax::Hevc => StreamCoding::Hevc,
        };
        Self::framed(stream, coding, parameter_sets::configuration(syntax, &sets))
    }
}

fn unreadable(stream: &Stream) -> MediaError {
    MediaError::unsupported("strf", stream.format.0, "a stream without frames")
}

impl Finished {
    /// Returns the track of a stream, and the map of its extracted frames. The presentation begins `base` ticks of 90 kHz after the
    /// beginning of the file.
    pub(super) fn track(self, stream: &Stream, base: i64) -> (Track, Option<ExtractedStream>) {
        let Self { made, clock, samples, media_time, captions, descriptions, source, .. } = self;
        let waits = clock.convert(self.first, Timescale::MPEG).saturating_sub(base);
        let empty = u64::try_from(waits).ok().filter(|duration| *duration > 0);
        let empty = empty.map(|duration| Edit { duration, media_time: None });
        let shown = Edit { duration: 0, media_time: Some(media_time) };
        let [pictures, sound] = GROUPS;
        let is_video = matches!(made.kind, TrackKind::Video { .. });
        let track = Track {
            name: stream.name.clone(),
            alternate_group: if is_video { pictures } else { sound },
            captions,
            edits: empty.into_iter().chain([shown]).collect(),
            samples,
            descriptions,
            ..Track::live(stream.id(), made, clock, UNKNOWN)
        };
        let source = source.map(|(builder, form)| builder.finish(stream.number as u16, form));
        (track, source)
    }

    /// Earliest time of presentation since the beginning of the file, in ticks of 90 kHz.
    pub(super) fn first(&self) -> i64 {
        self.clock.convert(self.first, Timescale::MPEG)
    }
}

//! Reads Matroska files of ffmpeg, and writes them again without the common beginnings of frames (header stripping).

const SEGMENT: u32 = 0x1853_8067;
const INFO: u32 = 0x1549_a966;
const TRACKS: u32 = 0x1654_ae6b;
const CLUSTER: u32 = 0x1f43_b675;
const CUES: u32 = 0x1c53_bb6b;
const ENTRY: u32 = 0xae;
const CUE: u32 = 0xbb;
const TRACK_NUMBER: u32 = 0xd7;
const TIME: u32 = 0xe7;
const SIMPLE_BLOCK: u32 = 0xa3;
const GROUP: u32 = 0xa0;
const BLOCK: u32 = 0xa1;

/// Returns an element with a size of eight bytes.
pub(crate) fn element(id: u32, body: &[u8]) -> Vec<u8> {
    let id: Vec<u8> = id.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
    [&id[..], &(body.len() as u64 | 1 << 56).to_be_bytes(), body].concat()
}

/// Returns an element with a number.
pub(crate) fn number(id: u32, value: u64) -> Vec<u8> {
    element(id, &value.to_be_bytes())
}

/// Returns the `ContentEncodings` of a track without the common beginning of its frames.
pub(crate) fn stripping(prefix: &[u8]) -> Vec<u8> {
    let compression = [number(0x4254, 3), element(0x4255, prefix)].concat();
    let encoding = [number(0x5032, 1), number(0x5033, 0), element(0x5034, &compression)].concat();
    element(0x6d80, &element(0x6240, &encoding))
}

/// Returns the offset, the identifier and the body of each element.
fn children(bytes: &[u8]) -> Vec<(usize, u32, &[u8])> {
    let (mut all, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let start = at;
        let id_length = bytes[at].leading_zeros() as usize + 1;
        let id = bytes[at..at + id_length].iter().fold(0, |id, byte| id << 8 | u32::from(*byte));
        at += id_length;
        let length = bytes[at].leading_zeros() as usize + 1;
        let size = bytes[at..at + length].iter().fold(0, |size, byte| size << 8 | u64::from(*byte));
        let size = (size & ((1 << (7 * length)) - 1)) as usize;
        at += length;
        all.push((start, id, &bytes[at..at + size]));
        at += size;
    }
    all
}

fn unsigned(body: &[u8]) -> u64 {
    body.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// A file of one segment.
pub(crate) struct File {
    header: Vec<u8>,
    info: Vec<u8>,
    /// Number and body of each track.
    tracks: Vec<(u8, Vec<u8>)>,
    clusters: Vec<Cluster>,
    /// Time, track, and place in `clusters` of each cue.
    cues: Vec<(u64, u64, usize)>,
}

pub(crate) struct Cluster {
    pub(crate) time: u64,
    pub(crate) blocks: Vec<Block>,
}

/// A block with one frame. `rest` are the other elements of its group.
#[derive(Clone)]
pub(crate) struct Block {
    pub(crate) track: u8,
    pub(crate) head: [u8; 3],
    pub(crate) frames: Vec<Vec<u8>>,
    pub(crate) rest: Option<Vec<u8>>,
}

impl Block {
    fn read(body: &[u8], rest: Option<Vec<u8>>) -> Self {
        assert_eq!((body[0] & 0x80, body[3] & 6), (0x80, 0), "a short number, and no lacing");
        Self { track: body[0] & 0x7f, head: [body[1], body[2], body[3]], frames: vec![body[4..].to_vec()], rest }
    }

    /// Sizes of several frames have the form of Xiph.
    fn written(&self) -> Vec<u8> {
        let [high, low, flags] = self.head;
        let mut body = vec![self.track | 0x80, high, low, flags];
        if self.frames.len() > 1 {
            body[3] |= 2;
            body.push((self.frames.len() - 1) as u8);
            for frame in &self.frames[..self.frames.len() - 1] {
                body.extend(vec![255; frame.len() / 255]);
                body.push((frame.len() % 255) as u8);
            }
        }
        body.extend(self.frames.concat());
        match &self.rest {
            None => element(SIMPLE_BLOCK, &body),
            Some(rest) => element(GROUP, &[element(BLOCK, &body), rest.clone()].concat()),
        }
    }
}

impl File {
    /// Reads a file of ffmpeg.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let top = children(bytes);
        let header = bytes[..top[1].0].to_vec();
        assert_eq!(top[1].1, SEGMENT);
        let segment = children(top[1].2);
        let one = |wanted: u32| segment.iter().find(|(_, id, _)| *id == wanted).map(|(_, _, body)| *body);
        // Muxers write checksums too.
        let entries = children(one(TRACKS).unwrap()).into_iter().filter(|(_, id, _)| *id == ENTRY);
        let tracks = entries.map(|(_, _, body)| {
            let number = children(body).into_iter().find(|(_, id, _)| *id == TRACK_NUMBER).unwrap();
            (number.2[0], body.to_vec())
        });
        let read: Vec<_> = segment.iter().filter(|(_, id, _)| *id == CLUSTER).collect();
        let cluster = |(_, _, body): &&(usize, u32, &[u8])| {
            let mut cluster = Cluster { time: 0, blocks: Vec::new() };
            for (_, id, body) in children(body) {
                match id {
                    TIME => cluster.time = unsigned(body),
                    SIMPLE_BLOCK => cluster.blocks.push(Block::read(body, None)),
                    GROUP => {
                        let parts = children(body);
                        let block = parts.iter().find(|(_, id, _)| *id == BLOCK).unwrap().2;
                        let others = parts.iter().filter(|(_, id, _)| *id != BLOCK);
                        let rest = others.flat_map(|(_, id, body)| element(*id, body)).collect();
                        cluster.blocks.push(Block::read(block, Some(rest)));
                    }
                    _ => {}
                }
            }
            cluster
        };
        let cue = |(_, _, body): (usize, u32, &[u8])| {
            let parts = children(body);
            let positions = children(parts[1].2);
            let of = |wanted: u32| unsigned(positions.iter().find(|(_, id, _)| *id == wanted).unwrap().2);
            let place = read.iter().position(|(at, _, _)| *at as u64 == of(0xf1)).unwrap();
            (unsigned(parts[0].2), of(0xf7), place)
        };
        Self {
            header,
            info: one(INFO).unwrap().to_vec(),
            tracks: tracks.collect(),
            clusters: read.iter().map(cluster).collect(),
            cues: children(one(CUES).unwrap()).into_iter().filter(|(_, id, _)| *id == CUE).map(cue).collect(),
        }
    }

    pub(crate) fn clusters(&mut self) -> &mut [Cluster] {
        &mut self.clusters
    }

    pub(crate) fn numbers(&self) -> Vec<u8> {
        self.tracks.iter().map(|(number, _)| *number).collect()
    }

    /// Adds a track.
    pub(crate) fn add_track(&mut self, track: u8, elements: &[Vec<u8>]) {
        self.tracks.push((track, [number(TRACK_NUMBER, track.into()), elements.concat()].concat()));
    }

    fn blocks(&mut self, track: u8) -> impl Iterator<Item = &mut Block> {
        self.clusters.iter_mut().flat_map(|cluster| &mut cluster.blocks).filter(move |block| block.track == track)
    }

    /// Strips the longest common beginning of a track's frames, of at most `most` bytes. Returns it.
    pub(crate) fn strip(&mut self, track: u8, most: usize) -> Vec<u8> {
        let mut frames = self.blocks(track).flat_map(|block| &block.frames);
        let mut prefix = frames.next().unwrap().clone();
        prefix.truncate(most);
        for frame in frames {
            let common = prefix.iter().zip(frame).take_while(|(a, b)| a == b).count();
            prefix.truncate(common);
        }
        for frame in self.blocks(track).flat_map(|block| &mut block.frames) {
            frame.drain(..prefix.len());
        }
        let (_, entry) = self.tracks.iter_mut().find(|(number, _)| *number == track).unwrap();
        entry.extend(stripping(&prefix));
        prefix
    }

    /// Joins each pair of neighbouring blocks of a track with their frames.
    pub(crate) fn lace(&mut self, track: u8) {
        for cluster in &mut self.clusters {
            let mut kept: Vec<Block> = Vec::new();
            let mut open = None;
            for block in std::mem::take(&mut cluster.blocks) {
                match open.take().filter(|_| block.track == track) {
                    Some(place) => {
                        let first: &mut Block = &mut kept[place];
                        first.frames.extend(block.frames);
                    }
                    None if block.track == track => {
                        open = Some(kept.len());
                        kept.push(block);
                    }
                    None => kept.push(block),
                }
            }
            cluster.blocks = kept;
        }
    }

    /// Writes the file, with its cues before the clusters. `others` are further elements before the clusters, and behind them.
    pub(crate) fn written(&self, others: [&[u8]; 2]) -> Vec<u8> {
        let entries: Vec<u8> = self.tracks.iter().flat_map(|(_, body)| element(ENTRY, body)).collect();
        let head = [element(INFO, &self.info), element(TRACKS, &entries), others[0].to_vec()].concat();
        let clusters: Vec<Vec<u8>> = self.clusters.iter().map(Cluster::written).collect();
        let cues = |first: usize| {
            let cue = |(time, track, cluster): &(u64, u64, usize)| {
                let place = first + clusters[..*cluster].iter().map(Vec::len).sum::<usize>();
                let positions = [number(0xf7, *track), number(0xf1, place as u64)].concat();
                element(CUE, &[number(0xb3, *time), element(0xb7, &positions)].concat())
            };
            element(CUES, &self.cues.iter().flat_map(cue).collect::<Vec<u8>>())
        };
        let first = head.len() + cues(0).len();
        let segment = [head, cues(first), clusters.concat(), others[1].to_vec()].concat();
        [self.header.clone(), element(SEGMENT, &segment)].concat()
    }
}

impl Cluster {
    fn written(&self) -> Vec<u8> {
        let blocks: Vec<u8> = self.blocks.iter().flat_map(Block::written).collect();
        element(CLUSTER, &[number(TIME, self.time), blocks].concat())
    }
}

//! Identifiers of elements (RFC 8794 11.3, RFC 9559 5.1), with their length markers.

pub(super) const EBML: u32 = 0x1a45_dfa3;
pub(super) const DOC_TYPE: u32 = 0x4282;
pub(super) const EBML_READ_VERSION: u32 = 0x42f7;
pub(super) const MAX_ID_LENGTH: u32 = 0x42f2;
pub(super) const MAX_SIZE_LENGTH: u32 = 0x42f3;

pub(super) const SEGMENT: u32 = 0x1853_8067;

pub(super) const SEEK_HEAD: u32 = 0x114d_9b74;
pub(super) const SEEK: u32 = 0x4dbb;
pub(super) const SEEK_ID: u32 = 0x53ab;
pub(super) const SEEK_POSITION: u32 = 0x53ac;

pub(super) const INFO: u32 = 0x1549_a966;
pub(super) const TITLE: u32 = 0x7ba9;
pub(super) const TIMESTAMP_SCALE: u32 = 0x2a_d7b1;
pub(super) const DURATION: u32 = 0x4489;

pub(super) const TRACKS: u32 = 0x1654_ae6b;
pub(super) const TRACK_ENTRY: u32 = 0xae;
pub(super) const TRACK_NUMBER: u32 = 0xd7;
pub(super) const TRACK_UID: u32 = 0x73c5;
pub(super) const TRACK_TYPE: u32 = 0x83;
pub(super) const FLAG_ENABLED: u32 = 0xb9;
pub(super) const FLAG_DEFAULT: u32 = 0x88;
pub(super) const FLAG_FORCED: u32 = 0x55aa;
pub(super) const FLAG_HEARING_IMPAIRED: u32 = 0x55ab;
pub(super) const FLAG_VISUAL_IMPAIRED: u32 = 0x55ac;
pub(super) const FLAG_TEXT_DESCRIPTIONS: u32 = 0x55ad;
pub(super) const FLAG_COMMENTARY: u32 = 0x55af;
pub(super) const DEFAULT_DURATION: u32 = 0x23_e383;
pub(super) const NAME: u32 = 0x536e;
pub(super) const LANGUAGE: u32 = 0x22_b59c;
pub(super) const LANGUAGE_BCP47: u32 = 0x22_b59d;
pub(super) const CODEC_ID: u32 = 0x86;
pub(super) const CODEC_PRIVATE: u32 = 0x63a2;
pub(super) const CODEC_DELAY: u32 = 0x56aa;

pub(super) const VIDEO: u32 = 0xe0;
pub(super) const PIXEL_WIDTH: u32 = 0xb0;
pub(super) const PIXEL_HEIGHT: u32 = 0xba;
pub(super) const DISPLAY_WIDTH: u32 = 0x54b0;
pub(super) const DISPLAY_HEIGHT: u32 = 0x54ba;
pub(super) const DISPLAY_UNIT: u32 = 0x54b2;
pub(super) const COLOUR: u32 = 0x55b0;
pub(super) const MATRIX_COEFFICIENTS: u32 = 0x55b1;
pub(super) const RANGE: u32 = 0x55b9;
pub(super) const TRANSFER_CHARACTERISTICS: u32 = 0x55ba;
pub(super) const PRIMARIES: u32 = 0x55bb;
pub(super) const MAX_CLL: u32 = 0x55bc;
pub(super) const MAX_FALL: u32 = 0x55bd;
pub(super) const MASTERING_METADATA: u32 = 0x55d0;
pub(super) const PRIMARY_R_CHROMATICITY_X: u32 = 0x55d1;
pub(super) const PRIMARY_R_CHROMATICITY_Y: u32 = 0x55d2;
pub(super) const PRIMARY_G_CHROMATICITY_X: u32 = 0x55d3;
pub(super) const PRIMARY_G_CHROMATICITY_Y: u32 = 0x55d4;
pub(super) const PRIMARY_B_CHROMATICITY_X: u32 = 0x55d5;
pub(super) const PRIMARY_B_CHROMATICITY_Y: u32 = 0x55d6;
pub(super) const WHITE_POINT_CHROMATICITY_X: u32 = 0x55d7;
pub(super) const WHITE_POINT_CHROMATICITY_Y: u32 = 0x55d8;
pub(super) const LUMINANCE_MAX: u32 = 0x55d9;
pub(super) const LUMINANCE_MIN: u32 = 0x55da;

pub(super) const AUDIO: u32 = 0xe1;
pub(super) const SAMPLING_FREQUENCY: u32 = 0xb5;
pub(super) const CHANNELS: u32 = 0x9f;
pub(super) const BIT_DEPTH: u32 = 0x6264;

pub(super) const BLOCK_ADDITION_MAPPING: u32 = 0x41e4;
pub(super) const BLOCK_ADD_ID_TYPE: u32 = 0x41e7;
pub(super) const BLOCK_ADD_ID_EXTRA_DATA: u32 = 0x41ed;

pub(super) const CONTENT_ENCODINGS: u32 = 0x6d80;
pub(super) const CONTENT_ENCODING: u32 = 0x6240;
pub(super) const CONTENT_ENCODING_SCOPE: u32 = 0x5032;
pub(super) const CONTENT_COMPRESSION: u32 = 0x5034;
pub(super) const CONTENT_COMP_ALGO: u32 = 0x4254;
pub(super) const CONTENT_COMP_SETTINGS: u32 = 0x4255;
pub(super) const CONTENT_ENCRYPTION: u32 = 0x5035;

pub(super) const CUES: u32 = 0x1c53_bb6b;
pub(super) const CUE_POINT: u32 = 0xbb;
pub(super) const CUE_TIME: u32 = 0xb3;
pub(super) const CUE_TRACK_POSITIONS: u32 = 0xb7;
pub(super) const CUE_TRACK: u32 = 0xf7;
pub(super) const CUE_CLUSTER_POSITION: u32 = 0xf1;
pub(super) const CUE_RELATIVE_POSITION: u32 = 0xf0;
pub(super) const CUE_DURATION: u32 = 0xb2;

pub(super) const CLUSTER: u32 = 0x1f43_b675;
pub(super) const TIMESTAMP: u32 = 0xe7;
pub(super) const SIMPLE_BLOCK: u32 = 0xa3;
pub(super) const BLOCK_GROUP: u32 = 0xa0;
pub(super) const BLOCK: u32 = 0xa1;
pub(super) const BLOCK_DURATION: u32 = 0x9b;
pub(super) const REFERENCE_BLOCK: u32 = 0xfb;
pub(super) const DISCARD_PADDING: u32 = 0x75a2;
pub(super) const BLOCK_ADDITIONS: u32 = 0x75a1;
pub(super) const BLOCK_MORE: u32 = 0xa6;
pub(super) const BLOCK_ADDITIONAL: u32 = 0xa5;

pub(super) const TAG: u32 = 0x7373;
pub(super) const TARGETS: u32 = 0x63c0;
pub(super) const TARGET_TYPE_VALUE: u32 = 0x68ca;
pub(super) const TAG_TRACK_UID: u32 = 0x63c5;
pub(super) const TAG_EDITION_UID: u32 = 0x63c9;
pub(super) const TAG_CHAPTER_UID: u32 = 0x63c4;
pub(super) const TAG_ATTACHMENT_UID: u32 = 0x63c6;
pub(super) const SIMPLE_TAG: u32 = 0x67c8;
pub(super) const TAG_NAME: u32 = 0x45a3;
pub(super) const TAG_STRING: u32 = 0x4487;

pub(super) const CHAPTERS: u32 = 0x1043_a770;
pub(super) const EDITION_ENTRY: u32 = 0x45b9;
pub(super) const EDITION_FLAG_HIDDEN: u32 = 0x45bd;
pub(super) const EDITION_FLAG_DEFAULT: u32 = 0x45db;
pub(super) const CHAPTER_ATOM: u32 = 0xb6;
pub(super) const CHAPTER_TIME_START: u32 = 0x91;
pub(super) const CHAPTER_FLAG_HIDDEN: u32 = 0x98;
pub(super) const CHAPTER_FLAG_ENABLED: u32 = 0x4598;
pub(super) const CHAPTER_DISPLAY: u32 = 0x80;
pub(super) const CHAP_STRING: u32 = 0x85;

pub(super) const TAGS: u32 = 0x1254_c367;
pub(super) const ATTACHMENTS: u32 = 0x1941_a469;
pub(super) const ATTACHED_FILE: u32 = 0x61a7;
pub(super) const FILE_NAME: u32 = 0x466e;
pub(super) const FILE_MEDIA_TYPE: u32 = 0x4660;
pub(super) const FILE_DATA: u32 = 0x465c;

/// Whether an element is a child of the segment, and so the end of a cluster without a size (RFC 8794 6.2).
pub(super) const fn is_top_level(id: u32) -> bool {
    matches!(id, CLUSTER | CUES | SEEK_HEAD | INFO | TRACKS | CHAPTERS | TAGS | ATTACHMENTS | SEGMENT | EBML)
}

use super::*;

/// Samples of SCTE 35, section 14.
const SAMPLES: [&str; 8] = [
    "fc3034000000000000fffff00506fe72bd0050001e021c435545494800008e7fcf0001a599b00808000000002ca0a18a3402009ac9d17e",
    "fc302f000000000000fffff014054800008f7feffe7369c02efe0052ccf500000000000a0008435545490000013562dba30a",
    "fc302f000000000000fffff00506fe746290a000190217435545494800008e7f9f0808000000002ca0a18a350200a9cc6758",
    "fc3048000000000000fffff00506fe7a4d88b60032021743554549480000187f9f0808000000002ccbc34411000002174355454948000019\
     7f9f0808000000002ca4dba01000009972e343",
    "fc302f000000000000fffff00506feaebfff640019021743554549480000087f9f0808000000002ca56cf5170000951db0a8",
    "fc3048000000000000fffff00506fe932e380b00320217435545494800000a7f9f0808000000002ca0a1e318000002174355454948000009\
     7f9f0808000000002ca0a18a110000b4217eb0",
    "fc302f000000000000fffff00506feaef17c4c0019021743554549480000077f9f0808000000002ca56c97110000c4876a2e",
    "fc3061000000000000fffff00506fea8cd44ed004b021743554549480000ad7f9f0808000000002cb2d79d35020002174355454948000026\
     7f9f0808000000002cb2d79d110000021743554549480000277f9f0808000000002cb2d7b31000008a18869f",
];

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn read(section: &[u8]) -> SpliceSection {
    SpliceSection::read(section).unwrap().unwrap()
}

/// Replaces bytes of a section, and its checksum.
fn changed(hex: &str, changes: &[(usize, u8)]) -> Vec<u8> {
    let mut section = bytes(hex);
    changes.iter().for_each(|(at, to)| section[*at] = *to);
    sealed(section)
}

/// Writes length and checksum of a section that has room for them.
fn sealed(mut section: Vec<u8>) -> Vec<u8> {
    let [high, low] = ((section.len() - HEADER) as u16).to_be_bytes();
    (section[1], section[2]) = (section[1] & 0xf0 | high, low);
    let end = section.len() - CRC;
    let sum = checksum(&section[..end]).to_be_bytes();
    section[end..].copy_from_slice(&sum);
    section
}

fn segment_of(number: u32, segmentation_type: u8, meaning: SpliceMeaning, duration: Option<u64>) -> SpliceEvent {
    SpliceEvent { number, kind: SpliceKind::Segment(segmentation_type), meaning, duration, returns: false }
}

#[test]
fn the_samples_of_the_standard_are_read() {
    use SpliceMeaning::{In, Other, Out};
    let insert = SpliceEvent {
        number: 0x4800_008f,
        kind: SpliceKind::Insert,
        meaning: Out,
        duration: Some(0x0052_ccf5),
        returns: true,
    };
    let expected: [(u8, u64, &[SpliceEvent]); 8] = [
        (6, 0x72bd_0050, &[segment_of(0x4800_008e, 0x34, Out, Some(0x01a5_99b0))]),
        (5, 0x7369_c02e, &[insert]),
        (6, 0x7462_90a0, &[segment_of(0x4800_008e, 0x35, In, None)]),
        (6, 0x7a4d_88b6, &[segment_of(0x4800_0018, 0x11, Other, None), segment_of(0x4800_0019, 0x10, Other, None)]),
        (6, 0xaebf_ff64, &[segment_of(0x4800_0008, 0x17, Other, None)]),
        (6, 0x932e_380b, &[segment_of(0x4800_000a, 0x18, Other, None), segment_of(0x4800_0009, 0x11, Other, None)]),
        (6, 0xaef1_7c4c, &[segment_of(0x4800_0007, 0x11, Other, None)]),
        (
            6,
            0xa8cd_44ed,
            &[
                segment_of(0x4800_00ad, 0x35, In, None),
                segment_of(0x4800_0026, 0x11, Other, None),
                segment_of(0x4800_0027, 0x10, Other, None),
            ],
        ),
    ];
    for (sample, (command, time, events)) in SAMPLES.iter().zip(expected) {
        assert_eq!(read(&bytes(sample)), SpliceSection { command, time: Some(time), events: events.to_vec() });
    }
}

#[test]
fn a_section_of_an_encoder_is_read() {
    // With a DTMF descriptor, 60 s that return by themselves.
    let section = bytes(
        "fc303100000000000000fff01405400087ae7feffed005912bfe005265c0002d007f000c010a43554549509f3531392aa39ffe80",
    );
    let SpliceSection { time, events, .. } = read(&section);
    assert_eq!((time, events.len()), (Some(3_490_025_771), 1));
    assert_eq!((events[0].number, events[0].duration, events[0].returns), (0x4000_87ae, Some(60 * 90_000), true));
}

#[test]
fn times_are_adjusted_and_wrap() {
    // `pts_adjustment` of one less than the whole clock.
    let section = changed(SAMPLES[1], &[(4, 1), (5, 0xff), (6, 0xff), (7, 0xff), (8, 0xff)]);
    assert_eq!(read(&section).time, Some(0x7369_c02d));
}

#[test]
fn returns_cancellations_and_immediate_splices_are_told_apart() {
    let meaning = |section: &[u8]| read(section).events[0].meaning;
    assert_eq!(meaning(&changed(SAMPLES[1], &[(19, 0x4f)])), SpliceMeaning::In);
    let cancelled = read(&changed(SAMPLES[1], &[(18, 0xff)]));
    assert_eq!((cancelled.time, cancelled.events[0].meaning), (None, SpliceMeaning::Cancelled));
    assert_eq!(meaning(&changed(SAMPLES[0], &[(31, 0xff)])), SpliceMeaning::Cancelled);
    // An immediate splice has no time.
    let mut section = bytes(SAMPLES[1]);
    section[19] |= 0x10;
    section.drain(20..25);
    let section = read(&sealed(section));
    assert_eq!((section.time, section.events[0].duration), (None, Some(0x0052_ccf5)));
}

#[test]
fn times_of_components_are_read() {
    // Two components, of which the second one has a time, and no duration.
    let mut section = bytes(SAMPLES[1]);
    let time = [section[20], section[21], section[22], section[23], section[24]];
    let components = [&[2, 7, 0x7f, 8][..], &time].concat();
    section[19] = 0x8f;
    section.splice(20..30, components);
    assert_eq!(read(&sealed(section)).time, Some(0x7369_c02e));
    let mut section = bytes(SAMPLES[0]);
    // A segment of two components.
    section[32] &= 0x7f;
    section.splice(33..33, [&[2][..], &[0; 12]].concat());
    let section = sealed(changed_loop(section));
    assert_eq!(read(&section).events[0].duration, Some(0x01a5_99b0));
}

/// Sets the lengths of the descriptor loop and of its only descriptor.
fn changed_loop(mut section: Vec<u8>) -> Vec<u8> {
    let left = section.len() - 21 - CRC;
    (section[19], section[20]) = ((left >> 8) as u8, left as u8);
    (section[21], section[22]) = (2, (left - 2) as u8);
    section
}

#[test]
fn sections_that_announce_nothing_and_other_commands() {
    let null = sealed(bytes("fc3011000000000000fffff0000000000000000000"));
    assert_eq!(SpliceSection::read(&null), Ok(None));
    let mut private = null.clone();
    private[13] = 0xff;
    let expected = SpliceSection { command: 0xff, time: None, events: Vec::new() };
    assert_eq!(SpliceSection::read(&sealed(private)), Ok(Some(expected)));
    // A length of the command that is not stated.
    let section = changed(SAMPLES[0], &[(11, 0xff), (12, 0xff)]);
    assert_eq!(read(&section).events.len(), 1);
}

#[test]
fn what_is_wrong_is_named() {
    let error = |section: &[u8]| SpliceSection::read(section).unwrap_err();
    assert_eq!(error(&changed(SAMPLES[1], &[(0, 0x42)])), SpliceError::OtherTable(0x42));
    assert_eq!(error(&changed(SAMPLES[1], &[(3, 1)])), SpliceError::Version(1));
    let encrypted = error(&changed(SAMPLES[1], &[(4, 0x84)]));
    assert_eq!(encrypted.to_string(), "an encrypted splice information section (DES in CBC mode)");
    let mut damaged = bytes(SAMPLES[1]);
    damaged[20] ^= 1;
    assert_eq!(error(&damaged), SpliceError::BadChecksum);
    for sample in SAMPLES {
        let whole = bytes(sample);
        for length in 0..whole.len() {
            assert!(SpliceSection::read(&whole[..length]).is_err(), "{length}");
            // With a right checksum too.
            if length > HEADER + CRC {
                let _ = SpliceSection::read(&sealed(whole[..length].to_vec()));
            }
        }
    }
}

//! Key frames of H.264 as byte streams: a picture, or an error. A picture can be scaled, turned and coded.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;

/// Bound of the macroblocks: 512 by 512 samples.
const MOST: usize = 1024;

fuzz_target!(|bytes: &[u8]| {
    let starts = (0..bytes.len().saturating_sub(2)).filter(|at| bytes[*at..*at + 3] == [0, 0, 1]);
    let starts: Vec<usize> = starts.chain([bytes.len()]).collect();
    let units = starts.windows(2).map(|pair| bytes.get(pair[0] + 3..pair[1]).unwrap_or_default());
    if let Ok(picture) = millpond_picture::decode(units, MOST) {
        let (width, height) = (picture.width(), picture.height());
        assert!(width > 0 && height > 0 && width * height <= MOST * 256);
        assert_eq!(picture.luma().len(), width * height);
        let turned = picture.turned(1);
        assert_eq!((turned.width(), turned.height()), (height, width));
        assert!(turned.scaled(16, 9).jpeg(50).is_ok());
    }
});

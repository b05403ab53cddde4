//! Light of HDR pictures (`MaxCLL`, `MaxFALL` and `MasteringMetadata` of `Colour`, RFC 9559 5.1.4.1.28.16) as boxes of sample entries.

use super::{ebml::Element, ids};
use crate::boxes::FourCc;

/// Steps of a chromaticity of 1 and of a candela per square metre in `mdcv` (ISO/IEC 14496-12).
const CHROMATICITY: f64 = 50_000.0;
const LUMINANCE: f64 = 10_000.0;
/// Chromaticities in the order of `mdcv`: green, blue, red, white; across and up.
const CHROMATICITIES: [u32; 8] = [
    ids::PRIMARY_G_CHROMATICITY_X,
    ids::PRIMARY_G_CHROMATICITY_Y,
    ids::PRIMARY_B_CHROMATICITY_X,
    ids::PRIMARY_B_CHROMATICITY_Y,
    ids::PRIMARY_R_CHROMATICITY_X,
    ids::PRIMARY_R_CHROMATICITY_Y,
    ids::WHITE_POINT_CHROMATICITY_X,
    ids::WHITE_POINT_CHROMATICITY_Y,
];

/// Light of pictures, in the form of boxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Light {
    /// Body of `mdcv`: colours and luminance of the display on which the pictures were graded.
    mastering: Option<[u8; 24]>,
    /// Body of `clli`: highest luminance of a sample, and highest average of a picture.
    content: Option<[u8; 4]>,
}

impl Light {
    /// Reads `Colour`. Numbers that are missing or out of range count as not stated.
    pub(super) fn read(colour: &Element<'_>) -> Self {
        let level = |id| Some(colour.child(id)?.unsigned().ok()?.min(u64::from(u16::MAX)) as u16);
        let (highest, average) = (level(ids::MAX_CLL), level(ids::MAX_FALL));
        let content = highest.or(average).map(|_| {
            let [a, b] = highest.unwrap_or(0).to_be_bytes();
            let [c, d] = average.unwrap_or(0).to_be_bytes();
            [a, b, c, d]
        });
        Self { mastering: colour.child(ids::MASTERING_METADATA).and_then(|display| mastering(&display)), content }
    }

    /// Returns the boxes.
    pub(super) fn boxes(&self) -> Vec<(FourCc, Vec<u8>)> {
        let mastering = self.mastering.map(|body| (*b"mdcv", body.to_vec()));
        let content = self.content.map(|body| (*b"clli", body.to_vec()));
        mastering.into_iter().chain(content).collect()
    }
}

/// Returns the body of `mdcv`; `None` unless all of its numbers are stated.
fn mastering(display: &Element<'_>) -> Option<[u8; 24]> {
    let number = |id: u32, steps: f64, most: u32| {
        let value = (display.child(id)?.float().ok()? * steps).round();
        (0.0..=f64::from(most)).contains(&value).then_some(value as u32)
    };
    let mut body = [0; 24];
    let (chromaticities, luminances) = body.split_at_mut(16);
    for (place, id) in chromaticities.as_chunks_mut::<2>().0.iter_mut().zip(CHROMATICITIES) {
        *place = (number(id, CHROMATICITY, u32::from(u16::MAX))? as u16).to_be_bytes();
    }
    let limits = [ids::LUMINANCE_MAX, ids::LUMINANCE_MIN];
    for (place, id) in luminances.as_chunks_mut::<4>().0.iter_mut().zip(limits) {
        *place = number(id, LUMINANCE, u32::MAX)?.to_be_bytes();
    }
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(id: u32, body: &[u8]) -> Vec<u8> {
        let id: Vec<u8> = id.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
        let length = 0x4000 | u16::try_from(body.len()).unwrap();
        [&id[..], &length.to_be_bytes(), body].concat()
    }

    fn display(numbers: &[(u32, f64)]) -> Vec<u8> {
        let numbers = numbers.iter().map(|(id, number)| element(*id, &number.to_be_bytes()));
        element(ids::MASTERING_METADATA, &numbers.collect::<Vec<_>>().concat())
    }

    fn boxes(colour: &[u8]) -> Vec<(FourCc, Vec<u8>)> {
        Light::read(&Element { id: ids::COLOUR, body: colour, offset: 0 }).boxes()
    }

    #[test]
    fn light_becomes_boxes() {
        let places = [0.265, 0.69, 0.15, 0.06, 0.68, 0.32, 0.3127, 0.329];
        let mut numbers: Vec<(u32, f64)> = CHROMATICITIES.into_iter().zip(places).collect();
        numbers.extend([(ids::LUMINANCE_MAX, 1000.0), (ids::LUMINANCE_MIN, 0.005)]);
        let levels = [element(ids::MAX_CLL, &[3, 232]), element(ids::MAX_FALL, &[1, 144])].concat();
        let found = boxes(&[display(&numbers), levels].concat());
        let codes: [u16; 8] = [13_250, 34_500, 7500, 3000, 34_000, 16_000, 15_635, 16_450];
        let mut expected: Vec<u8> = codes.iter().flat_map(|code| code.to_be_bytes()).collect();
        expected.extend([10_000_000_u32, 50].iter().flat_map(|code| code.to_be_bytes()));
        assert_eq!(found, [(*b"mdcv", expected), (*b"clli", vec![3, 232, 1, 144])]);
        for wrong in [-0.1, 1.4, f64::NAN, f64::INFINITY] {
            numbers[0].1 = wrong;
            assert!(boxes(&display(&numbers)).is_empty(), "{wrong}");
        }
        assert!(boxes(&display(&numbers[1..])).is_empty() && boxes(&[]).is_empty());
        assert_eq!(boxes(&element(ids::MAX_CLL, &[1, 0, 0])), [(*b"clli", vec![255, 255, 0, 0])]);
    }
}

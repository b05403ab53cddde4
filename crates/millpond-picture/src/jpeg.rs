//! Pictures as JPEG.

use crate::picture::Picture;
use jpeg_encoder::{Encoder, ImageBuffer, JpegColorType, SamplingFactor};

/// A picture can't be coded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the picture can't be coded as JPEG: {0}")]
pub struct JpegError(String);

/// Rows of samples in full range, as JFIF has them.
struct Rows<'a>(&'a Picture);

impl Picture {
    /// Codes the picture as a baseline JPEG file. `quality` is from 1 to 100. Samples are taken as of limited range.
    ///
    /// # Errors
    /// A side without or with more than 65,535 pixels.
    pub fn jpeg(&self, quality: u8) -> Result<Vec<u8>, JpegError> {
        let mut out = Vec::with_capacity(self.width() * self.height() / 8);
        let mut encoder = Encoder::new(&mut out, quality);
        encoder.set_sampling_factor(SamplingFactor::F_2_2);
        encoder.encode_image(Rows(self)).map_err(|error| JpegError(error.to_string()))?;
        Ok(out)
    }
}

impl ImageBuffer for Rows<'_> {
    fn get_jpeg_color_type(&self) -> JpegColorType {
        JpegColorType::Ycbcr
    }

    fn width(&self) -> u16 {
        u16::try_from(self.0.width()).unwrap_or(0)
    }

    fn height(&self) -> u16 {
        u16::try_from(self.0.height()).unwrap_or(0)
    }

    fn fill_buffers(&self, y: u16, buffers: &mut [Vec<u8>; 4]) {
        let [luma, blue, red, _] = buffers;
        let y = usize::from(y);
        let [of_luma, of_blue, of_red] = &self.0.planes;
        let width = of_luma.width;
        let row = |plane: &crate::picture::Plane, y: usize| y * plane.width..(y + 1) * plane.width;
        luma.extend(
            of_luma.samples.get(row(of_luma, y)).unwrap_or_default().iter().map(|sample| full(*sample, 16, 219)),
        );
        for (to, plane) in [(blue, of_blue), (red, of_red)] {
            let samples = plane.samples.get(row(plane, y / 2)).unwrap_or_default();
            let wide = samples.iter().flat_map(|sample| [chroma(*sample); 2]);
            to.extend(wide.take(width));
        }
    }
}

/// Luma of limited range in full range (ITU-T T.871).
fn full(sample: u8, least: i32, range: i32) -> u8 {
    let wide = ((i32::from(sample) - least) * 255 + range / 2) / range;
    u8::try_from(wide.clamp(0, 255)).unwrap_or(0)
}

/// Chroma of limited range in full range.
fn chroma(sample: u8) -> u8 {
    let wide = 128 + ((i32::from(sample) - 128) * 255) / 224;
    u8::try_from(wide.clamp(0, 255)).unwrap_or(128)
}

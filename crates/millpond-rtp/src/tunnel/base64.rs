//! Base64 (RFC 4648 4) in a tunnel: split anywhere, and padded at the end of each message.

use bytes::{BufMut as _, BytesMut};

/// Decodes base64 as it arrives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Decoder {
    /// Current group of four: its bits, and the number of its letters and `=` so far.
    bits: u32,
    letters: u8,
    padding: u8,
    /// Number of bytes so far.
    at: u64,
}

/// A byte that is invalid at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: found {found:#04x}, expected base64")]
pub struct NotBase64 {
    /// Offset from the first byte of the stream.
    pub at: u64,
    /// Value of the byte.
    pub found: u8,
}

impl Decoder {
    /// Appends the bytes of all complete groups. Line ends and spaces are ignored.
    ///
    /// # Errors
    /// The first invalid byte; the bytes before it are appended.
    pub fn decode(&mut self, text: &[u8], output: &mut BytesMut) -> Result<(), NotBase64> {
        output.reserve(text.len() / 4 * 3);
        for byte in text {
            if !matches!(byte, b'\r' | b'\n' | b' ' | b'\t') && self.take(*byte, output).is_none() {
                return Err(NotBase64 { at: self.at, found: *byte });
            }
            self.at += 1;
        }
        Ok(())
    }

    fn take(&mut self, byte: u8, output: &mut BytesMut) -> Option<()> {
        match value(byte) {
            Some(value) if self.padding == 0 => {
                self.bits = self.bits << 6 | value;
                self.letters += 1;
            }
            None if byte == b'=' && self.letters >= 2 => {
                self.bits <<= 6;
                self.padding += 1;
            }
            _ => return None,
        }
        if self.letters + self.padding == 4 {
            let [_, bytes @ ..] = self.bits.to_be_bytes();
            output.put_slice(bytes.get(..usize::from(self.letters) - 1)?);
            *self = Self { at: self.at, ..Self::default() };
        }
        Some(())
    }
}

fn value(letter: u8) -> Option<u32> {
    Some(u32::from(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(parts: &[&[u8]]) -> Result<Vec<u8>, NotBase64> {
        let (mut decoder, mut output) = (Decoder::default(), BytesMut::new());
        parts.iter().try_for_each(|part| decoder.decode(part, &mut output))?;
        Ok(output.to_vec())
    }

    /// Tests the examples of RFC 4648 10.
    #[test]
    fn examples_of_the_standard() {
        let examples: [(&str, &str); 7] = [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ];
        for (text, means) in examples {
            assert_eq!(decoded(&[text.as_bytes()]).unwrap(), means.as_bytes());
        }
    }

    #[test]
    fn messages_follow_each_other_however_they_are_cut() {
        let text = b"Zm9vYg==Zm9v\r\nYmE=+/+/";
        for step in 1..=text.len() {
            let parts: Vec<&[u8]> = text.chunks(step).collect();
            assert_eq!(decoded(&parts).unwrap(), b"foobfooba\xfb\xff\xbf", "{step}");
        }
        assert_eq!(decoded(&[b"Zm9vYm"]).unwrap(), b"foo", "the rest is to come");
    }

    #[test]
    fn what_is_no_base64_is_found_where_it_stands() {
        for (text, at) in [("Zm9v!", 4), ("Z===", 1), ("=", 0), ("Zg=A", 3), ("Zm9v=", 4), ("Zm8=\0", 4)] {
            assert_eq!(decoded(&[text.as_bytes()]).unwrap_err().at, at, "{text}");
        }
    }
}

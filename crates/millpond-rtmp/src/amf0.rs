//! AMF 0 (Action Message Format, specification of 2007), as commands need it. Values are read in place.

/// Most objects within each other.
const MOST_DEPTH: usize = 8;

/// A value. Objects are their properties as they are encoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Number(f64),
    Boolean(bool),
    String(&'a [u8]),
    Object(&'a [u8]),
    Null,
    /// A value that no command needs.
    Other,
}

impl<'a> Value<'a> {
    pub(crate) fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The text of a string.
    pub(crate) fn text(self) -> Option<&'a str> {
        match self {
            Self::String(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The first property of an object with a name.
    pub(crate) fn property(self, name: &str) -> Option<Value<'a>> {
        let Self::Object(properties) = self else { return None };
        let mut reader = Reader(properties);
        loop {
            let key = reader.string()?;
            let value = reader.value()?;
            if key == name.as_bytes() {
                return Some(value);
            }
        }
    }
}

/// Reads values one after another. Each read is `None` at the end, and where the bytes are no value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn value(&mut self) -> Option<Value<'a>> {
        self.nested(0)
    }

    fn nested(&mut self, depth: usize) -> Option<Value<'a>> {
        if depth > MOST_DEPTH {
            return None;
        }
        match self.take(1)?[0] {
            0 => Some(Value::Number(f64::from_be_bytes(*self.take(8)?.first_chunk()?))),
            1 => Some(Value::Boolean(self.take(1)?[0] != 0)),
            2 => Some(Value::String(self.string()?)),
            3 => self.object(depth),
            5 | 6 => Some(Value::Null),
            // A reference, whose object no command needs.
            7 => self.take(2).map(|_| Value::Other),
            8 => {
                self.take(4)?;
                self.object(depth)
            }
            10 => {
                for _ in 0..u32::from_be_bytes(*self.take(4)?.first_chunk()?) {
                    self.nested(depth + 1)?;
                }
                Some(Value::Other)
            }
            11 => self.take(10).map(|_| Value::Other),
            12 | 15 => {
                let length = u32::from_be_bytes(*self.take(4)?.first_chunk()?);
                Some(Value::String(self.take(usize::try_from(length).ok()?)?))
            }
            13 => Some(Value::Other),
            16 => {
                self.string()?;
                self.object(depth)
            }
            17 => self.amf3(),
            _ => None,
        }
    }

    /// Reads a value of AMF 3 that no command needs (AMF 3, 3.1 to 3.8): all but objects and lists.
    fn amf3(&mut self) -> Option<Value<'a>> {
        match self.take(1)?[0] {
            0..=3 => {}
            4 => drop(self.amf3_number()?),
            5 => drop(self.take(8)?),
            6 => {
                // The last bit tells a text; without it, the number is that of an earlier one.
                let header = self.amf3_number()?;
                if header & 1 == 1 {
                    self.take(header as usize >> 1)?;
                }
            }
            _ => return None,
        }
        Some(Value::Other)
    }

    /// Reads a number of up to 29 bits (AMF 3, 1.3.1).
    fn amf3_number(&mut self) -> Option<u32> {
        let mut number = 0;
        for _ in 0..3 {
            let byte = self.take(1)?[0];
            number = number << 7 | u32::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        Some(number << 8 | u32::from(self.take(1)?[0]))
    }

    /// Reads the properties of an object, up to the empty name and the end marker.
    fn object(&mut self, depth: usize) -> Option<Value<'a>> {
        let start = self.0;
        loop {
            let properties = &start[..start.len() - self.0.len()];
            if self.string()?.is_empty() {
                let end = self.take(1)?[0];
                return (end == 9).then_some(Value::Object(properties));
            }
            self.nested(depth + 1)?;
        }
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let length = u16::from_be_bytes(*self.take(2)?.first_chunk()?);
        self.take(length.into())
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
}

/// Appends a number.
pub(crate) fn write_number(output: &mut Vec<u8>, number: f64) {
    output.push(0);
    output.extend(number.to_be_bytes());
}

/// Appends a string. Its end is left out where it is too long.
pub(crate) fn write_string(output: &mut Vec<u8>, text: &str) {
    output.push(2);
    write_text(output, text);
}

/// Appends null.
pub(crate) fn write_null(output: &mut Vec<u8>) {
    output.push(5);
}

/// A property of an object that is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Property<'a> {
    Text(&'a str),
    Number(f64),
    Boolean(bool),
    /// A strict array of strings.
    Texts(&'a [&'a str]),
    /// An object of numbers.
    Numbers(&'a [(&'a str, f64)]),
}

/// Appends a truth value.
pub(crate) fn write_boolean(output: &mut Vec<u8>, value: bool) {
    output.extend([1, value.into()]);
}

/// Appends an object with strings.
pub(crate) fn write_object(output: &mut Vec<u8>, properties: &[(&str, &str)]) {
    write_properties(output, properties.iter().map(|(name, value)| (*name, Property::Text(value))));
}

/// Appends an object.
pub(crate) fn write_properties<'a>(
    output: &mut Vec<u8>,
    properties: impl IntoIterator<Item = (&'a str, Property<'a>)>,
) {
    output.push(3);
    for (name, value) in properties {
        write_text(output, name);
        match value {
            Property::Text(text) => write_string(output, text),
            Property::Number(number) => write_number(output, number),
            Property::Boolean(value) => write_boolean(output, value),
            Property::Texts(texts) => {
                output.push(10);
                output.extend((texts.len() as u32).to_be_bytes());
                texts.iter().for_each(|text| write_string(output, text));
            }
            Property::Numbers(numbers) => {
                output.push(3);
                for (name, number) in numbers {
                    write_text(output, name);
                    write_number(output, *number);
                }
                output.extend([0, 0, 9]);
            }
        }
    }
    output.extend([0, 0, 9]);
}

fn write_text(output: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    output.extend(length.to_be_bytes());
    output.extend_from_slice(&text.as_bytes()[..length.into()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_order() {
        let mut bytes = Vec::new();
        write_string(&mut bytes, "connect");
        write_number(&mut bytes, 1.0);
        write_object(&mut bytes, &[("app", "live"), ("tcUrl", "rtmp://host/live")]);
        write_null(&mut bytes);
        let mut reader = Reader(&bytes);
        assert_eq!(reader.value().unwrap().text(), Some("connect"));
        assert_eq!(reader.value(), Some(Value::Number(1.0)));
        let object = reader.value().unwrap();
        assert_eq!(object.property("tcUrl").and_then(Value::text), Some("rtmp://host/live"));
        assert_eq!(object.property("other"), None);
        assert_eq!((reader.value(), reader.value()), (Some(Value::Null), None));
    }

    #[test]
    fn values_of_amf_3_are_passed() {
        let mut object = vec![3];
        for value in [
            &[0][..],
            &[3],
            &[4, 0xff, 0xff, 0xff, 0xff],
            &[4, 0x81, 0],
            &[5, 0, 0, 0, 0, 0, 0, 0, 0],
            &[6, 7, 1, 2, 3],
            &[6, 2],
        ] {
            object.extend([&[0, 1, b'k', 17], value].concat());
        }
        write_text(&mut object, "app");
        write_string(&mut object, "live");
        object.extend([0, 0, 9]);
        let value = Reader(&object).value().unwrap();
        assert_eq!(value.property("app").and_then(Value::text), Some("live"));
        assert_eq!(Reader(&[17, 10, 1]).value(), None, "an object");
    }

    #[test]
    fn every_value_that_is_cut_off_is_refused() {
        // A list with a date, a long string, a reference, and an object of a class.
        let list: &[u8] = &[
            10, 0, 0, 0, 4, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 1, b'x', 7, 0, 1, 16, 0, 1, b'c', 0, 1,
            b'k', 1, 1, 0, 0, 9,
        ];
        assert_eq!(Reader(list).value(), Some(Value::Other));
        assert!((0..list.len()).all(|length| Reader(&list[..length]).value().is_none()));
        let huge = [10, 0xff, 0xff, 0xff, 0xff, 5, 5];
        assert_eq!(Reader(&huge).value(), None);
        let deep: Vec<u8> = [10, 0, 0, 0, 1].repeat(10_000);
        assert_eq!(Reader(&deep).value(), None);
    }
}

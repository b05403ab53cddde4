//! The entry of fuzz targets. `cargo fuzz` calls it with the driver of libFuzzer, the tests with a file's bytes.

#[cfg(feature = "libfuzzer")]
#[doc(hidden)]
pub use libfuzzer_sys;

/// Declares the target of a file: a block that gets an input, as bytes or as text.
#[cfg(feature = "libfuzzer")]
#[macro_export]
macro_rules! fuzz_target {
    (|$input:ident: $form:ty| $body:block) => {
        use $crate::libfuzzer_sys;
        $crate::libfuzzer_sys::fuzz_target!(|$input: $form| $body);
    };
}

/// Declares the target of a file: a block that gets an input, as bytes or as text.
#[cfg(not(feature = "libfuzzer"))]
#[macro_export]
macro_rules! fuzz_target {
    (|$input:ident: $form:ty| $body:block) => {
        /// Runs the target with an input.
        pub fn run(bytes: &[u8]) {
            let $input = <$form as $crate::Input>::of(bytes);
            $body
        }
    };
}

/// A form in which targets get the bytes of an input.
pub trait Input<'a> {
    /// Returns the input that the bytes stand for.
    fn of(bytes: &'a [u8]) -> Self;
}

impl<'a> Input<'a> for &'a [u8] {
    fn of(bytes: &'a [u8]) -> Self {
        bytes
    }
}

/// Text ends where the bytes are no UTF-8, as with libFuzzer's `arbitrary`.
impl<'a> Input<'a> for &'a str {
    fn of(bytes: &'a [u8]) -> Self {
        bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
    }
}

//! Values of one place, in front of those of the server.

use super::{Setting, Settings, value::BadValue};

/// A place's own values of the settings of a part. The values of the server hold for the rest.
#[derive(Debug, Clone)]
pub struct Own<T: 'static>(Vec<(&'static Setting<T>, String)>);

impl<T> Default for Own<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Settings> Own<T> {
    /// Adds the text of a value. `scratch` are any values of the part; parsing changes them.
    ///
    /// # Errors
    /// The text is no value of the setting.
    pub fn add(&mut self, setting: &'static Setting<T>, text: &str, scratch: &mut T) -> Result<(), BadValue> {
        (setting.apply)(scratch, text)?;
        self.0.push((setting, text.to_owned()));
        Ok(())
    }

    /// The values of the place, where those of the server are `values`.
    pub fn over(&self, mut values: T) -> T {
        for (setting, text) in &self.0 {
            // The text was parsed before.
            let _ = (setting.apply)(&mut values, text);
        }
        values
    }
}

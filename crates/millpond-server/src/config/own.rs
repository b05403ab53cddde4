//! Own settings of a place, composed of those of the parts.

use super::{
    AccessSettings, BadValue, Declaration, Host, Lifetimes, LiveSettings, ManifestSettings, Settings as _,
    machine::Machine,
};
use millpond_settings::Own;

/// Composes the own settings of a place.
macro_rules! compose {
    ($($heading:literal $field:ident: $part:ty,)*) => {
        /// Settings of the server of which a place has its own values.
        #[derive(Debug, Clone, Default)]
        pub struct OwnSettings {
            $(#[doc = $heading] pub $field: Own<$part>,)*
        }

        $(const _: () = assert!(<$part>::OF_PLACES, "the declarations say that places have no own values");)*

        impl OwnSettings {
            /// The setting of a name; underscores stand for dashes.
            pub fn find(name: &str) -> Option<Declaration> {
                $(if let Some(setting) = <$part>::find(name) {
                    return Some(setting.declaration($heading));
                })*
                None
            }

            /// Sets an own value; `None` where places have no setting of that name.
            pub(super) fn set(&mut self, name: &str, text: &str) -> Option<Result<(), BadValue>> {
                let host = Host { machine: Machine::detect(), variable: &|_| None };
                $(if let Some(setting) = <$part>::find(name) {
                    return Some(self.$field.add(setting, text, &mut <$part>::defaults(&host)));
                })*
                None
            }
        }
    };
}

compose! {
    "Lifetimes of replies" lifetimes: Lifetimes,
    "Manifests" manifests: ManifestSettings,
    "Access" access: AccessSettings,
    "Live sources" live: LiveSettings,
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    #[test]
    fn settings_that_places_may_have_are_those_of_their_declarations() {
        let mut declared = 0;
        for setting in Config::settings() {
            assert_eq!(OwnSettings::find(setting.name).is_some(), setting.is_of_places, "{}", setting.name);
            assert_eq!(setting.about().ends_with("own value"), setting.is_of_places, "{}", setting.name);
            declared += usize::from(setting.is_of_places);
        }
        assert_eq!(declared, 27);
    }
}

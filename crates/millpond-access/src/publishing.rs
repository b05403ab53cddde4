//! Settings of publishing: who may push streams, and the treatment of a second publisher.

use super::UserFile;
use millpond_settings::{
    At, ConfigError, Host, Setting, Settings, Sources,
    value::{self, BadValue, Form},
};
use millpond_stream::Conflict;
use std::{net::IpAddr, path::PathBuf};

/// Settings of publishing, for all places with the location `publish:`.
#[derive(Clone, Debug)]
pub struct PublishSettings {
    /// File of the users.
    pub users_file: Option<PathBuf>,
    /// Users that may publish, read from that file.
    pub users: Option<UserFile>,
    /// Whether everybody may publish where there are no users. Else only clients of the same machine may.
    pub is_open: bool,
    /// Treatment of a second publisher of a stream.
    pub conflict: Conflict,
}

/// Values of `publish-conflict`.
const CONFLICTS: [&str; 2] = ["refuse", "replace"];

impl PublishSettings {
    /// Whether a client without credentials may publish, where there are no users.
    pub fn admits(&self, client: IpAddr) -> bool {
        self.is_open || client.to_canonical().is_loopback()
    }
}

impl Settings for PublishSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self { users_file: None, users: None, is_open: false, conflict: Conflict::Refuse }
    }

    fn complete(&mut self, sources: &Sources) -> Vec<ConfigError> {
        let Some(path) = self.users_file.clone() else { return Vec::new() };
        match UserFile::read(path, "publish-users", sources) {
            Ok(users) => {
                self.users = Some(users);
                Vec::new()
            }
            Err(errors) => errors,
        }
    }
}

const LIST: &[Setting<PublishSettings>] = &[
    Setting {
        name: "publish-users",
        form: Form::Path,
        default: "none: only clients of this machine may publish",
        help: "File of users that may push streams, in lines of name:password, for Digest authentication",
        applied: At::Reload,
        apply: |publish, text| value::path(text).map(|v| publish.users_file = Some(v)),
        show: |publish| publish.users_file.as_ref().map(|path| path.display().to_string()),
    },
    Setting {
        name: "publish-open",
        form: Form::Switch,
        default: "false",
        help: "Let clients of other machines push streams too, without publish-users",
        applied: At::Reload,
        apply: |publish, text| value::switch(text).map(|v| publish.is_open = v),
        show: |publish| Some(publish.is_open.to_string()),
    },
    Setting {
        name: "publish-conflict",
        form: Form::Choice(&CONFLICTS),
        default: "refuse",
        help: "What happens to the second publisher of a stream: \"refuse\" refuses it, \"replace\" ends the first \
               publisher",
        applied: At::Reload,
        apply: |publish, text| conflict(text).map(|v| publish.conflict = v),
        show: |publish| Some(name(publish.conflict).to_owned()),
    },
];

fn conflict(text: &str) -> Result<Conflict, BadValue> {
    let known = [Conflict::Refuse, Conflict::Replace];
    known.into_iter().find(|known| name(*known) == text).ok_or_else(|| Form::Choice(&CONFLICTS).into())
}

fn name(conflict: Conflict) -> &'static str {
    match conflict {
        Conflict::Refuse => CONFLICTS[0],
        Conflict::Replace => CONFLICTS[1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_users_only_the_same_machine_publishes() {
        let mut settings =
            PublishSettings { users_file: None, users: None, is_open: false, conflict: Conflict::Refuse };
        let admits = |settings: &PublishSettings, client: &str| settings.admits(client.parse().unwrap());
        for client in ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"] {
            assert!(admits(&settings, client), "{client}");
        }
        let others = ["192.0.2.1", "10.0.0.7", "::ffff:192.0.2.1", "fe80::1", "0.0.0.0", "::"];
        assert!(others.iter().all(|client| !admits(&settings, client)));
        settings.is_open = true;
        assert!(others.iter().all(|client| admits(&settings, client)));
    }
}

//! The shared profile files of the AWS tools.
//!
//! Only keys, region and endpoint are read. Profiles that assume roles, or run programs to get keys, are not supported:
//! such keys can be put into the environment.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::origin::{BucketOptions, OptionFault};

/// Settings of one profile that are present.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) access_key: Option<String>,
    pub(crate) secret_key: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) endpoint: Option<String>,
}

type Sections = BTreeMap<String, BTreeMap<String, String>>;

impl Profile {
    /// Reads the profile of a place. Keys of the environment take precedence over it.
    ///
    /// # Errors
    ///
    /// As [`Profile::load`].
    pub(crate) fn for_options(
        options: &BucketOptions,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, OptionFault> {
        let is_elsewhere =
            env("AWS_ACCESS_KEY_ID").is_some() || env("AWS_WEB_IDENTITY_TOKEN_FILE").is_some() || options.anonymous;
        if is_elsewhere { Ok(Self::default()) } else { Self::load(env) }
    }

    /// Reads the files that `env` names, else those below the home folder. Missing files count as empty.
    ///
    /// # Errors
    ///
    /// `AWS_PROFILE` names a profile that is in neither file.
    pub(crate) fn load(env: impl Fn(&str) -> Option<String>) -> Result<Self, OptionFault> {
        let file = |variable: &str, name: &str| {
            let path = match env(variable) {
                Some(path) => PathBuf::from(path),
                None => PathBuf::from(env("HOME")?).join(".aws").join(name),
            };
            std::fs::read_to_string(path).ok()
        };
        let named = env("AWS_PROFILE").filter(|name| !name.is_empty());
        let name = named.as_deref().unwrap_or("default");
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let config = file("AWS_CONFIG_FILE", "config");
        let profile =
            Self::choose(name, credentials.as_deref().unwrap_or_default(), config.as_deref().unwrap_or_default());
        match (profile, named) {
            (Some(profile), _) => Ok(profile),
            (None, None) => Ok(Self::default()),
            (None, Some(name)) => Err(OptionFault {
                key: "AWS_PROFILE",
                expected: "a profile in ~/.aws/credentials or ~/.aws/config".to_owned(),
                found: format!("{name:?}"),
                cure: "correct the name, or add the profile to one of the files".to_owned(),
            }),
        }
    }

    /// Returns the settings of profile `name`. The credentials file comes first; its sections are called `name`. The
    /// config file's are called `profile name`, except for `default`.
    fn choose(name: &str, credentials: &str, config: &str) -> Option<Self> {
        let credentials = parse(credentials);
        let config = parse(config);
        let qualified = format!("profile {name}");
        let mut sections: Vec<_> = credentials.get(name).into_iter().collect();
        sections.extend(config.get(&qualified));
        if name == "default" {
            sections.extend(config.get(name));
        }
        if sections.is_empty() {
            return None;
        }
        let find = |key: &str| sections.iter().find_map(|section| section.get(key)).cloned();
        // Key and secret belong together: both are taken from one section.
        let keys = sections.iter().find_map(|section| {
            let key = section.get("aws_access_key_id")?.clone();
            let secret = section.get("aws_secret_access_key")?.clone();
            Some((key, secret, section.get("aws_session_token").cloned()))
        });
        let (access_key, secret_key, token) = match keys {
            Some((key, secret, token)) => (Some(key), Some(secret), token),
            None => (None, None, None),
        };
        Some(Self { access_key, secret_key, token, region: find("region"), endpoint: find("endpoint_url") })
    }
}

/// Returns the sections with their settings. Other lines, and nested settings, are skipped.
fn parse(text: &str) -> Sections {
    let mut sections = Sections::new();
    let mut current: Option<String> = None;
    for line in text.lines() {
        let nested = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) || nested {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let words: Vec<_> = name.split_whitespace().collect();
            let name = words.join(" ");
            sections.entry(name.clone()).or_default();
            current = Some(name);
            continue;
        }
        if let Some((key, value)) = line.split_once('=')
            && let Some(section) = current.as_ref().and_then(|name| sections.get_mut(name))
        {
            let value = value.trim().to_owned();
            section.insert(key.trim().to_ascii_lowercase(), value);
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "\
# keys
[default]
aws_access_key_id = A
aws_secret_access_key=S=with=signs
[other]
aws_access_key_id = B
aws_secret_access_key = T
aws_session_token = U
";
    const CONFIG: &str = "\
[default]
region = eu-north-1
s3 =
  endpoint_url = http://nested.example
[profile  other]
region = us-west-2
endpoint_url = http://s3.example:9000
[profile keys]
aws_access_key_id = C
";

    #[test]
    fn keys_and_settings_of_both_files() {
        let default = Profile::choose("default", CREDENTIALS, CONFIG).unwrap();
        assert_eq!(default.access_key.as_deref(), Some("A"));
        assert_eq!(default.secret_key.as_deref(), Some("S=with=signs"));
        assert_eq!(default.region.as_deref(), Some("eu-north-1"));
        assert_eq!(default.endpoint, None);
        let other = Profile::choose("other", CREDENTIALS, CONFIG).unwrap();
        assert_eq!(other.token.as_deref(), Some("U"));
        assert_eq!(other.endpoint.as_deref(), Some("http://s3.example:9000"));
        let half = Profile::choose("keys", CREDENTIALS, CONFIG).unwrap();
        assert_eq!(half.access_key, None, "a key without its secret is none");
        assert!(Profile::choose("none", CREDENTIALS, CONFIG).is_none());
    }

    #[test]
    fn odd_files_say_nothing() {
        for text in ["", "[", "]", "a=b", "[x\ny", "[]\n=", "\u{feff}[default]", "[a]\n\n b = c"] {
            let _ = Profile::choose("default", text, text);
        }
    }

    #[test]
    fn files_and_names_come_from_the_environment() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("credentials");
        std::fs::write(&file, CREDENTIALS).unwrap();
        let env = |profile: Option<&'static str>| {
            let file = file.clone();
            move |name: &str| match name {
                "AWS_SHARED_CREDENTIALS_FILE" => Some(file.display().to_string()),
                "AWS_PROFILE" => profile.map(str::to_owned),
                _ => None,
            }
        };
        let profile = Profile::load(env(Some("other"))).unwrap();
        assert_eq!(profile.access_key.as_deref(), Some("B"));
        assert_eq!(Profile::load(env(None)).unwrap().access_key.as_deref(), Some("A"));
        assert!(Profile::load(env(Some("none"))).is_err_and(|fault| fault.found.contains("none")));
        assert!(Profile::load(|_| None).is_ok_and(|profile| profile == Profile::default()));
    }
}

//! Addresses of buckets, checked before the client library gets them: it panics at the first request to one that is no
//! URL, and at a header value with other than printable characters.

use http::Uri;
use object_store::path::Path;
use url::{Host, Url};

use crate::{
    location::{BucketPrefix, Cloud},
    origin::{BucketOptions, OptionFault, cloud::aws_profile::Profile},
    url_text::shown_without_secrets,
};

/// Longest name of a region or an account, in bytes.
const LONGEST: usize = 128;

/// Returns a text of the configuration, without secrets.
fn shown(text: &str) -> String {
    shown_without_secrets(text, &["http", "https"])
}

/// Position of the bucket's name in a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::origin) enum Style {
    Path,
    Host,
}

impl Style {
    /// Chooses the style. A private service rarely has a host name for each bucket. AWS does, but its certificates do
    /// not cover names with dots.
    fn choose(bucket: &str, has_endpoint: bool, path_style: Option<bool>) -> Self {
        let path = path_style.unwrap_or(has_endpoint || bucket.contains('.'));
        if path { Self::Path } else { Self::Host }
    }
}

/// The address of an S3 bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::origin) struct S3Address {
    pub(in crate::origin) style: Style,
    pub(in crate::origin) region: Option<String>,
    /// The endpoint for the client library, with the bucket in the host name where the style demands it.
    pub(in crate::origin) endpoint: Option<String>,
}

impl S3Address {
    /// Finds the address in the options, in the environment and in the profile, in this order.
    pub(in crate::origin) fn find(
        bucket: &str,
        options: &BucketOptions,
        env: impl Fn(&str) -> Option<String>,
        profile: &Profile,
    ) -> Result<Self, OptionFault> {
        let variables = |names: &[&'static str]| names.iter().find_map(|name| Some((*name, env(name)?)));
        let region = (options.region.clone().map(|region| ("region", region)))
            .or_else(|| variables(&["AWS_REGION", "AWS_DEFAULT_REGION"]))
            .or_else(|| Some(("region of the AWS profile", profile.region.clone()?)));
        let endpoint = (options.endpoint.clone().map(|endpoint| ("endpoint", endpoint)))
            .or_else(|| variables(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]))
            .or_else(|| Some(("endpoint_url of the AWS profile", profile.endpoint.clone()?)));
        let region = region.map(|(key, region)| name(key, "a region such as \"eu-north-1\"", region)).transpose()?;
        let style = Style::choose(bucket, endpoint.is_some(), options.path_style);
        let endpoint = match endpoint {
            Some((key, text)) => Some(with_bucket(style, bucket, &endpoint_url(key, &text)?)?),
            None => None,
        };
        Ok(Self { style, region, endpoint })
    }
}

/// Puts the bucket before the host name where the style demands it.
fn with_bucket(style: Style, bucket: &str, endpoint: &Url) -> Result<String, OptionFault> {
    let text = endpoint.as_str().trim_end_matches('/');
    if style == Style::Path {
        return Ok(text.to_owned());
    }
    let host = endpoint.host_str().unwrap_or_default();
    let fault = |why: &str| OptionFault {
        key: "path-style",
        expected: "true".to_owned(),
        found: "false".to_owned(),
        cure: format!(
            "{why}, so the bucket {bucket:?} can't stand before it: remove path-style, or give endpoint a host name"
        ),
    };
    if !matches!(endpoint.host(), Some(Host::Domain(_))) {
        return Err(fault(&format!("the endpoint {host} is an address")));
    }
    let (scheme, rest) = text.split_once("://").unwrap_or(("https", text));
    let whole = format!("{scheme}://{bucket}.{rest}");
    match is_address(&whole) {
        true => Ok(whole),
        false => Err(fault(&format!("{bucket}.{host} is no host name"))),
    }
}

/// Checks the URL of a service, and returns it in the form that all libraries read alike.
pub(in crate::origin) fn endpoint_url(key: &'static str, text: &str) -> Result<Url, OptionFault> {
    let fault = |cure: String| OptionFault {
        key,
        expected: "an http or https URL such as \"http://minio:9000\"".to_owned(),
        found: format!("{:?}", shown(text)),
        cure,
    };
    let url = match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => url,
        Ok(_) | Err(url::ParseError::RelativeUrlWithoutBase) => {
            return Err(fault("write http:// or https:// before the host".to_owned()));
        }
        Err(error) => return Err(fault(error.to_string())),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(fault("credentials come from the environment or a profile: remove user and password".to_owned()));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(fault("remove what follows the path (? or #)".to_owned()));
    }
    if url.port() == Some(0) {
        return Err(fault("no service has the port 0".to_owned()));
    }
    match is_address(url.as_str()) {
        true => Ok(url),
        false => Err(fault("remove the unusual characters".to_owned())),
    }
}

/// Returns whether both libraries that read the address of a request take it.
fn is_address(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| url.has_host()) && text.parse::<Uri>().is_ok()
}

/// Checks a name that stands in host names and in headers.
pub(in crate::origin) fn name(key: &'static str, expected: &str, text: String) -> Result<String, OptionFault> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_word = text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(allowed);
    if is_word && text.len() <= LONGEST {
        return Ok(text);
    }
    Err(OptionFault {
        key,
        expected: expected.to_owned(),
        found: format!("{:?}", shown(&text).chars().take(LONGEST).collect::<String>()),
        cure: "a name has letters, digits, \"-\", \"_\" and \".\" only".to_owned(),
    })
}

/// Checks a key or a token that is sent in a header. It is not shown.
pub(in crate::origin) fn sendable(key: &'static str, text: Option<&str>) -> Result<(), OptionFault> {
    let is_printable = |c: char| matches!(c, ' '..='~');
    match text {
        Some(text) if !text.chars().all(is_printable) => Err(OptionFault {
            key,
            expected: "printable ASCII characters".to_owned(),
            found: "a line end or another character".to_owned(),
            cure: "copy the key again, without a line end".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Checks the prefix of a bucket's keys, as the client library writes it.
pub(in crate::origin) fn prefix(text: &str) -> Result<(), OptionFault> {
    Path::parse(text).map(drop).map_err(|_| OptionFault {
        key: "url",
        expected: "a prefix such as \"films/2026\"".to_owned(),
        found: format!("{text:?}"),
        cure: "remove empty parts (//) and control characters".to_owned(),
    })
}

/// Checks the options of a bucket without a client. `env` returns variables of the environment.
pub(crate) fn check(
    BucketPrefix { cloud, bucket, prefix: of_prefix }: &BucketPrefix,
    options: &BucketOptions,
    env: impl Fn(&str) -> Option<String>,
) -> Result<(), OptionFault> {
    prefix(of_prefix)?;
    match cloud {
        Cloud::S3 => {
            let profile = Profile::for_options(options, &env)?;
            S3Address::find(bucket, options, &env, &profile)?;
            keys(&profile, env)?;
        }
        Cloud::Gs => {
            options.endpoint.as_deref().map(|text| endpoint_url("endpoint", text)).transpose()?;
        }
        Cloud::Az => {
            options.endpoint.as_deref().map(|text| endpoint_url("endpoint", text)).transpose()?;
            account(options, env)?;
        }
    }
    Ok(())
}

/// Checks the keys of S3 in the environment and in the profile.
fn keys(profile: &Profile, env: impl Fn(&str) -> Option<String>) -> Result<(), OptionFault> {
    let (secret, access) = (env("AWS_SECRET_ACCESS_KEY"), env("AWS_ACCESS_KEY_ID"));
    if profile.access_key.is_none() {
        pair(("AWS_ACCESS_KEY_ID", &access), ("AWS_SECRET_ACCESS_KEY", &secret))?;
        pair(("AWS_SECRET_ACCESS_KEY", &secret), ("AWS_ACCESS_KEY_ID", &access))?;
    }
    sendable("AWS_ACCESS_KEY_ID", access.as_deref())?;
    sendable("AWS_SESSION_TOKEN", env("AWS_SESSION_TOKEN").as_deref())?;
    sendable("aws_access_key_id of the AWS profile", profile.access_key.as_deref())?;
    sendable("aws_session_token of the AWS profile", profile.token.as_deref())
}

/// Checks that one half of a pair of variables is not without the other.
fn pair(
    (key, of_key): (&'static str, &Option<String>),
    (other, of_other): (&'static str, &Option<String>),
) -> Result<(), OptionFault> {
    if of_key.is_none() || of_other.is_some() {
        return Ok(());
    }
    Err(OptionFault {
        key: other,
        expected: format!("the variable beside {key}"),
        found: "none".to_owned(),
        cure: format!("set both variables, or remove {key}"),
    })
}

/// Checks the storage account of Azure.
fn account(options: &BucketOptions, env: impl Fn(&str) -> Option<String>) -> Result<(), OptionFault> {
    const EXPECTED: &str = "the name of a storage account such as \"films2026\"";
    let variables = ["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"];
    let found = (options.account.clone().map(|account| ("account", account)))
        .or_else(|| variables.into_iter().find_map(|name| Some((name, env(name)?))));
    match found {
        Some((key, text)) => name(key, EXPECTED, text).map(drop),
        None if env("AZURE_STORAGE_USE_EMULATOR").is_some() => Ok(()),
        None => Err(OptionFault {
            key: "account",
            expected: EXPECTED.to_owned(),
            found: "none".to_owned(),
            cure: "write account = \"NAME\" below the place, or set AZURE_STORAGE_ACCOUNT_NAME".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_PROFILE: Profile =
        Profile { access_key: None, secret_key: None, token: None, region: None, endpoint: None };

    fn s3_bucket() -> BucketPrefix {
        BucketPrefix { cloud: Cloud::S3, bucket: "b".into(), prefix: String::new() }
    }

    fn find(bucket: &str, endpoint: Option<&str>, path_style: Option<bool>) -> Result<S3Address, OptionFault> {
        let options = BucketOptions { endpoint: endpoint.map(str::to_owned), path_style, ..BucketOptions::default() };
        S3Address::find(bucket, &options, |_| None, &NO_PROFILE)
    }

    #[test]
    fn the_bucket_stands_where_the_service_wants_it() {
        let style = |bucket, endpoint, path_style| find(bucket, endpoint, path_style).unwrap().style;
        assert_eq!(style("b", None, None), Style::Host);
        assert_eq!(style("b.c", None, None), Style::Path);
        assert_eq!(style("b", Some("http://h"), None), Style::Path);
        assert_eq!(style("b", Some("http://h"), Some(false)), Style::Host);
        let endpoint = |text, path_style| find("b", Some(text), Some(path_style)).unwrap().endpoint.unwrap();
        assert_eq!(endpoint("https://s3.example:9000/", false), "https://b.s3.example:9000");
        assert_eq!(endpoint("https://s3.example/", true), "https://s3.example");
        assert_eq!(endpoint("https://s3.example/minio/", true), "https://s3.example/minio");
    }

    #[test]
    fn a_bucket_can_not_stand_before_an_address() {
        for endpoint in ["http://127.0.0.1:9000", "http://[::1]:9000", "http://10.1"] {
            let fault = find("films", Some(endpoint), Some(false)).unwrap_err();
            assert_eq!((fault.key, fault.expected.as_str()), ("path-style", "true"), "{fault}");
            assert!(fault.to_string().contains("remove path-style"), "{fault}");
            assert!(find("films", Some(endpoint), None).is_ok(), "{endpoint}");
        }
    }

    #[test]
    fn endpoints_are_urls_and_hold_no_secrets() {
        for text in [
            "minio:9000",
            "s3.example",
            "ftp://s3.example",
            "",
            " ",
            "http://",
            "http://h:0",
            "http://h:x",
            "http://a b/",
            "http://u:secret@h",
            "http://h/?token=secret",
            "http://h/#x",
            "unix:/x",
            "http://[::1",
        ] {
            let fault = endpoint_url("endpoint", text).expect_err(text).to_string();
            assert!(fault.starts_with("endpoint: expected an http or https URL"), "{fault}");
            assert!(!fault.contains("secret"), "{fault}");
        }
        for text in ["http://127.0.0.1:9000", "https://s3.example/a/b", "http://[::1]:9000/", "http://bücher.example"]
        {
            assert!(endpoint_url("endpoint", text).unwrap().as_str().is_ascii(), "{text}");
        }
    }

    #[test]
    fn keys_that_no_header_takes_are_not_shown() {
        let env = |name: &str| match name {
            "AWS_ACCESS_KEY_ID" => Some("hush\n".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("hush".to_owned()),
            _ => None,
        };
        let fault = check(&s3_bucket(), &BucketOptions::default(), env).unwrap_err().to_string();
        assert!(fault.contains("AWS_ACCESS_KEY_ID") && !fault.contains("hush"), "{fault}");
        let half = |name: &str| (name == "AWS_ACCESS_KEY_ID").then(|| "A".to_owned());
        let fault = check(&s3_bucket(), &BucketOptions::default(), half).unwrap_err();
        assert_eq!(fault.key, "AWS_SECRET_ACCESS_KEY");
    }
}

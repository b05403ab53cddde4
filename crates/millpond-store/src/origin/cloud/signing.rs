//! Decides whether requests to a bucket are signed, and with which keys.
//!
//! Machines of the clouds provide the keys of their role at a link-local address (169.254.169.254). Elsewhere a request
//! to that address takes seconds to fail. So it is made only where a setting (`credentials = "instance"`) or the
//! environment announces such a service. Without keys requests are unsigned, as public buckets expect.

use std::path::Path;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as S3Key};
use object_store::azure::{AzureConfigKey as AzKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey as GsKey};

use crate::origin::{BucketOptions, cloud::aws_profile::Profile};

/// Advice for an operator where the store refuses a request that was unsigned for want of keys.
pub(crate) const S3_HINT: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the place's \
                                  credentials = \"instance\" where the machine has a role";
pub(crate) const GS_HINT: &str = "set GOOGLE_APPLICATION_CREDENTIALS, or the place's credentials = \"instance\" where \
                                  the machine has a service account";
pub(crate) const AZ_HINT: &str = "set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_KEY, or the place's credentials = \
                                  \"instance\" where the machine has an identity";

/// Describes the source of keys for S3, in the order in which they are looked for.
pub(crate) fn s3_source(options: &BucketOptions, env: impl Fn(&str) -> Option<String>) -> Option<String> {
    let builder = AmazonS3Builder::from_env();
    if env("AWS_ACCESS_KEY_ID").is_some() {
        return Some("the environment: AWS_ACCESS_KEY_ID".to_owned());
    }
    if Profile::for_options(options, &env).is_ok_and(|profile| profile.access_key.is_some()) {
        let name = env("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        return Some(format!("the profile {name:?} of the AWS files"));
    }
    let words = if env("AWS_WEB_IDENTITY_TOKEN_FILE").is_some() {
        "a web identity: AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN"
    } else if env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
        .or_else(|| env("AWS_CONTAINER_CREDENTIALS_FULL_URI"))
        .is_some()
    {
        "the container's role: AWS_CONTAINER_CREDENTIALS_*"
    } else {
        "the machine's role (instance metadata)"
    };
    is_signed_s3(&builder, options, &env).then(|| words.to_owned())
}

/// Describes the source of keys for Google Cloud Storage.
pub(crate) fn gs_source(options: &BucketOptions, env: impl Fn(&str) -> Option<String>) -> Option<String> {
    let variables = [
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS",
    ];
    let other = "the files of gcloud, or the machine's service account";
    let is_signed = is_signed_gs(&GoogleCloudStorageBuilder::from_env(), options, &env);
    is_signed.then(|| of_environment(&variables, env, other))
}

/// Describes the source of keys for Azure.
pub(crate) fn az_source(options: &BucketOptions, env: impl Fn(&str) -> Option<String>) -> Option<String> {
    let variables = [
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_ACCESS_KEY",
        "AZURE_STORAGE_SAS_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_STORAGE_TOKEN",
        "AZURE_STORAGE_CLIENT_SECRET",
        "AZURE_CLIENT_SECRET",
        "AZURE_FEDERATED_TOKEN_FILE",
    ];
    let is_signed = is_signed_az(&MicrosoftAzureBuilder::from_env(), options, &env);
    is_signed.then(|| of_environment(&variables, env, "the machine's identity, or Azure's tools"))
}

/// Names the first variable that is set, or another source.
fn of_environment(variables: &[&str], env: impl Fn(&str) -> Option<String>, other: &str) -> String {
    let set = variables.iter().find(|name| env(name).is_some());
    set.map_or_else(|| other.to_owned(), |name| format!("the environment: {name}"))
}

/// Returns whether there are keys for S3, or a service that is said to provide them.
pub(in crate::origin) fn is_signed_s3(
    builder: &AmazonS3Builder,
    options: &BucketOptions,
    env: impl Fn(&str) -> Option<String>,
) -> bool {
    let has = |name: &str| env(name).is_some_and(|value| !value.is_empty());
    let configured = |key: S3Key| builder.get_config_value(&key).is_some();
    let web_identity = has("AWS_WEB_IDENTITY_TOKEN_FILE") && has("AWS_ROLE_ARN");
    // The client library reads these variables. It supports an address only together with a token.
    let container = has("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
        || (has("AWS_CONTAINER_CREDENTIALS_FULL_URI") && has("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"));
    let forbidden = env("AWS_EC2_METADATA_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let machine = options.instance_credentials
        || (!forbidden && (has("AWS_EC2_METADATA_SERVICE_ENDPOINT") || configured(S3Key::MetadataEndpoint)));
    configured(S3Key::AccessKeyId) || configured(S3Key::SecretAccessKey) || web_identity || container || machine
}

/// Returns whether there are keys for Google Cloud Storage, or a service that is said to provide them.
pub(in crate::origin) fn is_signed_gs(
    builder: &GoogleCloudStorageBuilder,
    options: &BucketOptions,
    env: impl Fn(&str) -> Option<String>,
) -> bool {
    let configured =
        [GsKey::ServiceAccount, GsKey::ServiceAccountKey, GsKey::ApplicationCredentials, GsKey::BearerToken];
    let machine = ["GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"];
    // The file where the command-line tool keeps its keys, which the client library reads.
    let tool = env("HOME")
        .is_some_and(|home| Path::new(&home).join(".config/gcloud/application_default_credentials.json").exists());
    options.instance_credentials
        || tool
        || configured.iter().any(|key| builder.get_config_value(key).is_some())
        || machine.iter().any(|name| env(name).is_some_and(|value| !value.is_empty()))
}

/// Returns whether there are keys for Azure, or a service that is said to provide them.
pub(in crate::origin) fn is_signed_az(
    builder: &MicrosoftAzureBuilder,
    options: &BucketOptions,
    env: impl Fn(&str) -> Option<String>,
) -> bool {
    let any = [
        AzKey::AccessKey,
        AzKey::ClientSecret,
        AzKey::FederatedTokenFile,
        AzKey::SasKey,
        AzKey::Token,
        AzKey::CredentialType,
        AzKey::FabricTokenServiceUrl,
        // Containers and functions announce their service by its address.
        AzKey::MsiEndpoint,
    ];
    let switched = |key: AzKey| builder.get_config_value(&key).is_some_and(|value| value == "true");
    let machine = ["IDENTITY_ENDPOINT", "MSI_ENDPOINT"];
    options.instance_credentials
        || any.iter().any(|key| builder.get_config_value(key).is_some())
        || switched(AzKey::UseAzureCli)
        || switched(AzKey::UseEmulator)
        || machine.iter().any(|name| env(name).is_some_and(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        |name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn the_source_of_keys_is_named_without_them() {
        let options = BucketOptions::default();
        let found = s3_source(&options, env(&[("AWS_ACCESS_KEY_ID", "hush")])).unwrap();
        assert_eq!(found, "the environment: AWS_ACCESS_KEY_ID");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("credentials");
        std::fs::write(&file, "[films]\naws_access_key_id = hush\naws_secret_access_key = hush\n").unwrap();
        let profile = |name: &str| match name {
            "AWS_SHARED_CREDENTIALS_FILE" => Some(file.display().to_string()),
            "AWS_PROFILE" => Some("films".to_owned()),
            _ => None,
        };
        assert_eq!(s3_source(&options, profile).unwrap(), "the profile \"films\" of the AWS files");
        let instance = BucketOptions { instance_credentials: true, ..BucketOptions::default() };
        assert!(s3_source(&instance, env(&[])).unwrap().contains("instance metadata"));
        assert!(gs_source(&instance, env(&[])).unwrap().contains("service account"));
        assert!(
            az_source(&instance, env(&[("AZURE_STORAGE_SAS_KEY", "hush")])).unwrap().ends_with("AZURE_STORAGE_SAS_KEY")
        );
    }

    #[test]
    fn the_machine_is_asked_where_something_says_so() {
        let options = BucketOptions::default();
        let instance = BucketOptions { instance_credentials: true, ..BucketOptions::default() };
        let s3 = |options: &BucketOptions, pairs| is_signed_s3(&AmazonS3Builder::new(), options, env(pairs));
        assert!(!s3(&options, &[]) && s3(&instance, &[]));
        assert!(!s3(&options, &[("AWS_REGION", "x"), ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "")]));
        assert!(s3(&options, &[("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://h")]));
        let disabled = &[("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://h"), ("AWS_EC2_METADATA_DISABLED", "true")];
        assert!(!s3(&options, disabled));
        assert!(s3(&options, &[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2")]));
        assert!(!s3(&options, &[("AWS_WEB_IDENTITY_TOKEN_FILE", "/f")]), "nothing without its role");
        assert!(s3(&options, &[("AWS_WEB_IDENTITY_TOKEN_FILE", "/f"), ("AWS_ROLE_ARN", "r")]));
        let keys = AmazonS3Builder::new().with_access_key_id("a").with_secret_access_key("b");
        assert!(is_signed_s3(&keys, &options, env(&[])));

        let gs = |options: &BucketOptions, pairs| is_signed_gs(&GoogleCloudStorageBuilder::new(), options, env(pairs));
        assert!(!gs(&options, &[("HOME", "/nonexistent")]) && gs(&instance, &[]));
        assert!(gs(&options, &[("GCE_METADATA_HOST", "h")]));
        let az = |options: &BucketOptions, pairs| is_signed_az(&MicrosoftAzureBuilder::new(), options, env(pairs));
        assert!(!az(&options, &[]) && az(&instance, &[]) && az(&options, &[("IDENTITY_ENDPOINT", "http://h")]));
        let emulator = MicrosoftAzureBuilder::new().with_use_emulator(true);
        assert!(is_signed_az(&emulator, &options, env(&[])));
    }
}

//! Decides whether requests to a bucket are signed, and with which keys.
//!
//! Machines of the clouds provide the keys of their role at a link-local address (169.254.169.254). Elsewhere a request
//! to that address takes seconds to fail. So it is made only where a setting (`credentials = "instance"`) or the
//! environment announces such a service. Without keys requests are unsigned, as public buckets expect.

use std::path::Path;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as S3Key};
use object_store::azure::{AzureConfigKey as AzKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey as GsKey};

use crate::place::OriginOptions;

/// Advice for an operator where the store refuses a request that was unsigned for want of keys.
pub(super) const S3_HINT: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the place's \
                                  credentials = \"instance\" where the machine has a role";
pub(super) const GS_HINT: &str = "set GOOGLE_APPLICATION_CREDENTIALS, or the place's credentials = \"instance\" where \
                                  the machine has a service account";
pub(super) const AZ_HINT: &str = "set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_KEY, or the place's credentials = \
                                  \"instance\" where the machine has an identity";

/// Returns whether there are keys for S3, or a service that is said to provide them.
pub(super) fn is_signed_s3(
    builder: &AmazonS3Builder,
    options: &OriginOptions,
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
pub(super) fn is_signed_gs(
    builder: &GoogleCloudStorageBuilder,
    options: &OriginOptions,
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
pub(super) fn is_signed_az(
    builder: &MicrosoftAzureBuilder,
    options: &OriginOptions,
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
    fn the_machine_is_asked_where_something_says_so() {
        let options = OriginOptions::default();
        let instance = OriginOptions { instance_credentials: true, ..OriginOptions::default() };
        let s3 = |options: &OriginOptions, pairs| is_signed_s3(&AmazonS3Builder::new(), options, env(pairs));
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

        let gs = |options: &OriginOptions, pairs| is_signed_gs(&GoogleCloudStorageBuilder::new(), options, env(pairs));
        assert!(!gs(&options, &[("HOME", "/nonexistent")]) && gs(&instance, &[]));
        assert!(gs(&options, &[("GCE_METADATA_HOST", "h")]));
        let az = |options: &OriginOptions, pairs| is_signed_az(&MicrosoftAzureBuilder::new(), options, env(pairs));
        assert!(!az(&options, &[]) && az(&instance, &[]) && az(&options, &[("IDENTITY_ENDPOINT", "http://h")]));
        let emulator = MicrosoftAzureBuilder::new().with_use_emulator(true);
        assert!(is_signed_az(&emulator, &options, env(&[])));
    }
}

//! The secret that the nodes of a cluster share. It signs registrations, so that a node shows a pass to nodes only. It signs passes, with which nodes read from homes also in places with access rules.
//! The node that the viewer asked has applied the rules.

use hmac::{Hmac, KeyInit as _, Mac as _};
use millpond_access::{
    Claims,
    keys::{Keys, Secret},
    sign,
    token::{self, Parties},
};
use millpond_cluster::GossipProof;
use sha2::{Digest as _, Sha256};
use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

/// Seconds for which a pass is valid, and after which a new one is made.
const VALID: u64 = 3600;
const RENEWED: u64 = 1200;
/// Subject of passes: no token of a viewer has it.
const SUBJECT: &str = "millpond-home";
/// Subject of the signatures of registrations.
const REGISTRATION: &str = "millpond-node";
/// Subject of passes of one request for the API of a node.
const CALL: &str = "millpond-api";
/// Seconds for which such a pass is valid: the clocks of two nodes may differ.
const CALL_VALID: u64 = 600;
/// The last field of a signed registration, before the signature.
const SIGNATURE: &str = ",\"signature\":\"";

/// The secret of a cluster.
pub(super) struct ClusterSecret {
    secret: Secret,
    keys: Keys,
    /// The key of proofs between nodes of a list.
    proofs: Hmac<Sha256>,
    /// The last pass, and when it was made, in seconds since 1970.
    pass: Mutex<(u64, Arc<str>)>,
}

impl std::fmt::Debug for ClusterSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClusterSecret")
    }
}

impl ClusterSecret {
    /// Reads the secret in a file.
    ///
    /// # Errors
    /// It can't be read, or is too short.
    pub(super) fn open(file: &Path) -> Result<Self, String> {
        let told = |error: &dyn std::fmt::Display| format!("cluster-secret {}: {error}", file.display());
        let bytes = millpond_settings::files::read(file).map_err(|error| told(&error))?;
        Self::new(&bytes).map_err(|error| told(&error))
    }

    pub(super) fn new(bytes: &[u8]) -> Result<Self, String> {
        let secret = Secret::parse(bytes).map_err(|error| error.to_string())?;
        let keys = Keys::parse(bytes).map_err(|error| error.to_string())?;
        let proofs = Hmac::new_from_slice(bytes.trim_ascii()).map_err(|error| error.to_string())?;
        Ok(Self { secret, keys, proofs, pass: Mutex::new((0, "".into())) })
    }

    /// A pass for requests to other nodes.
    pub(super) fn pass(&self) -> Option<Arc<str>> {
        let now = now();
        let mut pass = self.pass.lock().unwrap_or_else(PoisonError::into_inner);
        if pass.0.abs_diff(now) >= RENEWED {
            let sub = Some(SUBJECT.to_owned());
            let claims = Claims { exp: now + VALID, paths: None, net: None, jti: None, sub, filter: None };
            *pass = (now, sign(&claims, &Parties::default(), &self.secret).ok()?.into());
        }
        Some(pass.1.clone())
    }

    /// Adds the signature to a registration, a JSON object, under a key of etcd.
    pub(super) fn signed(&self, key: &[u8], json: &str) -> Option<String> {
        // It ends with the lease of its key.
        let exp = u64::MAX >> 1;
        let (jti, sub) = (Some(digest(key, json.as_bytes())), Some(REGISTRATION.to_owned()));
        let claims = Claims { exp, paths: None, net: None, jti, sub, filter: None };
        let signature = sign(&claims, &Parties::default(), &self.secret).ok()?;
        Some(format!("{}{SIGNATURE}{signature}\"}}", json.strip_suffix('}')?))
    }

    /// Whether this secret signed a registration under a key of etcd.
    pub(super) fn has_signed(&self, key: &[u8], value: &[u8]) -> bool {
        let parts = || std::str::from_utf8(value).ok()?.strip_suffix("\"}")?.rsplit_once(SIGNATURE);
        let Some((json, signature)) = parts() else { return false };
        let read = token::read(signature, &self.keys, &Parties::default());
        read.is_ok_and(|claims| {
            let digest = digest(key, format!("{json}}}").as_bytes());
            claims.sub.as_deref() == Some(REGISTRATION) && claims.jti.as_deref() == Some(digest.as_str())
        })
    }

    /// A pass of one request for the API of a node.
    pub(super) fn pass_of_call(&self, head: &str, body: &[u8]) -> Option<String> {
        let (jti, sub) = (Some(digest(head.as_bytes(), body)), Some(CALL.to_owned()));
        let claims = Claims { exp: now() + CALL_VALID, paths: None, net: None, jti, sub, filter: None };
        sign(&claims, &Parties::default(), &self.secret).ok()
    }

    /// Whether a token is the pass of a request for the API of this node.
    pub(super) fn admits_call(&self, token: &str, head: &str, body: &[u8]) -> bool {
        let read = token::read(token, &self.keys, &Parties::default());
        read.is_ok_and(|claims| {
            let digest = digest(head.as_bytes(), body);
            claims.sub.as_deref() == Some(CALL) && claims.jti.as_deref() == Some(digest.as_str())
        })
    }

    /// The proof of a question or an answer between nodes of a list: of its words, and of its body.
    pub(super) fn proof(&self, words: &str, body: &[u8]) -> GossipProof {
        GossipProof(self.hash(words, body).finalize().into_bytes().into())
    }

    /// Whether a proof is that of a question or an answer.
    pub(super) fn has_proved(&self, proof: &GossipProof, words: &str, body: &[u8]) -> bool {
        // The comparison takes the same time wherever they differ.
        self.hash(words, body).verify_slice(&proof.0).is_ok()
    }

    fn hash(&self, words: &str, body: &[u8]) -> Hmac<Sha256> {
        let mut hash = self.proofs.clone();
        hash.update(words.as_bytes());
        hash.update(body);
        hash
    }

    /// Whether a token is the pass of a node.
    pub(super) fn admits(&self, token: &str) -> bool {
        let read = token::read(token, &self.keys, &Parties::default());
        read.is_ok_and(|claims| claims.sub.as_deref() == Some(SUBJECT))
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The hash of a registration and its key, or of a request and its head.
fn digest(key: &[u8], value: &[u8]) -> String {
    let mut hash = Sha256::new();
    // Keys and heads have no zero bytes.
    [key, &[0], value].into_iter().for_each(|part| hash.update(part));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"a secret of thirty-two bytes....";

    #[test]
    fn nodes_with_one_secret_admit_each_other() {
        let (a, b) = (ClusterSecret::new(SECRET).unwrap(), ClusterSecret::new(SECRET).unwrap());
        let other = ClusterSecret::new(b"another secret of 32 bytes......").unwrap();
        let pass = a.pass().unwrap();
        assert!(b.admits(&pass) && !other.admits(&pass) && !b.admits("") && !b.admits("eyJ.a.b"));
        assert_eq!(a.pass().unwrap(), pass, "one pass serves many requests");
        let (exp, sub) = (u64::MAX >> 1, Some("ann".into()));
        let viewer = Claims { exp, paths: None, net: None, jti: None, sub, filter: None };
        assert!(!b.admits(&sign(&viewer, &Parties::default(), &b.secret).unwrap()));
        assert!(ClusterSecret::new(b"short").is_err());
    }

    #[test]
    fn a_pass_of_a_call_holds_for_that_call_alone() {
        let (a, b) = (ClusterSecret::new(SECRET).unwrap(), ClusterSecret::new(SECRET).unwrap());
        let pass = a.pass_of_call("a b PUT /x", b"{}").unwrap();
        assert!(b.admits_call(&pass, "a b PUT /x", b"{}"));
        assert!(!b.admits_call(&pass, "a b PUT /y", b"{}") && !b.admits_call(&pass, "a b PUT /x", b"[]"));
        assert!(!b.admits(&pass), "it is no pass for homes");
        assert!(!b.admits_call(&a.pass().unwrap(), "a b PUT /x", b"{}"), "the pass for homes is none of a call");
    }

    #[test]
    fn a_proof_holds_for_its_words_and_its_body_alone() {
        let (a, b) =
            (ClusterSecret::new(SECRET).unwrap(), ClusterSecret::new(b" a secret of thirty-two bytes....\n").unwrap());
        let other = ClusterSecret::new(b"another secret of 32 bytes......").unwrap();
        let proof = a.proof("words\n", b"body");
        assert!(b.has_proved(&proof, "words\n", b"body"), "white space around the secret does not count");
        assert!(!other.has_proved(&proof, "words\n", b"body"));
        assert!(!b.has_proved(&proof, "other\n", b"body") && !b.has_proved(&proof, "words\n", b"bodies"));
        assert!(!b.has_proved(&GossipProof::default(), "words\n", b"body"));
    }
}

use super::*;
use crate::{ClientLimitSettings, CorsOrigins, ExternalSettings, Gates, KeySource, keys, sign, token::Parties};
use millpond_connections::proxies::ProxySettings;
use millpond_library::Places;
use prometheus_client::registry::Registry;
use url::Url;

const SECRET: &[u8] = b"a secret of thirty-two bytes....";
const FILM: &str = "films/a.mp4";

fn settings() -> AccessSettings {
    AccessSettings {
        users: None,
        keys: None,
        parties: Parties::default(),
        networks: Vec::new(),
        revoked: None,
        external: ExternalSettings::default(),
        cors: CorsOrigins::All,
    }
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

/// The rules of a server with the place `films`.
fn gates(films: &AccessSettings, before: Option<&Gates>) -> Gates {
    let limits = ClientLimitSettings {
        requests: None,
        connections: None,
        streams: None,
        token_requests: None,
        token_streams: None,
        burst: 1,
    };
    let metrics = AccessMetrics::register(&mut Registry::default());
    let rules = (&[films][..], &settings());
    Gates::open(
        Places::new(["films".into()]),
        rules,
        (&limits, &Arc::default(), &ProxySettings::default()),
        &metrics,
        before,
    )
    .unwrap()
}

fn token(claims: Claims) -> String {
    sign(&claims, &Parties::default(), &keys::Secret::parse(SECRET).unwrap()).unwrap()
}

fn here() -> IpAddr {
    "10.0.0.1".parse().unwrap()
}

fn rtsp(gates: &Gates, begins: bool, address: &str) -> RtspDecision {
    let (address, action) = (address.parse().unwrap(), AuthAction::Read);
    let asker =
        AskingClient { address, action, protocol: "rtsp", token: None, query: "", authorization: None, agent: None };
    gates.rtsp((FILM, begins), FILM, &asker)
}

#[test]
fn a_reload_keeps_what_was_read_from_the_same_source() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("revoked");
    std::fs::write(&list, "a2").unwrap();
    let mut films = settings();
    films.keys = Some(KeySource::Url(url("https://login.example/keys")));
    films.external.url = Some(url("http://127.0.0.1:1/"));
    films.revoked = Some(list.clone());
    let first = gates(&films, None);
    let known = first.of(FILM).unwrap().clone();
    let exp = seconds() + 60;
    let token = token(Claims { exp, paths: None, net: None, jti: Some("a1".into()), sub: None, filter: None });
    let decide = |gate: &Gate| gate.decide(FILM, here(), Some(&token)).map(|pass| pass.is_some());
    assert_eq!(decide(&known), Err(AccessRefusal::NoKeys));
    known.keys.as_ref().unwrap().replace(keys::Keys::parse(SECRET).unwrap());
    // Another setting changes: the server of the keys may be down now.
    films.cors = CorsOrigins::None;
    std::fs::write(&list, "a3").unwrap();
    let second = gates(&films, Some(&first));
    let gate = second.of(FILM).unwrap();
    assert!(!Arc::ptr_eq(gate, &known));
    assert_eq!(decide(gate), Ok(true));
    let same = |of: fn(&Gate) -> *const ()| of(gate) == of(&known);
    assert!(
        same(|gate| Arc::as_ptr(gate.revoked.as_ref().unwrap()).cast()),
        "what is being sent ends by the same list"
    );
    assert!(same(|gate| Arc::as_ptr(gate.external.as_ref().unwrap()).cast()), "decisions outlive an outage");
    let lists = known.revoked.as_ref().unwrap();
    assert!(lists.has("a3") && !lists.has("a2"), "files are read again");
    // Another source is read anew.
    films.parties.audience = Some("edge".to_owned());
    assert_eq!(decide(gates(&films, Some(&second)).of(FILM).unwrap()), Err(AccessRefusal::NoKeys));
}

#[test]
fn networks_alone_do_not_stand_for_a_password() {
    let mut films = settings();
    films.networks = vec![Network::parse("10.0.0.0/8").unwrap()];
    let alone = gates(&films, None);
    for begins in [true, false] {
        // `rtsp-users` are asked for, where there are any.
        assert!(matches!(rtsp(&alone, begins, "10.0.0.1"), RtspDecision::Open), "{begins}");
    }
    assert!(matches!(rtsp(&alone, true, "192.0.2.1"), RtspDecision::Refused(AccessRefusal::Network)));
    films.keys = Some(KeySource::Url(url("https://login.example/keys")));
    let with_keys = gates(&films, None);
    assert!(matches!(rtsp(&with_keys, true, "10.0.0.1"), RtspDecision::Refused(AccessRefusal::Credentials(_))));
    assert!(matches!(rtsp(&with_keys, false, "10.0.0.1"), RtspDecision::Admitted(_)), "it belongs to a session");
}

#[test]
fn a_path_stands_for_the_credentials_of_a_query() {
    let mut films = settings();
    films.keys = Some(KeySource::Url(url("https://login.example/keys")));
    let in_path = |films: &AccessSettings, query: &str| gates(films, None).of(FILM).unwrap().in_path(query);
    assert_eq!(in_path(&films, "x=1&token=eyJ0.a.b").as_deref(), Some("eyJ0.a.b"));
    assert_eq!(
        (in_path(&films, "token=opaque"), in_path(&films, "token=eyJ/a.b"), in_path(&films, "")),
        Default::default()
    );
    films.external.url = Some(url("http://127.0.0.1:1/"));
    for query in ["token=opaque", "user=ann&pass=secret"] {
        assert_eq!(in_path(&films, query), carried(query));
    }
    assert_eq!(in_path(&films, "jwt=eyJ0.a.b&x=1").as_deref(), Some("eyJ0.a.b"));
    assert_eq!(in_path(&films, ""), None);
}

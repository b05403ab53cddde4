//! Sessions with scripted servers.

mod quirks;

use super::*;
use crate::{
    digest::{Algorithm, DigestRequest, Guard, Secret, nonce::Nonces},
    framing::ClientMessage,
    play::NptRange,
};

const URL: &str = "rtsp://10.0.0.7:8554/door";
const SDP: &str = "v=0\r\na=control:*\r\na=range:npt=0-30\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n\
    a=control:v\r\nm=audio 0 RTP/AVP 0\r\na=control:a\r\n";
const UDP: Offer = Offer::Unicast { ports: (4588, 4589), destination: None };
const TCP: Offer = Offer::Interleaved(None);
const PUBLIC: &str = "200 OK\r\nPublic: OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER";

/// A request that a server received.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    url: String,
    number: String,
    session: Option<String>,
    transport: String,
    range: Option<String>,
    authorization: Option<String>,
}

/// A client, its connection and its clock.
struct Peer {
    client: RtspClient,
    input: BytesMut,
    now: Duration,
    /// Actions other than `Send`.
    actions: Vec<ClientAction>,
}

impl Peer {
    fn new(url: &str, options: ClientOptions) -> Self {
        let client = RtspClient::new(url, options, Duration::ZERO).unwrap();
        Self { client, input: BytesMut::new(), now: Duration::ZERO, actions: Vec::new() }
    }

    /// Returns the requests of the client, and keeps its other actions.
    fn requests(&mut self) -> Vec<Asked> {
        let mut sent = BytesMut::new();
        while let Some(action) = self.client.poll() {
            match action {
                ClientAction::Send(bytes) => sent.extend_from_slice(&bytes),
                other => self.actions.push(other),
            }
        }
        let mut asked = Vec::new();
        while let Some(message) = framing::take(&mut sent).unwrap() {
            if let ClientMessage::Request(request) = message {
                asked.push(read(&request));
            }
        }
        assert!(sent.is_empty(), "only whole requests");
        asked
    }

    /// Returns the only request of the client.
    fn request(&mut self) -> Asked {
        let asked = self.requests();
        let [one] = &asked[..] else { panic!("{asked:?} {:?}", self.actions) };
        one.clone()
    }

    /// Sends bytes of the server; returns packets.
    fn hear(&mut self, bytes: impl AsRef<[u8]>) -> Vec<(u8, Bytes)> {
        self.input.extend_from_slice(bytes.as_ref());
        let mut media = Vec::new();
        while let Some(received) = self.client.receive(&mut self.input, self.now) {
            if let Received::Media { channel, bytes } = received {
                media.push((channel, bytes));
            }
        }
        media
    }

    /// Answers a request with a status line, headers and a body.
    fn answer(&mut self, asked: &Asked, status: &str, body: &str) {
        let number = &asked.number;
        let length = body.len();
        self.hear(format!("RTSP/1.0 {status}\r\nCSeq: {number}\r\nContent-Length: {length}\r\n\r\n{body}"));
    }

    /// Takes the next request, which must have this method, and answers it.
    fn expect(&mut self, method: &str, status: &str) -> Asked {
        let asked = self.request();
        assert_eq!(asked.method, method, "{:?}", self.actions);
        self.answer(&asked, status, if method == "DESCRIBE" { SDP } else { "" });
        asked
    }

    fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.client.tick(self.now);
    }

    /// Connects and gets the description.
    fn described(&mut self) {
        self.client.connected(self.now);
        self.expect("OPTIONS", PUBLIC);
        self.expect("DESCRIBE", "200 OK");
        assert!(self.requests().is_empty());
        assert!(matches!(self.actions.last(), Some(ClientAction::Described(_))), "{:?}", self.actions);
    }

    /// Opens a session on the connection, with a timeout of 60 s, and plays.
    fn playing(&mut self) {
        self.described();
        self.client.set_up(&[(0, TCP)], self.now);
        self.expect("SETUP", "200 OK\r\nSession: s1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1");
        self.client.play(None, self.now);
        self.expect("PLAY", "200 OK");
        assert!(self.requests().is_empty());
        assert!(matches!(self.actions.last(), Some(ClientAction::Playing(_))), "{:?}", self.actions);
    }

    /// Returns the error of the client.
    fn error(&mut self) -> ClientError {
        self.requests();
        match self.actions.pop() {
            Some(ClientAction::Failed(error)) => error,
            other => panic!("{other:?}"),
        }
    }
}

fn read(request: &crate::message::Request<Vec<u8>>) -> Asked {
    use crate::message::headers;
    let header = |name| request.header(name).map(|value| value.as_str().to_owned());
    Asked {
        method: <&str>::from(request.method()).to_owned(),
        url: request.request_uri().map_or("*", |url| url.as_str()).to_owned(),
        number: header(&headers::CSEQ).unwrap(),
        session: header(&headers::SESSION),
        transport: header(&headers::TRANSPORT).unwrap_or_default(),
        range: header(&headers::RANGE),
        authorization: header(&headers::AUTHORIZATION),
    }
}

fn options() -> ClientOptions {
    ClientOptions::new("test")
}

#[test]
fn a_session_has_all_its_steps() {
    let mut peer = Peer::new(URL, options());
    assert_eq!(peer.requests().len(), 0);
    let endpoint = Endpoint { host: "10.0.0.7".into(), port: 8554, is_tls: false };
    assert_eq!(peer.actions, [ClientAction::Connect(endpoint)]);
    peer.described();
    peer.client.set_up(&[(0, UDP), (1, UDP)], peer.now);
    let transport = "RTP/AVP;unicast;client_port=4588-4589;server_port=6-7";
    let asked = peer.expect("SETUP", &format!("200 OK\r\nSession: s1;timeout=20\r\nTransport: {transport};ssrc=0A"));
    assert_eq!((asked.url.as_str(), asked.session), ("rtsp://10.0.0.7:8554/door/v", None));
    assert_eq!(asked.transport, "RTP/AVP;unicast;client_port=4588-4589");
    let asked = peer.expect("SETUP", &format!("200 OK\r\nSession: s1;timeout=20\r\nTransport: {transport}"));
    assert_eq!((asked.url.as_str(), asked.session.as_deref()), ("rtsp://10.0.0.7:8554/door/a", Some("s1")));
    assert!(peer.requests().is_empty());
    let transport = TrackTransport::Unicast { server: Some((6, 7)), source: None };
    let tracks = [(0, Some(10)), (1, None)].map(|(stream, ssrc)| ClientTrack {
        stream,
        transport,
        ssrc,
        profile: RtpProfile::Avp,
    });
    assert_eq!(peer.actions.last(), Some(&ClientAction::Opened(tracks.to_vec())));

    peer.client.play(Some(1.5), peer.now);
    let info = "url=rtsp://10.0.0.7:8554/door/v;seq=7;rtptime=8";
    let asked = peer.expect("PLAY", &format!("200 OK\r\nRange: npt=1.5-30\r\nRTP-Info: {info}"));
    assert_eq!((asked.url.as_str(), asked.range.as_deref()), (URL, Some("npt=1.500-")));
    assert!(peer.requests().is_empty());
    let playback = ClientPlayback {
        speed: None,
        range: Some(NptRange { from: Some(1.5), to: Some(30.0) }),
        starts: vec![RtpStart { sequence: Some(7), timestamp: Some(8) }, RtpStart::default()],
    };
    assert_eq!(peer.actions.last(), Some(&ClientAction::Playing(playback)));
    peer.client.pause(peer.now);
    peer.expect("PAUSE", "200 OK");
    assert!(peer.requests().is_empty());
    assert_eq!(peer.actions.last(), Some(&ClientAction::Paused));
    peer.client.tear_down(peer.now);
    assert_eq!(peer.expect("TEARDOWN", "200 OK").session.as_deref(), Some("s1"));
    assert!(peer.requests().is_empty());
    assert_eq!(peer.actions.last(), Some(&ClientAction::Closed));
    assert_eq!(peer.client.wake(), None);
}

#[test]
fn media_and_replies_share_the_connection() {
    let mut peer = Peer::new(URL, options());
    peer.playing();
    peer.client.pause(peer.now);
    let asked = peer.request();
    let reply = format!("$\0\0\x02ab$\x01\0\x01cRTSP/1.0 200 OK\r\nCSeq: {}\r\n\r\n$\0\0\x01d", asked.number);
    let media = peer.hear(&reply);
    assert_eq!(media, [(0, "ab".into()), (1, "c".into()), (0, "d".into())]);
    assert!(peer.requests().is_empty() && peer.actions.last() == Some(&ClientAction::Paused));
}

#[test]
fn digests_are_answered_and_renewed() {
    let epoch = Duration::from_secs(1_700_000_000);
    let guard =
        Guard::new("door", &[Algorithm::Md5, Algorithm::Sha256], Nonces::new(&[1; 32], Duration::from_secs(60)));
    let check = |asked: &Asked, at: u64| {
        let asked =
            DigestRequest { method: &asked.method, uri: &asked.url, authorization: asked.authorization.as_deref() };
        let secret = |user: &str, algorithm| Some(Secret::of(algorithm, user, "door", "secret"));
        guard.check(&asked, epoch + Duration::from_secs(at), secret)
    };
    let demand = |at: u64, stale: bool| {
        let challenges = guard.challenges(epoch + Duration::from_secs(at), at, stale);
        format!("401 Unauthorized\r\nWWW-Authenticate: {}\r\nWWW-Authenticate: {}", challenges[0], challenges[1])
    };
    let credentials = Credentials { user: "admin".into(), password: "secret".into() };
    let mut peer = Peer::new(URL, ClientOptions { credentials: Some(credentials), ..options() });
    peer.client.connected(peer.now);
    assert_eq!(peer.expect("OPTIONS", PUBLIC).authorization, None);
    peer.expect("DESCRIBE", &demand(0, false));
    let asked = peer.expect("DESCRIBE", "200 OK");
    assert_eq!(check(&asked, 1).unwrap().algorithm, Algorithm::Sha256);
    peer.client.set_up(&[(0, TCP)], peer.now);
    // The nonce has expired: answered at once, without another refusal of the password.
    let asked = peer.expect("SETUP", &demand(100, true));
    assert!(check(&asked, 100).unwrap_err().is_stale());
    let asked = peer.expect("SETUP", "200 OK\r\nSession: s1\r\nTransport: RTP/AVP/TCP;interleaved=0-1");
    assert!(check(&asked, 101).is_ok());
    peer.client.play(None, peer.now);
    let asked = peer.expect("PLAY", &demand(102, false));
    assert_eq!(check(&asked, 102).unwrap().qop.unwrap().count, 2);
    peer.expect("PLAY", &demand(103, false));
    let error = peer.error();
    assert!(matches!(error, ClientError::Status { request: RequestKind::Play, status: 401, .. }));
    assert_eq!(error.to_string(), format!("PLAY {URL}: 401 Unauthorized (wrong user or password)"));
}

#[test]
fn a_server_that_only_finds_nonces_stale_is_given_up() {
    let credentials = Credentials { user: "a".into(), password: "b".into() };
    let mut peer = Peer::new(URL, ClientOptions { credentials: Some(credentials), ..options() });
    peer.client.connected(peer.now);
    for _ in 0..3 {
        peer.expect("OPTIONS", "401 No\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\", stale=true");
    }
    assert!(peer.error().to_string().ends_with("401 No (every nonce has expired)"));
    let mut peer = Peer::new("rtsp://u:p@10.0.0.7/", options());
    peer.client.connected(peer.now);
    peer.expect("OPTIONS", "401 No\r\nWWW-Authenticate: Basic realm=r");
    assert!(peer.error().to_string().ends_with("rtsp://10.0.0.7/: 401 No (no credentials are configured)"));
}

#[test]
fn redirects_are_followed_within_the_rule() {
    let follow = |from: &str, to: &str, redirects| {
        let mut peer = Peer::new(from, ClientOptions { redirects, ..options() });
        peer.client.connected(peer.now);
        peer.expect("OPTIONS", PUBLIC);
        peer.expect("DESCRIBE", &format!("302 Moved\r\nLocation: {to}"));
        peer
    };
    use RedirectPolicy::{AnyHost, Refuse, SameHost};
    for (from, to, policy, host, port) in [
        (URL, "rtsp://10.0.0.7/b", SameHost, "10.0.0.7", 554),
        (URL, "/b", SameHost, "10.0.0.7", 8554),
        (URL, "rtsp://x:p@other:1/b", AnyHost, "other", 1),
        (URL, "rtsps://10.0.0.7/b", SameHost, "10.0.0.7", 322),
    ] {
        let mut peer = follow(from, to, policy);
        assert!(peer.requests().is_empty());
        let Some(ClientAction::Connect(endpoint)) = peer.actions.last() else { panic!("{:?}", peer.actions) };
        assert_eq!((endpoint.host.as_str(), endpoint.port), (host, port));
        peer.described();
    }
    for (from, to, policy, why) in [
        (URL, "rtsp://other/b", SameHost, "another host"),
        (URL, "rtsp://10.0.0.7/b", Refuse, "not followed"),
        ("rtsps://a/", "rtsp://a/b", AnyHost, "not encrypted"),
        (URL, "http://10.0.0.7/b", AnyHost, "no rtsp"),
        (URL, "", AnyHost, "no rtsp"),
    ] {
        let error = follow(from, to, policy).error();
        assert!(matches!(error, ClientError::Redirect { status: Some(302), .. }), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn redirects_end() {
    let mut peer = Peer::new(URL, options());
    for _ in 0..4 {
        peer.client.connected(peer.now);
        peer.expect("OPTIONS", &format!("301 Moved\r\nLocation: {URL}"));
        assert!(peer.requests().is_empty());
    }
    peer.client.connected(peer.now);
    peer.expect("OPTIONS", &format!("301 Moved\r\nLocation: {URL}"));
    assert!(peer.error().to_string().contains("one redirect too many"));
}

#[test]
fn credentials_stay_with_their_host() {
    let credentials = Some(Credentials { user: "a".into(), password: "b".into() });
    let redirects = RedirectPolicy::AnyHost;
    let mut peer = Peer::new(URL, ClientOptions { credentials, redirects, ..options() });
    peer.client.connected(peer.now);
    let demand = "401 No\r\nWWW-Authenticate: Basic realm=r";
    peer.expect("OPTIONS", demand);
    assert!(peer.expect("OPTIONS", "302 Moved\r\nLocation: rtsp://other/").authorization.is_some());
    peer.client.connected(peer.now);
    assert_eq!(peer.expect("OPTIONS", demand).authorization, None);
    assert!(peer.error().to_string().contains("no credentials"));
}

#[test]
fn servers_may_send_a_playing_client_elsewhere() {
    let mut peer = Peer::new(URL, options());
    peer.playing();
    peer.hear("REDIRECT rtsp://10.0.0.7:8554/door RTSP/1.0\r\nCSeq: 9\r\nLocation: rtsp://10.0.0.7:1/b\r\n\r\n");
    assert_eq!(peer.request().method, "TEARDOWN");
    assert!(matches!(peer.actions.last(), Some(ClientAction::Connect(Endpoint { port: 1, .. }))));
    peer.input.clear();
    peer.playing();
    peer.hear("TEARDOWN rtsp://10.0.0.7:8554/door RTSP/1.0\r\nCSeq: 9\r\n\r\n");
    assert_eq!(peer.error(), ClientError::Ended { url: "rtsp://10.0.0.7:1/b".into() });
}

#[test]
fn tracks_go_over_the_connection_where_udp_is_refused() {
    let mut peer = Peer::new(URL, options());
    peer.described();
    peer.client.set_up(&[(0, UDP), (1, UDP)], peer.now);
    peer.expect("SETUP", "461 Unsupported Transport");
    let asked = peer.expect("SETUP", "200 OK\r\nSession: s\r\nTransport: RTP/AVP/TCP;unicast;interleaved=4-5");
    assert_eq!(asked.transport, "RTP/AVP/TCP;unicast;interleaved=0-1");
    assert_eq!(peer.expect("SETUP", "200 OK").transport, "RTP/AVP/TCP;unicast;interleaved=2-3");
    assert!(peer.requests().is_empty());
    let Some(ClientAction::Opened(tracks)) = peer.actions.last() else { panic!("{:?}", peer.actions) };
    let transports: Vec<_> = tracks.iter().map(|track| track.transport).collect();
    assert_eq!(transports, [(4, 5), (2, 3)].map(|channels| TrackTransport::Interleaved { channels }));

    let mut peer = Peer::new(URL, ClientOptions { falls_back: false, ..options() });
    peer.described();
    peer.client.set_up(&[(0, UDP)], peer.now);
    peer.expect("SETUP", "461 Unsupported Transport");
    assert_eq!(peer.error().to_string(), format!("SETUP {URL}/v: 461 Unsupported Transport"));
}

#[test]
fn every_request_has_a_time_limit() {
    let mut peer = Peer::new(URL, options());
    assert_eq!(peer.client.wake(), Some(Duration::from_secs(10)));
    peer.wait(10);
    assert_eq!(peer.error().to_string(), format!("connect {URL}: no reply in 10 s"));
    let mut peer = Peer::new(URL, options());
    peer.wait(9);
    peer.client.connected(peer.now);
    peer.wait(9);
    peer.expect("OPTIONS", PUBLIC);
    peer.wait(9);
    assert_eq!(peer.request().method, "DESCRIBE");
    peer.wait(1);
    assert!(matches!(peer.error(), ClientError::Timeout { request: RequestKind::Describe, .. }));
    peer.client.tear_down(peer.now);
    assert!(peer.requests().is_empty(), "there is no session");
    assert_eq!(peer.actions.last(), Some(&ClientAction::Closed));
}

#[test]
fn leaving_abandons_the_request_under_way() {
    let mut peer = Peer::new(URL, options());
    peer.playing();
    peer.client.pause(peer.now);
    let pause = peer.request();
    peer.client.tear_down(peer.now);
    peer.client.tear_down(peer.now);
    let asked = peer.request();
    peer.answer(&pause, "200 OK", "");
    assert!(peer.requests().is_empty() && peer.actions.last() != Some(&ClientAction::Closed));
    peer.answer(&asked, "200 OK", "");
    assert!(peer.requests().is_empty() && peer.actions.last() == Some(&ClientAction::Closed));
    peer.client.disconnected("the server closed the connection");
    assert!(peer.requests().is_empty() && peer.actions.last() == Some(&ClientAction::Closed));
}

#[test]
fn failed_sessions_can_be_torn_down_while_there_is_a_connection() {
    for is_lost in [false, true] {
        let mut peer = Peer::new(URL, options());
        peer.playing();
        peer.client.pause(peer.now);
        peer.expect("PAUSE", "405 Method Not Allowed");
        assert!(matches!(peer.error(), ClientError::Status { status: 405, .. }));
        if is_lost {
            peer.client.disconnected("reset");
        }
        peer.client.tear_down(peer.now);
        let methods: Vec<_> = peer.requests().into_iter().map(|asked| asked.method).collect();
        assert_eq!(methods.len(), usize::from(!is_lost), "{methods:?}");
    }
}

#[test]
fn early_feedback_is_asked_for_where_it_is_of_use() {
    let sdp = SDP.replace("a=control:v\r\n", "a=rtcp-fb:96 nack\r\na=control:v\r\n");
    let both = "RTP/AVPF;unicast;client_port=4588-4589,RTP/AVP;unicast;client_port=4588-4589";
    for (uses_feedback, offer, expected) in [
        (true, UDP, both),
        (false, UDP, "RTP/AVP;unicast;client_port=4588-4589"),
        (true, TCP, "RTP/AVP/TCP;unicast;interleaved=0-1"),
    ] {
        let mut peer = Peer::new(URL, ClientOptions { uses_feedback, ..options() });
        peer.client.connected(peer.now);
        peer.expect("OPTIONS", PUBLIC);
        let asked = peer.request();
        peer.answer(&asked, "200 OK", &sdp);
        peer.client.set_up(&[(0, offer)], peer.now);
        let first = expected.split(',').next().unwrap().to_owned();
        let asked = peer.expect("SETUP", &format!("200 OK\r\nSession: s1\r\nTransport: {first}"));
        assert_eq!(asked.transport, expected);
        assert!(peer.requests().is_empty());
        let Some(ClientAction::Opened(tracks)) = peer.actions.pop() else { panic!("no tracks") };
        let is_feedback = tracks[0].profile == RtpProfile::Avpf;
        assert_eq!(is_feedback, expected == both);
    }
}

#[test]
fn a_publisher_announces_and_records() {
    let announcement = Announcement { description: "v=0\r\n".into(), controls: vec!["v".into(), "a".into()] };
    let options = ClientOptions::new("test");
    let client = RtspClient::publisher(URL, announcement, options, Duration::ZERO).unwrap();
    let mut peer = Peer { client, input: BytesMut::new(), now: Duration::ZERO, actions: Vec::new() };
    assert!(peer.requests().is_empty());
    peer.client.connected(Duration::ZERO);
    peer.expect("OPTIONS", PUBLIC);
    let announced = peer.expect("ANNOUNCE", "200 OK");
    assert_eq!(announced.url, URL);
    for (name, channels) in [("v", "0-1"), ("a", "2-3")] {
        let transport = format!("RTP/AVP/TCP;unicast;interleaved={channels};mode=record");
        let reply = format!("200 OK\r\nSession: 7;timeout=60\r\nTransport: {transport}");
        let asked = peer.expect("SETUP", &reply);
        assert_eq!((asked.url, asked.transport), (format!("{URL}/{name}"), transport));
    }
    let asked = peer.expect("RECORD", "200 OK");
    assert_eq!((asked.url.as_str(), asked.session.as_deref()), (URL, Some("7")));
    assert!(peer.requests().is_empty());
    let recording = peer.actions.iter().find(|action| matches!(action, ClientAction::Recording(_)));
    let Some(ClientAction::Recording(tracks)) = recording else { panic!("{:?}", peer.actions) };
    assert_eq!(tracks.len(), 2);
}

#[test]
fn a_publisher_that_is_refused_is_told_why() {
    let announcement = Announcement { description: "v=0\r\n".into(), controls: vec!["v".into()] };
    let client = RtspClient::publisher(URL, announcement, ClientOptions::new("test"), Duration::ZERO).unwrap();
    let mut peer = Peer { client, input: BytesMut::new(), now: Duration::ZERO, actions: Vec::new() };
    peer.requests();
    peer.client.connected(Duration::ZERO);
    peer.expect("OPTIONS", PUBLIC);
    peer.expect("ANNOUNCE", "403 Forbidden");
    peer.requests();
    let Some(ClientAction::Failed(error)) = peer.actions.pop() else { panic!("{:?}", peer.actions) };
    assert_eq!(error.to_string(), format!("ANNOUNCE {URL}: 403 Forbidden"));
}

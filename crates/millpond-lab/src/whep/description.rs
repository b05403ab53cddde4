//! Offers of viewers, and what of an answer they need (RFC 8829).

use millpond_webrtc::sdp::{Fingerprint, IceCredentials};
use std::net::{IpAddr, SocketAddr};

/// Writes the offer of a viewer that plays H.264 and Opus, from the address of its port.
pub(crate) fn offer(local: &IceCredentials, fingerprint: &Fingerprint, address: SocketAddr) -> String {
    let (ip, port) = (address.ip(), address.port());
    let family = if ip.is_ipv4() { "IP4" } else { "IP6" };
    let IceCredentials { ufrag, password } = local;
    let mut text = format!(
        "v=0\r\no=- {port} 1 IN {family} {ip}\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\na=msid-semantic: WMS\r\n"
    );
    for (mid, kind, types, formats) in [(0, "video", "102 103", PICTURES), (1, "audio", "111", SOUND)] {
        text += &format!(
            "m={kind} 9 UDP/TLS/RTP/SAVPF {types}\r\nc=IN IP4 0.0.0.0\r\na=mid:{mid}\r\na=ice-ufrag:{ufrag}\r\na=ice-pwd:{password}\r\n\
             a=fingerprint:sha-256 {fingerprint}\r\na=setup:actpass\r\na=recvonly\r\na=rtcp-mux\r\na=rtcp-rsize\r\n{formats}\
             a=candidate:1 1 udp 2130706431 {ip} {port} typ host\r\na=end-of-candidates\r\n"
        );
    }
    text
}

const PICTURES: &str = "\
a=rtpmap:102 H264/90000\r\n\
a=rtcp-fb:102 ccm fir\r\n\
a=rtcp-fb:102 nack\r\n\
a=rtcp-fb:102 nack pli\r\n\
a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f\r\n\
a=rtpmap:103 rtx/90000\r\n\
a=fmtp:103 apt=102\r\n";
const SOUND: &str = "a=rtpmap:111 opus/48000/2\r\na=fmtp:111 minptime=10;useinbandfec=1\r\n";

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Credentials of the server in ICE.
    pub(crate) remote: IceCredentials,
    /// Fingerprint of its certificate.
    pub(crate) fingerprint: Fingerprint,
    /// Whether the server begins the handshake of DTLS.
    pub(crate) is_active: bool,
    /// Addresses of its UDP ports, the preferred one first.
    pub(crate) candidates: Vec<SocketAddr>,
    /// Payload types of tracks, and the rates of their clocks. Those of repeated packets are left out.
    pub(crate) formats: Vec<(u8, u32)>,
}

impl Answer {
    /// Reads an answer.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let (mut ufrag, mut password, mut fingerprint, mut is_active) = (None, None, None, false);
        let (mut candidates, mut formats) = (Vec::new(), Vec::new());
        let mut is_rejected = false;
        for line in text.lines().map(str::trim) {
            if let Some(media) = line.strip_prefix("m=") {
                is_rejected = media.split(' ').nth(1) == Some("0");
            }
            let Some((name, value)) = line.strip_prefix("a=").and_then(|line| line.split_once(':')) else { continue };
            match name {
                _ if is_rejected => {}
                "ice-ufrag" => ufrag = ufrag.or(Some(value)),
                "ice-pwd" => password = password.or(Some(value)),
                "fingerprint" => fingerprint = fingerprint.or_else(|| value.parse().ok()),
                "setup" => is_active = value == "active",
                "candidate" => candidates.extend(candidate(value)),
                "rtpmap" => formats.extend(format(value)),
                _ => {}
            }
        }
        let missing = |name: &str| format!("the answer has no {name}");
        candidates.sort_by_key(|(priority, _)| std::cmp::Reverse(*priority));
        let mut addresses: Vec<SocketAddr> = candidates.into_iter().map(|(_, address)| address).collect();
        addresses.dedup();
        if addresses.is_empty() {
            return Err(missing("a=candidate of UDP with an IP address"));
        }
        if formats.is_empty() {
            return Err(missing("section that was accepted"));
        }
        Ok(Self {
            remote: IceCredentials {
                ufrag: ufrag.ok_or_else(|| missing("a=ice-ufrag"))?.to_owned(),
                password: password.ok_or_else(|| missing("a=ice-pwd"))?.to_owned(),
            },
            fingerprint: fingerprint.ok_or_else(|| missing("a=fingerprint of SHA-256"))?,
            is_active,
            candidates: addresses,
            formats,
        })
    }
}

/// Reads the priority and address of a candidate of UDP (RFC 8839 5.1).
fn candidate(value: &str) -> Option<(u32, SocketAddr)> {
    let words: Vec<&str> = value.split_ascii_whitespace().collect();
    let [_, "1", protocol, priority, host, port, "typ", ..] = words[..] else { return None };
    let host: IpAddr = host.parse().ok()?;
    let address = SocketAddr::new(host, port.parse().ok()?);
    protocol.eq_ignore_ascii_case("udp").then_some((priority.parse().ok()?, address))
}

/// Reads a payload type and the rate of its clock (RFC 8866 6.6).
fn format(value: &str) -> Option<(u8, u32)> {
    let (number, encoding) = value.split_once(' ')?;
    let mut parts = encoding.trim().split('/');
    let (name, rate) = (parts.next()?, parts.next()?);
    let is_track = !name.eq_ignore_ascii_case("rtx");
    is_track.then_some((number.parse().ok()?, rate.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_webrtc::sdp::PeerOffer;

    const SAMPLE: &str = include_str!("../../../millpond-webrtc/src/sdp/samples/answer.sdp");

    #[test]
    fn offers_are_those_that_servers_read() {
        let local = IceCredentials { ufrag: "viewer00".to_owned(), password: "password-of-22-bytes-x".to_owned() };
        let fingerprint = Fingerprint([7; 32]);
        for address in ["192.0.2.1:5000", "[2001:db8::1]:5000"] {
            let text = offer(&local, &fingerprint, address.parse().unwrap());
            let offer = PeerOffer::read(text.as_bytes()).unwrap();
            assert_eq!((&offer.remote, offer.fingerprint), (&local, fingerprint));
            let formats: Vec<usize> = offer.sections.iter().map(|section| section.formats.len()).collect();
            assert_eq!(formats, [2, 1]);
        }
    }

    #[test]
    fn the_answer_of_the_server_is_read() {
        let answer = Answer::read(SAMPLE).unwrap();
        assert_eq!(answer.remote.ufrag, "serverUfrag");
        assert_eq!(answer.remote.password, "serverPasswordOf24bytes0");
        assert_eq!(answer.fingerprint, Fingerprint(std::array::from_fn(|at| at as u8)));
        assert!(!answer.is_active);
        // Neither TCP nor a name.
        assert_eq!(answer.candidates, ["203.0.113.7:8555", "[2001:db8::7]:8555"].map(|text| text.parse().unwrap()));
        assert_eq!(answer.formats, [(108, 90_000), (111, 48_000)]);
    }

    #[test]
    fn sections_that_were_rejected_say_nothing() {
        let text = SAMPLE.replace("m=audio 9", "m=audio 0").replace("setup:passive", "setup:active");
        let answer = Answer::read(&text).unwrap();
        assert_eq!((answer.formats, answer.is_active), (vec![(108, 90_000)], true));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (part, expected) in [
            ("a=ice-ufrag", "a=ice-ufrag"),
            ("a=ice-pwd", "a=ice-pwd"),
            ("a=fingerprint", "a=fingerprint"),
            ("a=candidate", "a=candidate"),
            ("a=rtpmap", "section"),
        ] {
            let problem = Answer::read(&SAMPLE.replace(part, "a=x")).unwrap_err();
            assert!(problem.contains(expected), "{part}: {problem}");
        }
    }
}

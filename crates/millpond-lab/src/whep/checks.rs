//! Checks of ICE by the side that made the offer (RFC 8445): it controls, and nominates with each check.

use hmac::{Hmac, KeyInit as _, Mac as _};
use is::stun::{StunMessage, TransId};
use millpond_webrtc::sdp::IceCredentials;
use sha1::Sha1;

/// Priority of the address that a check comes from, where the peer did not know it (RFC 8445 5.1.2.1).
const PEER_REFLEXIVE: u32 = (110 << 24) | (0xffff << 8) | 255;
/// Bytes of the longest check: names of both sides have up to 256 each.
const CHECK: usize = 768;

/// Makes a check.
pub(crate) fn request(local: &IceCredentials, remote: &IceCredentials, tie_breaker: u64) -> Option<Vec<u8>> {
    let user = format!("{}:{}", remote.ufrag, local.ufrag);
    let message = StunMessage::binding_request(&user, TransId::new(), true, tie_breaker, PEER_REFLEXIVE, true);
    let mut bytes = vec![0; CHECK];
    let length = message.to_bytes(Some(remote.password.as_bytes()), &mut bytes, hmac_sha1).ok()?;
    bytes.truncate(length);
    Some(bytes)
}

/// Whether a datagram is the peer's answer to a check.
pub(crate) fn is_answer(datagram: &[u8], remote: &IceCredentials) -> bool {
    StunMessage::parse(datagram).is_ok_and(|message| {
        message.is_successful_binding_response() && message.verify(remote.password.as_bytes(), hmac_sha1)
    })
}

fn hmac_sha1(key: &[u8], parts: &[&[u8]]) -> [u8; 20] {
    // A key of any length is valid (RFC 2104 3).
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(key) else { return [0; 20] };
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_webrtc::ice;

    #[test]
    fn the_server_answers_and_nominates() {
        let credentials = |name: &str| IceCredentials {
            ufrag: format!("{name}-ufrag"),
            password: format!("{name}-password-of-22-bytes"),
        };
        let (server, viewer) = (credentials("server"), credentials("viewer"));
        let bytes = request(&viewer, &server, 7).unwrap();
        assert_eq!(ice::name_of_check(&bytes).as_deref(), Some("server-ufrag"));
        let check = ice::check(&bytes, "192.0.2.1:5000".parse().unwrap(), &server, &viewer).unwrap();
        assert!(check.nominates && is_answer(&check.answer, &server));
        assert!(!is_answer(&check.answer, &viewer), "another password");
        assert!(!is_answer(&bytes, &server), "a check is no answer");
    }
}

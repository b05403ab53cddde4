//! Many packets of one socket in one system call (`recvmmsg`), each with the time at which the kernel got it.

use nix::sys::{
    socket::{ControlMessageOwned, MsgFlags, MultiHeaders, recvmmsg},
    time::TimeSpec,
};
use std::{io::IoSliceMut, net::UdpSocket, os::fd::AsRawFd as _, time::Duration};

/// Buffers for one call, used again for the next.
pub(crate) struct Batch<const PACKETS: usize> {
    buffers: Vec<u8>,
    /// Bytes kept of each packet.
    kept: usize,
    headers: MultiHeaders<()>,
}

/// A received packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    /// As much of it as is kept.
    pub(crate) bytes: &'a [u8],
    /// How long it is.
    pub(crate) length: usize,
    /// When the kernel got it, since 1970; none where the kernel doesn't say.
    pub(crate) stamp: Option<Duration>,
}

impl<const PACKETS: usize> Batch<PACKETS> {
    /// Bytes that are kept of each packet.
    pub(crate) fn new(kept: usize) -> Self {
        Self { buffers: vec![0; PACKETS * kept], kept, headers: headers(PACKETS) }
    }

    /// Takes all that wait. Never blocks; a socket that fails has nothing.
    pub(crate) fn receive(&mut self, socket: &UdpSocket, mut each: impl FnMut(Packet<'_>)) {
        loop {
            let (came, has_stamps) = self.once(socket, &mut each);
            if !has_stamps {
                // The headers still say how little there was of control data: the next call would get none.
                self.headers = headers(PACKETS);
            }
            if came < PACKETS {
                return;
            }
        }
    }

    /// Makes one call. Returns the number of packets, and whether all have a time.
    fn once(&mut self, socket: &UdpSocket, each: &mut impl FnMut(Packet<'_>)) -> (usize, bool) {
        let mut buffers = self.buffers.chunks_exact_mut(self.kept);
        let mut slices: [[IoSliceMut<'_>; 1]; PACKETS] =
            std::array::from_fn(|_| [IoSliceMut::new(buffers.next().unwrap_or_default())]);
        // The length is that of the packet, not of what is kept of it.
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
        let Ok(packets) = recvmmsg(socket.as_raw_fd(), &mut self.headers, slices.iter_mut(), flags, None) else {
            return (0, true);
        };
        let (mut came, mut has_stamps) = (0, true);
        for packet in packets {
            came += 1;
            let stamp = packet.cmsgs().ok().into_iter().flatten().find_map(|control| match control {
                ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
                _ => None,
            });
            has_stamps &= stamp.is_some();
            let bytes = packet.iovs().next().unwrap_or_default();
            each(Packet { bytes, length: packet.bytes, stamp });
        }
        (came, has_stamps)
    }
}

fn headers(packets: usize) -> MultiHeaders<()> {
    MultiHeaders::preallocate(packets, Some(nix::cmsg_space!(TimeSpec)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtsp::ports::Ports;
    use std::{net::Ipv4Addr, time::SystemTime};

    #[test]
    fn packets_come_with_their_length_and_time() {
        let ports = Ports::open(Ipv4Addr::LOCALHOST.into()).unwrap();
        // The kernel begins to note times a moment after the first socket that asks for them.
        std::thread::sleep(Duration::from_millis(100));
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut batch = Batch::<4>::new(8);
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        for round in 0..3 {
            let mut times = Vec::new();
            for size in 0..10_u8 {
                times.push(now());
                sender.send_to(&vec![size; 100 * usize::from(size)], ("127.0.0.1", ports.numbers.0)).unwrap();
            }
            // However late the port is read.
            std::thread::sleep(Duration::from_millis(300));
            let mut sizes = Vec::new();
            batch.receive(&ports.rtp, |packet| {
                let (place, stamp) = (sizes.len(), packet.stamp.unwrap());
                assert!(packet.bytes.len() <= 8 && packet.bytes.iter().all(|byte| usize::from(*byte) == place));
                let after = stamp.saturating_sub(times[place]);
                assert!(stamp + Duration::from_millis(1) > times[place], "{round}: before it was sent");
                assert!(after < Duration::from_millis(250), "{round}: {after:?} after it was sent");
                sizes.push(packet.length);
            });
            assert_eq!(sizes, (0..10).map(|size| 100 * size).collect::<Vec<_>>(), "{round}");
        }
        batch.receive(&ports.rtp, |_| panic!("nothing waits"));
    }
}

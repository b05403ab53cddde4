//! Descriptions in the styles of devices and servers, and the formats in them.

/// Name, description, and the summary of each stream.
pub(super) const ROWS: [(&str, &str, &[&str]); 12] = [
    (
        "Hikvision",
        "v=0
o=- 1109162014219182 1109162014219192 IN IP4 192.0.2.64
s=Media Presentation
e=NONE
b=AS:5050
t=0 0
a=control:rtsp://192.0.2.64/Streaming/Channels/101/
m=video 0 RTP/AVP 96
c=IN IP4 0.0.0.0
b=AS:5000
a=recvonly
a=x-dimensions:640,480
a=control:rtsp://192.0.2.64/Streaming/Channels/101/trackID=1
a=rtpmap:96 H264/90000
a=fmtp:96 profile-level-id=420029; packetization-mode=1; sprop-parameter-sets=Z00AHpWoKA9k,aO48gA==
m=audio 0 RTP/AVP 8
c=IN IP4 0.0.0.0
b=AS:50
a=control:rtsp://192.0.2.64/Streaming/Channels/101/trackID=2
a=rtpmap:8 PCMA/8000
a=Media_header:MEDIAINFO=494D4B48010200000400000111710110401F000000FA000000000000000000000000000000000000;
a=appversion:1.0
",
        &["v1 avc1.4d001e 90000 640x480", "a1 alaw 8000"],
    ),
    (
        "Axis, with metadata",
        "v=0
o=- 1188340656180883 1 IN IP4 192.0.2.65
s=Session streamed with GStreamer
i=rtsp-server
t=0 0
a=tool:GStreamer
a=range:npt=now-
m=video 0 RTP/AVP 96
b=AS:50000
a=rtpmap:96 H264/90000
a=fmtp:96 packetization-mode=1;profile-level-id=4d001e;sprop-parameter-sets=Z00AHpWoKA9k,aO48gA==
a=ts-refclk:local
a=mediaclk:sender
a=framerate:30.000000
m=audio 0 RTP/AVP 97
a=rtpmap:97 MPEG4-GENERIC/16000/1
a=fmtp:97 streamtype=5;profile-level-id=2;mode=AAC-hbr;config=1408;sizelength=13;indexlength=3;indexdeltalength=3
m=application 0 RTP/AVP 98
a=rtpmap:98 vnd.onvif.metadata/90000
",
        &[
            "v1 avc1.4d001e 90000 640x480",
            "a1 mp4a.40.2 16000",
            "stream \"m=application RTP 98\" (vnd.onvif.metadata/90000): expected m=video or m=audio",
        ],
    ),
    (
        "Dahua: odd spaces",
        "v=0
o=- 2252310609 2252310609 IN IP4 0.0.0.0
s=RTSP Session/2.0
t=0 0
a=packetization-supported:DH
m=video 0 RTP/AVP 96
a=control:trackID=0
a=rtpmap:96  H264/90000
a=fmtp:96  packetization-mode=1 ;profile-level-id=4D001E ;sprop-parameter-sets= Z00AHpWoKA9k , aO48gA== ;
m=audio 0 RTP/AVP 97
a=rtpmap:97 MPEG4-GENERIC/48000
a=fmtp:97 streamtype=5;profile-level-id=1;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config=1188
",
        &["v1 avc1.4d001e 90000 640x480", "a1 mp4a.40.2 48000"],
    ),
    (
        "FFmpeg",
        "v=0
o=- 0 0 IN IP4 127.0.0.1
s=No Name
t=0 0
m=video 5004 RTP/AVP 96
a=rtpmap:96 H264/90000
a=fmtp:96 packetization-mode=1; sprop-parameter-sets=Z2QADKzZQUGfnwEQAAADABAAAAMDIPFCmQ==,aOvjyyLA; profile-level-id=64000C
m=audio 5006 RTP/AVP 97
b=AS:128
a=rtpmap:97 MPEG4-GENERIC/48000/2
a=fmtp:97 profile-level-id=1;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3; config=119056E500
",
        &["v1 avc1.64000c 90000 320x180", "a1 mp4a.40.2 48000"],
    ),
    (
        "GStreamer",
        "v=0
s=Session streamed with GStreamer
m=video 0 RTP/AVP 96
a=rtpmap:96 VP8/90000
a=framesize:96 320-240
m=audio 0 RTP/AVP 97
a=rtpmap:97 OPUS/48000/2
a=fmtp:97 sprop-maxcapturerate=48000;sprop-stereo=0
m=audio 0 RTP/AVP 98
a=rtpmap:98 L24/96000/6
a=fmtp:98 channel-order=DV.LRLsRsCS
",
        &["in band", "a1 opus 48000", "a1 ipcm 96000"],
    ),
    (
        "live555: static types without rtpmap",
        "v=0
s=Session streamed by \"testOnDemandRTSPServer\"
m=audio 0 RTP/AVP 14
b=AS:96
a=control:track1
m=audio 0 RTP/AVP 0
m=audio 0 RTP/AVP 10
",
        &["in band", "a1 ulaw 8000", "a1 ipcm 44100"],
    ),
    (
        "MediaMTX",
        "v=0
s=Stream
m=video 0 RTP/AVP 97
a=rtpmap:97 AV1/90000
a=fmtp:97 profile=0;level-idx=0;tier=0
m=audio 0 RTP/AVP 98
a=rtpmap:98 opus/48000/2
a=fmtp:98 sprop-stereo=1
",
        &["in band", "a1 opus 48000"],
    ),
    (
        "sets only in band",
        "v=0
m=video 0 RTP/AVP 96
a=rtpmap:96 H264/90000
m=video 0 RTP/AVP 97
a=rtpmap:97 H265/90000
a=fmtp:97 profile-id=1
",
        &["in band", "in band"],
    ),
    (
        "sets that are unreadable, and sets with start codes",
        "v=0
m=video 0 RTP/AVP 96
a=rtpmap:96 H264/90000
a=fmtp:96 packetization-mode=0;sprop-parameter-sets=Z00A,,%%%
m=video 0 RTP/AVP 97
a=rtpmap:97 H264/90000
a=fmtp:97 sprop-parameter-sets=AAAAAWdNAB6VqCgPZA==,AAAAAWjuPIA=
",
        &["in band", "v1 avc1.4d001e 90000 640x480"],
    ),
    (
        "other modes",
        "v=0
m=video 0 RTP/AVP 96
a=rtpmap:96 H264/90000
a=fmtp:96 packetization-mode=2
m=audio 0 RTP/AVP 97
a=rtpmap:97 mpeg4-generic/48000/2
a=fmtp:97 mode=AAC-lbr;sizelength=6;config=1190
",
        &[
            "stream \"m=video RTP 96\" (h264/90000): \
             packetization-mode is \"2\", expected 0 or 1, not interleaved (RFC 6184 8.1)",
            "stream \"m=audio RTP 97\" (mpeg4-generic/48000): mode is \"AAC-lbr\", expected AAC-hbr (RFC 3640 3.3.6)",
        ],
    ),
    (
        "AAC without a configuration, and with an invalid one",
        "v=0
m=audio 0 RTP/AVP 97
a=rtpmap:97 mpeg4-generic/44100/2
a=fmtp:97 mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3
m=audio 0 RTP/AVP 98
a=rtpmap:98 mpeg4-generic/44100/2
a=fmtp:98 mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config=12
",
        &[
            "a1 mp4a.40.2 44100",
            "stream \"m=audio RTP 98\" (mpeg4-generic/44100): \
             AudioSpecificConfig at byte 0: found 0 bytes, expected 1: the file is cut short",
        ],
    ),
    (
        "payload formats that are not supported",
        "v=0
m=audio 0 RTP/AVP 97
a=rtpmap:97 MP4A-LATM/24000/2
a=fmtp:97 profile-level-id=15; object=2; cpresent=0; config=400026203fc0
m=video 0 RTP/AVP 26
",
        &[
            "a1 mp4a.40.2 24000",
            "stream \"m=video RTP 26\" (jpeg/90000): a=rtpmap is \"jpeg\", expected a supported payload format",
        ],
    ),
];

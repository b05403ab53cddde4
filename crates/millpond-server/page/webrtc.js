'use strict';

// Plays a running stream by WebRTC: signalling by WHEP.

// Codecs that WebRTC carries, by the forms of their names in tracks.
const RTC_CODECS = [
  [/^avc/, 'video/h264'], [/^(hvc|hev)/, 'video/h265'], [/^av01/, 'video/av1'], [/^vp0?9/, 'video/vp9'], [/^vp0?8/, 'video/vp8'],
  [/^opus/i, 'audio/opus'], [/^ulaw/, 'audio/pcmu'], [/^alaw/, 'audio/pcma'],
];

// Whether this browser plays pictures and sound of a stream by WebRTC, as far as the stream has them.
function webRtcPlays(tracks) {
  if (!window.RTCRtpReceiver) return false;
  const takes = (kind, codec) => {
    const names = RTC_CODECS.filter(([form]) => form.test(codec)).map(([, name]) => name);
    return RTCRtpReceiver.getCapabilities(kind)?.codecs.some(({ mimeType }) => names.includes(mimeType.toLowerCase()));
  };
  return ['video', 'audio'].every(kind => {
    const all = tracks.filter(t => t.kind === kind);
    // By WebRTC sound is sent as it came, not as the FLAC that it becomes elsewhere.
    return !all.length || all.some(track => takes(kind, track['stored-codec'] || track.codec));
  });
}

// Milliseconds until a connection must have its first picture or sound.
const CONNECTED_AFTER = 8000;

// A player of the stream whose offers `url` takes, on a video element. `tell` gets the words of a fault, or null once media arrives.
// A fault with `isFinal` is one that another attempt would not mend.
class WebRtcPlayer {
  constructor(element, url, tell) {
    Object.assign(this, { element, url, ends: new AbortController(), connection: null, session: null });
    this.tell = (words, isFinal = false) => this.ends.signal.aborted || tell(words, isFinal);
    this.run();
  }

  // Connects again and again until the player ends.
  async run() {
    let pause = AGAIN[0];
    while (!this.ends.signal.aborted) {
      try {
        await this.play();
        pause = AGAIN[0];
        this.tell('The connection has ended. Connecting again …');
      } catch (error) {
        if (this.ends.signal.aborted) return;
        this.tell(error.message, error.isFinal);
        if (error.isFinal) return;
      }
      this.leave();
      await wait(pause);
      pause = Math.min(2 * pause, AGAIN[1]);
    }
  }

  // Plays until the connection ends.
  async play() {
    const connection = new RTCPeerConnection();
    this.connection = connection;
    const stream = new MediaStream();
    for (const kind of ['video', 'audio']) {
      const { receiver } = connection.addTransceiver(kind, { direction: 'recvonly' });
      // Pictures are shown as soon as they are decoded: the network's own variation is all that is waited for.
      if ('jitterBufferTarget' in receiver) receiver.jitterBufferTarget = 0;
    }
    connection.addEventListener('track', ({ track }) => stream.addTrack(track));
    const { sdp } = await connection.createOffer();
    // Browsers take two channels of Opus only if the offer says so (RFC 7587 6.1).
    await connection.setLocalDescription({ type: 'offer', sdp: sdp.replace(/useinbandfec=1/g, '$&;stereo=1') });
    const reply = await fetch(this.url, {
      method: 'POST', headers: { 'Content-Type': 'application/sdp' }, body: connection.localDescription.sdp, signal: this.ends.signal,
    });
    const text = await reply.text();
    if (!reply.ok) {
      const isFinal = reply.status < 500 && reply.status !== 429;
      throw Object.assign(new Error(refusal(text, reply.status)), { isFinal });
    }
    this.session = new URL(reply.headers.get('Location'), reply.url).href;
    await connection.setRemoteDescription({ type: 'answer', sdp: text });
    this.element.srcObject = stream;
    this.element.play().catch(() => {});
    await this.connected(connection);
    this.tell(null);
    await new Promise(done => {
      const look = () => ['failed', 'closed', 'disconnected'].includes(connection.connectionState) && done();
      connection.addEventListener('connectionstatechange', look);
      this.ends.signal.addEventListener('abort', done);
    });
  }

  // Waits for the first media.
  async connected(connection) {
    const until = performance.now() + CONNECTED_AFTER;
    while (this.element.readyState < 2) {
      if (performance.now() > until) {
        const words = 'No media arrives by WebRTC. A firewall may close its UDP port.';
        throw Object.assign(new Error(words), { isFinal: connection.connectionState !== 'connected' });
      }
      await wait(0.05);
      this.ends.signal.throwIfAborted();
    }
  }

  // Seconds between the arrival of a picture and its display; null before the first one.
  async delay() {
    const reports = await this.connection?.getStats();
    const video = [...(reports?.values() || [])].find(report => report.type === 'inbound-rtp' && report.kind === 'video');
    if (!video?.jitterBufferEmittedCount) return null;
    return video.jitterBufferDelay / video.jitterBufferEmittedCount;
  }

  // Ends the session.
  leave() {
    this.connection?.close();
    if (this.session) fetch(this.session, { method: 'DELETE', keepalive: true }).catch(() => {});
    Object.assign(this, { connection: null, session: null });
  }

  destroy() {
    this.ends.abort();
    this.leave();
    this.element.srcObject = null;
  }
}

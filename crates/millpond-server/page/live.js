'use strict';

// Plays a running stream from one long response (stream.mp4) by Media Source Extensions, close to its newest frame.

// Seconds between the picture and the newest frame: what playing steers to, the same at most after stalls, and the step.
const NEAR = 0.3;
const NEAR_MOST = 1;
const NEAR_STEP = 0.1;
// Seconds above that: from where it plays faster, from where it jumps at the start, from where it jumps later.
const FAR = 0.1;
const BEHIND_AT_START = 0.2;
const BEHIND = 0.7;
// Playback rate that catches up, and the share of a measurement in the smoothed delay.
const FASTER = 1.1;
const SMOOTH = 0.2;
// Milliseconds: between two measurements; from the first media until the frames since the key frame are there; without a jump after
// one, and without a stall until the delay becomes less by a step.
const TICK = 100;
const START = 200;
const JUMP_REST = 2000;
const CALM = 30000;
// Seconds of media that stay before the picture.
const KEPT = 10;
// Seconds until a response that ended is asked for again: the first and the longest time.
const AGAIN = [0.5, 8];

const wait = seconds => new Promise(done => { setTimeout(done, seconds * 1000); });

// What the server says of a request that it refused, and what can be done about it.
function refusal(body, status) {
  const { message } = failure(body, status);
  // A path is not a word.
  const words = /^[a-z]+ /.test(message) ? message[0].toUpperCase() + message.slice(1) : message;
  return [/[.!?…]$/.test(words) ? words : `${words}.`, advice(state.asset, status)].filter(Boolean).join(' ');
}

function advice(asset, status) {
  // Other statuses are about this viewer, and say all themselves.
  if (!asset?.live || ![404, 502, 503, 504].includes(status)) return '';
  if (!asset['is-published']) return 'Check that the camera is on, and that its name in the address is right. The server\'s log has more.';
  return `Push the stream to ${address(asset.outputs.rtsp)}, with OBS or ffmpeg.`;
}

// A player of `url` on a video element. `tell` gets the words of a fault, or null once media arrives again.
class LongResponse {
  constructor(element, url, tell) {
    Object.assign(this, { element, url, ends: new AbortController(), source: new MediaSource(), buffer: null });
    Object.assign(this, { near: NEAR, behind: NEAR, began: Infinity, jumped: null, calm: Infinity });
    this.tell = (words, fault) => this.ends.signal.aborted || tell(words, fault);
    this.object = URL.createObjectURL(this.source);
    element.src = this.object;
    this.steering = setInterval(() => this.steer(), TICK);
    element.addEventListener('waiting', () => this.stalled(), { signal: this.ends.signal });
    this.run();
  }

  // Plays one response after the other. The server ends one when the formats change, and when it stops.
  async run() {
    await new Promise(done => { this.source.addEventListener('sourceopen', done, { once: true }); });
    let pause = AGAIN[0];
    while (!this.ends.signal.aborted) {
      try {
        if (await this.response()) pause = AGAIN[0];
        else this.tell('The stream has ended. Asking for it again …');
      } catch (error) {
        if (this.ends.signal.aborted) return;
        this.tell(error.message, error);
        if (error.isFinal) return;
      }
      await wait(pause);
      pause = Math.min(2 * pause, AGAIN[1]);
    }
  }

  // Plays one response to its end. Resolves with whether media came.
  async response() {
    const reply = await fetch(this.url, { signal: this.ends.signal });
    if (!reply.ok) throw new Error(`${refusal(await reply.text(), reply.status)} Asking again …`);
    this.prepare(reply.headers.get('Content-Type'));
    const reader = reply.body.getReader();
    let hasMedia = false;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return hasMedia;
      await this.changed(() => this.buffer.appendBuffer(value));
      if (!hasMedia && this.newest() !== null) {
        hasMedia = true;
        // It begins with a key frame, which may be old.
        Object.assign(this, { began: performance.now(), jumped: null, calm: performance.now() });
        this.tell(null);
        this.element.play().catch(() => {});
      }
      const from = this.element.currentTime - KEPT;
      if (this.buffer.buffered.length && this.buffer.buffered.start(0) < from - KEPT) {
        await this.changed(() => this.buffer.remove(0, from));
      }
    }
  }

  // Makes the buffer ready for a response. Each one begins at time 0, and follows the one before.
  prepare(type) {
    if (!MediaSource.isTypeSupported(type)) {
      throw Object.assign(new Error(`This browser can't decode ${type}. The addresses in the details play in VLC, mpv and other players.`), { isFinal: true, code: UNDECODABLE });
    }
    if (!this.buffer) {
      this.buffer = this.source.addSourceBuffer(type);
      return;
    }
    // The fragment that was cut off is forgotten.
    this.buffer.abort();
    this.buffer.changeType(type);
    this.buffer.timestampOffset = this.newest() ?? 0;
  }

  // Waits until a change of the buffer is complete.
  changed(change) {
    return new Promise((done, fail) => {
      this.buffer.onupdateend = done;
      this.buffer.onerror = () => fail(new Error(`This browser can't read ${this.url}.`));
      try { change(); } catch (error) { fail(error); }
    });
  }

  // Time of the newest frame; null before the first one.
  newest() {
    const { buffered } = this.buffer;
    return buffered.length ? buffered.end(buffered.length - 1) : null;
  }

  // Keeps the picture close to the newest frame.
  steer() {
    if (!this.buffer || this.newest() === null) return;
    const { element, near, buffer: { buffered } } = this;
    const [now, newest] = [performance.now(), this.newest()];
    if (now - this.began < START) return;
    const last = buffered.start(buffered.length - 1);
    const behind = newest - element.currentTime;
    // A hole is jumped over. A jump may miss: the beginning of what is buffered moves until pictures and sound have arrived.
    const isInHole = element.currentTime < last && element.readyState < 3;
    const isFirst = this.jumped === null;
    // Decoders that need long for a jump show pictures before the next one.
    const isLate = now - this.jumped > JUMP_REST && this.behind > near + BEHIND;
    const isTooFar = isFirst ? behind > near + BEHIND_AT_START : isLate;
    if (isInHole || isTooFar) element.currentTime = Math.max(last, newest - near);
    if (isFirst || element.seeking) {
      Object.assign(this, { jumped: now, behind: near });
      return;
    }
    // Frames arrive some at a time.
    this.behind += SMOOTH * (behind - this.behind);
    if (this.behind > near + FAR) element.playbackRate = FASTER;
    else if (this.behind <= near) element.playbackRate = 1;
    if (now - this.calm > CALM) this.keep(near - NEAR_STEP, now);
  }

  // Keeps more distance after the picture has waited for frames.
  stalled() {
    const now = performance.now();
    if (!this.element.seeking && now - this.began > JUMP_REST) this.keep(this.near + NEAR_STEP, now);
  }

  // Sets the distance to the newest frame.
  keep(near, now) {
    this.near = Math.min(NEAR_MOST, Math.max(NEAR, near));
    this.calm = now;
  }

  // Seconds between the picture and the newest frame that arrived; null before the first one.
  delay() {
    return this.buffer && this.newest() !== null ? Math.max(0, this.newest() - this.element.currentTime) : null;
  }

  destroy() {
    clearInterval(this.steering);
    this.ends.abort();
    this.element.playbackRate = 1;
    URL.revokeObjectURL(this.object);
  }
}

// ---- the server's clock

// Milliseconds by which it is ahead of this one; null where it is unknown.
let clockAhead = null;

async function compareClocks() {
  const asked = Date.now();
  const reply = await fetch(`${here}/.millpond/time`, { cache: 'no-store' }).catch(() => null);
  const time = reply && reply.ok ? Date.parse(await reply.text()) : NaN;
  clockAhead = Number.isNaN(time) ? null : time - (asked + Date.now()) / 2;
}

// Seconds since a moment (a Date) of the server's clock; null where one of them is unknown.
function secondsSince(date) {
  return date && clockAhead !== null ? (Date.now() + clockAhead - date.getTime()) / 1000 : null;
}

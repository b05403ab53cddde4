// Publishes a clock and a tone by WebRTC from Chromium, in each codec that it can send, and plays them in it.
// Then once more by TCP alone, as behind a firewall that lets no datagrams pass.
// Usage: node whip.mjs BASE_URL
// The server has the place `live` for publishers, and takes WebRTC by TCP too. Pages publish where they are the server's own.

import { Doubt, withoutDoubt } from './doubt.mjs';
import { installClock, launch, open, watch } from './live_players.mjs';

const [base] = process.argv.slice(2);
const browser = await launch();
let passed = 0;
let failed = 0;
let attempts = 0;

// Runs in a page: publishes, and leaves the connection in `window.publishing`.
async function publish([url, mimeType]) {
  const canvas = document.createElement('canvas');
  Object.assign(canvas, { width: 640, height: 360 });
  document.body.append(canvas);
  const context = canvas.getContext('2d');
  // The clock that `installClock` reads, and noise that needs bits.
  const draw = () => {
    const time = Date.now() % 86400000;
    const bits = time.toString(2).padStart(27, '0') + (time % 31).toString(2).padStart(5, '0');
    [...bits].forEach((bit, cell) => {
      context.fillStyle = bit === '1' ? '#fff' : '#000';
      context.fillRect(80 * (cell % 8), 90 * Math.floor(cell / 8), 80, 90);
    });
  };
  setInterval(draw, 33);
  const sound = new AudioContext();
  const [tone, out] = [sound.createOscillator(), sound.createMediaStreamDestination()];
  tone.connect(out);
  tone.start();
  const peer = new RTCPeerConnection();
  const [picture] = canvas.captureStream(30).getVideoTracks();
  const video = peer.addTransceiver(picture, { direction: 'sendonly' });
  peer.addTransceiver(out.stream.getAudioTracks()[0], { direction: 'sendonly' });
  if (mimeType) {
    const all = RTCRtpSender.getCapabilities('video').codecs;
    const of = all.filter(codec => [mimeType, 'video/rtx'].includes(codec.mimeType));
    if (!of.some(codec => codec.mimeType === mimeType)) return null;
    video.setCodecPreferences(of);
  }
  await peer.setLocalDescription();
  const reply = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/sdp' }, body: peer.localDescription.sdp });
  const answer = await reply.text();
  if (reply.status !== 201) throw new Error(`${reply.status} ${answer}`);
  await peer.setRemoteDescription({ type: 'answer', sdp: answer });
  window.publishing = { peer, session: new URL(reply.headers.get('Location'), url).href };
  return answer.match(/a=rtpmap:\d+ ([^/]+)/)[1];
}

// Runs in the page of a publisher: bits a second that the browser would send, and requests for key frames.
async function sending() {
  let [rate, asked, codec] = [0, 0];
  (await window.publishing.peer.getStats()).forEach(stats => {
    if (stats.type === 'candidate-pair' && stats.nominated) rate = stats.availableOutgoingBitrate ?? 0;
    if (stats.type === 'outbound-rtp' && stats.kind === 'video') asked = stats.pliCount;
    if (stats.type === 'codec' && stats.mimeType.startsWith('video')) codec = stats.mimeType;
  });
  return { rate, asked, codec };
}

async function attempt(mimeType, engines) {
  // A name of its own: the page of an earlier attempt may not have left yet.
  attempts += 1;
  const stream = `live/camera-${attempts}`;
  const page = await browser.newPage();
  try {
    await page.goto(`${base}/.millpond/time`);
    const chosen = await page.evaluate(publish, [`${base}/${stream}/whip`, mimeType]);
    if (!chosen) return 'skipped: this browser does not send it';
    const notes = [chosen];
    for (const engine of engines) {
      const player = await open(browser, engine, base, stream);
      await player.page.evaluate(installClock);
      const { faults, stalls, played, took, pictures } = await player.page.evaluate(watch, 3);
      const delay = await player.page.evaluate(() => {
        const read = window.readClock(window.playing.video);
        return read === null ? null : (Date.now() % 86400000) - read;
      });
      const sound = await player.page.evaluate(() => {
        const { video } = window.playing;
        return (video.srcObject?.getAudioTracks().length ?? 0) || video.webkitAudioDecodedByteCount > 0;
      });
      await player.page.close();
      const note = JSON.stringify({ engine, startup: player.startup, delay, stalls: stalls.length, pictures });
      if (faults.length) throw new Error(`${faults.join(', ')} ${note}`);
      if (!sound) throw new Error(`no sound ${note}`);
      // A busy machine can cost a moment.
      if (!pictures || played < took * 0.8 || delay === null) throw new Doubt(`${played} s in ${took} s ${note}`);
      notes.push(note);
    }
    let { rate, asked } = await page.evaluate(sending);
    // Without reports of arrivals the browser stays at 300 kbit/s. How fast it rises depends on what is in the picture.
    for (let tries = 0; !(rate > 500000) && tries < 60; tries += 1) {
      await new Promise(resolve => { setTimeout(resolve, 500); });
      ({ rate, asked } = await page.evaluate(sending));
    }
    if (!(rate > 500000)) throw new Doubt(`the browser would send ${rate} bit/s`);
    if (!asked) throw new Error('no key frame was asked for');
    const ended = await page.evaluate(() => fetch(window.publishing.session, { method: 'DELETE' }).then(reply => reply.status));
    if (ended !== 200) throw new Error(`DELETE: ${ended}`);
    return `${notes.join(' ')} ${Math.round(rate / 1000)} kbit/s`;
  } finally {
    await page.close();
  }
}

// Runs in a page: plays a stream with the candidates of TCP alone. Returns the protocol that was used, and the pictures of three seconds.
async function playByTcp(url) {
  const peer = new RTCPeerConnection();
  for (const kind of ['video', 'audio']) peer.addTransceiver(kind, { direction: 'recvonly' });
  const video = document.createElement('video');
  video.muted = true;
  video.autoplay = true;
  video.srcObject = new MediaStream(peer.getReceivers().map(receiver => receiver.track));
  await peer.setLocalDescription();
  const reply = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/sdp' }, body: peer.localDescription.sdp });
  const answer = await reply.text();
  if (reply.status !== 201) throw new Error(`${reply.status} ${answer}`);
  const lines = answer.split('\r\n').filter(line => !/^a=candidate:\S+ \d+ udp /.test(line));
  await peer.setRemoteDescription({ type: 'answer', sdp: lines.join('\r\n') });
  let pictures = 0;
  const count = () => { pictures += 1; video.requestVideoFrameCallback(count); };
  video.requestVideoFrameCallback(count);
  const last = performance.now() + 30000;
  while (!pictures && performance.now() < last) await new Promise(resolve => { setTimeout(resolve, 20); });
  pictures = 0;
  await new Promise(resolve => { setTimeout(resolve, 3000); });
  const all = new Map();
  (await peer.getStats()).forEach(stats => all.set(stats.id, stats));
  const pair = [...all.values()].find(stats => stats.type === 'candidate-pair' && stats.nominated);
  const session = new URL(reply.headers.get('Location'), url);
  const ended = await fetch(session, { method: 'DELETE' });
  return { protocol: all.get(pair?.remoteCandidateId)?.protocol, pictures, ended: ended.status };
}

async function byTcp() {
  attempts += 1;
  const stream = `live/camera-${attempts}`;
  const [publisher, viewer] = [await browser.newPage(), await browser.newPage()];
  try {
    for (const page of [publisher, viewer]) await page.goto(`${base}/.millpond/time`);
    await publisher.evaluate(publish, [`${base}/${stream}/whip`, null]);
    // Until the stream has a key frame.
    await publisher.waitForFunction(url => fetch(url).then(reply => reply.ok), `${base}/${stream}/index.m3u8`, { timeout: 60000 });
    const { protocol, pictures, ended } = await viewer.evaluate(playByTcp, `${base}/${stream}/whep`);
    if (protocol !== 'tcp' || ended !== 200) throw new Error(`by ${protocol}; DELETE: ${ended}`);
    if (pictures < 30) throw new Doubt(`${pictures} pictures in three seconds`);
    return `${pictures} pictures in three seconds by ${protocol}`;
  } finally {
    await publisher.close();
    await viewer.close();
  }
}

for (const [mimeType, engines] of [
  [null, ['webrtc', 'hls']],
  ['video/VP8', ['webrtc']],
  ['video/VP9', ['webrtc']],
  ['video/AV1', ['webrtc']],
]) {
  const said = await withoutDoubt(() => attempt(mimeType, engines))
    .then(note => { passed += 1; return `ok ${note}`; }, error => { failed += 1; return `FAILED ${error.message.split('\n')[0]}`; });
  console.log(`whip ${(mimeType ?? 'any').padEnd(10)} ${said}`);
}
const told = await withoutDoubt(byTcp)
  .then(note => { passed += 1; return `ok ${note}`; }, error => { failed += 1; return `FAILED ${error.message.split('\n')[0]}`; });
console.log(`whip ${'TCP'.padEnd(10)} ${told}`);
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);

// Compares the sound that Chromium decodes of HLS with the sound of the file, sample by sample. The server made FLAC of PCM and G.711.
// Usage: node sound.mjs BASE_URL FOLDER ASSET ...
// ffmpeg decodes the files of FOLDER, whose values have 16 bits. Init and media segments of an asset are decoded by Web Audio as one file,
// in a context of the sound's rate, so that nothing is resampled. Chromium's values are fractions of 1, in which positive ones may be
// scaled by 32,767: each may differ by 1 of 32,768.

import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [base, folder, ...assets] = process.argv.slice(2);
const browser = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), 'sound-')), {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});

let passed = 0;
let failed = 0;

// The values of a file, interleaved.
function ofFile(asset) {
  const command = ['-v', 'error', '-nostdin', '-i', join(folder, asset), '-map', '0:a:0', '-f', 's16le', '-'];
  const { status, stdout, stderr } = spawnSync('ffmpeg', command, { maxBuffer: 1 << 28 });
  if (status !== 0 || !stdout.length) throw new Error(`ffmpeg: ${stderr}`);
  return new Int16Array(stdout.buffer.slice(stdout.byteOffset, stdout.byteOffset + stdout.length));
}

// Runs in the page: decodes all segments of the sound. Returns channels, rate, and the values as Base64 of 32 bits each.
async function decode(url) {
  const text = async address => {
    const reply = await fetch(address);
    if (!reply.ok) throw new Error(`${address}: ${reply.status}`);
    return reply.text();
  };
  const mpd = new DOMParser().parseFromString(await text(`${url}/index.mpd`), 'text/xml');
  const of = mpd.querySelector('AdaptationSet[contentType="audio"] Representation');
  const rate = Number(of.getAttribute('audioSamplingRate') || of.parentElement.getAttribute('audioSamplingRate'));
  const [, list] = /(?:TYPE=AUDIO.*URI="|#EXT-X-STREAM-INF.*\n)([^"\n]+)/.exec(await text(`${url}/index.m3u8`));
  const address = new URL(list, `${url}/index.m3u8`).href;
  const lines = (await text(address)).split('\n');
  const init = /URI="([^"]+)"/.exec(lines.find(line => line.startsWith('#EXT-X-MAP')))[1];
  const parts = [init, ...lines.filter(line => line && !line.startsWith('#'))];
  const bodies = [];
  for (const part of parts) bodies.push(await (await fetch(new URL(part, address))).arrayBuffer());
  const file = await new Blob(bodies).arrayBuffer();
  const sound = await new OfflineAudioContext(1, 1, rate).decodeAudioData(file);
  const channels = sound.numberOfChannels;
  const values = new Int32Array(sound.length * channels);
  for (let channel = 0; channel < channels; channel += 1) {
    const data = sound.getChannelData(channel);
    for (let at = 0; at < data.length; at += 1) values[at * channels + channel] = Math.round(data[at] * 32768);
  }
  const bytes = new Uint8Array(values.buffer);
  let binary = '';
  for (let at = 0; at < bytes.length; at += 1 << 15) binary += String.fromCharCode(...bytes.subarray(at, at + (1 << 15)));
  return { channels, rate, segments: parts.length - 1, values: btoa(binary) };
}

async function compare(page, asset) {
  const expected = ofFile(asset);
  const { channels, rate, segments, values } = await page.evaluate(decode, `${base}/${asset}`);
  const bytes = Buffer.from(values, 'base64');
  const found = new Int32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  if (segments < 2) throw new Error(`${segments} segment: expected several`);
  if (found.length !== expected.length) throw new Error(`${found.length} values, the file has ${expected.length}`);
  const differs = expected.findIndex((value, at) => Math.abs(value - found[at]) > 1);
  if (differs >= 0) throw new Error(`value ${differs} is ${found[differs]}, in the file ${expected[differs]}`);
  const other = expected.reduce((count, value, at) => count + (value === found[at] ? 0 : 1), 0);
  return `${found.length} values of ${channels} channels at ${rate} Hz in ${segments} segments; ${other} differ by 1`;
}

const page = await browser.newPage();
await page.goto(base);
for (const asset of assets) {
  try {
    console.log(`${asset.padEnd(20)} ok ${await compare(page, asset)}`);
    passed += 1;
  } catch (error) {
    console.log(`${asset.padEnd(20)} FAILED ${error.message.split('\n')[0]}`);
    failed += 1;
  }
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);

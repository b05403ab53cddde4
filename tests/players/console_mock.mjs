// A server of the console's files with made-up data: 5,000 sessions, 10,000 assets, a cluster, and states that a real server reaches
// only with trouble. Usage: node console_mock.mjs PORT [TOKEN]; or `start(port, token)`.

import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FILES = fileURLToPath(new URL('../../crates/millpond-server/console/', import.meta.url));
const KINDS = { html: 'text/html; charset=utf-8', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
const [SESSIONS, ASSETS, OBJECTS, STREAMS] = [5000, 10000, 10000, 40];
const started = Date.now() / 1000 - 93784;
const now = () => Date.now() / 1000;
// The same numbers at each start.
const noise = seed => { const x = Math.sin(seed * 12.9898) * 43758.5453; return x - Math.floor(x); };
const pad = (number, width = 4) => String(number).padStart(width, '0');
const AGENTS = ['AppleCoreMedia/1.0.0.21F90 (iPhone; U; CPU OS 17_5 like Mac OS X)', 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0', 'LibVLC/3.0.20 (LIVE555 Streaming Media v2016.11.28)', 'ExoPlayerLib/2.19.1', 'Lavf/61.7.100'];

function session(number) {
  const kind = ['http', 'http', 'http', 'rtsp', 'long'][number % 5];
  const live = kind !== 'http';
  return {
    id: `${kind[0]}-${pad(number.toString(16), 8)}`, kind: number % 977 === 3 ? 'publish' : kind, client: `192.0.${2 + (number >> 8)}.${number % 256}${kind === 'rtsp' ? ':50812' : ''}`,
    agent: AGENTS[number % AGENTS.length], subject: number % 7 ? null : `user${number}`, asset: live ? `cams/door${number % STREAMS}` : `films/series-${pad(number % 300)}/episode-${pad(number % 10000)}.mp4`,
    state: kind === 'http' ? (number % 4 ? 'active' : 'idle') : kind === 'long' ? 'sending' : number % 11 ? 'playing' : 'paused', transport: kind === 'rtsp' ? (number % 2 ? 'tcp' : 'udp') : 'http',
    started: now() - 20 - noise(number) * 7200, last: now() - noise(number) * 10, requests: live ? null : Math.floor(noise(number) * 4000), bytes: Math.floor(noise(number + 1) * 4e9), bps: number % 13 ? Math.floor(noise(number + 2) * 8e6) : null,
  };
}

const asset = number => ({ path: `films/series-${pad(Math.floor(number / 40))}/episode-${pad(number, 5)}.mp4`, place: 'films', kind: number % 40 ? 'file' : 'folder', bytes: Math.floor(4e8 + noise(number) * 3e9) });
const object = number => {
  const { path, bytes } = asset(number);
  const slices = Math.ceil(bytes / 524288);
  const cached = Math.floor(slices * noise(number + 5) ** 2);
  return { place: 'films', path: path.slice(6), version: `"5f2a-${number}"`, bytes, slices, 'in-memory': Math.floor(cached / 9), 'on-disk': cached, pinned: number % 97 === 1, 'hit-bytes': Math.floor(noise(number + 6) * 9e10), 'miss-bytes': Math.floor(cached * 524288 * 1.2) };
};
const stream = number => {
  const state = number % 13 === 5 ? 'failed' : number % 11 === 4 ? 'lost' : number % 9 === 8 ? 'waiting' : 'running';
  return {
    path: `cams/door${number}`, kind: 'rtsp', source: `rtsp://10.0.0.${number}/door`, server: number % 3 ? null : 'GStreamer RTSP server', state, since: state === 'waiting' ? null : now() - 60 * number - 12,
    why: state === 'failed' ? 'DESCRIBE: 404 Not Found' : state === 'lost' ? 'no packet for 10 s' : null, run: '00000000000004d2', epoch: state === 'running' ? { number: 2, reason: 'reconnection', 'from-seconds': 12.5, wall: now() - 900, codecs: ['avc1.64001f', 'mp4a.40.2'] } : null,
    viewers: state === 'running' ? { transmission: 3 + number, viewing: 1, segmenter: 1 } : {}, 'bit-rate': state === 'running' ? 2100000 + number * 1e5 : null, 'memory-bytes': 1048576, 'memory-limit-bytes': 16777216, frames: 18100, bytes: 186000000, cues: 0,
    'silent-seconds': state === 'running' ? 0.02 : 12, 'dropped-frames': number, sessions: 1, packets: 160210, 'lost-packets': number * 7, 'asked-packets': 0, 'repaired-packets': number, 'too-late-packets': 0, 'reordered-packets': 2, 'unused-packets': 0, 'broken-frames': 0,
    'time-shift': number % 4 ? null : { from: now() - 3600, to: now(), bytes: 9.4e8, written: 1, lost: 0, errors: 0, why: null },
  };
};

function overview() {
  const t = now();
  const wave = (period, low, high) => low + (high - low) * (0.5 + 0.5 * Math.sin(t / period));
  return {
    time: t, 'uptime-seconds': t - started, 'is-ready': true,
    http: { viewers: Math.round(wave(40, 3700, 4000)), responses: 212, connections: 3120, 'sent-bytes': 7.34e12, 'sent-bps': wave(30, 8e9, 9.6e9), requests: Math.floor(512000 + t % 100000 * 1200), 'requests-per-second': wave(25, 1100, 1400), 'errors-per-second': t % 20 < 1 ? 1 : 0, 'client-errors': 311, 'server-errors': Math.floor(t / 20) % 1000, broken: 2, unfinished: 812 },
    rtsp: { sessions: 1000, playing: Math.round(wave(60, 900, 990)), publishing: 5, 'sent-bytes': 9.1e11, 'sent-bps': wave(35, 1.9e9, 2.2e9), refused: 3, 'is-overloaded': false },
    origins: { 'received-bytes': 2.09e11, 'received-bps': wave(20, 1e8, 4e8), requests: 60123, errors: 4, 'in-flight': 6 },
    cache: { 'hit-bytes': 5.2e12, 'miss-bytes': 2e11, 'hit-ratio': wave(50, 0.93, 0.985), 'memory-bytes': 7.9e9, 'memory-limit-bytes': 8589934592, 'disk-bytes': 1.61e12, 'disk-limit-bytes': 2199023255552 },
    live: { streams: STREAMS, running: 29, failed: 3, viewers: 517 },
    process: { 'memory-bytes': 9.4e9, 'cpu-seconds': 33000, cpu: wave(15, 2.1, 3.4), 'open-files': 3411, 'lost-log-lines': 0 },
  };
}

function history() {
  return Array.from({ length: 300 }, (_, index) => {
    const t = now() - 300 + index;
    const wave = (period, low, high) => low + (high - low) * (0.5 + 0.5 * Math.sin(t / period)) + (high - low) * 0.15 * noise(Math.floor(t));
    return {
      time: t, viewers: Math.round(wave(40, 3700, 4000)), sessions: Math.round(wave(60, 900, 990)), 'http-sent-bps': wave(30, 8e9, 9.6e9), 'rtsp-sent-bps': wave(35, 1.9e9, 2.2e9), 'received-bps': wave(20, 1e8, 4e8),
      'requests-per-second': wave(25, 1100, 1400), 'errors-per-second': index % 20 === 0 ? 1 : 0, 'hit-ratio': Math.min(1, wave(50, 0.93, 0.985)), 'live-running': 29, cpu: 2.2, 'memory-bytes': 9e9,
    };
  });
}

// Viewing of the last fourteen days.
function viewing() {
  const date = index => new Date((now() - 86400 * index) * 1000).toISOString().slice(0, 10);
  const figures = seconds => {
    const [rtsp, starts] = [seconds * 0.25, Math.ceil(seconds / 1800)];
    const of = (time, begun) => ({ 'viewer-seconds': time, starts: begun });
    return { peak: Math.ceil(seconds / 4000), 'viewer-seconds': seconds, starts, rebuffers: Math.floor(seconds / 40000), protocols: { http: of(seconds - rtsp, starts), rtsp: of(rtsp, 0), webrtc: of(0, 0), srt: of(0, 0) } };
  };
  const days = Array.from({ length: 14 }, (_, index) => ({ day: date(13 - index), titles: 1000, ...figures(2e7 * (0.4 + noise(index))) }));
  const title = index => (index ? asset(index * 37).path : 'cams/door0');
  const items = Array.from({ length: 1000 }, (_, index) => ({ day: date(0), title: title(index), viewers: Math.ceil(900 / (index + 1)), ...figures(3e6 / (index + 1)) }));
  return { today: date(0), viewers: 4817, days, items: [{ day: date(0), title: null, viewers: 0, ...figures(41000) }, ...items].slice(0, 1000), total: 1001, 'next-cursor': '1000' };
}

function graph(q) {
  const [modules, pipes] = [[], []];
  let id = 0;
  const add = (kind, label, from) => {
    id += 1;
    modules.push({ id, kind, label });
    if (from) pipes.push({ from, to: id, depth: 64, lost: kind === 'transmission' && id % 37 === 0 ? id : 0 });
    return id;
  };
  for (let number = 0; number < 6; number += 1) {
    const source = add('reception', `cams/door${number}`);
    add('segmenter', `cams/door${number}`, source);
    if (number % 2) add('recorder', `door${number}.mp4`, source);
    const ad = number === 3 ? add('splice', 'films/ad.mp4', source) : source;
    for (let viewer = 0; viewer < (number === 2 ? 4000 : 2 + number); viewer += 1) add('transmission', `r-${pad(id.toString(16))}`, viewer ? source : ad);
  }
  const movie = add('loader', 'films/series-0001/episode-00041.mp4');
  add('transmission', 'r-9f', add('channel', 'news', movie));
  const fits = q ? modules.filter(({ kind, label }) => `${kind} ${label}`.includes(q)) : modules;
  const ids = new Set(fits.map(module => module.id));
  pipes.forEach(({ from, to }) => { if (q && (ids.has(from) || ids.has(to))) { ids.add(from); ids.add(to); } });
  return {
    modules: modules.filter(module => ids.has(module.id)), pipes: pipes.filter(({ from, to }) => ids.has(from) && ids.has(to)), 'modules-left-out': 0,
    kinds: [['loader', 'loads the frames of a stored title'], ['reception', 'receives frames from an RTSP source'], ['transmission', 'sends frames to a viewer when they are due'], ['segmenter', 'cuts frames into the segments of HLS and DASH'], ['recorder', 'writes the frames of a channel or live stream into a fragmented MP4 file'], ['splice', "puts a stored clip in the place of a live stream's frames"], ['channel', 'gives frames to all viewers of a channel when they are due']].map(([name, about]) => ({ name, about })),
  };
}

function cacheMap(path) {
  const slices = 3200;
  const cells = Array.from({ length: 1600 }, (_, index) => (index < 260 ? 'm' : index < 900 ? 'd' : index < 930 ? 'c' : noise(index >> 4) > 0.8 ? 'p' : '.')).join('');
  return { path, 'slice-bytes': 524288, objects: [{ path: path.slice(6), bytes: slices * 524288 - 1000, slices, 'slices-per-cell': 2, cells, 'memory-bytes': 272629760, 'disk-bytes': 671088640, 'pinned-bytes': 0 }] };
}

const settings = [
  ['http', 'address', 'Address of plain HTTP', '0.0.0.0:8080', '0.0.0.0:8080', 'file', '/etc/millpond/millpond.toml:1:1'],
  ['cache-memory', 'size', 'Memory for slices, segments, indexes and playlists', "a quarter of the machine's memory", '8GiB', 'file', '/etc/millpond/millpond.toml:3:1'],
  ['cache-size', 'size', 'Room for slices on the disk', 'off', '2TiB', 'flag', 'the flag --cache-size'],
  ['segment-duration', 'duration', 'Target duration of media segments', '4s', '4s', 'default', 'the default'],
  ['log', 'text', 'Least important lines of the log', 'info', 'info', 'default', 'the default'],
  ['admin-token', 'text', 'Token that clients of the admin address must have', 'none', '***', 'environment', 'MILLPOND_ADMIN_TOKEN'],
].map(([name, form, help, usual, value, from, source]) => ({ name, form, choices: name === 'log' ? ['error', 'warn', 'info', 'debug', 'trace'] : [], help, default: usual, value, source, from, 'in-force': value, 'is-secret': name === 'admin-token', 'is-live': name !== 'http', 'needs-restart': false }));
Object.assign(settings[0], { value: '0.0.0.0:80', 'needs-restart': true });

const LEVELS = ['info', 'info', 'info', 'warn', 'debug', 'error'];
const line = number => ({ number, time: now() - (900 - number), level: LEVELS[number % 6], target: 'millpond_store::origin', message: ['origin does not answer', 'session ended', 'segment made', 'reloaded'][number % 4], fields: { place: 'films', error: 'timed out', bytes: number * 1024 } });

const cluster = {
  node: 'edge1', incarnation: '5f3a', membership: 'member', 'cluster-id': 'east', differences: [{ subject: 'place', place: 'cams', version: '0.1.0', differing: ['edge3'], lacking: ['edge6'], text: 'place cams: other settings at edge3; missing at edge6' }], draining: false, registry: 'etcd', peers: [], etcd: { state: 'following', seconds: null, error: null }, revision: 812, assignment: 'sosd',
  nodes: Array.from({ length: 12 }, (_, index) => ({ name: `edge${index + 1}`, self: index === 0, http: `http://10.0.0.${index + 1}:8080`, rtsp: `rtsp://10.0.0.${index + 1}:8554`, roles: index < 3 ? ['manager', 'dispenser', 'storage'] : ['dispenser', 'storage'], 'capacity-bps': 1e10, 'load-bps': Math.floor(noise(index) * 9.5e9), sessions: 400 + index, draining: index === 4, version: '0.1.0', 'limit-bps': null, reachable: index === 7 ? false : index < 4 || null })),
  changes: [{ time: now() - 40, node: 'edge8', change: 'unreachable' }, { time: now() - 900, node: 'edge12', change: 'joined' }], 'failing-homes': [{ place: 'films', home: 'http://10.0.0.8:8080', error: 'no sign of life', seconds: 38 }],
  booked: { 'node:edge1': 1.2e9, 'node:edge2': 8.4e8, 'storage:films': 2e9 }, problems: ['key /millpond/nodes/old: version 0 is not known'], 'problem-count': 1,
};

const outcomes = ['lru', 'stream', 's3-fifo'].flatMap((policy, shift) => ['on-demand', 'active'].flatMap((mode, other) => [26, 28, 30, 32].map((power, index) => ({
  'cache-bytes': 2 ** power, 'slice-bytes': 524288, mode, policy, visits: 1000, bytes: 7e10, 'server-bytes': 7e10 * (0.4 - 0.09 * index - 0.02 * shift + 0.01 * other), 'hit-bytes': 7e10 * (0.6 + 0.09 * index + 0.02 * shift), asks: 1, hits: 1,
  'prefetched-bytes': 0, 'false-prefetch-bytes': other * 3e8 * (4 - index), 'startup-seconds': 0.06 - other * 0.02, stalls: 3, 'stall-seconds': 4 - index,
}))));
const simulations = [{ id: 1, state: 'done', started: now() - 400, seconds: 3.2, options: { preset: 'sproxy', cache: ['64MiB', '256MiB', '1GiB', '4GiB'], policy: ['lru', 'stream', 's3-fifo'] }, error: null, outcomes }];

const assignment = path => ({ object: `films:${path}`, kind: 'stored', assignment: 'sosd', revision: 812, dispensers: 3, candidates: [{ name: 'edge3', standing: 'serves it', 'load-bps': 4.8e9, 'bound-bps': 8e9, score: 0.93 }, { name: 'edge7', standing: 'next', 'load-bps': 7.9e9, 'bound-bps': 8e9, score: 0.81 }], homes: ['edge2', 'edge1'], 'rate-bps': 4e6, book: [{ resource: 'node:edge3', 'wanted-bps': 4e6, 'booked-bps': 6.1e9, 'bound-bps': 1e10, 'free-bps': 3.9e9, fits: true }, { resource: 'storage:films', 'wanted-bps': 4e6, 'booked-bps': 2e9, 'bound-bps': 2e9, 'free-bps': 0, fits: false }], text: 'edge3 serves films/a.mp4: it has the highest score, and its load is below its bound' });

const report = index => ({ version: '0.1.0', 'uptime-seconds': 7200, 'waiting-for': [], viewers: 380 + index, sessions: 20, 'sent-bps': 4e9, 'received-bps': 1e8, 'requests-per-second': 812, 'errors-per-second': 0, 'hit-ratio': 0.93, cpu: 1.2, 'memory-bytes': 3e9, titles: [], events: [] });
const fleet = {
  node: 'edge1', 'left-out': 0,
  nodes: cluster.nodes.map(({ name }, index) => (index === 7 ? { name, error: 'node edge8 has not answered within 1 s', report: null } : { name, error: null, report: report(index) })),
  titles: [{ title: 'films/a.mp4', viewers: 812, 'viewer-seconds': 9.1e6, starts: 2048, nodes: ['edge3', 'edge7'] }, { title: 'cams/door1', viewers: 12, 'viewer-seconds': 4e4, starts: 31, nodes: ['edge1'] }],
  events: [{ specversion: '1.0', id: '19a-7', source: 'millpond://edge3', type: 'millpond.node.joined', subject: 'edge12', time: new Date(1000 * (now() - 900)).toISOString(), data: {} }],
};
const objects = path => ({
  path, assignment: assignment(path),
  nodes: fleet.nodes.map(({ name, error }, index) => ({ name, error, objects: index === 2 ? 1 : 0, slices: index === 2 ? 100 : 0, 'in-memory': index === 2 ? 40 : 0, 'on-disk': index === 2 ? 60 : 0, pinned: index === 2 })),
});

class Refusal extends Error {
  constructor(status, detail, errors) {
    super(detail);
    Object.assign(this, { status, errors });
  }
}

const gone = new Set();
const blocks = [];
const all = (length, make) => Array.from({ length }, (_, index) => make(index));

function page(items, query, text) {
  const q = query.get('q')?.toLowerCase();
  const found = q ? items.filter(item => text(item).toLowerCase().includes(q)) : items;
  const from = Number(query.get('cursor') ?? 0);
  const limit = Number(query.get('limit') ?? 100);
  return { items: found.slice(from, from + limit), total: found.length, 'next-cursor': from + limit < found.length ? String(from + limit) : null };
}

function answer(method, path, query, body) {
  // Another node, by way of this one. It asks no further node.
  const [, name, target] = /^cluster\/nodes\/([^/]+)\/api\/(.*)$/.exec(path) ?? [];
  if (name) {
    if (/^cluster\/(fleet|objects|nodes\/[^/]+\/api)/.test(target)) throw new Refusal(508, 'this request came by way of the node edge1');
    const reply = answer(method, target, query, body);
    return target === 'version' ? { ...reply, node: name } : reply;
  }
  const [head, ...rest] = path.split('/');
  const id = rest[0] && decodeURIComponent(rest[0]);
  const route = `${method} ${head}`;
  const fixed = {
    'GET version': () => ({ version: '0.1.0', api: 'v1', node: 'edge1', started, 'uptime-seconds': now() - started }),
    'GET health': () => ({ 'is-ready': true, 'waiting-for': [], doubts: ['rtsp-channels: news: no place has this path (places: films)'] }),
    'GET overview': () => (rest[0] === 'history' ? { 'interval-seconds': 1, items: history() } : overview()),
    'GET viewing': viewing,
    'GET sessions': () => {
      const kind = query.get('kind');
      return page(all(SESSIONS, session).filter(item => !gone.has(item.id) && (!kind || item.kind === kind)), query, item => `${item.client} ${item.asset} ${item.agent} ${item.id}`);
    },
    'DELETE sessions': () => {
      gone.add(id);
      blocks.push({ id, client: '192.0.2.7', agent: 'x', asset: 'films/a.mp4', until: now() + 60 });
      return { id, 'is-ended': true, 'blocked-until': now() + 60 };
    },
    'GET blocks': () => ({ items: blocks, total: blocks.length, 'next-cursor': null }),
    'DELETE blocks': () => ({ id: blocks.splice(blocks.findIndex(block => block.id === id), 1)[0].id }),
    'GET assets': () => ({ ...page(all(ASSETS, asset), query, ({ path: text }) => text), 'is-complete': true }),
    'GET explain': () => {
      if (!query.get('url')) throw new Refusal(400, '?url=PATH says which request');
      if (query.get('url').includes('nothing')) throw new Refusal(404, `there is no asset "${query.get('url')}"`);
      const parts = all(130, index => ({ object: 'a.mp4', first: index * 524288, end: (index + 1) * 524288, from: index < 40 ? 'memory' : index < 90 ? 'disk' : index < 94 ? 'coming' : 'origin' }));
      return { url: query.get('url'), bytes: 68157440, 'made-bytes': 120400, rewritten: false, parts, 'origin-bytes': 36 * 524288, origin: { 'first-byte-seconds': 0.021, 'last-byte-seconds': 0.249, 'bandwidth-bps': 81234567, 'siblings-first': false } };
    },
    'GET cache': () => {
      if (rest[0] === 'objects') return page(all(OBJECTS, object).filter(({ pinned }) => query.get('pinned') !== 'true' || pinned), query, ({ path: text }) => text);
      if (rest[0] === 'map') return cacheMap(query.get('path'));
      const kind = (bytes, entries, hits, misses) => ({ bytes, entries, hits, misses, evictions: 12 });
      return {
        'slice-bytes': 524288, prefetch: 'window', memory: { bytes: 7.9e9, 'limit-bytes': 8589934592, kinds: { slices: kind(7.1e9, 13541, 41200, 900), segments: kind(5e8, 812, 1, 1), indexes: kind(2e8, 700, 1, 1), sessions: kind(1e8, 1000, 0, 0), texts: kind(0, 0, 0, 0) } },
        disk: { bytes: 1.61e12, 'limit-bytes': 2199023255552, slices: 3070000, policy: 'stream', hits: 812000, misses: 32000, evictions: 0, 'pinned-bytes': 5e8, written: 2e6, 'passed-over': 12, errors: 0, damaged: 0, verified: 5, failure: null },
      };
    },
    'POST cache': () => ({ 'purged-slices': 100, objects: 1, bytes: 52428800, 'pinned-bytes': 4194304 }),
    'DELETE cache': () => ({ objects: 1, bytes: 0, 'pinned-bytes': 0 }),
    'GET origins': () => ({ items: ['films', 'archive'].map((place, index) => ({
      place, location: index ? 'https://archive.example/media' : 's3://bucket/films', requests: 60123, 'received-bytes': 2.09e11, 'received-bps': 2.1e8, 'in-flight': 6, retries: 2, collapsed: 8123, stale: 0, errors: index ? { timeout: 4 } : {},
      'memory-hit-bytes': 9e11, 'disk-hit-bytes': 4.3e12, 'miss-bytes': 2e11, 'file-bytes': 0, 'hit-ratio': 0.962, 'prefetched-bytes': 4e9, 'prefetched-unused-bytes': 1e8, 'watched-tracks': 812, link: index ? null : { 'bandwidth-bps': 8.1e8, 'delay-seconds': 0.021, 'busy-seconds': 0, uncertainty: 0.2 },
      'first-byte-waits': { count: 60, seconds: 1.44 }, stripes: index ? [{ store: 'a', requests: 812, bytes: 9e10, failures: 1, 'damaged-reads': 0, 'repaired-units': 0, 'in-flight': 2, 'is-resting': false }] : [], neighbours: index ? { hits: 812, misses: 40, failures: 0 } : null, doubts: index ? ['the certificate ends in 3 days'] : [],
    })) }),
    'GET places': () => ({ items: [['films', 's3://bucket/films', 's3', true], ['archive', 'https://archive.example/media', 'http', true], ['cams', 'rtsp://10.0.0.7/', 'rtsp', false]].map(([name, location, kind, ready]) => ({ name, location, kind, 'is-live': kind === 'rtsp', 'is-ready': ready, from: 'file', source: '/etc/millpond/millpond.toml:12:1', settings: kind === 's3' ? { 'max-age': '60s' } : {} })) }),
    'GET streams': () => page(all(STREAMS, stream).filter(({ state }) => !query.get('state') || state === query.get('state')), query, ({ path: text, source }) => `${text} ${source}`),
    'GET recordings': () => ({ items: [{ id: 1, path: 'cams/door1', file: 'door1-20261124T031500Z.mp4', bytes: 1.1e9, frames: 9000, 'lost-frames': 0, seconds: 1812, ended: null, error: null }], 'is-on': true }),
    'GET modules': () => ({ kinds: [{ name: 'tee', about: 'publishes the stream at another path too', input: 'any', 'has-output': true, options: [{ name: 'to', form: 'PATH', default: '', help: 'Path of the copy', 'is-required': true }] }], items: [{ id: 1, stream: 'cams/door1', kind: 'tee', options: { delay: '30s', to: 'live/copy' }, 'is-configured': true, state: 'running', module: 7, error: null }, { id: 2, stream: 'cams/door2', kind: 'recorder', options: {}, 'is-configured': false, state: 'failed', module: null, error: 'the folder is full' }] }),
    'GET insertions': () => ({ items: [], total: 0, 'next-cursor': null }),
    'GET graph': () => graph(query.get('q')),
    'POST cluster': () => ({ epoch: 812, confirmed: ['edge1', 'edge2'], missing: ['edge3'] }),
    'GET cluster': () => {
      if (rest[0] === 'assign') return assignment(query.get('path'));
      if (rest[0] === 'fleet') return fleet;
      if (rest[0] === 'objects') return objects(query.get('url'));
      return cluster;
    },
    'PUT cluster': () => ({ node: rest[1], drain: true }),
    'DELETE cluster': () => ({ node: rest[1], drain: false }),
    'GET settings': () => ({ file: '/etc/millpond/millpond.toml', 'is-writable': true, settings }),
    'PATCH settings': () => {
      if (Object.values(body.set).includes('much')) throw new Refusal(422, '1 fault in the new configuration', ['millpond.toml:3:16: cache-memory: expected a size such as 10GiB, found "much"']);
      return { 'is-written': true, applied: Object.entries(body.set).map(([setting, to]) => ({ setting, from: '8GiB', to })), 'needs-restart': [], places: { added: [], removed: [], changed: [] }, warnings: [] };
    },
    'POST reload': () => ({ 'is-written': false, applied: [], 'needs-restart': [], places: { added: [], removed: [], changed: [] }, warnings: [] }),
    'GET logs': () => {
      const after = Number(query.get('after') ?? 0);
      const newest = 812 + Math.floor((now() - started) / 3) % 80;
      const level = query.get('level');
      const items = all(newest, line).slice(after ? after + 1 : Math.max(0, newest - 300)).filter(item => level !== 'error' || item.level === 'error').filter(item => item.message.includes(query.get('q') ?? ''));
      return { items, 'next-after': newest - 1, lost: 0 };
    },
    'GET simulations': () => (id ? simulations.find(run => String(run.id) === id) : { items: simulations.map(run => ({ ...run, outcomes: null })), total: 1, 'next-cursor': null }),
    'POST simulations': () => {
      simulations.push({ id: simulations.length + 1, state: 'done', started: now(), seconds: 1.1, options: body, error: null, outcomes });
      return { ...simulations.at(-1), outcomes: null };
    },
  };
  const reply = fixed[route];
  if (!reply) throw new Refusal(404, `there is no ${method} /api/v1/${path}`);
  return reply();
}

async function serve(request, response, token) {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  if (!pathname.startsWith('/api/v1/')) {
    try {
      const name = pathname === '/' ? 'index.html' : pathname.replace('/console/', '');
      const content = readFileSync(join(FILES, name.replaceAll('..', '')));
      response.writeHead(200, { 'Content-Type': KINDS[name.split('.').at(-1)], 'Content-Security-Policy': POLICY }).end(content);
    } catch {
      response.writeHead(404).end();
    }
    return;
  }
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const send = (status, value) => response.writeHead(status, { 'Content-Type': status < 400 ? 'application/json' : 'application/problem+json', 'Cache-Control': 'no-store' }).end(JSON.stringify(value));
  try {
    if (token && request.headers.authorization !== `Bearer ${token}`) throw new Refusal(401, 'the admin token is missing or wrong');
    const body = chunks.length ? JSON.parse(Buffer.concat(chunks)) : null;
    send(200, answer(request.method, pathname.slice(8), searchParams, body));
  } catch (error) {
    if (!(error instanceof Refusal)) console.error(error);
    send(error.status ?? 500, { type: 'about:blank', title: 'Error', status: error.status ?? 500, detail: error.message, errors: error.errors });
  }
}

// Starts the server; resolves with it.
export function start(port, token) {
  const server = createServer((request, response) => { serve(request, response, token); });
  return new Promise(done => { server.listen(port, '127.0.0.1', () => done(server)); });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await start(Number(process.argv[2]), process.argv[3]);

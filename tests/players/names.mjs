// Checks the titles that the page makes of the names of files, their order, what it says of missing sound, and its memory, without a
// browser.
// Usage: node names.mjs

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import vm from 'node:vm';

const page = name => readFileSync(new URL(`../../crates/millpond-server/page/${name}`, import.meta.url), 'utf8');

// The scripts of the page share one global scope, as in a browser.
function scope(names, globals = {}) {
  const context = vm.createContext({ nameOf: path => path.replace(/\/$/, '').split('/').pop(), ...globals });
  vm.runInContext(names.map(page).join('\n'), context);
  return expression => JSON.parse(JSON.stringify(vm.runInContext(expression, context)));
}

let passed = 0;
let failed = 0;

function step(what, run) {
  try {
    run();
    passed += 1;
    console.log(`names      ${what.padEnd(34)} ok`);
  } catch (error) {
    failed += 1;
    console.log(`names      ${what.padEnd(34)} FAILED ${error.message.replace(/\s+/g, ' ').slice(0, 300)}`);
  }
}

const NAMES = [
  ['Deep water.mp4', 'Deep water', ''],
  ['Dune.2021.1080p.BluRay.x264-GRP.mkv', 'Dune', '2021'],
  ['Arrival (2016).mkv', 'Arrival', '2016'],
  ['Arrival (2016) [1080p].mp4', 'Arrival', '2016'],
  ['Blade.Runner.2049.2017.2160p.WEB-DL.mkv', 'Blade Runner 2049', '2017'],
  ['Blade Runner 2049.mkv', 'Blade Runner 2049', ''],
  ['2012.mkv', '2012', ''],
  ['1917.2019.720p.mkv', '1917', '2019'],
  ['1080p.mp4', '1080p', ''],
  ['360p.mp4', '360p', ''],
  ['Show.Name.S01E02.The.Title.1080p.WEB-DL.DD5.1.H.264-GRP.mkv', 'Show Name S01E02 The Title', ''],
  ['Show (2019) - S01E02 - The Title.mkv', 'Show - S01E02 - The Title', '2019'],
  ['Mr. Robot S01E01 720p.mkv', 'Mr. Robot S01E01', ''],
  ['S.W.A.T.2017.S01E01.720p.mkv', 'S.W.A.T. 2017 S01E01', ''],
  ['E.T.1982.1080p.mkv', 'E.T.', '1982'],
  ['the_old_mill-2160p.mp4', 'the old mill', ''],
  ['[Group] A Series - 07 [ABCD1234].mkv', 'A Series - 07', ''],
  ['The Darjeeling Limited.mp4', 'The Darjeeling Limited', ''],
  ['Film.EXTENDED.REPACK.1080p.mkv', 'Film', ''],
  ['Film {tmdb-1}.mkv', 'Film', ''],
  ['Fahrenheit 9.11 (2004).avi', 'Fahrenheit 9 11', '2004'],
  ['Über den Fluß.ts', 'Über den Fluß', ''],
  ['_._', '_._', ''],
  ['.mp4', 'mp4', ''],
  ['[1080p].mp4', '[1080p]', ''],
  ['__proto__', 'proto', ''],
  ['recording 2024-05-01 10.00.00.mp4', 'recording 2024-05-01 10 00 00', ''],
];

const titles = scope(['titles.js']);

step('titles and years', () => {
  for (const [name, title, year] of NAMES) assert.deepEqual([name, titles(`cleanTitle(${JSON.stringify(name)})`)], [name, { title, year }]);
});

step('names of folders have no extension', () => {
  assert.deepEqual(titles('cleanTitle("Season 1.5", false)'), { title: 'Season 1 5', year: '' });
});

step('long names take no time', () => {
  for (const part of ['.', '_', 'a.', '(2019', '[', ' -', 'A.B.', '1080p ', ' (2019)']) titles(`cleanTitle(${JSON.stringify(part.repeat(4000 / part.length))}).title`);
});

step('seasons and episodes are in order', () => {
  const paths = ['S10E01.mp4', 's2e10.mp4', 'S2E9.mp4', 'S02E01.mp4', 'écluse.mp4', 'Z.mp4', 'ecluse 2.mp4'];
  const found = titles(`sorted(${JSON.stringify(paths.map(path => ({ path })))}).map(row => row.path)`);
  assert.deepEqual(found, ['écluse.mp4', 'ecluse 2.mp4', 'S02E01.mp4', 'S2E9.mp4', 's2e10.mp4', 'S10E01.mp4', 'Z.mp4']);
});

step('seasons in order, specials last', () => {
  const of = paths => titles(`sorted(${JSON.stringify(paths.map(path => ({ path })))}).map(row => row.path)`);
  assert.deepEqual(of(['a/Season 10/', 'a/Specials/', 'a/Season 2/', 'a/Trailers/', 'a/season 01/']), ['a/season 01/', 'a/Season 2/', 'a/Season 10/', 'a/Trailers/', 'a/Specials/']);
  assert.deepEqual(of(['Season 00 Specials/', 'Season 1/']), ['Season 1/', 'Season 00 Specials/']);
  assert.deepEqual(of(['Staffel 11/', 'Staffel 0/', 'Staffel 3/']), ['Staffel 3/', 'Staffel 11/', 'Staffel 0/']);
  assert.deepEqual(of(['Show.S00E01.mkv', 'Show.S10E01.mkv', 'Show.S02E01.mkv']), ['Show.S02E01.mkv', 'Show.S10E01.mkv', 'Show.S00E01.mkv']);
  // Extras is the name of a series too.
  assert.deepEqual(of(['Extras/', 'Firefly/', 'Bones/']), ['Bones/', 'Extras/', 'Firefly/']);
});

step('the newest first, then by name', () => {
  const rows = [{ path: 'b', modified: 1 }, { path: 'a', modified: 1 }, { path: 'c', modified: 2 }, { path: 'd' }];
  assert.deepEqual(titles(`sorted(${JSON.stringify(rows)}, true).map(row => row.path)`), ['c', 'a', 'b', 'd']);
});

step('two of one title are told apart', () => {
  const rows = ['film.1080p', 'film.720p', 'other'].map(name => ({ name }));
  const found = titles(`toldApart(${JSON.stringify(rows)}.map(row => ({ ...row, ...cleanTitle(row.name, false) }))).map(row => row.title)`);
  assert.deepEqual(found, ['film 1080p', 'film 720p', 'other']);
});

// Each asset by its tracks and by the tracks that are left out, with the player and the words.
const SOUNDS = [
  [['video avc1', 'audio mp4a.40.2'], [], 'hls', ''],
  [['video avc1', 'audio alaw!G.711 A-law'], [], 'hls', "No sound: G.711 can't be played by browsers"],
  [['video avc1', 'audio alaw!G.711 A-law'], [], 'native', "No sound: this browser can't play G.711"],
  [['audio alaw!G.711 A-law'], [], 'hls', ''],
  [['video avc1'], ['audio DTS'], 'hls', "No sound: DTS can't be played by browsers"],
  [['video avc1'], ['audio Windows Media Audio'], 'dash', "No sound: Windows Media Audio can't be played by browsers"],
  [['video avc1', 'audio mp4a.40.2'], ['audio Dolby TrueHD', 'audio Dolby TrueHD', 'video ProRes'], 'hls', 'Sound left out: Dolby TrueHD'],
  [['video avc1'], ['text teletext'], 'hls', ''],
  [['video avc1', 'audio ac-3'], [], 'dash', "No sound: this browser can't play Dolby Digital (AC-3)"],
];

step('missing sound has words', () => {
  const page = scope(['trouble.js', 'left_out.js'], { decodable: (_, codec) => /^(avc1|mp4a)/.test(codec) });
  for (const [all, left, engine, words] of SOUNDS) {
    const tracks = all.map(text => {
      const [, kind, codec, unlisted] = /^(\S+) ([^!]+)!?(.*)$/.exec(text);
      return { kind, codec, listed: !unlisted, 'codec-name': unlisted || undefined };
    });
    const leftOut = left.map(text => ({ track: 9, kind: text.split(' ', 1)[0], codec: text.slice(text.indexOf(' ') + 1) }));
    assert.equal(page(`missingSound(${JSON.stringify({ tracks, 'left-out': leftOut })}, '${engine}')`), words);
  }
  // An earlier server has no list.
  const tracks = [{ kind: 'video', codec: 'avc1' }, { kind: 'audio', codec: 'mp4a.40.2' }];
  assert.equal(page(`missingSound(${JSON.stringify({ tracks })}, 'hls')`), '');
});

step('what does not play has words', () => {
  const page = scope(['unplayable.js', 'trouble.js'], { view: { path: 'films/old.mkv' } });
  assert.equal(page("notPlayed(['an MPEG program stream'])"), "can't be played: MPEG program stream");
  assert.equal(page('notPlayed([])'), "can't be played");
  const words = (code, media, command) => page(`plainWords('words of the server', ${JSON.stringify({ code, media, command })})`);
  assert.equal(words('codec', ['MPEG-2 video', 'DTS'], 'ffmpeg …'), 'old.mkv has MPEG-2 video, DTS, which is not played here. This makes a file that plays:\nffmpeg …');
  assert.equal(words('format', ['MXF']), 'old.mkv is MXF, which is not played here.');
  assert.equal(words(undefined, []), 'words of the server');
});

// A storage, as browsers have it.
function storage(text = null) {
  const all = new Map(text === null ? [] : [['millpond http://h/', text]]);
  return { getItem: key => all.get(key) ?? null, setItem: (key, value) => all.set(key, value), all };
}

const memory = localStorage => scope(['memory.js'], { here: 'http://h/~eyX', token: '/~eyX', localStorage });

step('places are remembered', () => {
  const store = storage();
  const first = memory(store);
  first('remember(({ places }) => { places.set("a.mp4", { at: 100, lasts: 200, when: 1 }); places.set("b/c.mp4", { at: 199, lasts: 200, when: 2 }); }), 0');
  first('wish({ sort: "newest" }), 0');
  // Another page, with another token.
  const second = memory(store);
  assert.deepEqual(second('[placeIn("a.mp4"), placeIn("b/c.mp4"), shareSeen("b/c.mp4") >= SEEN, begun(""), begun("b/"), memory.wishes.sort]'),
    [100, 0, true, ['a.mp4'], [], 'newest']);
  assert.deepEqual([...store.all.keys()], ['millpond http://h/']);
});

step('the memory has an end', () => {
  const run = memory(storage());
  run('remember(({ places }) => { for (let n = 0; n < 1000; n += 1) places.set(`${n}`, { at: 10, lasts: 100, when: n }); }), 0');
  assert.deepEqual(run('[memory.places.size, memory.places.has("999"), memory.places.has("0")]'), [300, true, false]);
});

step('a page without storage works', () => {
  const refuses = { getItem() { throw new Error('refused'); }, setItem() { throw new Error('refused'); } };
  const run = memory(refuses);
  run('remember(({ places }) => places.set("a", { at: 10, lasts: 100, when: 1 })), 0');
  assert.equal(run('placeIn("a")'), 10);
  for (const text of ['{', 'null', '5', '[]', '{"places":5,"wishes":"x"}', '{"places":[5,null,["a"],["a",{"lasts":"x"}]]}']) {
    assert.deepEqual(memory(storage(text))('[memory.places.size, begun("")]'), [0, []], text);
  }
});

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);

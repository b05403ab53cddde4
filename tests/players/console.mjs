// Uses the console as operators do: views, filters, keyboard, token, a server that is away, light and dark, a phone.
// Usage: node console.mjs PORT [SCREENSHOT_FOLDER]                    with made-up data (console_mock.mjs), on PORT and PORT + 1
//        node console.mjs PORT ADMIN_URL HTTP_URL CHANNEL [SCREENSHOT_FOLDER]   with a server that has 10,000 assets below films/

import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { start } from './console_mock.mjs';

const [port, ...others] = process.argv.slice(2);
const isReal = others.length > 1;
const [admin, web, channel] = isReal ? others : [`http://127.0.0.1:${port}`];
const shots = isReal ? others[3] : others[0];
const axe = readFileSync(new URL('./node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const TOKEN = 'a token for the tests';
const PATIENCE = 60000;

const scratch = mkdtempSync(join(tmpdir(), 'console-'));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});

let passed = 0;
let failed = 0;

// Runs a step in a tab of its own. A fault of a script, a word on the browser's console, and a request to another address fail it, but for
// statuses of `expected`.
async function step(name, run, { base = admin, expected = [], ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const faults = [];
  page.on('pageerror', error => faults.push(`script: ${error.message}`));
  page.on('console', message => {
    const status = /status of (\d+)/.exec(message.text())?.[1];
    const isExpected = expected.includes(Number(status)) || expected.includes(0) && /ERR_CONNECTION|ERR_EMPTY/.test(message.text());
    if (['error', 'warning'].includes(message.type()) && !isExpected) faults.push(`console: ${message.text()} ${message.location().url}`);
  });
  page.on('request', request => {
    if (new URL(request.url()).origin !== new URL(base).origin) faults.push(`a request to ${request.url()}`);
    if (request.url().includes(encodeURIComponent(TOKEN))) faults.push('the token is in an address');
  });
  try {
    const note = await run(page, base);
    if (faults.length) throw new Error(faults[0]);
    passed += 1;
    console.log(`console    ${name.padEnd(40)} ok ${note ?? ''}`);
  } catch (error) {
    failed += 1;
    console.log(`console    ${name.padEnd(40)} FAILED ${error.message.split('\n').slice(0, 3).join(' ')} ${faults.slice(0, 3).join('; ')}`);
    await page.screenshot({ path: join(shots ?? scratch, `failed-${name.replaceAll(/\W+/g, '-')}.png`) }).catch(() => {});
  }
  await context.close();
}

const is = (what, found, expected) => {
  if (found !== expected) throw new Error(`${what}: ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
};
const shot = (page, name) => shots && page.screenshot({ path: join(shots, `console-${name}.png`), fullPage: true });
const text = (page, selector) => page.locator(selector).first().textContent();
const rows = page => page.locator('tbody tr').count();
const waitForText = (page, selector, pattern) => page.waitForFunction(([where, source]) => new RegExp(source).test(document.querySelector(where)?.textContent ?? ''), [selector, pattern.source]);
const focused = page => page.evaluate(() => document.activeElement.id || document.activeElement.textContent);

// Views, and what they show once their data is there.
const VIEWS = [
  ['overview', '.chart strong:not(:empty)'], ['sessions', '.total, .empty'], ['streams', '.total, .empty'], ['graph', '.graph .module, .empty'], ['cache', 'tbody tr, .empty'],
  ['cache?list=assets', 'tbody tr'], ['origins', '.origin .facts dd'], ['cluster', '.facts dd, .empty'], ['explain', '.empty'], ['settings', '.settings li'], ['logs', '.log li, .empty'], ['simulator', '.runs li'],
];
const MADE_UP = [['cache?path=films/a.mp4', '.cachemap path'], ['explain?url=films/a.mp4/v1/3.m4s', '.split i'], ['cluster?path=films/a.mp4', 'pre'], ['simulator?run=1', '.figure'], ['streams?stream=cams/door1', '.detail .facts dd']];

async function accessible(page, view) {
  await page.evaluate(axe);
  const findings = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ['violations'] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 120)} ${nodes[0].failureSummary.replaceAll('\n', ' ').slice(0, 160)}`);
  });
  if (findings.length) throw new Error(`${view}: axe: ${findings.join(' | ')}`);
}

async function fits(page, view) {
  const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  if (wide > room) throw new Error(`${view}: ${wide} px wide in ${room}`);
}

async function look(page, base, views, name) {
  for (const [view, ready] of views) {
    await page.goto(`${base}/#${view}`);
    await page.locator(ready.split(', ').map(part => `${part}:visible`).join(', ')).first().waitFor();
    await fits(page, view);
    await accessible(page, view);
    await shot(page, `${name}-${view.split('=')[0].replaceAll(/\W+/g, '-')}`);
  }
  return `${views.length} views`;
}

const mock = isReal ? null : await start(Number(port));
const all = isReal ? VIEWS : [...VIEWS, ...MADE_UP];
// A server without a cluster, a recordings' folder or simulations says so.
const usual = isReal ? [403, 404] : [];

await step('views, light', (page, base) => look(page, base, all, 'light'), { colorScheme: 'light', expected: usual });
await step('views, dark', (page, base) => look(page, base, all, 'dark'), { colorScheme: 'dark', expected: usual });
await step('views, 360 px wide', (page, base) => look(page, base, all, 'phone'), { viewport: { width: 360, height: 740 }, expected: usual });

await step('numbers have units', async (page, base) => {
  await page.goto(base);
  const shown = await page.evaluate(async () => {
    const { bytes, rate, duration, percent, perSecond, plural } = await import('/console/format.js');
    return [
      bytes(0), bytes(1023), bytes(1048576), bytes(1.5 * 2 ** 40), bytes(null), rate(999), rate(4100000), rate(999999), duration(0), duration(0.021), duration(9.96), duration(300), duration(93784), percent(0.9999), percent(0.5), percent(undefined), perSecond(12.04),
      perSecond(1234.5), plural(1, 'slice'), plural(2500, 'slice'),
    ].join('|');
  });
  is('shown', shown, '0 B|1023 B|1.00 MiB|1.50 TiB|–|999 bit/s|4.10 Mbit/s|1.00 Mbit/s|0 s|21 ms|10.0 s|5 min|1 d 2 h|100 %|50.0 %|–|12.0 /s|1,235 /s|1 slice|2,500 slices');
});

await step('graphs have their places', async (page, base) => {
  await page.goto(base);
  const found = await page.evaluate(async () => {
    const { layout } = await import('/console/layout.js');
    const module = (id, kind) => ({ id, kind, label: `label ${id}` });
    const modules = [module(1, 'loader'), module(2, 'channel'), ...Array.from({ length: 20000 }, (_, index) => module(index + 3, index < 19999 ? 'transmission' : 'recorder'))];
    const pipes = [{ from: 1, to: 2, depth: 4, lost: 0 }, ...modules.slice(2).map(({ id }) => ({ from: 2, to: id, depth: 4, lost: id % 2 }))];
    const placed = layout(modules, pipes, 1000);
    // A pipe back to the beginning, as no graph has, must not hang it.
    const round = layout([module(1, 'a'), module(2, 'b')], [{ from: 1, to: 2, lost: 0 }, { from: 2, to: 1, lost: 0 }], 1000);
    const apart = layout(Array.from({ length: 900 }, (_, id) => module(id, 'loader')), [], 1000);
    return {
      kinds: placed.nodes.map(({ kind, members }) => `${kind} ${members.length}`).toSorted().join(), leftOut: placed.leftOut, columns: new Set(placed.nodes.map(({ x }) => x)).size, lost: placed.edges.reduce((sum, edge) => sum + edge.lost, 0),
      round: round.nodes.length, apart: apart.nodes.length, apartLeftOut: apart.leftOut, wide: apart.width <= 1000,
    };
  });
  is('layout', JSON.stringify(found), JSON.stringify({
    kinds: 'channel 1,loader 1,recorder 1,transmission 19999', leftOut: 0, columns: 3, lost: 10000, round: 2, apart: 400, apartLeftOut: 500, wide: true,
  }));
});

await step('10,000 assets', async (page, base) => {
  await page.goto(`${base}/#cache?list=assets`);
  await waitForText(page, '.total', /^10,\d\d\d assets/);
  is('rows', await rows(page), 100);
  await page.getByRole('button', { name: 'Next' }).click();
  await waitForText(page, '.pages', /Page 2 of 10\d/);
  const second = await text(page, 'tbody th');
  await page.getByRole('button', { name: 'Next' }).click();
  await waitForText(page, '.pages', /Page 3/);
  await page.getByRole('button', { name: 'Previous' }).click();
  await page.waitForFunction(path => document.querySelector('tbody th').textContent === path, second);
  await page.locator('#filter-q').fill('09999');
  await waitForText(page, '.total', /^1 asset found/);
  await page.reload();
  await waitForText(page, '.total', /^1 asset found/);
});

const stop = isReal ? watch() : null;
await step('5,000 sessions', async (page, base) => {
  await page.goto(`${base}/#sessions`);
  await waitForText(page, '.total', /^5,\d\d\d sessions/);
  is('rows', await rows(page), 100);
  // The longest time in which the page drew nothing, told and not judged: the machine may be busy.
  await page.evaluate(() => {
    let last = performance.now();
    window.longest = 0;
    const frame = at => {
      window.longest = Math.max(window.longest, at - last);
      last = at;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  await page.getByRole('button', { name: 'Sent' }).click();
  await page.locator('th[aria-sort=descending]').waitFor();
  await page.waitForFunction(() => !document.querySelector('.pages').hidden && document.querySelectorAll('tbody tr').length === 100);
  await page.getByRole('button', { name: 'Next' }).click();
  await waitForText(page, '.pages', /Page 2 of 5\d/);
  const longest = await page.evaluate(() => window.longest);
  await page.goBack();
  await waitForText(page, '.pages', /Page 1 of 5\d/);
  await page.goBack();
  await page.waitForFunction(() => !document.querySelector('th[aria-sort]'));
  await page.locator('#filter-kind').selectOption('long');
  await page.waitForFunction(() => location.hash === '#sessions?kind=long');
  await waitForText(page, '.total', isReal ? /^1 session found/ : /^99\d sessions found/);
  await shot(page, 'sessions');
  return `longest frame ${Math.round(longest)} ms`;
});

await step('a session is ended', async (page, base) => {
  await page.goto(`${base}/#sessions?kind=long`);
  const first = page.locator('tbody tr').first();
  const client = await first.locator('th span').first().textContent();
  await first.getByRole('button').click();
  await page.locator('dialog').waitFor();
  await accessible(page, 'question');
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  is('told', await text(page, '.told'), '');
  await first.getByRole('button').click();
  await page.locator('dialog').getByRole('button', { name: 'End' }).click();
  await waitForText(page, '.told', /has been ended/);
  await page.getByRole('button', { name: 'Admit again' }).click();
  await page.waitForFunction(() => !document.querySelector('.view > .card:not([hidden])'));
  return client;
});

stop?.();

await step('keyboard', async (page, base) => {
  await page.goto(base);
  await page.locator('.chart').first().waitFor();
  await page.keyboard.press('Tab');
  is('first', await focused(page), 'skip');
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  is('outline', outline, 'solid');
  await page.keyboard.press('Enter');
  is('skipped to', await focused(page), 'main');
  await page.keyboard.press('g');
  await page.keyboard.press('s');
  await page.locator('#view-sessions table').waitFor();
  is('heading', await focused(page), 'Sessions');
  await page.keyboard.press('/');
  is('filter', await focused(page), 'filter-q');
  await page.keyboard.type('g?');
  is('typed', await page.locator('#filter-q').inputValue(), 'g?');
  await page.waitForFunction(() => location.hash === '#sessions?q=g%3F');
  await page.locator('#keys').focus();
  await page.keyboard.press('?');
  await page.locator('dialog[open]').waitFor();
  await accessible(page, 'shortcuts');
  await shot(page, 'shortcuts');
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  is('focus', await focused(page), 'keys');
  await page.keyboard.press('p');
  is('state', await text(page, '#state'), 'paused');
  await page.goBack();
  await page.waitForFunction(() => location.hash === '#sessions');
  await page.goBack();
  await page.locator('#view-overview').waitFor();
});

await step('the theme is switched and kept', async (page, base) => {
  await page.goto(base);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.locator('#theme').click();
  await page.locator('#theme').click();
  is('theme', (await text(page, '#theme')).trim(), 'Theme: dark');
  if (await ground() === light) throw new Error('the colours stay');
  await page.reload();
  is('after a reload', await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
}, { colorScheme: 'light' });

await step('explain', async (page, base) => {
  await page.goto(`${base}/#explain`);
  const path = isReal ? 'films/asset-00001.mp4' : 'films/a.mp4/v1/3.m4s';
  await page.locator('#url').fill(isReal ? `${web}/${path}?x=1` : path);
  await page.keyboard.press('Enter');
  await page.locator('.split').waitFor();
  is('address', new URL(page.url()).hash, `#explain?url=${encodeURIComponent(path)}`);
  await page.locator('#url').fill('films/nothing');
  await page.keyboard.press('Enter');
  await page.locator('.problem:visible').waitFor();
  await page.goBack();
  await page.locator('.split').waitFor();
}, { expected: [404] });

if (isReal) {
  await step('the graph has a channel', async (page, base) => {
    const long = new AbortController();
    const reply = await fetch(`${web}/${channel}/stream.mp4`, { signal: long.signal });
    await reply.body.getReader().read();
    await page.goto(`${base}/#graph?q=${encodeURIComponent(channel)}`);
    await page.locator('.graph .module[data-kind=channel]').click();
    await page.locator('.detail h3').first().waitFor();
    await shot(page, 'graph');
    long.abort();
    await page.locator('.empty').waitFor();
  });
  await step('settings in force', async (page, base) => {
    await page.goto(`${base}/#settings?q=cache-size`);
    const card = page.locator('.settings li').first();
    await card.waitFor();
    is('from', await card.locator('.badge').textContent(), 'flag');
    is('editable', await card.getByRole('button').isDisabled(), true);
  });
} else {
  await step('a wrong setting has the server\'s words', async (page, base) => {
    await page.goto(`${base}/#settings?q=cache-memory`);
    await page.getByRole('button', { name: 'Change cache-memory' }).click();
    await page.locator('#edit-cache-memory').fill('much');
    await page.keyboard.press('Enter');
    await waitForText(page, '.edit .problem', /^millpond\.toml:3:16: cache-memory: expected a size/);
    await accessible(page, 'form');
    await shot(page, 'setting');
    await page.locator('#edit-cache-memory').fill('1GiB');
    await page.keyboard.press('Enter');
    await waitForText(page, '.told', /^Changed: cache-memory: 8GiB → 1GiB$/);
    is('focus', await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Change cache-memory');
  }, { expected: [422] });
  await step('a run from a file is plotted', async (page, base) => {
    const file = join(scratch, 'dispensers.json');
    const run = (streams, cache) => ({ rate: 1500, skew: 1.2, assignment: 'sosd', cache, delay: 0, streams, 'cached-share': cache ? 0.4 : 0, 'missed-share': streams / 5000, 'delayed-share': 0 });
    writeFileSync(file, JSON.stringify([300, 400, 500].flatMap(streams => [run(streams, 0), run(streams, 20 << 20)])));
    await page.goto(`${base}/#simulator`);
    await page.locator('input[type=file]').setInputFiles(file);
    await waitForText(page, '.legend', /no cache.*cache 20\.0 MiB/);
    is('plots', await page.locator('.figure').count(), 2);
    writeFileSync(file, '{"no": "run"}');
    await page.locator('input[type=file]').setInputFiles(file);
    await waitForText(page, '.told', /can't be read/);
  });
  await step('a node drains', async (page, base) => {
    await page.goto(`${base}/#cluster`);
    await page.getByRole('button', { name: 'Drain: edge2' }).click();
    await page.locator('dialog').getByRole('button', { name: 'Drain' }).click();
    await waitForText(page, '.told', /edge2 is draining/);
  });
  await step('the fleet', async (page, base) => {
    await page.goto(`${base}/#cluster`);
    await waitForText(page, 'main', /93\.0 % from the cache/);
    await page.getByText('node edge8 has not answered within 1 s').first().waitFor();
    await page.getByRole('link', { name: 'films/a.mp4' }).click();
    is('address', new URL(page.url()).hash, '#cluster?path=films%2Fa.mp4');
    await page.getByText('40 in memory, 60 on the disk, of 100').waitFor();
    await page.locator('#assign').fill('http://edge1.example:8080/cams/door1/index.m3u8?x=1');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => location.hash === '#cluster?path=cams%2Fdoor1%2Findex.m3u8');
    await page.getByText('node.joined').waitFor();
  });
  await step('a node by way of another', async (page, base) => {
    await page.goto(`${base}/#sessions`);
    await waitForText(page, '.total', /^\d,\d\d\d sessions/);
    const asked = [];
    page.on('request', request => asked.push(new URL(request.url()).pathname));
    await page.locator('#node').selectOption('edge2');
    await waitForText(page, '#server', /^edge2 · /);
    // Requests of before the choice may have been under way.
    asked.length = 0;
    await page.goto(`${base}/#streams`);
    await waitForText(page, '.total', /streams/);
    await page.locator('#view-streams').waitFor();
    const elsewhere = asked.filter(path => path.startsWith('/api/v1/') && !path.startsWith('/api/v1/cluster'));
    is('asked at this node', elsewhere.join(), '');
    if (!asked.some(path => path.startsWith('/api/v1/cluster/nodes/edge2/api/streams'))) throw new Error(`asked: ${asked.join(' ')}`);
    await page.goto(`${base}/#cluster`);
    await page.getByText('Hot titles of the fleet').waitFor();
    await accessible(page, 'another node');
    await page.locator('#node').selectOption('');
    await waitForText(page, '#server', /^edge1 · /);
  });
  const guarded = `http://127.0.0.1:${Number(port) + 1}`;
  const second = await start(Number(port) + 1, TOKEN);
  await step('the token is asked for', async (page, base) => {
    await page.goto(base);
    await page.locator('#token').waitFor();
    await accessible(page, 'token');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Give the token' }).click();
    await page.locator('#token').waitFor();
    await page.locator('#token').fill('another token');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('#token')?.value === '');
    await page.locator('#token').fill(TOKEN);
    await page.keyboard.press('Enter');
    await page.locator('.chart strong:not(:empty)').first().waitFor();
    await page.goto(`${base}/#sessions`);
    await waitForText(page, '.total', /^\d,\d\d\d sessions/);
    is('kept', await page.evaluate(() => sessionStorage.getItem('millpond-token')), TOKEN);
    is('kept for longer', await page.evaluate(() => JSON.stringify(localStorage).includes('token')), false);
  }, { base: guarded, expected: [401] });
  second.closeAllConnections();
  second.close();
  await step('a server that is away', async (page, base) => {
    await page.goto(base);
    await waitForText(page, '#state', /^live$/);
    mock.close();
    mock.closeAllConnections();
    await waitForText(page, '#trouble', /does not answer/);
    is('state', await text(page, '#state'), 'no answer');
    await accessible(page, 'away');
    await shot(page, 'away');
    const again = await start(Number(port));
    await waitForText(page, '#state', /^live$/);
    is('trouble', await text(page, '#trouble'), '');
    again.closeAllConnections();
    again.close();
  }, { expected: [0] });
}

await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);

// Keeps 5,000 viewers of the server by HTTP, told apart by their agents, and one of a long response, until it is stopped.
function watch() {
  const ends = new AbortController();
  const { signal } = ends;
  let next = 0;
  const viewer = async () => {
    while (!signal.aborted) {
      next += 1;
      const reply = await fetch(`${web}/films/asset-00001.mp4/index.m3u8`, { headers: { 'User-Agent': `viewer ${next % 5000}` } });
      await reply.arrayBuffer();
    }
  };
  const long = async () => {
    const reply = await fetch(`${web}/${channel}/stream.mp4`, { signal });
    for await (const chunk of reply.body) if (!chunk) break;
  };
  [viewer, viewer, viewer, viewer, viewer, viewer, long].forEach(each => each().catch(() => {}));
  return () => ends.abort();
}

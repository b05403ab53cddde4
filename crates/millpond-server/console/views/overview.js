// The state of the whole server at a glance: viewers, rates, hits, origin, errors, room, what was watched, and what is wrong.

import { get } from '../api.js';
import { LiveChart, WINDOW } from '../chart.js';
import { fact, h, keyed, setAttribute, setText } from '../dom.js';
import { bytes, count, decimal, duration, percent, perSecond, rate } from '../format.js';
import { meterCell } from '../table.js';
import { href } from '../route.js';
import { viewingCards } from '../viewing.js';

// Seconds between two polls of the state, and of health.
const EACH = 1;
const HEALTH = 5;

// Points of the last minutes: kept while other views are open.
let history = [];

const CHARTS = [
  { title: 'Viewers', format: count, href: href('sessions'), least: 5, sum: true, series: [{ name: 'HTTP' }, { name: 'RTSP' }], of: item => [item.viewers, item.sessions] },
  { title: 'Sent', format: rate, least: 1000, sum: true, series: [{ name: 'HTTP' }, { name: 'RTSP' }], of: item => [item['http-sent-bps'], item['rtsp-sent-bps']] },
  { title: 'Hit ratio', format: percent, href: href('cache'), most: 1, series: [{ name: 'hits' }], of: item => [item['hit-ratio']] },
  { title: 'From origins', format: rate, href: href('origins'), least: 1000, series: [{ name: 'origins' }], of: item => [item['received-bps']] },
  { title: 'Requests', format: perSecond, least: 5, series: [{ name: 'requests' }], of: item => [item['requests-per-second']] },
  { title: 'Errors', format: perSecond, href: href('logs', { level: 'warn' }), least: 1, series: [{ name: 'errors' }], of: item => [item['errors-per-second']], alarm: true },
];

// An overview as an item of the history.
const item = now => ({
  time: now.time, viewers: now.http.viewers, sessions: now.rtsp.sessions, 'http-sent-bps': now.http['sent-bps'], 'rtsp-sent-bps': now.rtsp['sent-bps'], 'received-bps': now.origins['received-bps'],
  'requests-per-second': now.http['requests-per-second'], 'errors-per-second': now.http['errors-per-second'], 'hit-ratio': now.cache['hit-ratio'],
});

export function open(page) {
  const health = h('ul', { class: 'health', 'aria-label': 'Health' });
  const charts = CHARTS.map(({ of, alarm, ...options }) => {
    const chart = new LiveChart(options);
    if (alarm) chart.element.classList.add('alarm');
    return [chart, of];
  });
  const room = h('dl', { class: 'meters' });
  const [http, rtsp, origins, live, process] = Array.from({ length: 5 }, () => h('dl', { class: 'facts' }));
  const card = (title, link, facts) => h('section', { class: 'card' }, h('h2', null, link ? h('a', { href: href(link) }, title) : title), facts);
  page.root.append(health, h('div', { class: 'charts' }, charts.map(([chart]) => chart.element)), h('div', { class: 'masonry' },
    card('Cache', 'cache', room), card('HTTP', 'sessions', http), card('RTSP', 'sessions', rtsp), card('Origins', 'origins', origins),
    card('Live streams', 'streams', live), viewingCards(page), card('Process', null, process)));
  let [last, state] = [null, null];

  const draw = () => charts.forEach(([chart, of]) => chart.update(history.map(point => ({ time: point.time, values: of(point).map(value => value ?? null) }))));
  function show(now) {
    if (!history.length || now.time > history.at(-1).time) history.push(item(now));
    history = history.filter(point => point.time > now.time - WINDOW - 5);
    last = now;
    draw();
    cards(now);
    showHealth();
  }

  function cards({ http: web, rtsp: sessions, origins: sources, cache, live: streams, process: own, 'uptime-seconds': uptime }) {
    meters(room, [
      ['Memory', cache['memory-bytes'], cache['memory-limit-bytes']], ['Disk', cache['disk-bytes'], cache['disk-limit-bytes']],
    ]);
    facts(http, [
      ['Viewers', count(web.viewers)], ['Responses', count(web.responses)], ['Connections', count(web.connections)], ['Sent', bytes(web['sent-bytes'])],
      ['Requests', count(web.requests)], ['Client errors', count(web['client-errors'])], ['Server errors', count(web['server-errors']), web['server-errors'] > 0],
      ['Broken', count(web.broken), web.broken > 0, 'Responses that ended because of an error here'], ['Unfinished', count(web.unfinished), false, 'Responses whose client left or was too slow'],
    ]);
    facts(rtsp, [
      ['Sessions', count(sessions.sessions)], ['Playing', count(sessions.playing)], ['Publishing', count(sessions.publishing)], ['Sent', bytes(sessions['sent-bytes'])],
      ['Refused', count(sessions.refused), sessions.refused > 0],
    ]);
    facts(origins, [
      ['Received', bytes(sources['received-bytes'])], ['Requests', count(sources.requests)], ['In flight', count(sources['in-flight'])], ['Errors', count(sources.errors), sources.errors > 0],
    ]);
    facts(live, [['Streams', count(streams.streams)], ['Running', count(streams.running)], ['Failed', count(streams.failed), streams.failed > 0], ['Viewers', count(streams.viewers)]]);
    facts(process, [
      ['Uptime', duration(uptime)], ['Memory', bytes(own['memory-bytes'])], ['Processors in use', decimal(own.cpu, 2)], ['Open files', count(own['open-files'])],
      ['Lost log lines', count(own['lost-log-lines']), own['lost-log-lines'] > 0],
    ]);
  }

  function showHealth() {
    if (!last) return;
    const lines = [];
    if (!last['is-ready']) lines.push(['bad', `Not ready${state ? `: ${state['waiting-for'].join('; ')}` : ''}.`]);
    if (last.rtsp['is-overloaded']) lines.push(['bad', 'RTSP is overloaded: new sessions are refused.']);
    if (last.live.failed) lines.push(['bad', `${count(last.live.failed)} of ${count(last.live.streams)} live streams have failed.`, href('streams', { state: 'failed' })]);
    for (const doubt of state?.doubts ?? []) lines.push(['warn', doubt, href('settings')]);
    if (!lines.length) lines.push(['good', 'Ready. Nothing is wrong.']);
    keyed(health, lines, ([, text]) => text, ([, text, link]) => h('li', null, link ? h('a', { href: link }, text) : text), (node, [kind]) => setAttribute(node, 'data-kind', kind));
  }

  page.poll(async signal => {
    // What happened before this page was opened, and while another view or nothing was shown.
    if (!history.length || Date.now() / 1000 - history.at(-1).time > 10) {
      const { items } = await get('overview/history', null, signal);
      if (items.length) history = items;
    }
    return get('overview', null, signal);
  }, show, EACH);
  page.poll(signal => get('health', null, signal), value => {
    state = value;
    showHealth();
  }, HEALTH);
  if (history.length) draw();
}

// Facts as [name, value, whether it is bad, explanation].
function facts(list, pairs) {
  keyed(list, pairs, ([name]) => name, ([name,,, title]) => fact(name, null, title), (node, [, value, isBad]) => {
    setText(node.lastChild, value);
    node.classList.toggle('bad', Boolean(isBad));
  });
}

// Room in use, as [name, bytes, limit]. Without a limit there is none of it.
function meters(list, rows) {
  keyed(list, rows, ([name]) => name, ([name]) => h('div', null, h('dt', null, name), h('dd')), (node, [, used, limit]) => {
    if (limit === null || limit === 0) setText(node.lastChild, 'off');
    else meterCell(node.lastChild, `${bytes(used)} of ${bytes(limit)}`, used / limit);
  });
}

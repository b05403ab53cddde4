// Two cards of viewing: the titles of today, and the last days.

import { get } from './api.js';
import { h, keyed, setAttribute, setText } from './dom.js';
import { count, plural, viewerHours } from './format.js';
import { meterCell } from './table.js';

// Titles and days that are shown, and seconds between two polls.
const [TITLES, DAYS, EACH] = [8, 14, 10];
// As many as the API gives at once: a day has no more titles of its own.
const MOST = 1000;

// Makes the cards and keeps them up to date.
export function viewingCards(page) {
  const [titles, days] = [h('dl', { class: 'meters paths' }), h('dl', { class: 'meters' })];
  const total = h('p', { class: 'total' });
  page.poll(signal => get('viewing', { day: 'today', limit: MOST }, signal), ({ today, viewers, days: all, items }) => {
    const now = all.find(({ day }) => day === today);
    setText(total, now ? `${plural(viewers, 'viewer')} now, at most ${count(now.peak)}; ${plural(now.starts, 'start')}, ${plural(now.rebuffers, 'rebuffer')}` : 'Nobody has watched today (UTC).');
    const most = items.toSorted((one, other) => other['viewer-seconds'] - one['viewer-seconds']).slice(0, TITLES);
    bars(titles, most, ({ title }) => title ?? 'Other titles');
    bars(days, all.slice(-DAYS).toReversed(), ({ day }) => day);
  }, EACH);
  const card = (title, ...content) => h('section', { class: 'card' }, h('h2', null, title), content);
  return [card('Viewing today', total, titles), card('Viewer hours by day', days)];
}

// A bar for each item, as long as its share of the longest one.
function bars(list, items, name) {
  const longest = Math.max(...items.map(item => item['viewer-seconds']), 0);
  keyed(list, items, name, () => h('div', null, h('dt'), h('dd')), (node, item) => {
    const { 'viewer-seconds': seconds, peak, starts, rebuffers } = item;
    setText(node.firstChild, name(item));
    meterCell(node.lastChild, viewerHours(seconds), longest ? seconds / longest : 0);
    setAttribute(node, 'title', `peak ${count(peak)}, ${plural(starts, 'start')}, ${plural(rebuffers, 'rebuffer')}`);
  });
}

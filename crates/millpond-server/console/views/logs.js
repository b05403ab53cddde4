// The last minutes of the log, as they grow.

import { get } from '../api.js';
import { empty, h, keyed, setAttribute, setText } from '../dom.js';
import { count, time } from '../format.js';
import { filterBar } from '../list.js';

const LEVELS = [['', 'All'], ['error', 'Errors'], ['warn', 'Warnings and errors'], ['info', 'Info and above'], ['debug', 'Debug and above']];
// Lines that are asked for at once, and that are kept on the page.
const LINES = 500;
const EACH = 2;

export function open(page) {
  const bar = filterBar(page, [{ name: 'q', label: 'Find', hint: 'words of a line' }, { name: 'level', label: 'Level', options: LEVELS }]);
  const total = h('p', { class: 'total' });
  const lines = h('ol', { class: 'log' });
  const scroller = h('div', { class: 'scroll', tabindex: '0', role: 'log', 'aria-live': 'off', 'aria-label': 'Log, newest line last' }, lines);
  const nothing = h('div', { hidden: true });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  page.root.append(bar.element, problem, total, scroller, nothing);
  let [kept, after, lost] = [[], null, 0];

  function show(reply) {
    problem.hidden = true;
    // Who looks at older lines is not moved to the newest one.
    const follows = scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 40;
    kept = [...kept, ...reply.items].slice(-LINES);
    lost += after === null ? 0 : reply.lost;
    after = reply['next-after'];
    keyed(lines, kept, ({ number }) => number, made);
    scroller.hidden = kept.length === 0;
    nothing.hidden = kept.length > 0;
    if (!kept.length) {
      nothing.replaceChildren(page.filters.q
        ? empty('No line has these words.', 'Change the filters, or wait: new lines appear here.')
        : empty('The log is quiet.', 'Lines of the last ten minutes appear here. The setting log gives more of them.'));
    }
    setText(total, kept.length ? `${count(kept.length)} lines${lost ? `; ${count(lost)} came too fast to be shown` : ''}` : '');
    if (follows) scroller.scrollTop = scroller.scrollHeight;
  }

  function made({ time: at, level, target, message, fields }) {
    const pairs = Object.entries(fields ?? {}).map(([name, value]) => h('span', { class: 'field' }, h('i', null, name), '=', typeof value === 'string' ? value : JSON.stringify(value)));
    const node = h('li', null, h('time', null, time(at, true)), h('span', { class: 'level' }, level), h('span', { class: 'words' }, message, pairs.map(pair => [' ', pair]), h('small', null, ' ', target)));
    setAttribute(node, 'data-level', level);
    return node;
  }

  const poll = page.poll(signal => get('logs', { level: page.filters.level, q: page.filters.q, after, limit: LINES }, signal), show, EACH, error => {
    problem.hidden = false;
    setText(problem, error.message);
  });
  return filters => {
    bar.show(filters);
    [kept, after, lost] = [[], null, 0];
    poll.run();
  };
}

// What runs of the simulator contain, and how it is plotted: those of the server, and files of millpond simulate --json.

import { bytes, count, decimal, duration, percent } from './format.js';

const missed = outcome => (outcome.bytes ? 1 - outcome['hit-bytes'] / outcome.bytes : null);
const plain = value => decimal(value, 3);

// Each form of outcomes: the field that tells it, the axis, the fields that tell lines apart, and the plots.
const FORMS = [
  {
    field: 'server-bytes', x: 'cache-bytes', name: 'Size of the cache', formatX: bytes, isLogarithmic: true,
    by: [['mode', String], ['policy', String], ['slice-bytes', bytes]],
    plots: [
      ['Bytes missed', missed, percent], ['From the origin', outcome => outcome['server-bytes'], bytes], ['False prefetch', outcome => outcome['false-prefetch-bytes'], bytes],
      ['Stalled', outcome => outcome['stall-seconds'], duration], ['Startup', outcome => outcome['startup-seconds'], duration],
    ],
  },
  {
    field: 'most-over-mean', x: 'nodes', name: 'Number of nodes', formatX: count, isLogarithmic: true, by: [['assignment', String]],
    plots: [
      ['Most loaded beside the mean', outcome => outcome['most-over-mean'], plain], ['Most loaded beside its bound', outcome => outcome['most-over-bound'], plain], ['From the origin, beside the least', outcome => outcome['origin-ratio'], plain],
      ['Decisions a second', outcome => outcome['decisions-per-second'], count], ['View', outcome => outcome['view-bytes'], bytes], ['Longest cut', outcome => outcome['longest-cut'], duration],
    ],
  },
  {
    field: 'delayed-share', x: 'streams', name: 'Number of streams', formatX: count,
    by: [['assignment', String], ['cache', value => (value ? `cache ${bytes(value)}` : 'no cache')], ['delay', value => `delay ${value}`], ['skew', value => `skew ${value}`], ['rate', value => `${value} kbit/s`]],
    plots: [['Cached requests', outcome => outcome['cached-share'], percent], ['Missed packets', outcome => outcome['missed-share'], percent], ['Delayed deadlines', outcome => outcome['delayed-share'], percent]],
  },
];

// Rows of `--compare` as outcomes: one for each workload, size and policy.
function compared(rows) {
  return rows.flatMap(row => row.missed.map(([policy, share]) => ({ workload: row.workload, 'cache-bytes': row['cache-bytes'], policy, missed: share })));
}

const COMPARED = {
  field: 'missed', x: 'cache-bytes', name: 'Size of the cache', formatX: bytes, isLogarithmic: true, by: [['workload', String], ['policy', String]], plots: [['Bytes missed', outcome => outcome.missed, percent]],
};

// Reads outcomes. Returns the form, lines with their names, and rows; null where nothing fits.
export function readRun(value) {
  if (!Array.isArray(value) || !value.length || typeof value[0] !== 'object' || value[0] === null) return null;
  const isCompared = Array.isArray(value[0].missed);
  const outcomes = isCompared ? compared(value) : value;
  const form = isCompared ? COMPARED : FORMS.find(({ field }) => field in outcomes[0]);
  if (!form) return null;
  // What is the same in all lines need not be in their names.
  const telling = form.by.filter(([field]) => new Set(outcomes.map(outcome => outcome[field])).size > 1);
  const names = new Map();
  const rows = outcomes.map(outcome => {
    const name = (telling.length ? telling : form.by.slice(0, 1)).map(([field, format]) => format(outcome[field])).join(', ');
    if (!names.has(name)) names.set(name, names.size);
    return { name, number: names.get(name), x: outcome[form.x], values: form.plots.map(([, read]) => read(outcome) ?? null) };
  });
  return { form, names: [...names.keys()], rows };
}

// The lines of one plot of a run.
export function linesOf({ names, rows }, index) {
  return names.map((name, number) => ({ name, number, points: rows.filter(row => row.number === number && row.values[index] !== null).map(row => [row.x, row.values[index]]).sort(([one], [other]) => one - other) })).filter(({ points }) => points.length);
}

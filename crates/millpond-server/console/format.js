// Numbers, times and units as the console shows them. Absent values are a dash.

const NONE = '–';
const isNumber = value => typeof value === 'number' && Number.isFinite(value);
const digits = value => (value >= 100 ? 0 : value >= 10 ? 1 : 2);

function scaled(value, base, units) {
  if (!isNumber(value)) return NONE;
  let [size, unit] = [Math.abs(value), 0];
  while (size >= base * 0.9995 && unit < units.length - 1) [size, unit] = [size / base, unit + 1];
  const text = unit === 0 ? size.toFixed(Number.isInteger(size) ? 0 : 1) : size.toFixed(digits(size));
  return `${value < 0 ? '-' : ''}${text} ${units[unit]}`;
}

export const bytes = value => scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']);
export const rate = value => scaled(value, 1000, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s']);
export const count = value => (isNumber(value) ? Math.round(value).toLocaleString('en-US') : NONE);
export const decimal = (value, places = 1) => (isNumber(value) ? value.toFixed(places) : NONE);
export const percent = value => (isNumber(value) ? `${(100 * value).toFixed(value >= 0.9995 || value < 0.0005 ? 0 : 1)} %` : NONE);
export const perSecond = value => (isNumber(value) ? `${value >= 100 ? count(value) : decimal(value)} /s` : NONE);

// A duration in seconds.
export function duration(seconds) {
  if (!isNumber(seconds)) return NONE;
  if (seconds === 0) return '0 s';
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const parts = [['d', Math.floor(whole / 86400)], ['h', Math.floor(whole / 3600) % 24], ['min', Math.floor(whole / 60) % 60], ['s', whole % 60]];
  const first = parts.findIndex(([, value]) => value > 0);
  return parts.slice(first, first + 2).filter(([, value], index) => index === 0 || value > 0).map(([unit, value]) => `${value} ${unit}`).join(' ');
}

// The time of all viewers together, in seconds.
export const viewerHours = seconds => (seconds >= 3600 ? `${seconds >= 360000 ? count(seconds / 3600) : decimal(seconds / 3600)} h` : duration(Math.round(seconds)));

const two = value => String(value).padStart(2, '0');

// The time of day of a time in seconds since the Unix epoch; the date too where it is another day.
export function time(seconds, withMillis) {
  if (!isNumber(seconds)) return NONE;
  const date = new Date(seconds * 1000);
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const millis = withMillis ? `.${String(date.getMilliseconds()).padStart(3, '0')}` : '';
  const isToday = date.toDateString() === new Date().toDateString();
  const day = isToday ? '' : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} `;
  return day + clock + millis;
}

export const ago = seconds => (isNumber(seconds) ? duration(Math.max(0, Date.now() / 1000 - seconds)) : NONE);

// A number and its noun.
export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

// The path of a request, from a path or a whole URL of this server.
export function pathOf(text) {
  const trimmed = text.trim();
  try { return decodeURI(new URL(trimmed).pathname).slice(1); } catch { return trimmed.replace(/^\//, ''); }
}

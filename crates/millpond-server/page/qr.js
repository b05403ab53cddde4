'use strict';

// QR codes (ISO/IEC 18004) of addresses: byte mode, error correction level L, version 1 to 40.

// Codewords for error correction of each block, and number of blocks, by version from 1.
const QR_CORRECTION = [7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28, 28, 28, 30, 30, 26, 28, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30];
const QR_BLOCKS = [1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8, 8, 9, 9, 10, 12, 12, 12, 13, 14, 15, 16, 17, 18, 19, 19, 20, 21, 22, 24, 25];
// Whether a module is inverted, by mask (table 10).
const QR_MASKS = [
  (x, y) => (x + y) % 2 === 0, (x, y) => y % 2 === 0, x => x % 3 === 0, (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0, (x, y) => x * y % 2 + x * y % 3 === 0,
  (x, y) => (x * y % 2 + x * y % 3) % 2 === 0, (x, y) => ((x + y) % 2 + x * y % 3) % 2 === 0,
];

// Modules for data and error correction.
function qrModules(version) {
  let count = (16 * version + 128) * version + 64;
  if (version >= 2) {
    const marks = Math.floor(version / 7) + 2;
    count -= (25 * marks - 10) * marks - 55;
  }
  return version >= 7 ? count - 36 : count;
}

const qrDataBytes = version => Math.floor(qrModules(version) / 8) - QR_CORRECTION[version - 1] * QR_BLOCKS[version - 1];

// Product in the field of 256 elements with the polynomial 0x11D.
function qrProduct(a, b) {
  let product = 0;
  for (let bit = 7; bit >= 0; bit -= 1) {
    product = (product << 1) ^ ((product >>> 7) * 0x11D);
    product ^= ((b >>> bit) & 1) * a;
  }
  return product;
}

// Coefficients of the generator polynomial, the highest first, without the leading 1.
function qrGenerator(degree) {
  const result = new Array(degree - 1).fill(0).concat(1);
  let root = 1;
  for (let n = 0; n < degree; n += 1) {
    for (let i = 0; i < degree; i += 1) result[i] = qrProduct(result[i], root) ^ (result[i + 1] || 0);
    root = qrProduct(root, 2);
  }
  return result;
}

function qrRemainder(data, generator) {
  const result = generator.map(() => 0);
  for (const byte of data) {
    const factor = byte ^ result.shift();
    result.push(0);
    generator.forEach((coefficient, i) => { result[i] ^= qrProduct(coefficient, factor); });
  }
  return result;
}

// The bytes of a text with mode, length and padding.
function qrData(bytes, version) {
  const bits = [];
  const put = (value, length) => { for (let n = length - 1; n >= 0; n -= 1) bits.push((value >>> n) & 1); };
  put(4, 4);
  put(bytes.length, version < 10 ? 8 : 16);
  bytes.forEach(byte => put(byte, 8));
  const room = 8 * qrDataBytes(version);
  put(0, Math.min(4, room - bits.length));
  put(0, (8 - bits.length % 8) % 8);
  for (let pad = 0xEC; bits.length < room; pad ^= 0xEC ^ 0x11) put(pad, 8);
  return Array.from({ length: bits.length / 8 }, (_, n) => bits.slice(8 * n, 8 * n + 8).reduce((byte, bit) => byte << 1 | bit, 0));
}

// Splits data into blocks, adds error correction and interleaves them.
function qrCodewords(data, version) {
  const [blocks, correction] = [QR_BLOCKS[version - 1], QR_CORRECTION[version - 1]];
  const whole = Math.floor(qrModules(version) / 8);
  const short = Math.floor(whole / blocks) - correction;
  const shorts = blocks - whole % blocks;
  const generator = qrGenerator(correction);
  let from = 0;
  const made = Array.from({ length: blocks }, (_, n) => {
    const part = data.slice(from, from += short + (n < shorts ? 0 : 1));
    return { part, more: qrRemainder(part, generator) };
  });
  const column = (name, n) => made.map(block => block[name][n]).filter(byte => byte !== undefined);
  const columns = (name, length) => Array.from({ length }, (_, n) => column(name, n)).flat();
  return columns('part', short + 1).concat(columns('more', correction));
}

// A square of modules, with what is the same in all codes of the version. `fixed` has those that are neither data nor masked.
function qrFrame(version) {
  const size = 4 * version + 17;
  const dark = Array.from({ length: size }, () => new Array(size).fill(false));
  const fixed = Array.from({ length: size }, () => new Array(size).fill(false));
  const set = (x, y, isDark) => {
    if (x < 0 || y < 0 || x >= size || y >= size) return;
    dark[y][x] = Boolean(isDark);
    fixed[y][x] = true;
  };
  const square = (left, top, reach, rings) => {
    for (let y = -reach; y <= reach; y += 1) {
      for (let x = -reach; x <= reach; x += 1) set(left + x, top + y, rings(Math.max(Math.abs(x), Math.abs(y))));
    }
  };
  for (let n = 0; n < size; n += 1) {
    set(6, n, n % 2 === 0);
    set(n, 6, n % 2 === 0);
  }
  for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]]) square(x, y, 4, ring => ring !== 2 && ring !== 4);
  const marks = version === 1 ? 0 : Math.floor(version / 7) + 2;
  const step = version === 32 ? 26 : Math.ceil((4 * version + 4) / (2 * marks - 2)) * 2;
  const places = Array.from({ length: marks }, (_, n) => (n ? size - 7 - (marks - 1 - n) * step : 6));
  places.forEach((x, i) => places.forEach((y, j) => {
    const isCorner = (!i && !j) || (!i && j === marks - 1) || (i === marks - 1 && !j);
    if (!isCorner) square(x, y, 2, ring => ring !== 1);
  }));
  if (version >= 7) {
    let rest = version;
    for (let n = 0; n < 12; n += 1) rest = (rest << 1) ^ ((rest >>> 11) * 0x1F25);
    const bits = version << 12 | rest;
    for (let n = 0; n < 18; n += 1) {
      const [a, b] = [size - 11 + n % 3, Math.floor(n / 3)];
      set(a, b, (bits >>> n) & 1);
      set(b, a, (bits >>> n) & 1);
    }
  }
  const format = mask => {
    const data = 1 << 3 | mask;
    let rest = data;
    for (let n = 0; n < 10; n += 1) rest = (rest << 1) ^ ((rest >>> 9) * 0x537);
    const bit = n => ((data << 10 | rest) ^ 0x5412) >>> n & 1;
    for (let n = 0; n < 6; n += 1) set(8, n, bit(n));
    set(8, 7, bit(6));
    set(8, 8, bit(7));
    set(7, 8, bit(8));
    for (let n = 9; n < 15; n += 1) set(14 - n, 8, bit(n));
    for (let n = 0; n < 8; n += 1) set(size - 1 - n, 8, bit(n));
    for (let n = 8; n < 15; n += 1) set(8, size - 15 + n, bit(n));
    set(8, size - 8, true);
  };
  format(0);
  return { size, dark, fixed, format };
}

// Puts codewords into the columns of a frame, two modules wide, from the lower right.
function qrFill({ size, dark, fixed }, codewords) {
  let n = 0;
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let row = 0; row < size; row += 1) {
      const y = ((right + 1) & 2) === 0 ? size - 1 - row : row;
      for (const x of [right, right - 1]) {
        if (fixed[y][x]) continue;
        dark[y][x] = Boolean((codewords[n >>> 3] >>> (7 - (n & 7))) & 1);
        n += 1;
      }
    }
  }
}

// How badly a code can be read (7.8.3): long runs, squares, patterns like the finders, and an unequal number of dark modules.
function qrPenalty({ size, dark }) {
  let penalty = 0;
  const lines = dark.concat(dark.map((_, x) => dark.map(row => row[x])));
  for (const line of lines) {
    const text = line.map(Number).join('');
    for (const run of text.match(/0{5,}|1{5,}/g) || []) penalty += run.length - 2;
    for (const form of [/(?=10111010000)/g, /(?=00001011101)/g]) penalty += 40 * (text.match(form) || []).length;
  }
  for (let y = 1; y < size; y += 1) {
    for (let x = 1; x < size; x += 1) {
      const same = dark[y][x] === dark[y - 1][x] && dark[y][x] === dark[y][x - 1] && dark[y][x] === dark[y - 1][x - 1];
      if (same) penalty += 3;
    }
  }
  const share = dark.flat().filter(Boolean).length / (size * size);
  return penalty + 10 * Math.floor(Math.abs(share - 0.5) * 20);
}

// The modules of the code of a text, as rows of booleans; null for texts of more than 2,953 bytes.
function qrCode(text) {
  const bytes = [...new TextEncoder().encode(text)];
  const fits = version => 8 * bytes.length + 4 + (version < 10 ? 8 : 16) <= 8 * qrDataBytes(version);
  const version = QR_BLOCKS.map((_, n) => n + 1).find(fits);
  if (!version) return null;
  const codewords = qrCodewords(qrData(bytes, version), version);
  const made = QR_MASKS.map((isInverted, mask) => {
    const frame = qrFrame(version);
    frame.format(mask);
    qrFill(frame, codewords);
    frame.dark.forEach((row, y) => row.forEach((_, x) => {
      if (!frame.fixed[y][x] && isInverted(x, y)) row[x] = !row[x];
    }));
    return { dark: frame.dark, penalty: qrPenalty(frame) };
  });
  return made.reduce((best, other) => (other.penalty < best.penalty ? other : best)).dark;
}

// A picture of a code, with the quiet zone of four modules.
function qrPicture(dark) {
  const shape = (name, attributes) => {
    const e = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    return e;
  };
  const side = dark.length + 8;
  const svg = shape('svg', { viewBox: `0 0 ${side} ${side}`, role: 'img', 'aria-label': 'QR code of the address', 'shape-rendering': 'crispEdges' });
  const path = dark.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x + 4} ${y + 4}h1v1h-1z` : ''))).join('');
  svg.append(shape('rect', { width: side, height: side, fill: '#fff' }), shape('path', { d: path, fill: '#000' }));
  return svg;
}

// The address of a code for other devices, and a note. A page that was opened by a name of the loopback has addresses that only
// its own machine can use: the server tells such a page its addresses in the network.
async function addressForOthers(href) {
  if (!/^(localhost|127(\.\d+){3}|\[::1\])$/.test(location.hostname)) return { href, note: '' };
  const [, scheme, authority] = href.match(/^(\w+):\/\/([^/]+)/);
  const told = (await getJson(`${here}/.millpond/network`).catch(() => ({})))[scheme];
  const portOf = host => Number((host.match(/:(\d+)$/) || [])[1] || { http: 80, https: 443 }[scheme]);
  // Behind a proxy or a tunnel, the server does not know the address of this page for others.
  if (!told || told.port !== portOf(authority)) return { href, note: 'Other devices need another address: this one is for this machine.' };
  if (!told.hosts.length) return { href: null, note: 'Other devices cannot reach this address: the server listens on this machine only, or the machine has no network.' };
  return { href: href.replace(authority, `${told.hosts[0]}:${told.port}`), note: 'This is the address of this machine in its network.' };
}

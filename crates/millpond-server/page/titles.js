'use strict';

// Titles for people, made of the names of files.

// Words with which the part of a name begins that tells of its coding and its source.
const RELEASE = new RegExp(`(?:^|[\\s([{,-])(?:${[
  '\\d{3,4}[pi](?:\\d\\d)?', '[48]k', 'uhd', 'hdr(?:10)?\\+?', 'hdtv', 'pdtv', 'web-?dl', 'web-?rip', 'blu-?ray', 'b[dr]-?rip', 'hd-?rip', 'dvd-?rip', 'dvdscr',
  'remux', '[xh] ?26[45]', 'hevc', 'avc', 'av1', 'vp9', 'xvid', 'divx', 'e?ac-?3', 'aac\\d?', 'dts(?:-?hd)?', 'ddp?\\+?\\d', 'truehd', '(?:8|10)-?bit',
].join('|')})(?![\\p{L}\\d])`, 'iu');
// Words that a title may have too: they are removed before such a part only.
const EDITION = /[\s([{,-]+(?:repack|proper|internal|limited|unrated|extended|remastered|multi|dubbed|subbed|web|hd|dvd)$/i;
// An extension of a file.
const EXTENSION = /\.[a-z][a-z\d]{1,4}$/i;
// The years that films can be of: in parentheses, or as the last word before such a part.
const YEAR = /^(.+?)\s*\((19\d\d|20[0-3]\d)\)\s*(.*)$/;
const LAST_YEAR = /^(.+?)\s+(19\d\d|20[0-3]\d)$/;

// The words of a name: dots and underscores are spaces in most. The dots of S.W.A.T. and of "Mr. Robot" stay.
function plainTitle(name) {
  const isSpaced = / /.test(name);
  const plain = name
    .replace(/_/g, ' ')
    .replace(/(?<![\p{L}\d])(?:\p{Lu}\.){2,}(?:\p{Lu}(?![\p{L}\d]))?|\.(?=(.?))/gu, (dots, next) => {
      if (dots.length > 1) return `${dots} `;
      return isSpaced && (next === ' ' || next === '') ? '.' : ' ';
    })
    .replace(/\s+/g, ' ')
    .trim();
  return plain || name;
}

// Returns the title and the year (or '') of a file or folder with a name.
function cleanTitle(name, isFile = true) {
  const stem = isFile ? name.replace(EXTENSION, '') || name : name;
  const whole = plainTitle(stem);
  // Brackets name groups and check sums.
  const words = whole.replace(/\[[^\]]*\]|\{[^}]*\}/g, ' ').replace(/\s+/g, ' ').trim();
  const release = RELEASE.exec(words);
  const isRelease = release !== null && release.index > 0;
  let title = isRelease ? words.slice(0, release.index) : words;
  const trimmed = text => text.replace(/^[\s,-]+|[\s([{,–-]+$/g, '');
  title = trimmed(title);
  while (isRelease && EDITION.test(title)) title = trimmed(title.replace(EDITION, ''));
  let year = '';
  const inParentheses = YEAR.exec(title);
  const atEnd = isRelease && LAST_YEAR.exec(title);
  if (inParentheses) {
    year = inParentheses[2];
    title = trimmed(`${inParentheses[1]} ${inParentheses[3]}`);
  } else if (atEnd) {
    [, title, year] = atEnd;
  }
  title = title.replace(/\(\s*\)/g, ' ').replace(/\s+/g, ' ').trim();
  return title ? { title, year } : { title: whole, year: '' };
}

// A text by which names are in the order of people: 2 before 10, in any case, with or without accents.
function orderOf(name) {
  const plain = /^[\x20-\x7e]*$/.test(name) ? name : name.normalize('NFKD').replace(/\p{M}/gu, '');
  return plain.toLowerCase().replace(/[._]/g, ' ').replace(/\d+/g, digits => digits.replace(/^0+(?=\d)/, '').padStart(12, '0'));
}

// Folders of seasons, folders of specials beside them, and episodes that are specials, by the names that `orderOf` returns.
const SEASON = /^(?:season|series|staffel|saison|temporada|stagione|seizoen) ?\d/;
const SPECIALS = /^(?:(?:season|series|staffel|saison|temporada|stagione|seizoen) ?0{12}(?!\d).*|specials?|extras?|bonus)$/;
const SPECIAL_EPISODE = /\bs0{12} ?e\d/;

// Sorts rows by name, specials last; `isNewest` puts the rows that changed last first.
function sorted(rows, isNewest) {
  const all = rows.map(row => ({ row, key: orderOf(nameOf(row.path).replace(EXTENSION, '')) }));
  const hasSeasons = all.some(({ key }) => SEASON.test(key));
  for (const each of all) {
    if (SPECIAL_EPISODE.test(each.key) || (hasSeasons && SPECIALS.test(each.key))) each.key = `\uffff${each.key}`;
  }
  const byName = (a, b) => (a.key < b.key ? -1 : Number(a.key > b.key));
  all.sort((a, b) => (isNewest ? (b.row.modified || 0) - (a.row.modified || 0) : 0) || byName(a, b));
  return all.map(({ row }) => row);
}

// Titles that several rows have are replaced by the words of their files, by which they differ.
function toldApart(rows) {
  const seen = new Map();
  const of = row => `${row.title}\n${row.year}`;
  for (const row of rows) seen.set(of(row), (seen.get(of(row)) || 0) + 1);
  for (const row of rows.filter(each => seen.get(of(each)) > 1)) Object.assign(row, { title: plainTitle(row.name), year: '' });
  return rows;
}

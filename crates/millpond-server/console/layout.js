// Places modules of a stream graph: sources on the left, receivers on the right, small graphs side by side.

const [WIDTH, HEIGHT, ACROSS, DOWN, BETWEEN] = [168, 44, 56, 12, 32];
// Receivers of one kind behind the same modules from which they are drawn as one.
const FOLD = 6;
// Most modules that are drawn.
const MOST = 400;

// Adds a value to the list of a key.
function add(map, key, value) {
  const values = map.get(key);
  if (values) values.push(value);
  else map.set(key, [value]);
}

// Joins modules that differ in nothing but their label, where there are many.
function folded(modules, pipes) {
  const [ins, outs] = [new Map(), new Map()];
  for (const { from, to } of pipes) {
    add(ins, to, from);
    add(outs, from, to);
  }
  const alike = new Map();
  for (const module of modules) {
    const [before, after] = [ins.get(module.id) ?? [], outs.get(module.id) ?? []];
    const key = before.length && !after.length ? `${module.kind}<${before.sort((a, b) => a - b)}` : `=${module.id}`;
    add(alike, key, module);
  }
  const nodes = [];
  const name = new Map();
  for (const [key, members] of alike) {
    if (members.length < FOLD) members.forEach(module => { name.set(module.id, module.id); nodes.push({ ...module, members: [module] }); });
    else {
      members.forEach(module => name.set(module.id, key));
      nodes.push({ id: key, kind: members[0].kind, label: `${members.length.toLocaleString('en-US')} receivers`, members });
    }
  }
  const edges = new Map();
  for (const { from, to, depth, lost } of pipes) {
    const [start, end] = [name.get(from), name.get(to)];
    if (start === undefined || end === undefined) continue;
    const edge = edges.get(`${start}>${end}`) ?? { from: start, to: end, depth, lost: 0 };
    edge.lost += lost;
    edges.set(`${start}>${end}`, edge);
  }
  return { nodes, edges: [...edges.values()] };
}

// Splits a graph into its connected parts, the largest first.
function parts({ nodes, edges }) {
  const near = new Map(nodes.map(({ id }) => [id, []]));
  for (const { from, to } of edges) {
    near.get(from).push(to);
    near.get(to).push(from);
  }
  const part = new Map();
  const found = [];
  for (const { id } of nodes) {
    if (part.has(id)) continue;
    const members = new Set([id]);
    for (const next of members) near.get(next).forEach(other => members.add(other));
    members.forEach(member => part.set(member, found.length));
    found.push({ nodes: [], edges: [] });
  }
  nodes.forEach(node => found[part.get(node.id)].nodes.push(node));
  edges.forEach(edge => found[part.get(edge.from)].edges.push(edge));
  return found.sort((one, other) => other.nodes.length - one.nodes.length);
}

// Columns by the longest way from a module without inputs. What lies in a cycle stays in the column where it was met.
function columns({ nodes, edges }) {
  const [column, waits] = [new Map(), new Map(nodes.map(({ id }) => [id, 0]))];
  edges.forEach(({ to }) => waits.set(to, waits.get(to) + 1));
  const ready = nodes.filter(({ id }) => waits.get(id) === 0).map(({ id }) => id);
  ready.forEach(id => column.set(id, 0));
  for (const id of ready) {
    for (const { from, to } of edges) {
      if (from !== id) continue;
      column.set(to, Math.max(column.get(to) ?? 0, column.get(id) + 1));
      waits.set(to, waits.get(to) - 1);
      if (waits.get(to) === 0) ready.push(to);
    }
  }
  const all = [];
  for (const node of nodes) (all[column.get(node.id) ?? 0] ??= []).push(node);
  return all.filter(Boolean);
}

// Orders the modules of each column by the mean row of their neighbours, to the right and back.
function ordered(all, edges) {
  const row = new Map();
  const note = nodes => nodes.forEach(({ id }, index) => row.set(id, index - nodes.length / 2));
  all.forEach(note);
  const mean = (id, from, to) => {
    const rows = edges.filter(edge => edge[from] === id).map(edge => row.get(edge[to])).filter(value => value !== undefined);
    return rows.length ? rows.reduce((sum, value) => sum + value, 0) / rows.length : row.get(id);
  };
  const sort = (nodes, from, to) => {
    const wish = new Map(nodes.map(({ id }) => [id, mean(id, from, to)]));
    nodes.sort((one, other) => wish.get(one.id) - wish.get(other.id));
    note(nodes);
  };
  for (let sweep = 0; sweep < 2; sweep += 1) {
    all.slice(1).forEach(nodes => sort(nodes, 'to', 'from'));
    all.slice(0, -1).reverse().forEach(nodes => sort(nodes, 'from', 'to'));
  }
  return all;
}

// Returns places of modules and pipes within a width of `room` where that can be, the size of the whole, and the number of modules that are left out.
export function layout(modules, pipes, room) {
  const [nodes, edges, places] = [[], [], new Map()];
  let [left, top, tallest, width, shown] = [0, 0, 0, 0, 0];
  for (const part of parts(folded(modules, pipes))) {
    if (nodes.length && nodes.length + part.nodes.length > MOST) continue;
    const all = ordered(columns(part), part.edges);
    const tall = Math.max(...all.map(column => column.length));
    const height = tall * (HEIGHT + DOWN) - DOWN;
    const wide = all.length * (WIDTH + ACROSS) - ACROSS;
    if (left > 0 && left + wide > room) [left, top, tallest] = [0, top + tallest + BETWEEN, 0];
    all.forEach((column, number) => {
      const free = height - (column.length * (HEIGHT + DOWN) - DOWN);
      column.forEach((node, index) => {
        const place = { ...node, x: left + number * (WIDTH + ACROSS), y: top + free / 2 + index * (HEIGHT + DOWN), width: WIDTH, height: HEIGHT };
        places.set(node.id, place);
        nodes.push(place);
        shown += node.members.length;
      });
    });
    edges.push(...part.edges.map(edge => ({ ...edge, start: places.get(edge.from), end: places.get(edge.to) })));
    width = Math.max(width, left + wide);
    left += wide + ACROSS;
    tallest = Math.max(tallest, height);
  }
  return { nodes, edges, width, height: top + tallest, leftOut: modules.length - shown };
}

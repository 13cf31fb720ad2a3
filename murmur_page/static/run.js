// A run as the page knows it: its head, its frames so far, and what they add up to at a moment.

const KEY_EVERY = 40; // frames between two kept states
export const COMMANDS = ["publish", "subscribe", "unsubscribe"]; // steps of a plan that a client carries out
const OCTAVE = 8; // buckets of delay in an octave, as in murmur_page.frame

export function linkKey(first, second) {
  return first < second ? `${first}-${second}` : `${second}-${first}`;
}

export class Run {
  constructor(data) {
    this.version = 0; // grows with each frame, so that drawings know when to be made anew
    this.replace(data);
  }

  replace(data) {
    this.head = data.head;
    this.verdict = data.verdict || null;
    this.findings = data.findings || null;
    this.ways = data.ways || {};
    this.nodes = data.head.nodes.map((node, number) => readNode(node, number));
    this.brokers = this.nodes.filter((node) => node.role === "b");
    for (const node of this.nodes) if (node.home !== null) this.nodes[node.home].clients.push(node);
    this.planned = new Set(data.head.links.map(([a, b]) => linkKey(a, b)));
    this.setFrames(data.frames);
  }

  setFrames(frames) {
    this.frames = [];
    this.keys = [];
    this.story = [];
    this.faults = [];
    this.phases = [];
    this.end = emptyState(this.nodes.length);
    for (const frame of frames) this.add(frame);
  }

  add(frame) {
    if (this.frames.length % KEY_EVERY === 0) this.keys.push(copyState(this.end));
    this.frames.push(frame);
    applyFrame(this.end, frame);
    for (const told of frame.s || []) this.tell(told);
    this.version += 1;
  }

  tell(told) {
    this.story.push(told);
    if (told.k === "phase") this.phases.push(told);
    if (told.k !== "fault") return;
    let fault = this.faults.find((each) => each.step === told.step);
    if (!fault) {
      fault = { step: told.step, text: told.text, kind: told.kind, nodes: told.nodes || [], asked: told.t, from: null, until: null };
      this.faults.push(fault);
    }
    if (told.stage !== "done") return;
    fault.from = told.t;
    if (COMMANDS.includes(told.kind)) fault.repairs = true; // it breaks nothing
    if (told.moment) fault.until = told.t; // an order, or a repair of what was whole
    if (told.ends !== undefined) {
      fault.repairs = fault.repairs || !told.breaks; // a kill may end a stall
      for (const began of this.faults) if (told.ends.includes(began.step)) began.until = told.t;
    }
  }

  // Where the axis begins: the start of many actors takes long, and shows little.
  get beginUs() {
    const publishing = this.phases.find((each) => each.text.startsWith("publishing"));
    if (!publishing || publishing.t < 0.15 * this.endUs) return 0;
    return Math.max(0, publishing.t - 0.05 * (this.endUs - publishing.t));
  }

  get endUs() { return this.frames.length ? this.frames[this.frames.length - 1].t : 0; }

  // The number of the last frame that ends at or before that time; -1: none does.
  frameAt(us) {
    let low = 0, high = this.frames.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.frames[middle].t <= us) low = middle + 1; else high = middle;
    }
    return low - 1;
  }

  // States of nodes and links, and totals so far, after the frame of that number.
  stateAfter(number) {
    if (number >= this.frames.length - 1) return this.end;
    const key = Math.floor((number + 1) / KEY_EVERY);
    const state = copyState(this.keys[Math.min(key, this.keys.length - 1)]);
    for (let at = Math.min(key, this.keys.length - 1) * KEY_EVERY; at <= number; at += 1) applyFrame(state, this.frames[at]);
    return state;
  }

  // What moved in the stretch of `widthUs` that ends with that frame.
  movedUntil(number, widthUs) {
    const moved = new Map(), activity = new Map(), delays = new Map(), totals = new Map();
    let published = 0, delivered = 0;
    const last = this.frames[number];
    if (!last) return { moved, activity, delays, totals, published, delivered, seconds: 1 };
    const fromUs = last.t - widthUs;
    for (let at = number; at >= 0 && this.frames[at].t > fromUs; at -= 1) {
      const frame = this.frames[at];
      for (const [a, b, events, others, lost] of frame.m || []) {
        const key = `${a}>${b}`;
        const sum = moved.get(key) || { from: a, to: b, events: 0, others: 0, lost: 0 };
        sum.events += events; sum.others += others; sum.lost += lost;
        moved.set(key, sum);
      }
      for (const [node, received, handed, put] of frame.a || []) {
        const sum = activity.get(node) || { received: 0, delivered: 0, published: 0 };
        sum.received += received; sum.delivered += handed; sum.published += put;
        activity.set(node, sum);
      }
      for (const [bucket, count] of frame.d || []) delays.set(bucket, (delays.get(bucket) || 0) + count);
      for (const [topic, node, count] of frame.o || []) totals.set(`${topic}>${node}`, (totals.get(`${topic}>${node}`) || 0) + count);
      published += frame.p || 0;
      delivered += frame.v || 0;
    }
    return { moved, activity, delays, totals, published, delivered, seconds: Math.max(widthUs, 1) / 1e6 };
  }
}

function readNode(node, number) {
  const [name, role] = node;
  const place = role === "b" ? node.slice(2) : node.slice(3);
  return {
    number, name, role, home: role === "c" && node.length > 2 ? node[2] : null, clients: [],
    x: place.length === 2 ? place[0] : null, y: place.length === 2 ? place[1] : null,
  };
}

function emptyState(count) {
  return {
    nodes: new Array(count).fill("away"), waiting: new Map(), links: new Map(), used: new Map(), levels: new Map(),
    published: 0, delivered: 0, lost: 0, delays: new Map(),
  };
}

function copyState(state) {
  return {
    ...state, nodes: state.nodes.slice(), waiting: new Map(state.waiting), links: new Map(state.links),
    used: new Map(state.used), levels: new Map(state.levels), delays: new Map(state.delays),
  };
}

function applyFrame(state, frame) {
  for (const [node, what] of frame.n || []) state.nodes[node] = what;
  for (const [a, b, what] of frame.l || []) state.links.set(linkKey(a, b), what);
  for (const [node, count] of frame.w || []) state.waiting.set(node, count);
  for (const [topic, node, level] of frame.e || []) state.levels.set(`${topic}>${node}`, level);
  for (const [a, b, , , lost] of frame.m || []) {
    state.used.set(linkKey(a, b), frame.t);
    state.lost += lost;
  }
  for (const [bucket, count] of frame.d || []) state.delays.set(bucket, (state.delays.get(bucket) || 0) + count);
  state.published += frame.p || 0;
  state.delivered += frame.v || 0;
}

// The delay that this share of the deliveries does not exceed, in microseconds; null: nothing was delivered.
export function quantile(delays, share) {
  let total = 0;
  for (const count of delays.values()) total += count;
  if (!total) return null;
  let seen = 0;
  for (const bucket of [...delays.keys()].sort((a, b) => a - b)) {
    seen += delays.get(bucket);
    if (seen >= share * total) return 2 ** ((bucket + 0.5) / OCTAVE);
  }
  return null;
}

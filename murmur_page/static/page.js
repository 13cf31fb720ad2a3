// Puts the parts together: time, pointer and keys.

import { Course } from "./course.js";
import { HandsPanel } from "./hands.js";
import { metricsOf } from "./metrics.js";
import { Overlay } from "./overlay.js";
import { Run, linkKey } from "./run.js";
import { element, showFindings, showRunning, showState, showStory, showTable, showUnder, showVerdict } from "./story.js";
import { clock, count, plural, shortened } from "./words.js";

const PLAYS_FOR_S = 30; // how long a recorded run plays at the speed that it is opened with
const KEYS = [
  ["space", "play or pause"], ["← →", "one frame back or on; with shift, ten"], ["Home End", "to the beginning, to the end"],
  ["[ ]", "slower, faster"], ["n p", "the next or previous broker"], ["m", "what the colour of brokers stands for"], ["+ − 0", "nearer, farther, all"],
  ["/", "find a broker, a client or an event (3:17)"], ["i", "what is in the broker, or the client that was found, at this moment"], ["j", "judge a run while it goes on (needs Java)"], ["Esc", "let go of what is selected"], ["?", "this list"],
  ["k r s w", "hands on: kill, restart or resume, stall, slow what is selected"], ["e f t", "hands on: publish, subscribe, take a subscription back at a client of the broker that is selected"], ["c h l d", "cut, heal, loss, delay of the link that is selected"],
  ["shift + drag", "circle brokers; x cuts them off, u unites"],
];

export class Page {
  constructor(root, data, live = false) {
    this.root = root;
    this.run = new Run(data);
    this.parts = Object.fromEntries([...root.querySelectorAll("[data-live]")].map((each) => [each.dataset.live, each]));
    this.still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.look = readLook(root);
    this.overlay = new Overlay(this.parts.overlay, this.run, this.look);
    this.course = new Course(this.parts.course, this.run, this.look);
    this.client = null; // the number of the client that was found
    this.hoverX = null;
    this.tick = 0;
    this.playing = false;
    this.live = live; // the run goes on
    this.following = live; // the moment stays at its end
    this.us = live ? this.run.endUs : this.firstMoment();
    this.speed = live ? 1 : niceSpeed((this.run.endUs - this.run.beginUs) / 1e6 / PLAYS_FOR_S);
    this.hands = new HandsPanel(this.parts.hands, this);
    this.sayHead();
    this.wire();
    this.resize();
    this.show();
    this.loop(performance.now());
  }

  // A recorded run is opened where there is something to see: in its first fault, or in the midst of it.
  firstMoment() {
    const fault = this.run.faults.find((each) => each.from !== null && !each.repairs);
    if (!fault) return this.run.beginUs + (this.run.endUs - this.run.beginUs) * 0.6;
    return fault.from + Math.min(this.widthUs, ((fault.until === null ? this.run.endUs : fault.until) - fault.from) * 0.7);
  }

  get widthUs() {
    if (this.live) return Math.max(1e6, this.run.endUs / 300);
    return Math.max((this.run.endUs - this.run.beginUs) / 40, 1);
  }

  // ------------------------------------------------------------------------------------------- the feed
  grow(frames) {
    const told = this.run.faults.length;
    for (const frame of frames) this.run.add(frame);
    if (this.following) this.us = this.run.endUs;
    if (told !== this.run.faults.length) this.sayLegend();
    this.show();
  }

  reset(data, live) {
    this.run.replace(data);
    this.shown = null;
    this.live = live;
    this.following = this.following && live;
    this.us = this.following ? this.run.endUs : Math.min(this.us, this.run.endUs);
    this.sayHead();
    this.show();
  }

  // What a server says beside the frames.
  take(told) {
    this.hands.take(told);
    this.running = told.running;
    this.sayRunning();
  }

  sayRunning() {
    this.parts.judge.hidden = !this.askJudge || !this.live || Boolean(this.running && !this.running.trouble);
    showRunning(this.parts.running, this.live ? this.running : null, this.run.endUs);
  }

  // Have the server judge the run while it goes on.
  async judge() {
    if (this.parts.judge.hidden) return;
    this.say("Asked for the verdict so far.");
    this.say(await this.askJudge());
  }

  sayHead() {
    const { head } = this.run;
    this.parts.name.textContent = head.name;
    const links = head.links.length ? `, ${plural(head.links.length, "link", "links")} between them` : "";
    const clients = this.run.nodes.length - this.run.brokers.length;
    this.parts.about.textContent = `${head.runtime === "ray" ? "Live on Ray actors" : "In virtual time"}, seed ${head.seed}: `
      + `${plural(this.run.brokers.length, "broker", "brokers")}${links}, ${plural(clients, "client", "clients")}; ${head.protocols.join(" with ")}. ${head.description}`;
    this.metrics = metricsOf(this.run);
    this.parts.metric.replaceChildren(...this.metrics.map(({ words }) => element("option", {}, words)));
    this.colourBy(Math.max(0, this.metrics.findIndex(({ words }) => words === this.overlay.metric?.words)));
    showFindings(this.parts.findings, this.run, (event) => this.pickEvent(event));
    this.sayLegend();
  }

  // Have the colour of brokers stand for the metric of that number.
  colourBy(number) {
    this.parts.metric.selectedIndex = number;
    this.overlay.metric = this.metrics[number];
  }

  sayLegend() {
    const faults = new Set(this.run.faults.map((fault) => fault.kind));
    const entries = [["○ → ●", ""], ["▬ ▶", "messages on a link: width by the square root of their rate"], ["◔", "on the way to a broker"]];
    if (faults.has("kill") || faults.has("kill_actor") || faults.has("lose_host")) entries.push(["⊗", "down"]);
    if (faults.has("stall")) entries.push(["▣", "stalled"]);
    if (faults.has("slow")) entries.push(["△", "slow"]);
    if (faults.has("cut") || faults.has("partition")) entries.push(["┄×┄", "cut"]);
    if (faults.has("change_link")) entries.push(["∿", "changed by a fault"]);
    if (this.run.frames.some((frame) => (frame.m || []).some(([a, b]) => !this.run.planned.has(linkKey(a, b))))) entries.push(["╌", this.run.planned.size ? "the protocol's own link" : "events between two brokers"]);
    this.parts.legend.replaceChildren(...entries.map(([sign, words]) => element("span", {}, element("b", {}, sign), ` ${words}`)));
  }

  // ------------------------------------------------------------------------------------------ drawing
  resize() {
    this.overlay.resize();
    this.course.resize();
    this.dirty = true;
  }

  moment() {
    const number = this.run.frameAt(this.us);
    if (this.shown && this.shown.number === number && this.shown.version === this.run.version) return this.shown;
    this.shown = {
      number, version: this.run.version, us: this.us, widthUs: this.widthUs,
      state: this.run.stateAfter(number), moved: this.run.movedUntil(number, this.widthUs),
    };
    return this.shown;
  }

  show() {
    const shown = this.moment();
    showVerdict(this.parts.verdict, this.run, shown);
    this.hands.show();
    showUnder(this.parts.under, this.run, this.overlay, shown, this.metrics);
    this.parts.open.hidden = this.overlay.selected === null;
    const { metric } = this.overlay;
    this.parts.legend.firstChild.lastChild.textContent = ` ${metric.words}: 0 to ${metric.say(this.overlay.mostOf(shown))}`;
    showStory(this.parts.told, this.run, this.us, (us) => this.goTo(us));
    if (this.parts.table.parentElement.open) showTable(this.parts.table, this.run, shown, this.metrics);
    const share = this.run.endUs ? Math.max(0, this.us - this.run.beginUs) / (this.run.endUs - this.run.beginUs || 1) : 0;
    this.parts.slider.value = String(Math.round(share * 1000));
    this.parts.slider.setAttribute("aria-valuetext", clock(this.us, this.run.endUs));
    this.parts.clock.textContent = `${clock(this.us, this.run.endUs)} of ${clock(this.run.endUs, this.run.endUs)}`;
    this.parts.play.textContent = this.playing || this.following ? "Pause" : "Play";
    this.parts.speed.textContent = `× ${Number(this.speed.toPrecision(3))}`;
    this.parts.say.textContent = this.inWords(shown);
    this.dirty = true;
  }

  // The picture in a sentence, for those who do not see it.
  inWords({ state }) {
    const wrong = this.run.brokers.filter((node) => !["up", "stopped", "away"].includes(state.nodes[node.number]));
    const cut = [...state.links].filter(([, what]) => what === "cut").length;
    const up = this.run.brokers.filter((node) => state.nodes[node.number] === "up").length;
    return `${clock(this.us, this.run.endUs)}: ${up} of ${this.run.brokers.length} brokers up`
      + `${wrong.length ? `; ${wrong.slice(0, 8).map((node) => `${node.name} ${state.nodes[node.number]}`).join(", ")}` : ""}`
      + `${cut ? `; ${plural(cut, "link", "links")} cut` : ""}; ${count(state.delivered)} delivered`;
  }

  loop(before) {
    requestAnimationFrame((now) => {
      const passed = Math.min(0.25, (now - before) / 1000);
      if (this.playing) {
        const next = this.us + passed * 1e6 * this.speed;
        if (next >= this.run.endUs) { this.playing = false; this.following = this.live; this.us = this.run.endUs; } else this.us = next;
        if (!this.lastShown || now - this.lastShown > 95) { this.lastShown = now; this.show(); }
      }
      const moves = (this.playing || this.following) && !this.still;
      if (moves) this.tick += passed * 40;
      if (this.dirty || moves) {
        this.dirty = false;
        this.overlay.draw(this.moment(), this.tick);
        this.course.draw(this.us, this.hoverX);
        this.drawn = (this.drawn || 0) + 1;
      }
      this.loop(now);
    });
  }

  // --------------------------------------------------------------------------------------------- time
  goTo(us) {
    this.us = Math.max(0, Math.min(this.run.endUs, us));
    this.following = false;
    this.show();
  }

  step(frames) {
    this.playing = false;
    const at = Math.max(0, Math.min(this.run.frames.length - 1, this.run.frameAt(this.us) + frames));
    if (this.run.frames.length) this.goTo(this.run.frames[at].t);
  }

  toggle() {
    if (this.following) this.following = false;
    else if (this.live && this.us >= this.run.endUs) this.following = true;
    else this.playing = !this.playing;
    if (this.playing && this.us >= this.run.endUs) this.us = this.run.beginUs;
    this.show();
  }

  faster(factor) {
    this.speed = niceSpeed(this.speed * factor);
    this.show();
  }

  // -------------------------------------------------------------------------------------- what is picked
  select(number, link = null) {
    this.overlay.selected = number;
    this.overlay.selectedLink = number === null ? link : null;
    this.client = null;
    this.show();
  }

  next(step) {
    const brokers = this.run.brokers, at = brokers.findIndex((node) => node.number === this.overlay.selected);
    const start = at < 0 && step < 0 ? 0 : at;
    this.select(brokers[(start + step + brokers.length) % brokers.length].number);
  }

  pickEvent(event) {
    const way = this.run.ways[event];
    this.overlay.way = way || null;
    if (!way) return false;
    this.playing = false;
    this.goTo(way.t);
    const lines = way.lines.map((each) => element("li", {}, each));
    this.parts.way.replaceChildren(element("h2", {}, `The way of event ${event}`), element("ol", { className: "live-way" }, ...lines));
    return true;
  }

  find(words) {
    const wanted = words.trim();
    if (!wanted) return;
    const node = this.run.nodes.find((each) => each.name === wanted);
    if (node) {
      this.say("");
      this.select(node.home === null ? node.number : node.home);
      this.client = node.home === null ? null : node.number;
      return;
    }
    if (/^\d+:\d+$/.test(wanted)) {
      if (this.askWay && !this.run.ways[wanted]) { this.findWay(wanted); return; }
      this.say(this.pickEvent(wanted) ? "" : `The way of ${wanted} is not in this page: murmur trace ${this.run.head.folder} ${wanted} prints it.`);
      return;
    }
    this.say(`There is no ${wanted}. Names are those of brokers and clients, such as ${this.run.brokers[0].name}; events are PUBLISHER:NUMBER.`);
  }

  // Have a server follow the event.
  async findWay(event) {
    const found = await this.askWay(event);
    if (typeof found === "string") { this.say(found); return; }
    this.run.ways[event] = found;
    this.say("");
    this.pickEvent(event);
  }

  // What the selected broker, or the client that was looked for, was at this moment: played again from its inputs.
  async openNode() {
    const number = this.client || this.overlay.selected;
    if (number === null) { this.say("Select a broker first, or find a client."); return; }
    const { name } = this.run.nodes[number], us = Math.round(this.us), at = clock(us, this.run.endUs);
    const { head } = this.run;
    if (!head.inputs) this.say("This run kept no inputs to play a node again from: murmur run --keep-inputs keeps them.");
    else if (!this.askState) this.say(`A server shows it here (murmur serve), or in a terminal: murmur replay ${head.folder} --node ${name} --at '${us} us'`);
    else {
      this.say(`${name} is played again up to ${at}.`);
      const found = await this.askState(name, us);
      this.say(typeof found === "string" ? found : "");
      if (typeof found !== "string") showState(this.parts.state, found, at, this.run.endUs);
    }
  }

  say(words) { this.parts.note.textContent = shortened(words); }

  letGo() {
    this.overlay.selected = this.overlay.selectedLink = this.overlay.way = null;
    this.overlay.gathered.clear();
    this.client = null;
    this.parts.state.replaceChildren();
    this.parts.way.replaceChildren();
    this.show();
  }

  zoom(factor, x, y) {
    const { overlay } = this;
    const before = overlay.zoom;
    overlay.zoom = Math.max(0.5, Math.min(40, before * factor));
    const share = overlay.zoom / before;
    if (x !== undefined) {
      overlay.panX = (x - overlay.width / 2) * (1 - share) + overlay.panX * share;
      overlay.panY = (y - overlay.height / 2) * (1 - share) + overlay.panY * share;
    }
    if (factor === 0) { overlay.zoom = 1; overlay.panX = overlay.panY = 0; }
    this.dirty = true;
  }

  // ------------------------------------------------------------------------------------------ the wires
  wire() {
    const { parts } = this;
    parts.play.addEventListener("click", () => this.toggle());
    parts.slower.addEventListener("click", () => this.faster(0.5));
    parts.faster.addEventListener("click", () => this.faster(2));
    parts.slider.addEventListener("input", () => { this.playing = false; this.goTo(this.run.beginUs + (Number(parts.slider.value) / 1000) * (this.run.endUs - this.run.beginUs)); });
    parts.metric.addEventListener("change", () => { this.colourBy(parts.metric.selectedIndex); this.show(); });
    parts.open.addEventListener("click", () => this.openNode());
    parts.judge.addEventListener("click", () => this.judge());
    parts.search.addEventListener("submit", (event) => { event.preventDefault(); this.find(parts.wanted.value); });
    parts.table.parentElement.addEventListener("toggle", () => this.show());
    parts.keys.replaceChildren(...KEYS.flatMap(([key, what]) => [element("dt", {}, key), element("dd", {}, what)]));
    new ResizeObserver(() => this.resize()).observe(this.root);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { Object.assign(this.look, readLook(this.root)); this.dirty = true; });
    // Alone on its page all keys are its own; in a report only while the focus is in it.
    const listens = this.root.dataset.alone === undefined ? this.root : document;
    listens.addEventListener("keydown", (event) => this.key(event));
    this.wireOverlay(parts.overlay);
    this.wireCourse(parts.course);
  }

  wireOverlay(canvas) {
    let pressed = null;
    const place = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      if (this.overlay.lasso) { this.overlay.lasso.push([x, y]); this.dirty = true; return; }
      if (pressed) {
        if (Math.hypot(x - pressed.x, y - pressed.y) > 4) pressed.moved = true;
        if (pressed.moved) { this.overlay.panX = pressed.panX + x - pressed.x; this.overlay.panY = pressed.panY + y - pressed.y; this.dirty = true; }
        return;
      }
      const broker = this.overlay.brokerAt(x, y);
      const link = broker === null ? this.overlay.linkAt(x, y, this.moment()) : null;
      if (broker !== this.overlay.hovered || link !== this.overlay.hoveredLink) {
        this.overlay.hovered = broker;
        this.overlay.hoveredLink = link;
        canvas.style.cursor = broker === null ? "grab" : "pointer";
        this.show();
      }
    });
    canvas.addEventListener("pointerdown", (event) => {
      const [x, y] = place(event);
      if (event.shiftKey && this.hands.on) { this.overlay.lasso = [[x, y]]; canvas.setPointerCapture(event.pointerId); return; }
      pressed = { x, y, panX: this.overlay.panX, panY: this.overlay.panY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", (event) => {
      const [x, y] = place(event);
      if (this.overlay.lasso) { this.overlay.gather(); this.show(); return; }
      if (pressed && !pressed.moved) this.select(this.overlay.brokerAt(x, y), this.overlay.linkAt(x, y, this.moment()));
      pressed = null;
    });
    canvas.addEventListener("pointerleave", () => { this.overlay.hovered = this.overlay.hoveredLink = null; this.show(); });
    canvas.addEventListener("wheel", (event) => {
      if (this.root.dataset.alone === undefined && !event.ctrlKey) return; // a report scrolls
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), ...place(event));
    }, { passive: false });
  }

  wireCourse(canvas) {
    let dragging = false;
    const xOf = (event) => event.clientX - canvas.getBoundingClientRect().left;
    const go = (event) => { this.playing = false; this.goTo(this.course.timeAt(xOf(event))); };
    canvas.addEventListener("pointerdown", (event) => { dragging = true; canvas.setPointerCapture(event.pointerId); go(event); });
    canvas.addEventListener("pointerup", () => { dragging = false; });
    canvas.addEventListener("pointermove", (event) => {
      this.hoverX = xOf(event);
      if (dragging) go(event);
      const words = this.course.wordsAt(this.hoverX);
      this.parts.tip.hidden = !words;
      if (words) {
        this.parts.tip.replaceChildren(...words.map((each) => element("div", {}, each)));
        const half = this.parts.tip.offsetWidth / 2;
        this.parts.tip.style.left = `${Math.max(0, Math.min(this.course.width - 2 * half, this.hoverX - half))}px`;
      }
      this.dirty = true;
    });
    canvas.addEventListener("pointerleave", () => { this.hoverX = null; this.parts.tip.hidden = true; this.dirty = true; });
  }

  key(event) {
    if (event.target.closest("input:not([type=range]), select, textarea, dialog") || event.ctrlKey || event.metaKey || event.altKey) {
      if (event.key === "Escape" && event.target === this.parts.wanted) this.parts.overlay.focus();
      return;
    }
    if (event.key === " " && event.target.closest("button, summary, a")) return;
    const actions = {
      " ": () => this.toggle(),
      ArrowLeft: () => this.step(event.shiftKey ? -10 : -1),
      ArrowRight: () => this.step(event.shiftKey ? 10 : 1),
      Home: () => this.goTo(0),
      End: () => { this.goTo(this.run.endUs); this.following = this.live; },
      "[": () => this.faster(0.5),
      "]": () => this.faster(2),
      n: () => this.next(1),
      p: () => this.next(-1),
      m: () => { this.colourBy((this.parts.metric.selectedIndex + 1) % this.metrics.length); this.show(); },
      "+": () => this.zoom(1.3),
      "-": () => this.zoom(1 / 1.3),
      0: () => this.zoom(0),
      "/": () => this.parts.wanted.focus(),
      i: () => this.openNode(),
      j: () => this.judge(),
      Escape: () => this.letGo(),
      "?": () => { this.parts.help.open = !this.parts.help.open; },
    };
    if (this.hands.key(event.key)) { event.preventDefault(); return; }
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}

function niceSpeed(factor) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1e-6, factor)));
  const part = factor / power;
  return (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10) * power;
}

function readLook(root) {
  const style = getComputedStyle(root);
  const of = (name) => style.getPropertyValue(`--live-${name}`).trim();
  const look = { font: style.fontFamily };
  for (const name of ["ink", "soft", "line", "ground", "box", "traffic", "control", "fault", "warn", "queue", "published", "delivered", "p50", "p99", "shade", "way", "made"]) look[name] = of(name);
  const [low, high] = [of("load-low"), of("load-high")].map((each) => each.match(/\w\w/g).map((part) => parseInt(part, 16)));
  look.load = (share) => `rgb(${low.map((from, at) => Math.round(from + (high[at] - from) * Math.sqrt(share))).join(",")})`;
  return look;
}

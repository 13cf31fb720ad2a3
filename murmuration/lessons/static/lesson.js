// One lesson: its run in the picture, carried on by Python as time passes, and its task.

import { Page } from "./page.js";
import { element } from "./story.js";

const TICK_MS = 100;

export class Lesson {
  constructor(parts, python, told) {
    this.parts = parts;
    this.python = python;
    this.root = parts.picture.querySelector("section.live");
    this.told = told;
    this.page = null;
    this.turn = 0; // grows with each run, so that what came too late for one is not taken for another
    setInterval(() => this.tick(), TICK_MS);
  }

  // Begin the run of this seed.
  async open(seed) {
    this.close();
    const { turn, told } = this;
    const opened = await this.python.ask("open", { lesson: told.name, seed });
    if (turn !== this.turn) return;
    Object.assign(this, { seed, over: false, asking: false, end: null, export: null });
    this.parts.picture.hidden = false;
    if (this.page) this.page.reset(opened, true);
    else this.page = this.root.page = new Page(this.root, opened, true);
    this.page.letGo();
    this.page.following = true;
    const { hands } = this.page;
    hands.send = (body) => this.send(body);
    hands.saved = () => hands.place.replaceChildren(); // the task says it
    hands.link = () => (this.export ? element("a", { href: this.export, download: "by-hand.yaml" }, "Save as scenario") : "");
    this.take(opened);
    this.page.resize();
    this.showTask();
    this.root.dataset.ready = "";
  }

  // Its run is of no interest any more.
  close() {
    this.turn += 1;
    this.over = true;
  }

  take({ more, told, over }) {
    this.page.grow(more);
    this.now = told.hands;
    if (over && !this.over) this.decide("");
    this.over = over;
    this.page.take(told);
  }

  // Emulated time passes as the page's does, while Python keeps up.
  async tick() {
    if (!this.page || this.over || this.asking || this.now.paused) return;
    const { turn } = this;
    this.asking = true;
    const answer = await this.python.ask("advance", { us: Math.round(TICK_MS * 1e3 * this.now.speed) });
    if (turn !== this.turn) return;
    this.asking = false;
    this.take(answer);
  }

  async send(body) {
    const { turn } = this;
    const answer = await this.python.ask("do", { asked: body });
    if (turn === this.turn) this.take(answer);
    return answer.said;
  }

  async decide(answer) {
    const { turn } = this;
    const end = await this.python.ask("decide", { answer });
    if (turn !== this.turn) return;
    this.end = end;
    this.export = URL.createObjectURL(new Blob([end.saved], { type: "application/yaml" }));
    this.page.run.verdict = end.verdict;
    this.page.live = false;
    this.page.show();
    this.showTask();
  }

  showTask() {
    const { told, end, parts } = this;
    const again = element("button", { type: "button" }, "Begin anew");
    again.addEventListener("click", () => this.open(this.seed));
    const shown = [element("h2", {}, told.title), ...told.task.map((words) => element("p", {}, words))];
    if (!end) shown.push(element("p", { className: "live-soft" }, "Time passes as in the world; stop it, or let it pass faster, under “Hands on”. “Finish” ends the run."));
    else {
      const words = end.lacks === null ? "Solved." : `Not yet: ${end.lacks}`;
      shown.push(element("p", { className: `live-verdict ${end.lacks === null ? "valid" : "invalid"}`, role: "status" }, element("strong", {}, words)));
      if (end.explained.length && (end.lacks === null || !told.question)) shown.push(element("ul", {}, ...end.explained.map((each) => element("li", {}, each))));
      if (told.question && end.lacks !== null && end.verdict.missing) shown.push(this.question());
      shown.push(element("p", {}, element("a", { href: this.export, download: "by-hand.yaml" }, "Save this run as a scenario"), ": ", element("code", {}, "murmur run by-hand.yaml"), " plays it again, with the journal ", element("code", {}, end.hash.slice(0, 16)), "."), again);
    }
    parts.task.replaceChildren(...shown);
    parts.task.hidden = false;
  }

  question() {
    const input = element("input", { type: "text", placeholder: "names" });
    input.setAttribute("aria-label", this.told.question);
    const form = element("form", {}, element("label", {}, `${this.told.question} `, input), element("button", { type: "submit" }, "That is it"));
    form.addEventListener("submit", (event) => { event.preventDefault(); this.decide(input.value); });
    return form;
  }
}

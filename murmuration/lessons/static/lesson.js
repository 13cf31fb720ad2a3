// One lesson, or the run of a link: in the picture, carried on by Python as time passes, and its task.

import { Page } from "./page.js";
import { element } from "./story.js";
import { plural } from "./words.js";

const TICK_MS = 100;

export class Lesson {
  // `linkTo`: the address of the run of a scenario.
  constructor(parts, python, told, linkTo) {
    this.parts = parts;
    this.linkTo = linkTo;
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
    const opened = await (told.scenario === undefined ? this.python.ask("open", { lesson: told.name, seed }) : this.python.ask("play", { scenario: told.scenario }));
    if (turn !== this.turn) return;
    Object.assign(this, { seed, over: false, asking: false, end: null, export: null });
    this.parts.picture.hidden = false;
    if (this.page) this.page.reset(opened, true);
    else this.page = this.root.page = new Page(this.root, opened, true);
    this.page.askWay = (event) => this.python.ask("way", { event }).catch((error) => error.message);
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
    const answer = await this.python.ask("advance", { us: Math.round(TICK_MS * 1e3 * this.now.speed) }).catch((error) => this.fail(turn, error));
    if (turn !== this.turn || !answer) return;
    this.asking = false;
    this.take(answer);
  }

  // The run cannot go on.
  fail(turn, error) {
    if (turn !== this.turn) return;
    this.close();
    this.parts.state.textContent = `The run was ended: ${error.message}`;
  }

  async send(body) {
    const { turn } = this;
    const answer = await this.python.ask("do", { asked: body }).catch((error) => this.fail(turn, error));
    if (!answer) return "";
    if (turn === this.turn) this.take(answer);
    return answer.said;
  }

  async decide(answer) {
    const { turn } = this;
    const end = await this.python.ask("decide", { answer }).catch((error) => this.fail(turn, error));
    if (turn !== this.turn || !end) return;
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
      const { verdict, reason } = end.verdict, asked = told.question && end.lacks !== null;
      const words = told.scenario === undefined ? (end.lacks === null ? `Solved. ${end.shown}` : `Not yet: ${end.lacks}`) : `${verdict}: ${reason}`;
      const good = told.scenario === undefined ? end.lacks === null : verdict === "valid";
      shown.push(element("p", { className: `live-verdict ${good ? "valid" : "invalid"}`, role: "status" }, element("strong", {}, words)));
      if (end.explained.length && !asked) shown.push(element("ul", {}, ...end.explained.map((each) => element("li", {}, each))));
      if (end.missing.length) shown.push(this.missing());
      if (asked && end.missing.length) shown.push(this.question());
      shown.push(element("p", {}, element("a", { href: this.export, download: "by-hand.yaml" }, "Save this run as a scenario"), ": ", element("code", {}, "murmur run by-hand.yaml"), " plays it again, with the journal ", element("code", {}, end.hash.slice(0, 16)), "; so does ", element("a", { href: this.linkTo(end.saved) }, "this link"), "."), again);
    }
    parts.task.replaceChildren(...shown);
    parts.task.hidden = false;
  }

  // The first events that somebody lacks; each draws its way.
  missing() {
    const { missing } = this.end;
    const buttons = missing.map((event) => {
      const button = element("button", { type: "button", className: "live-time" }, event);
      button.addEventListener("click", () => { this.page.find(event); this.root.scrollIntoView({ block: "start" }); });
      return button;
    });
    const more = this.end.missing_events - missing.length;
    return element("p", { className: "lessons-missing" }, "Missing somewhere: ", ...buttons.flatMap((each) => [each, " "]), more > 0 ? `and ${plural(more, "other event", "other events")}. ` : "", "A click draws the event's way.");
  }

  question() {
    const input = element("input", { type: "text", placeholder: "names" });
    input.setAttribute("aria-label", this.told.question);
    const form = element("form", {}, element("label", {}, `${this.told.question} `, input), element("button", { type: "submit" }, "That is it"));
    form.addEventListener("submit", (event) => { event.preventDefault(); this.decide(input.value); });
    return form;
  }
}

// Hands on a run that goes on: what can be done to what is selected, by a click, by a key, or in words.

import { element } from "./story.js";

// "price = 10, symbol = 'IBM'" as the attributes of an event; null: they are none.
export function eventOf(words) {
  const event = {};
  const attribute = /\s*([^\s=,]+)\s*=\s*('[^']*'|"[^"]*"|[^\s,]+)\s*(?:,|$|(?=\s))/y;
  while (attribute.lastIndex < words.trimEnd().length) {
    const found = attribute.exec(words);
    if (!found) return null;
    const [, name, value] = found;
    if (/^['"]/.test(value)) event[name] = value.slice(1, -1);
    else if (["true", "false"].includes(value)) event[name] = value === "true";
    else if (Number.isFinite(Number(value))) event[name] = Number(value);
    else return null;
  }
  return Object.keys(event).length ? event : null;
}

// "cut b1 b2" as an entry of a scenario's faults without its time; null: it is none.
export function orderOf(words) {
  const [verb, ...rest] = words.trim().split(/\s+/);
  if (verb === "publish" && rest.length >= 2) {
    const event = eventOf(words.trim().replace(/^\S+\s+\S+/, ""));
    return event && { publish: rest[0], event };
  }
  if (["subscribe", "unsubscribe"].includes(verb) && rest.length >= 2) return { [verb]: rest[0], filter: rest.slice(1).join(" ") };
  if (["kill", "restart", "stall", "resume"].includes(verb) && rest.length === 1) return { [verb]: rest[0] };
  if (verb === "slow" && rest.length >= 2) return { slow: rest[0], work: spaced(rest.slice(1).join("")) };
  if (["cut", "heal", "connect", "disconnect"].includes(verb) && rest.length === 2) return { [verb]: rest };
  if (verb === "link" && rest.length >= 2) {
    const entry = { link: rest.slice(0, 2) };
    for (let at = 2; at + 1 < rest.length; at += 2) entry[rest[at]] = /^[\d.]+$/.test(rest[at + 1]) ? Number(rest[at + 1]) : spaced(rest[at + 1]);
    return entry;
  }
  if (verb === "partition" && rest.length) return { partition: rest.join(" ").split("|").map((group) => group.split(/[\s,]+/).filter(Boolean)) };
  if (verb === "unite" && !rest.length) return { unite: true };
  return null;
}

function inWords(event) {
  return Object.entries(event).map(([name, value]) => `${name} = ${typeof value === "string" ? `'${value}'` : value}`).join(", ");
}

function spaced(time) {
  return time.replace(/^([\d.]+)([a-z]+)$/, "$1 $2");
}

export class HandsPanel {
  constructor(place, page) {
    this.place = place;
    this.page = page;
    this.told = null;
    this.pending = [];
  }

  get on() { return this.told !== null && !this.told.over && this.page.live; }

  take(told) {
    this.told = told.hands || null;
    this.show();
  }

  async send(body) {
    const answer = await fetch("do", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    return answer.text();
  }

  async post(body, words) {
    if (words) { this.pending.push(words); this.show(); }
    let said;
    try {
      said = await this.send(body);
    } catch {
      said = "The server does not answer: nothing was done.";
    }
    if (words) this.pending.splice(this.pending.indexOf(words), 1);
    this.page.say(said.trim());
    this.show();
  }

  order(entry) {
    const words = Object.entries(entry).map(([key, value]) => (value === true ? key : `${key} ${value.constructor === Object ? inWords(value) : [value].flat().join(" ")}`)).join(", ");
    this.post({ order: entry }, words);
  }

  // What can be done to what is selected: [key, words, entry].
  choices() {
    const { overlay, run } = this.page;
    const state = this.page.moment().state;
    const choices = [];
    if (overlay.selected !== null) {
      const { name } = run.nodes[overlay.selected], now = state.nodes[overlay.selected];
      if (now === "down") choices.push(["r", `Restart ${name}`, { restart: name }]);
      else if (now === "stalled") choices.push(["r", `Resume ${name}`, { resume: name }], ["k", `Kill ${name}`, { kill: name }]);
      else {
        choices.push(["k", `Kill ${name}`, { kill: name }], ["s", `Stall ${name}`, { stall: name }]);
        choices.push(now === "slow" ? ["w", `${name} as fast as before`, { slow: name, work: "0 s" }] : ["w", `Slow ${name}: 5 ms a message`, { slow: name, work: "5 ms" }]);
      }
      const client = run.nodes[overlay.selected].clients.find((each) => state.nodes[each.number] === "up") || (run.nodes.length > run.brokers.length ? null : run.nodes[overlay.selected]);
      if (client && this.told.event) choices.push(["e", `Publish at ${client.name} …`, `publish ${client.name} ${inWords(this.told.event)}`]);
      const wanted = client && this.lastWanted(client.name);
      if (wanted) choices.push(["t", `Take back what ${client.name} subscribed to …`, `unsubscribe ${client.name} ${wanted}`]);
      if (client && this.told.filter) choices.push(["f", `Subscribe at ${client.name} …`, `subscribe ${client.name} ${this.told.filter}`]);
    } else if (overlay.selectedLink) {
      const ends = overlay.selectedLink.split("-").map((each) => run.nodes[each].name), between = ends.join("–");
      const now = state.links.get(overlay.selectedLink);
      choices.push(now === "cut" ? ["h", `Heal ${between}`, { heal: ends }] : ["c", `Cut ${between}`, { cut: ends }]);
      choices.push(["l", `${between} loses 20 %`, { link: ends, loss: 0.2 }], ["d", `${between} takes 50 ms`, { link: ends, delay: "50 ms" }]);
    }
    if (overlay.gathered.size) {
      const inside = [...overlay.gathered].map((number) => run.nodes[number].name);
      choices.push(["x", `Cut off ${inside.length === 1 ? inside[0] : `these ${inside.length}`}`, { partition: [inside] }]);
    }
    if (run.faults.some((fault) => fault.kind === "partition" && fault.from !== null && fault.until === null)) choices.push(["u", "Unite", { unite: true }]);
    return choices;
  }

  // The filter that the client was last given by hand or by the plan, and has not withdrawn since; null: none.
  lastWanted(name) {
    const wanted = [];
    for (const { from, text } of this.page.run.faults) {
      const [, what, filter] = from === null ? [] : text.match(new RegExp(`^(subscribe|unsubscribe) at ${name}: (.*)$`)) || [];
      if (what === "subscribe") wanted.push(filter);
      else if (what && wanted.includes(filter)) wanted.splice(wanted.lastIndexOf(filter), 1);
    }
    return wanted.pop() || null;
  }

  key(key) {
    const choice = this.on ? this.choices().find(([each]) => each === key) : undefined;
    if (choice) this.choose(choice[2]);
    return choice !== undefined;
  }

  // An order is given; words are put where they can be changed before they are.
  choose(what) {
    if (typeof what !== "string") { this.order(what); return; }
    this.input.value = what;
    this.input.focus();
  }

  show() {
    if (!this.on) {
      if (this.told && this.told.orders) this.saved();
      else this.place.replaceChildren();
      this.built = null;
      return;
    }
    const { told } = this;
    const signature = JSON.stringify([told, this.pending, this.choices()]);
    if (signature === this.built) return; // what is typed stays, and what has the focus
    this.built = signature;
    const button = (words, act, key) => {
      const made = element("button", { type: "button", title: key ? `key ${key}` : "" }, words);
      made.addEventListener("click", act);
      return made;
    };
    const parts = [element("h2", {}, "Hands on")];
    if (told.runtime === "virtual") {
      parts.push(element("div", { className: "live-buttons" },
        button(told.paused ? "Let time pass" : "Stop time", () => this.post({ paused: !told.paused })),
        button("Time: slower", () => this.post({ speed: told.speed / 2 })), element("output", {}, `× ${Number(told.speed.toPrecision(3))}`),
        button("Time: faster", () => this.post({ speed: told.speed * 2 }))));
    }
    parts.push(element("div", { className: "live-buttons" }, ...this.choices().map(([key, words, entry]) => button(`${words} (${key})`, () => this.choose(entry), key))));
    if (!this.form) {
      this.input = element("input", { type: "text", placeholder: "or in words: cut b1 b2; publish c3 price = 10" });
      this.input.setAttribute("aria-label", "order in words");
      this.form = element("form", {}, this.input, element("button", { type: "submit" }, "Do"));
      this.form.addEventListener("submit", (event) => {
        event.preventDefault();
        const entry = orderOf(this.input.value);
        if (entry) { this.order(entry); this.input.value = ""; } else this.page.say("Orders are such as: kill b3; restart b3; stall b3; resume b3; slow b3 5ms; cut b1 b2; heal b1 b2; link b1 b2 delay 50ms; partition b0 b1 | b2 b3; unite; publish c3 price = 10, symbol = 'IBM'; subscribe c3 price > 10; unsubscribe c3 price > 10. Texts are in quotes.");
      });
    }
    if (this.form.parentElement !== this.place) this.place.replaceChildren(this.form);
    while (this.form.previousSibling) this.form.previousSibling.remove();
    while (this.form.nextSibling) this.form.nextSibling.remove();
    this.form.before(...parts);
    for (const words of this.pending) this.form.after(element("p", { className: "live-asked" }, `asked for: ${words}`));
    if (told.held) this.form.after(element("div", { className: "live-buttons" }, button("Finish: no more orders", () => this.post({ finish: true })), this.link()));
  }

  link() {
    return element("a", { href: "by-hand.yaml", download: "by-hand.yaml" }, "Save as scenario");
  }

  saved() {
    this.place.replaceChildren(element("p", {}, `${this.told.orders} done by hand. `, this.link(), ` (also in the run folder): `, element("code", {}, `murmur run ${this.told.saved} --runtime virtual`)));
  }
}

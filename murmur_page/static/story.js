// The column beside the picture: the verdict, what is under the pointer, and what happened, in words.

import { COMMANDS, quantile } from "./run.js";
import { LINK_WORDS, STATE_WORDS, clock, count, duration, plural, rate, shortened } from "./words.js";

const TOLD_MAX = 200;
const GROUPS_SHOWN = 8;

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value; else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export function showVerdict(place, run, shown) {
  const { state } = shown;
  const p50 = quantile(state.delays, 0.5), p99 = quantile(state.delays, 0.99);
  const numbers = element("dl", { className: "live-numbers" });
  for (const [what, value] of [
    ["published", count(state.published)],
    ["delivered", count(state.delivered)],
    ["messages lost", count(state.lost)],
    ["delay, median", duration(p50)],
    ["delay, p99", duration(p99)],
    ["brokers up", `${run.brokers.filter((node) => ["up", "slow"].includes(state.nodes[node.number])).length} / ${run.brokers.length}`],
  ]) numbers.append(element("div", {}, element("dt", {}, what), element("dd", {}, value)));
  place.replaceChildren(numbers);
  const verdict = run.verdict;
  if (!verdict) return;
  const words = element("p", { className: `live-verdict ${verdict.verdict}` }, element("strong", {}, verdict.verdict));
  if (verdict.reason) words.append(`: ${verdict.reason}`);
  place.prepend(words);
}

// What the judge that runs beside a run has found so far.
export function showRunning(place, said, endUs) {
  if (!said) return place.replaceChildren();
  if (said.waiting || said.trouble) return place.replaceChildren(element("p", { className: "live-soft" }, said.waiting || said.trouble));
  const owed = `${count(said.owed)} owed for more than ${duration(said.deadline_us)}, of events up to ${clock(said.through_us, endUs)}`;
  const words = element("p", { className: said.missing ? "live-verdict invalid" : "live-verdict" },
    element("strong", {}, `so far ${count(said.missing)} missing`), `, ${count(said.late)} late, ${count(said.duplicate)} duplicate; ${owed}. Faults excuse nothing yet.`);
  const more = said.missing > said.named.length ? `, and ${count(said.missing - said.named.length)} more` : "";
  return place.replaceChildren(words, said.named.length ? element("p", { className: "live-soft" }, `missing: ${said.named.join("; ")}${more}`) : "");
}

// What there is to say about a broker or a link.
export function showUnder(place, run, overlay, shown, metrics) {
  const number = overlay.selected !== null ? overlay.selected : overlay.hovered;
  if (number !== null) return place.replaceChildren(...aboutBroker(run, run.nodes[number], shown, metrics));
  const link = overlay.hoveredLink || overlay.selectedLink;
  if (link) return place.replaceChildren(...aboutLink(run, link, shown));
  place.replaceChildren(element("p", { className: "live-soft" }, "Point at a broker or a link; a click keeps a broker, and shows its clients."));
  return undefined;
}

// A node at a moment: its tables, and its last inputs with what came of them.
export function showState(place, found, at, endUs) {
  const many = plural(found.inputs, "input", "inputs");
  const parts = [element("h2", {}, `Inside ${found.node} at ${at}`)];
  parts.push(element("p", { className: "live-soft" }, found.last_us === null ? "It had not begun." : `Its incarnation ${found.incarnation} after ${many}, the last at ${clock(found.last_us, endUs)}.`));
  for (const [number, [title, lines]] of found.tables.entries()) {
    const list = element("dl", {});
    for (const [name, value, entries] of lines) {
      list.append(element("dt", {}, name), element("dd", {}, entries.length ? element("details", {}, element("summary", {}, value), element("ul", {}, ...entries.map((each) => element("li", {}, each)))) : value));
    }
    parts.push(element("details", { open: number === 0 }, element("summary", {}, title), lines.length ? list : element("p", {}, "nothing")));
  }
  const inputs = found.recent.reverse().map((each) => element("li", {}, `${clock(each.time_us, endUs)}: ${each.input}`, element("ul", {}, ...each.effects.map((effect) => element("li", {}, effect)))));
  parts.push(element("details", {}, element("summary", {}, `Its last ${plural(inputs.length, "input", "inputs")}, the newest first`), element("ol", {}, ...inputs)));
  place.replaceChildren(...parts);
}

function aboutBroker(run, node, shown, metrics) {
  const { state, moved } = shown;
  const activity = moved.activity.get(node.number) || { received: 0, delivered: 0, published: 0 };
  const waiting = state.waiting.get(node.number) || 0;
  const down = node.clients.filter((client) => state.nodes[client.number] === "down");
  const lines = [
    `${STATE_WORDS[state.nodes[node.number]]}`,
    `receives ${rate(activity.received / moved.seconds)}; its clients are handed ${rate(activity.delivered / moved.seconds)} and publish ${rate(activity.published / moved.seconds)}`,
    `${plural(waiting, "message is", "messages are")} on their way to it`,
    node.clients.length ? `${plural(node.clients.length, "client", "clients")}: ${names(node.clients)}` : "no clients",
  ];
  if (down.length) lines.push(`down: ${names(down)}`);
  for (const { words, of, say } of metrics.filter((each) => each.own && each.of(shown, node.number))) lines.push(`${words}: ${say(of(shown, node.number))}`);
  return [element("h3", {}, node.name), element("ul", {}, ...lines.map((each) => element("li", {}, each)))];
}

function aboutLink(run, key, { state, moved }) {
  const [a, b] = key.split("-").map((each) => run.nodes[each]);
  const lines = [run.planned.has(key) ? LINK_WORDS[state.links.get(key) || "away"] : "not of the overlay: the protocol made it"];
  for (const [from, to] of [[a, b], [b, a]]) {
    const each = moved.moved.get(`${from.number}>${to.number}`) || { events: 0, others: 0, lost: 0 };
    lines.push(`${from.name} to ${to.name}: ${rate(each.events / moved.seconds)} with events, ${rate(each.others / moved.seconds)} others, ${count(each.lost)} lost`);
  }
  return [element("h3", {}, `${a.name} – ${b.name}`), element("ul", {}, ...lines.map((each) => element("li", {}, each)))];
}

function names(nodes) {
  const some = nodes.slice(0, 12).map((node) => node.name).join(", ");
  return nodes.length > 12 ? `${some} and ${nodes.length - 12} more` : some;
}

// What was told up to that moment, the newest first.
export function showStory(place, run, us, goTo) {
  const told = [];
  const done = new Set();
  for (let at = run.story.length - 1; at >= 0 && told.length < TOLD_MAX; at -= 1) {
    const each = run.story[at];
    if (each.t > us) continue;
    if (each.k === "fault") {
      if (each.stage === "done") done.add(each.step);
      else if (done.has(each.step)) continue; // that it took effect says that it was asked for
    }
    told.push(each);
  }
  const signature = `${run.version}/${told.length}/${told.length ? told[0].t : ""}`;
  if (place.dataset.signature === signature) return;
  place.dataset.signature = signature;
  place.replaceChildren(...told.map((each) => storyLine(run, each, goTo)));
}

function storyLine(run, told, goTo) {
  const time = element("button", { type: "button", className: "live-time", title: "go there" }, clock(told.t, run.endUs));
  time.addEventListener("click", () => goTo(told.t));
  let words = shortened(told.text);
  if (told.k === "fault" && told.stage === "asked") words = `asked for: ${told.text}`;
  if (told.itself) words = `by itself: ${words}`;
  if (told.hand) words = `by hand: ${words}`;
  return element("li", { className: `live-${COMMANDS.includes(told.kind) ? "command" : told.k}${told.stage === "asked" ? " asked" : ""}${told.ends !== undefined && !told.breaks ? " mends" : ""}` }, time, element("span", {}, words));
}

export function showFindings(place, run, pick) {
  place.replaceChildren();
  if (!run.findings || !run.findings.length) return;
  place.append(element("h2", {}, "Findings, by where the way ended"));
  let to = place;
  for (const [number, group] of run.findings.entries()) {
    if (number === GROUPS_SHOWN) {
      to = element("details", {}, element("summary", {}, plural(run.findings.length - number, "more group", "more groups")));
      place.append(to);
    }
    const body = element("ul", {});
    for (const each of group.events) {
      const button = element("button", { type: "button", className: "live-time" }, each.event);
      button.disabled = !run.ways[each.event];
      button.addEventListener("click", () => pick(each.event));
      body.append(element("li", {}, button, element("span", {}, each.text)));
    }
    if (group.count > group.events.length) body.append(element("li", { className: "live-soft" }, `and ${count(group.count - group.events.length)} more`));
    const summary = element("summary", {}, element("b", {}, count(group.count)), ` ${group.finding.replace("_", " ")}: ${group.where}`);
    to.append(element("details", { open: run.findings.length === 1 }, summary, body, group.command ? element("code", {}, group.command) : ""));
  }
}

// All brokers in a table, for those who do not see the picture.
export function showTable(place, run, shown, metrics) {
  const { state, moved } = shown, own = metrics.filter((each) => each.own && run.brokers.some((node) => each.of(shown, node.number)));
  const rows = run.brokers.slice(0, 1000).map((node) => {
    const activity = moved.activity.get(node.number) || { received: 0, delivered: 0, published: 0 };
    return element("tr", {}, element("th", { scope: "row" }, node.name), ...[
      STATE_WORDS[state.nodes[node.number]], rate(activity.received / moved.seconds),
      rate(activity.delivered / moved.seconds), count(state.waiting.get(node.number) || 0),
      ...own.map(({ of, say }) => say(of(shown, node.number))),
    ].map((each) => element("td", {}, each)));
  });
  const head = element("tr", {}, ...["broker", "state", "receives", "delivers", "on the way", ...own.map(({ words }) => words)].map((each) => element("th", { scope: "col" }, each)));
  place.replaceChildren(element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}

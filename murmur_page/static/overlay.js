// Draws the overlay on a canvas: brokers where the layout has them, traffic on links, and what is broken.

import { fitted } from "./canvas.js";
import { linkKey } from "./run.js";
import { STATE_WORDS } from "./words.js";

const NAMES_MAX = 64; // brokers that all bear their names
const NAMES_NEAR_MAX = 500; // brokers that bear them when the view comes near
const PLAIN_ABOVE = 800; // brokers from which on each is a dot
const LINES_MAX = 160; // lines with traffic from which on they are thin and still
const LOSSES_MAX = 12; // links with losses that all say how many
const USED_FOR = 12; // widths of the window that an unplanned link stays drawn after traffic

export class Overlay {
  constructor(canvas, run, look) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.run = run;
    this.look = look;
    this.zoom = 1;
    this.panX = 0;
    this.panY = 0;
    this.selected = null; // a broker's number
    this.hovered = null;
    this.way = null;
    this.lasso = null;
    this.metric = null; // what colours stand for, one of metricsOf
    this.gathered = new Set(); // brokers in the lasso
    this.selectedLink = null;
  }

  resize() {
    this.bounds = boundsOf(this.run);
    Object.assign(this, fitted(this.context));
  }

  // Where a place of the layout is on the canvas.
  at(node) {
    const { left, top, wide, high } = this.bounds;
    const round = this.run.head.layout === "ring";
    const narrow = this.width < 500; // there the legend is below the canvas, else on it
    const side = narrow ? 34 : round ? 100 : 58, above = round && !narrow ? 76 : 52, below = (narrow ? 46 : 74) + (round ? 14 : 0);
    let across = (this.width - 2 * side) / wide, down = (this.height - above - below) / high;
    // A picture may be stretched to its place, but not beyond recognition; a ring stays round.
    across = Math.min(across, down * (round ? 1 : 2.2)) * this.zoom;
    down = Math.min(down, (across / this.zoom) * (round ? 1.7 : 2.2)) * this.zoom;
    const middleX = this.width / 2 + this.panX, middleY = above + (this.height - above - below) / 2 + this.panY;
    return [middleX + (node.x - left - wide / 2) * across, middleY + (node.y - top - high / 2) * down, across, down];
  }

  get radius() {
    const brokers = this.run.brokers.length;
    const room = Math.sqrt((this.width * this.height) / Math.max(1, brokers));
    return Math.max(2.2, Math.min(14, room * 0.11)) * Math.min(2.5, Math.max(1, Math.sqrt(this.zoom)));
  }

  brokerAt(x, y) {
    let best = null, nearest = (Math.max(this.radius, 7) + 5) ** 2;
    for (const node of this.run.brokers) {
      const [nodeX, nodeY] = this.at(node);
      const away = (nodeX - x) ** 2 + (nodeY - y) ** 2;
      if (away < nearest) { nearest = away; best = node.number; }
    }
    return best;
  }

  linkAt(x, y, shown) {
    let best = null, nearest = 7;
    for (const key of this.linksShown(shown)) {
      const [a, b] = key.split("-").map((each) => this.at(this.run.nodes[each]));
      const away = distanceToLine(x, y, a, b);
      if (away < nearest) { nearest = away; best = key; }
    }
    return best;
  }

  // The brokers inside the lasso that was just drawn.
  gather() {
    const path = this.lasso;
    this.lasso = null;
    this.gathered.clear();
    if (path.length < 3) return;
    for (const node of this.run.brokers) if (isInside(this.at(node), path)) this.gathered.add(node.number);
  }

  linksShown(shown) {
    const near = this.selected !== null ? this.selected : this.hovered;
    if (this.links?.shown === shown && this.links.near === near) return this.links.keys; // a frame is drawn often
    const { state, moved, widthUs, us } = shown, keys = new Set(this.run.planned);
    this.links = { shown, near, keys };
    for (const [key, what] of state.links) if (what !== "gone" || this.run.planned.has(key)) keys.add(key);
    if (keys.size) for (const [key, usedUs] of state.used) if (us - usedUs < USED_FOR * widthUs) keys.add(key);
    // Where the overlay has no links of its own, only what carried events is drawn, and all of the broker at hand.
    for (const each of moved.moved.values()) {
      if (this.run.planned.size || each.events || each.lost || each.from === near || each.to === near) keys.add(linkKey(each.from, each.to));
    }
    return keys;
  }

  draw(shown, tick) {
    const { context, look } = this;
    context.clearRect(0, 0, this.width, this.height);
    this.drawBoxes();
    this.drawLinks(shown, tick);
    if (this.way) this.drawWay();
    const most = this.mostOf(shown);
    const plain = this.run.brokers.length > PLAIN_ABOVE;
    for (const node of this.run.brokers) this.drawBroker(node, shown, most, plain);
    this.drawNames(shown);
    if (this.selected !== null) this.drawClients(this.run.nodes[this.selected], shown);
    if (this.lasso) {
      context.strokeStyle = look.fault;
      context.setLineDash([5, 4]);
      context.lineWidth = 1.5;
      context.beginPath();
      for (const [x, y] of this.lasso) context.lineTo(x, y);
      context.stroke();
      context.setLineDash([]);
    }
  }

  // What the darkest broker has of what colours stand for.
  mostOf(shown) {
    if (shown.measured !== this.metric) {
      shown.measured = this.metric;
      shown.most = max(this.run.brokers.map((node) => this.metric.of(shown, node.number)));
    }
    return shown.most;
  }

  drawBoxes() {
    const { context, look } = this;
    for (const [name, x, y, width, height, members] of this.run.head.boxes) {
      const [left, top, across, down] = this.at({ x, y });
      context.strokeStyle = look.line;
      context.fillStyle = look.box;
      context.lineWidth = 1;
      context.beginPath();
      context.roundRect(left, top, width * across, height * down, 8);
      context.fill();
      context.stroke();
      if (members < 2) continue;
      context.fillStyle = look.soft;
      context.font = `11px ${look.font}`;
      context.textAlign = "left";
      context.fillText(name, left + 6, top + 13);
    }
  }

  drawLinks(shown, tick) {
    const { context, look, run } = this;
    const many = run.brokers.length > PLAIN_ABOVE || shown.moved.moved.size > LINES_MAX;
    const near = this.selected !== null ? this.selected : this.hovered;
    let lossy = 0;
    for (const each of shown.moved.moved.values()) lossy += each.lost ? 1 : 0;
    const perSecond = (each) => (each.events + each.others) / shown.moved.seconds;
    this.most = Math.max(1e-9, ...[...shown.moved.moved.values()].map(perSecond));
    for (const key of this.linksShown(shown)) {
      const [a, b] = key.split("-").map(Number);
      const [fromX, fromY] = this.at(run.nodes[a]), [toX, toY] = this.at(run.nodes[b]);
      const state = shown.state.links.get(key) || (run.planned.has(key) ? "away" : "unplanned");
      const dead = [a, b].some((end) => shown.state.nodes[end] === "down");
      if (state === "gone") continue;
      context.globalAlpha = 1;
      context.lineWidth = key === this.hoveredLink || key === this.selectedLink ? 3 : 1;
      context.strokeStyle = state === "cut" ? look.fault : state === "harmed" ? look.warn : look.line;
      context.setLineDash(state === "cut" ? [3, 5] : state === "unplanned" ? [2, 4] : state === "down" || state === "away" ? [6, 6] : []);
      if (!(many && state === "unplanned") || state === "cut") line(context, fromX, fromY, toX, toY);
      context.setLineDash([]);
      if (state === "cut") cross(context, (fromX + toX) / 2, (fromY + toY) / 2, 6, look.fault);
      if (state === "harmed") wave(context, (fromX + toX) / 2, (fromY + toY) / 2, look.warn);
      if (state === "down" && !dead && !many) slash(context, fromX, fromY, toX, toY, look.soft);
      for (const [from, to] of [[a, b], [b, a]]) {
        const each = shown.moved.moved.get(`${from}>${to}`);
        const own = from === near || to === near;
        if (each && (state !== "unplanned" || !many || each.events || own)) this.drawTraffic(each, perSecond(each), tick, many && !own, lossy <= LOSSES_MAX);
      }
    }
    context.globalAlpha = 1;
  }

  drawTraffic(each, perSecond, tick, many, tellsLoss) {
    const { context, look, run } = this;
    const [fromX, fromY] = this.at(run.nodes[each.from]), [toX, toY] = this.at(run.nodes[each.to]);
    const length = Math.hypot(toX - fromX, toY - fromY) || 1;
    const width = 0.8 + (many ? 2.5 : 5) * Math.sqrt(perSecond / this.most);
    const aside = 1 + width / 2;
    const acrossX = (-(toY - fromY) / length) * aside, acrossY = ((toX - fromX) / length) * aside;
    const made = run.planned.size && !run.planned.has(linkKey(each.from, each.to)); // the protocol's own link
    context.strokeStyle = made ? look.made : each.events ? look.traffic : look.control;
    context.globalAlpha = made && many ? 0.7 : 0.35;
    context.lineWidth = width;
    if (made) context.setLineDash([6, 4]);
    line(context, fromX + acrossX, fromY + acrossY, toX + acrossX, toY + acrossY);
    context.setLineDash([]);
    context.globalAlpha = 1;
    if (!many) {
      // Dashes that move the way the messages go; where motion is not wanted they stand still.
      context.setLineDash([2, 9]);
      context.lineDashOffset = -tick * (0.6 + width / 4);
      context.lineWidth = Math.max(1.5, width * 0.8);
      line(context, fromX + acrossX, fromY + acrossY, toX + acrossX, toY + acrossY);
      context.setLineDash([]);
      arrow(context, fromX, fromY, toX, toY, acrossX, acrossY, Math.max(3, width), context.strokeStyle);
    }
    if (each.lost) {
      const x = fromX + (toX - fromX) * 0.62 + acrossX, y = fromY + (toY - fromY) * 0.62 + acrossY;
      cross(context, x, y, 4, look.fault);
      // On the side of its direction, so that the two of a link do not cover each other.
      if (tellsLoss) text(context, `${each.lost} lost`, x + (acrossX / aside) * 10, y + (acrossY / aside) * 10 + 4, look.fault, look, Math.abs(acrossX) < Math.abs(acrossY) ? "center" : acrossX < 0 ? "right" : "left");
    }
  }

  drawBroker(node, shown, most, plain) {
    const { context, look } = this;
    const [x, y] = this.at(node);
    if (x < -20 || y < -20 || x > this.width + 20 || y > this.height + 20) return;
    const state = shown.state.nodes[node.number], radius = this.radius;
    const fill = look.load(most ? this.metric.of(shown, node.number) / most : 0);
    context.lineWidth = 1.2;
    if (state === "down") {
      context.fillStyle = look.ground;
      context.strokeStyle = look.fault;
      circle(context, x, y, radius, true);
      cross(context, x, y, radius * 0.55, look.fault);
    } else if (state === "stalled") {
      context.fillStyle = look.ground;
      context.strokeStyle = look.warn;
      context.lineWidth = 2;
      context.beginPath();
      context.rect(x - radius, y - radius, 2 * radius, 2 * radius);
      context.fill();
      context.stroke();
      context.fillStyle = look.warn;
      context.fillRect(x - radius * 0.45, y - radius * 0.5, radius * 0.3, radius);
      context.fillRect(x + radius * 0.15, y - radius * 0.5, radius * 0.3, radius);
    } else if (state === "slow") {
      context.fillStyle = fill;
      context.strokeStyle = look.warn;
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(x, y - radius * 1.2);
      context.lineTo(x + radius * 1.2, y + radius * 0.9);
      context.lineTo(x - radius * 1.2, y + radius * 0.9);
      context.closePath();
      context.fill();
      context.stroke();
    } else {
      context.globalAlpha = state === "away" ? 0.35 : 1;
      context.fillStyle = state === "away" ? look.ground : fill;
      context.strokeStyle = look.ink;
      if (plain) { context.fillRect(x - radius / 2, y - radius / 2, radius, radius); }
      else circle(context, x, y, radius, true);
      context.globalAlpha = 1;
    }
    const waiting = shown.state.waiting.get(node.number) || 0;
    if (waiting && !plain && state !== "down") {
      const full = Math.min(1, Math.log10(1 + waiting) / 3);
      context.strokeStyle = look.queue;
      context.lineWidth = 3;
      context.beginPath();
      context.arc(x, y, radius + 4, -Math.PI / 2, -Math.PI / 2 + 2 * Math.PI * full);
      context.stroke();
    }
    if (this.gathered.has(node.number)) ring(context, x, y, radius + 8, look.fault);
    if (node.number === this.selected || node.number === this.hovered) ring(context, x, y, radius + 7, look.ink);
  }

  drawNames(shown) {
    const { look, run } = this;
    const brokers = run.brokers.length;
    const all = brokers <= NAMES_MAX || (brokers <= NAMES_NEAR_MAX && this.zoom >= 2) || this.zoom >= 6;
    const isWrong = (node) => ["down", "stalled", "slow"].includes(shown.state.nodes[node.number]);
    const matters = (node) => (node.number === this.selected || node.number === this.hovered ? 2 : isWrong(node) ? 1 : 0);
    const taken = []; // where names are: what matters most is named first, and a name without room is left out
    const named = run.brokers.filter((node) => all || matters(node) > (brokers <= NAMES_NEAR_MAX ? 0 : 1));
    for (const node of named.sort((a, b) => matters(b) - matters(a))) {
      const state = shown.state.nodes[node.number], wrong = isWrong(node), picked = matters(node) === 2;
      const [x, y] = this.at(node);
      if (x < 0 || y < 0 || x > this.width || y > this.height) continue;
      const name = wrong ? `${node.name} ${STATE_WORDS[state]}` : node.name;
      const places = [0, 13, 26].map((out) => this.nameAt(node, x, y, out));
      const wide = 7.2 * name.length;
      const boxOf = ([atX, atY, atSide]) => [atX - (atSide === "right" ? wide : atSide === "center" ? wide / 2 : 0), atY - 10, wide, 13];
      const place = places.find((each) => !taken.some((other) => overlaps(boxOf(each), other)));
      if (!place && !picked) continue;
      const [nameX, nameY, side] = place || places[0];
      taken.push(boxOf([nameX, nameY, side]));
      text(this.context, name, nameX, nameY, wrong ? (state === "down" ? look.fault : look.warn) : look.ink, look, side, wrong);
      const lost = node.clients.filter((client) => ["down", "stalled", "slow"].includes(shown.state.nodes[client.number]));
      if (!lost.length) continue;
      const words = lost.length === 1 ? `${lost[0].name} ${STATE_WORDS[shown.state.nodes[lost[0].number]]}` : `${lost.length} clients down`;
      text(this.context, words, nameX, nameY + 13, look.fault, look, side);
    }
  }

  // Where the name of a broker goes: below it, or outside of the ring; `out`: so much farther away.
  nameAt(node, x, y, out) {
    if (this.run.head.layout !== "ring") return [x, out ? y - this.radius - out + 7 : y + this.radius + 14, "center"];
    const { left, top, wide, high } = this.bounds;
    const outX = (node.x - left - wide / 2) / (wide / 2), outY = (node.y - top - high / 2) / (high / 2);
    const away = this.radius + 5 + out;
    return [x + outX * away, y + outY * (away + 5) + 4, outX > 0.3 ? "left" : outX < -0.3 ? "right" : "center"];
  }

  drawClients(broker, shown) {
    const { context, look } = this;
    if (broker.role !== "b" || !broker.clients.length) return;
    const [x, y] = this.at(broker);
    const clients = broker.clients.slice(0, 24), away = this.radius + 30;
    clients.forEach((client, number) => {
      const turn = (2 * Math.PI * number) / clients.length - Math.PI / 3;
      const atX = x + away * Math.cos(turn), atY = y + away * Math.sin(turn);
      const down = shown.state.nodes[client.number] === "down";
      context.strokeStyle = look.line;
      context.lineWidth = 1;
      line(context, x + (this.radius + 2) * Math.cos(turn), y + (this.radius + 2) * Math.sin(turn), atX, atY);
      context.fillStyle = down ? look.ground : look.soft;
      context.strokeStyle = down ? look.fault : look.soft;
      circle(context, atX, atY, 3.5, true);
      if (down) cross(context, atX, atY, 3, look.fault);
      if (clients.length <= 12) text(context, client.name, atX, atY - 6, look.soft, look, "center");
    });
  }

  // The way of one event, in order: arrows with numbers; a copy that was lost ends in a cross.
  drawWay() {
    const { context, look, run } = this;
    const homeOf = (name) => { const node = run.nodes.find((each) => each.name === name); return node && (node.home === null ? node : run.nodes[node.home]); };
    let order = 0;
    for (const hop of this.way.hops) {
      const from = homeOf(hop.from), to = homeOf(hop.to);
      if (!from || !to || from === to) continue;
      order += 1;
      const [fromX, fromY] = this.at(from), [toX, toY] = this.at(to);
      const part = hop.lost ? 0.55 : 1;
      const endX = fromX + (toX - fromX) * part, endY = fromY + (toY - fromY) * part;
      context.strokeStyle = look.way;
      context.lineWidth = 3;
      line(context, fromX, fromY, endX, endY);
      if (hop.lost) cross(context, endX, endY, 7, look.fault);
      else arrow(context, fromX, fromY, toX, toY, 0, 0, 8, look.way);
      text(context, String(order), fromX + (toX - fromX) * 0.4 + 8, fromY + (toY - fromY) * 0.4 - 4, look.way, look, "left", true);
    }
  }
}

function boundsOf(run) {
  const xs = run.brokers.map((node) => node.x), ys = run.brokers.map((node) => node.y);
  for (const [, x, y, width, height] of run.head.boxes) { xs.push(x, x + width); ys.push(y, y + height); }
  const left = min(xs), top = min(ys);
  return { left, top, wide: Math.max(max(xs) - left, 0.5), high: Math.max(max(ys) - top, 0.5) };
}

function overlaps([x, y, wide, high], [otherX, otherY, otherWide, otherHigh]) {
  return x < otherX + otherWide && otherX < x + wide && y < otherY + otherHigh && otherY < y + high;
}

function isInside([x, y], path) {
  let inside = false;
  path.forEach(([toX, toY], at) => {
    const [fromX, fromY] = path[(at + path.length - 1) % path.length];
    if (fromY > y !== toY > y && x < fromX + ((toX - fromX) * (y - fromY)) / (toY - fromY)) inside = !inside;
  });
  return inside;
}

function min(numbers) { return numbers.reduce((a, b) => Math.min(a, b), Infinity); }

function max(numbers) { return numbers.reduce((a, b) => Math.max(a, b), -Infinity); }

function distanceToLine(x, y, [fromX, fromY], [toX, toY]) {
  const long = (toX - fromX) ** 2 + (toY - fromY) ** 2 || 1;
  const share = Math.max(0, Math.min(1, ((x - fromX) * (toX - fromX) + (y - fromY) * (toY - fromY)) / long));
  return Math.hypot(x - fromX - share * (toX - fromX), y - fromY - share * (toY - fromY));
}

function line(context, fromX, fromY, toX, toY) {
  context.beginPath();
  context.moveTo(fromX, fromY);
  context.lineTo(toX, toY);
  context.stroke();
}

function circle(context, x, y, radius, outlined) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
  if (outlined) context.stroke();
}

function ring(context, x, y, radius, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.stroke();
}

function cross(context, x, y, size, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 2.2;
  line(context, x - size, y - size, x + size, y + size);
  line(context, x - size, y + size, x + size, y - size);
}

function wave(context, x, y, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x - 7, y);
  context.quadraticCurveTo(x - 3.5, y - 7, x, y);
  context.quadraticCurveTo(x + 3.5, y + 7, x + 7, y);
  context.stroke();
}

function slash(context, fromX, fromY, toX, toY, colour) {
  const length = Math.hypot(toX - fromX, toY - fromY) || 1, x = (fromX + toX) / 2, y = (fromY + toY) / 2;
  const acrossX = (-(toY - fromY) / length) * 6, acrossY = ((toX - fromX) / length) * 6;
  context.strokeStyle = colour;
  context.lineWidth = 2;
  line(context, x - acrossX, y - acrossY, x + acrossX, y + acrossY);
}

function arrow(context, fromX, fromY, toX, toY, acrossX, acrossY, size, colour) {
  const length = Math.hypot(toX - fromX, toY - fromY) || 1;
  const alongX = (toX - fromX) / length, alongY = (toY - fromY) / length;
  const x = fromX + (toX - fromX) * 0.6 + acrossX, y = fromY + (toY - fromY) * 0.6 + acrossY;
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x + alongX * size, y + alongY * size);
  context.lineTo(x - alongX * size - alongY * size, y - alongY * size + alongX * size);
  context.lineTo(x - alongX * size + alongY * size, y - alongY * size - alongX * size);
  context.fill();
}

function text(context, words, x, y, colour, look, side, bold) {
  context.font = `${bold ? "bold " : ""}12px ${look.font}`;
  context.textAlign = side;
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.strokeStyle = look.ground;
  context.strokeText(words, x, y);
  context.fillStyle = colour;
  context.fillText(words, x, y);
}

// Draws the course of a run: rates, delays and faults on one axis of emulated time.

import { fitted } from "./canvas.js";
import { quantile } from "./run.js";
import { clock, duration, rate } from "./words.js";

const LEFT = 62, RIGHT = 14, AXIS = 18;
const LANES_MAX = 4; // of bars for faults; more of them are drawn over the last

export class Course {
  constructor(canvas, run, look) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.run = run;
    this.look = look;
    this.made = null;
  }

  resize() {
    Object.assign(this, fitted(this.context));
    this.made = null;
  }

  get plotWidth() { return this.width - LEFT - RIGHT; }

  get spanUs() { return Math.max(1, this.run.endUs - this.run.beginUs); }

  xOf(us) { return LEFT + Math.max(0, (us - this.run.beginUs) / this.spanUs) * this.plotWidth; }

  timeAt(x) { return this.run.beginUs + Math.max(0, Math.min(1, (x - LEFT) / this.plotWidth)) * this.spanUs; }

  // The frames put together to about three pixels each.
  series() {
    if (this.made && this.made.version === this.run.version) return this.made;
    const columns = Math.max(1, Math.floor(this.plotWidth / 3)), { spanUs } = this, { beginUs } = this.run;
    const found = Array.from({ length: columns }, () => ({ published: 0, delivered: 0, delays: new Map(), lost: 0 }));
    for (const frame of this.run.frames) {
      if (frame.t < beginUs) continue;
      // What a frame counts is spread over the columns that it reaches into.
      const from = ((Math.max(beginUs, frame.b) - beginUs) / spanUs) * columns, to = ((frame.t - beginUs) / spanUs) * columns;
      const wide = Math.max(1e-9, to - from);
      let lost = 0;
      for (const [, , , , each] of frame.m || []) lost += each;
      for (let at = Math.floor(from); at < Math.min(columns, Math.max(to, Math.floor(from) + 1e-9)); at += 1) {
        const share = Math.max(0, Math.min(to, at + 1) - Math.max(from, at)) / wide, here = found[at];
        here.published += share * (frame.p || 0);
        here.delivered += share * (frame.v || 0);
        here.lost += share * lost;
        for (const [bucket, count] of frame.d || []) here.delays.set(bucket, (here.delays.get(bucket) || 0) + share * count);
      }
    }
    const secondsEach = spanUs / columns / 1e6;
    const made = found.map((each) => ({
      published: each.published / secondsEach, delivered: each.delivered / secondsEach, lost: Math.round(each.lost),
      p50: quantile(each.delays, 0.5), p99: quantile(each.delays, 0.99),
    }));
    this.made = { version: this.run.version, columns: made };
    return this.made;
  }

  // What the columns say at that place, in words.
  wordsAt(x) {
    const { columns } = this.series();
    const at = Math.floor(((x - LEFT) / this.plotWidth) * columns.length);
    if (at < 0 || at >= columns.length) return null;
    const each = columns[at], us = this.timeAt(x);
    const faults = this.run.faults.filter((fault) => fault.from !== null && !fault.repairs && fault.from <= us && (fault.until === null || fault.until > us));
    return [
      clock(us, this.run.endUs),
      `published ${rate(each.published)}, delivered ${rate(each.delivered)}`,
      each.p50 === null ? "nothing delivered" : `delay p50 ${duration(each.p50)}, p99 ${duration(each.p99)}`,
      ...(each.lost ? [`${each.lost} messages lost`] : []),
      ...faults.slice(0, 4).map((fault) => `in force: ${fault.text}`),
    ];
  }

  draw(us, hoverX) {
    const { context, look, width, height } = this;
    context.clearRect(0, 0, width, height);
    const shownFaults = this.run.faults.filter((fault) => !fault.repairs);
    const placed = inLanes(shownFaults), lanes = Math.min(LANES_MAX, 1 + Math.max(-1, ...placed.map(([, lane]) => lane)));
    const faultHigh = lanes ? 8 + lanes * 9 : 0;
    const free = height - AXIS - faultHigh - 26;
    const rateHigh = free * 0.52, delayHigh = free * 0.48;
    const rateTop = 14, delayTop = rateTop + rateHigh + 14;
    this.drawShades(shownFaults, rateTop, delayTop + delayHigh);
    this.drawRates(rateTop, rateHigh);
    this.drawDelays(delayTop, delayHigh);
    this.drawFaults(placed, lanes, delayTop + delayHigh + 6);
    this.drawAxis(height - AXIS);
    const x = this.xOf(us);
    context.strokeStyle = look.ink;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x, 4);
    context.lineTo(x, height - AXIS);
    context.stroke();
    context.fillStyle = look.ink;
    context.beginPath();
    context.moveTo(x - 5, 2);
    context.lineTo(x + 5, 2);
    context.lineTo(x, 9);
    context.fill();
    if (hoverX !== null && hoverX > LEFT) {
      context.strokeStyle = look.soft;
      context.lineWidth = 0.7;
      context.beginPath();
      context.moveTo(hoverX, rateTop);
      context.lineTo(hoverX, height - AXIS);
      context.stroke();
    }
  }

  drawShades(faults, top, bottom) {
    this.context.fillStyle = this.look.shade;
    let shadedTo = -Infinity; // many faults at once are one shade
    const inForce = faults.filter((fault) => fault.from !== null).sort((a, b) => a.from - b.from);
    for (const fault of inForce) {
      const left = Math.max(shadedTo, this.xOf(fault.from)), right = this.xOf(fault.until === null ? this.run.endUs : fault.until);
      if (right > left) this.context.fillRect(left, top, Math.max(1, right - left), bottom - top);
      shadedTo = Math.max(shadedTo, right);
    }
  }

  drawRates(top, high) {
    const { look } = this, { columns } = this.series();
    // One burst does not flatten the rest: it is cut off, and says how high it goes.
    const rates = columns.map((each) => Math.max(each.published, each.delivered)), highest = Math.max(1e-9, ...rates);
    const usual = 1.6 * rates.toSorted((a, b) => a - b)[Math.floor(0.97 * rates.length)];
    const cut = usual > 0 && highest > 4 * usual, most = nice(cut ? usual : highest);
    this.label(rate(most), top);
    this.plot(columns, (each) => top + high * (1 - Math.min(1, each.delivered / most)), look.delivered, 2, top + high);
    this.plot(columns, (each) => top + high * (1 - Math.min(1, each.published / most)), look.published, 1.5, top + high, [4, 3]);
    if (cut) this.note(`up to ${rate(highest)}`, LEFT + ((rates.indexOf(highest) + 0.5) / columns.length) * this.plotWidth, top + 9);
    this.key([["delivered", look.delivered, []], ["published", look.published, [4, 3]]], top - 2);
    this.base(top + high);
  }

  drawDelays(top, high) {
    const { look } = this, { columns } = this.series();
    const known = columns.filter((each) => each.p99 !== null);
    if (!known.length) return;
    const low = Math.max(1, Math.min(...known.map((each) => each.p50)) / 1.5), most = Math.max(...known.map((each) => each.p99)) * 1.2;
    const y = (us) => top + high * (1 - (Math.log(us) - Math.log(low)) / Math.max(0.1, Math.log(most) - Math.log(low)));
    this.label(duration(most), top, "delay");
    this.label(duration(low), top + high - 8);
    this.plot(columns, (each) => (each.p99 === null ? null : y(each.p99)), look.p99, 1.5, null, [4, 3]);
    this.plot(columns, (each) => (each.p50 === null ? null : y(each.p50)), look.p50, 2, null);
    this.key([["p50", look.p50, []], ["p99", look.p99, [4, 3]]], top - 2);
    this.base(top + high);
  }

  drawFaults(placed, lanes, top) {
    const { context, look } = this;
    for (const [fault, wanted] of placed) {
      const from = fault.from === null ? fault.asked : fault.from;
      const until = fault.until === null ? this.run.endUs : fault.until, lane = Math.min(lanes - 1, wanted);
      const left = this.xOf(from), wide = Math.max(3, this.xOf(until) - left);
      context.fillStyle = look.fault;
      context.strokeStyle = look.fault;
      context.lineWidth = 1;
      if (fault.from === null) context.strokeRect(left, top + lane * 9, wide, 6); // asked for, not in force yet
      else context.fillRect(left, top + lane * 9, wide, 6);
    }
    if (placed.length) this.label("faults", top);
  }

  drawAxis(y) {
    const { context, look } = this;
    const { spanUs } = this, { beginUs, endUs } = this.run;
    const step = nice(spanUs / Math.max(2, this.plotWidth / 110), true);
    context.fillStyle = look.soft;
    context.font = `11px ${look.font}`;
    for (let us = Math.ceil(beginUs / step) * step; us <= endUs; us += step) {
      const x = this.xOf(us);
      context.fillRect(x, y, 1, 4);
      context.textAlign = x > this.width - 50 ? "right" : "center";
      if (x < this.width - 20) context.fillText(axisWords(us, spanUs), x, y + 15);
    }
  }

  plot(columns, y, colour, width, base, dash = []) {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.beginPath();
    let drawing = false;
    columns.forEach((each, at) => {
      const here = y(each);
      const x = LEFT + ((at + 0.5) / columns.length) * this.plotWidth;
      if (here === null) { drawing = false; return; }
      if (drawing) context.lineTo(x, here); else context.moveTo(x, here);
      drawing = true;
    });
    context.stroke();
    context.setLineDash([]);
  }

  // Words beside a peak that is cut off.
  note(words, x, y) {
    const { context, look } = this, late = x > this.width * 0.6;
    context.fillStyle = look.soft;
    context.font = `11px ${look.font}`;
    context.textAlign = late ? "right" : "left";
    context.fillText(words, x + (late ? -6 : 6), y);
  }

  label(words, y, under) {
    const { context, look } = this;
    context.fillStyle = look.soft;
    context.font = `11px ${look.font}`;
    context.textAlign = "right";
    context.fillText(words, LEFT - 6, y + 8);
    if (under) context.fillText(under, LEFT - 6, y + 21);
  }

  key(entries, y) {
    const { context, look } = this;
    let x = this.width - RIGHT;
    context.font = `11px ${look.font}`;
    context.textAlign = "right";
    for (const [words, colour, dash] of entries) {
      context.fillStyle = look.ink;
      context.fillText(words, x, y + 4);
      x -= context.measureText(words).width + 6;
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(x - 18, y);
      context.lineTo(x, y);
      context.stroke();
      context.setLineDash([]);
      x -= 30;
    }
  }

  base(y) {
    this.context.fillStyle = this.look.line;
    this.context.fillRect(LEFT, y, this.plotWidth, 1);
  }
}

// Each fault with its lane: the first lane that is free, and one for all that are in force to the end.
function inLanes(faults) {
  const endless = faults.some((fault) => fault.until === null), ends = endless ? [Infinity] : [];
  return faults.map((fault) => {
    if (fault.until === null) return [fault, 0];
    const from = fault.from === null ? fault.asked : fault.from;
    let lane = ends.findIndex((end) => end <= from);
    if (lane < 0) lane = ends.length;
    ends[lane] = fault.until;
    return [fault, lane];
  });
}

function nice(number) {
  const power = 10 ** Math.floor(Math.log10(number));
  const part = number / power;
  return (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10) * power;
}

function axisWords(us, spanUs) {
  if (spanUs > 3 * 86_400e6) return `${Number((us / 86_400e6).toFixed(1))} d`;
  if (spanUs > 7_200e6) return `${Number((us / 3_600e6).toFixed(1))} h`;
  return `${Number((us / 1e6).toFixed(3))} s`;
}

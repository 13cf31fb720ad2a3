// A page with its data in it: a report, or a file of its own.

import { Page } from "./page.js";

// The frames as a run knows them: murmur_page.columns has put their counts in columns.
function inRows({ rows, ...parts }) {
  for (const [part, keyed] of Object.entries(parts)) {
    for (const row of keyed) {
      const key = row.filter((each) => typeof each === "number"), columns = row.slice(key.length).map(withZeros);
      for (const [at, frame] of rows.entries()) {
        const counts = columns.map((column) => column[at]);
        if (counts.some((each) => each)) (frame[part] ||= []).push([...key, ...counts]);
      }
    }
  }
  for (const frame of rows) addSent(frame);
  return rows;
}

// What a broker received is written as the difference from what was sent to it: even numbers are more, odd ones less.
function addSent(frame) {
  const sent = new Map(), own = new Map((frame.a || []).map((row) => [row[0], row]));
  for (const [, to, events, others] of frame.m || []) sent.set(to, (sent.get(to) || 0) + events + others);
  for (const to of sent.keys()) if (!own.has(to)) own.set(to, [to, 0, 0, 0]);
  const whole = [...own.values()].map(([node, more, ...rest]) => [node, (sent.get(node) || 0) + (more % 2 ? -(more + 1) / 2 : more / 2), ...rest]);
  frame.a = whole.filter(([, ...counts]) => counts.some((each) => each));
  if (!frame.a.length) delete frame.a;
}

// A negative number stands for as many zeros.
function withZeros(column) {
  return column.flatMap((each) => (each < 0 ? new Array(-each).fill(0) : each));
}

for (const root of document.querySelectorAll(".live")) {
  window.unpacked("live-data").then((text) => {
    const data = JSON.parse(text);
    root.page = new Page(root, { ...data, frames: inRows(data.frames) });
    root.dataset.ready = "";
  });
}

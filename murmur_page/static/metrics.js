// What the colour of a broker can stand for.

import { count, rate } from "./words.js";

// Each has its words, a broker's value in what is shown, and how such a value is said.
export function metricsOf(run) {
  const active = (name) => ({ moved }, node) => (moved.activity.get(node)?.[name] || 0) / moved.seconds;
  const [received, published, delivered] = ["received", "published", "delivered"].map(active);
  return [
    { words: "messages received", of: (shown, node) => received(shown, node) + published(shown, node), say: rate },
    { words: "messages on their way to it", of: ({ state }, node) => state.waiting.get(node) || 0, say: count },
    { words: "deliveries to its clients", of: delivered, say: rate },
    ...run.head.measures.map(([topic, words, counted]) => (counted === "level"
      ? { own: true, words, of: ({ state }, node) => state.levels.get(`${topic}>${node}`) || 0, say: count }
      : { own: true, words, of: ({ moved }, node) => (moved.totals.get(`${topic}>${node}`) || 0) / moved.seconds, say: rate })),
  ];
}

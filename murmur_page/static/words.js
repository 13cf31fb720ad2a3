// Numbers and states in words.

export const STATE_WORDS = {
  away: "not started yet", up: "up", down: "down", stalled: "stalled", slow: "slow", stopped: "stopped at the end",
};
export const LINK_WORDS = {
  away: "not up yet", up: "up", down: "down", cut: "cut", harmed: "changed by a fault", gone: "taken out",
};

export function count(number) {
  return Math.round(number).toLocaleString("en");
}

export function seconds(us, digits = 3) {
  return `${(us / 1e6).toFixed(digits)} s`;
}

export function clock(us, spanUs) {
  if (spanUs > 3 * 86_400e6) return `day ${(us / 86_400e6).toFixed(2)}`;
  if (spanUs > 7_200e6) return `${(us / 3_600e6).toFixed(2)} h`;
  return seconds(us, spanUs > 100e6 ? 1 : spanUs > 10e6 ? 2 : 3);
}

export function duration(us) {
  if (us === null) return "none";
  if (us < 1_000) return `${Number(us.toPrecision(2))} µs`;
  if (us < 1e6) return `${Number((us / 1e3).toPrecision(us < 1e4 ? 2 : 3))} ms`;
  if (us < 1e8) return `${Number((us / 1e6).toPrecision(3))} s`;
  return `${Number((us / 3.6e9).toPrecision(3))} h`;
}

export function rate(perSecond) {
  if (!perSecond) return "0/s";
  if (perSecond < 1) return `${Number((perSecond * 3_600).toPrecision(2))}/h`;
  return `${perSecond < 10 ? perSecond.toFixed(1) : count(perSecond)}/s`;
}

export function plural(number, one, many) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

// A long list of names in a few.
export function shortened(words) {
  return words.replace(/[^\s,|]+(,[^\s,|]+){4,}/g, (list) => {
    const all = list.split(",");
    return `${all.slice(0, 3).join(", ")} and ${all.length - 3} more`;
  });
}

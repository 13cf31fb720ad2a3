// Says what a chart has under the pointer, or at the place that the arrow keys have come to.
for (const chart of document.querySelectorAll(".chart")) {
  const { x, y, at, series } = JSON.parse(chart.dataset.readings);
  const [panels, panel, cursor, tip] = [".panels", ".panel", ".cursor", ".tip"].map((name) => chart.querySelector(name));
  let shown = -1;

  const hide = () => { cursor.hidden = tip.hidden = true; shown = -1; };

  const show = (number) => {
    shown = Math.max(0, Math.min(x.length - 1, number));
    const line = (words, strong) => {
      const made = document.createElement(strong ? "strong" : "div");
      made.textContent = words;
      return made;
    };
    const said = series.filter(([, values]) => values[shown]).map(([name, values]) => line(`${name} ${values[shown]}`.trim(), false));
    tip.replaceChildren(line(at[shown], true), ...said);
    cursor.hidden = tip.hidden = false;
    const [across, down] = [panel.offsetLeft + (x[shown] / 100) * panel.clientWidth, y ? panel.offsetTop + (y[shown] / 100) * panel.clientHeight : 0];
    cursor.style.left = `${across}px`;
    if (y) cursor.style.top = `${down}px`;
    const place = panels.offsetLeft + across, room = tip.offsetWidth + 20;
    tip.style.left = `${Math.max(0, place + room > chart.clientWidth ? place - room : place + 20)}px`;
    tip.style.top = `${panels.offsetTop + Math.max(14, down - tip.offsetHeight)}px`;
  };

  const read = (event) => {
    const box = panel.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const away = (number) => ((x[number] / 100) * box.width - px) ** 2 + (y ? ((y[number] / 100) * box.height - py) ** 2 : 0);
    let nearest = 0;
    for (let number = 1; number < x.length; number += 1) if (away(number) < away(nearest)) nearest = number;
    show(nearest);
  };

  if (!x.length) continue;
  chart.addEventListener("pointermove", read);
  chart.addEventListener("pointerdown", read);
  chart.addEventListener("pointerleave", hide);
  chart.addEventListener("blur", hide);
  chart.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: shown - 1, ArrowRight: shown + 1, Home: 0, End: x.length - 1 }[event.key];
    if (event.key === "Escape") hide();
    if (to === undefined) return;
    event.preventDefault();
    show(to);
  });
}

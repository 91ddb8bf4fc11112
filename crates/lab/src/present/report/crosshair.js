// A crosshair over every chart: the numbers of the window under the pointer.
for (const svg of document.querySelectorAll("svg.chart")) {
  const data = JSON.parse(svg.dataset.chart);
  const [left, right, top, bottom] = data.x;
  const figure = svg.closest("figure");
  let line, tip;
  const hide = () => { line?.remove(); tip?.remove(); line = tip = undefined; };
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    if (point.x < left || point.x > right || data.t.length === 0) return hide();
    const time = (point.x - left) / (right - left) * data.to;
    let index = data.t.findIndex((end) => end >= time);
    if (index < 0) index = data.t.length - 1;
    if (!line) {
      line = document.createElementNS(svg.namespaceURI, "path");
      line.setAttribute("class", "cross");
      svg.append(line);
      tip = document.createElement("div");
      tip.className = "tip";
      figure.append(tip);
    }
    const x = left + data.t[index] / data.to * (right - left);
    line.setAttribute("d", `M${x} ${top}V${bottom}`);
    tip.replaceChildren(document.createElement("b"));
    tip.firstChild.textContent = `${data.t[index]} s`;
    for (const [name, colour, values] of data.c) {
      if (values[index] === null || values[index] === undefined) continue;
      const row = document.createElement("span"), label = document.createElement("span"), mark = document.createElement("i");
      mark.className = colour;
      label.style.display = "block";
      label.append(mark, name);
      row.append(label, `${Number(values[index].toPrecision(3))} ${data.unit}`);
      tip.append(row);
    }
    const box = figure.getBoundingClientRect();
    const toRight = event.clientX - box.left + 16;
    const fits = toRight + tip.offsetWidth < box.width;
    tip.style.left = `${fits ? toRight : event.clientX - box.left - tip.offsetWidth - 16}px`;
    tip.style.top = `${event.clientY - box.top - 20}px`;
  });
}
// Nothing can be unfolded on paper, so comparisons are printed in full.
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details.against")) folded.open = true;
});

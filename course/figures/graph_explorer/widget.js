// The front end of GraphExplorer: a picture whose nodes can be chosen, and the chosen one looked at closely.

const HEIGHT = 780; // of the picture, in pixels
const PAGE = `
<style>
  .undertorch-graph { position: relative; container-type: inline-size; font-family: var(--jp-ui-font-family, sans-serif);
    color: var(--jp-ui-font-color1, inherit); }
  .undertorch-graph .controls { display: flex; flex-wrap: wrap; gap: 6px 18px; align-items: center; margin: 4px 0 8px; }
  .undertorch-graph select, .undertorch-graph button { font: inherit; color: inherit; padding: 3px 8px; border-radius: 3px;
    border: 1px solid var(--jp-border-color1, #888); background: var(--jp-layout-color2, transparent); }
  .undertorch-graph option { color: #222; background: #fff; }
  .undertorch-graph button { cursor: pointer; display: block; margin: 2px 0; text-align: left; }
  .undertorch-graph label, .undertorch-graph select { max-width: 100%; }
  .undertorch-graph input { accent-color: #e8590c; }
  .undertorch-graph fieldset { border: none; padding: 0; margin: 0; display: flex; flex-wrap: wrap; gap: 0 14px; }
  .undertorch-graph :focus-visible { outline: 2px solid #e8590c; outline-offset: 2px; }
  .undertorch-graph .views { display: flex; gap: 16px; align-items: flex-start; }
  .undertorch-graph .picture { flex: 0 1 auto; min-width: 0; max-height: ${HEIGHT}px; overflow: auto; position: relative; }
  .undertorch-graph .picture svg { display: block; height: auto; }
  .undertorch-graph .picture .node[class*=" n"] { cursor: pointer; }
  .undertorch-graph .panel { flex: 1 0 220px; min-width: 0; min-height: 420px; overflow-wrap: anywhere; }
  @container (max-width: 535px) { /* the panel is below the picture: both are to be seen */
    .undertorch-graph .views { flex-wrap: wrap; }
    .undertorch-graph .picture { max-height: 45vh; }
    .undertorch-graph .panel { flex-shrink: 1; }
  }
  .undertorch-graph h3 { margin: 0 0 8px; font-size: 1.1em; font-weight: bold; }
  .undertorch-graph h4 { margin: 8px 0 2px; font-size: 1em; font-weight: bold; }
  .undertorch-graph .node.chosen > polygon, .undertorch-graph .node.chosen > path { stroke: #e8590c; stroke-width: 5; }
  .undertorch-graph .node.input > polygon, .undertorch-graph .node.input > path,
  .undertorch-graph .node.user > polygon, .undertorch-graph .node.user > path { stroke: #e8590c; stroke-width: 2.5;
    stroke-dasharray: 6 3; }
  .undertorch-graph .bare { visibility: hidden; }
  .undertorch-graph .edge.marked > path:first-of-type { stroke: #e8590c; stroke-width: 3; }
  .undertorch-graph .edge.marked > polygon:first-of-type { stroke: #e8590c; fill: #e8590c; }
  .undertorch-graph .said { position: absolute; top: 0; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
</style>
<div class="controls">
  <label>Node <select></select></label>
  <fieldset aria-label="Shown in the picture"></fieldset>
</div>
<div class="views"><div class="picture" tabindex="0" role="group" aria-label="The graph"></div><div class="panel"></div></div>
<div class="said" role="status" aria-live="polite"></div>`;

const NEAR = ["Made from", "Used by"];

function render({ model, el }) {
  const nodes = model.get("nodes");
  const place = new Map(nodes.map(({ number }, k) => [number, k]));
  el.classList.add("undertorch-graph");
  el.innerHTML = PAGE;
  const [select, switches, picture, panel, said] = ["select", "fieldset", ".picture", ".panel", ".said"]
    .map((selector) => el.querySelector(selector));
  const add = (to, tag, what) => to.appendChild(Object.assign(document.createElement(tag), what));
  const keepKeys = (control) => (control.dataset.lmSuppressShortcuts = ""); // JupyterLab leaves the keys to it

  for (const { title } of nodes) select.add(new Option(title));
  keepKeys(select);
  const boxes = model.get("layers").map((name) => {
    const label = add(switches, "label", {});
    const box = add(label, "input", { type: "checkbox", name });
    label.append(` ${name}`);
    keepKeys(box);
    box.addEventListener("change", () => {
      model.set("hidden", boxes.filter((other) => !other.checked).map((other) => other.name));
      model.save_changes();
    });
    return box;
  });

  picture.innerHTML = model.get("svg");
  const drawn = picture.querySelector("svg");
  if (drawn) {
    drawn.style.width = `${drawn.width.baseVal.value}px`; // as drawn, its smallest text 12 pixels high: the box scrolls
  }
  const groups = [...picture.querySelectorAll("g.node, g.edge")].map((group) =>
    ({ group, edge: group.classList.contains("edge"), number: parseInt(/ n(\d+)/.exec(group.getAttribute("class"))?.[1]) }));
  const texts = [...picture.querySelectorAll("[data-layer]")].map((text) => ({ text, full: text.textContent }));

  function choose(k) {
    if (k === undefined) return;
    model.set("chosen", k);
    model.save_changes();
  }

  function layers() {
    const hidden = model.get("hidden");
    for (const box of boxes) box.checked = !hidden.includes(box.name);
    for (const { text, full } of texts) {
      const off = hidden.includes(text.dataset.layer);
      text.textContent = off ? text.dataset.without ?? "" : full;
    }
    for (const { group, edge } of groups) { // the ground of a label on which nothing is left to read
      const label = edge && [...group.querySelectorAll("text")];
      const ground = edge && [...group.querySelectorAll("path, polygon")].slice(2);
      if (edge) ground.forEach((part) => part.classList.toggle("bare", !label.some((text) => text.textContent.trim())));
    }
  }

  function look() {
    const chosen = model.get("chosen"), node = nodes[chosen];
    const hadFocus = panel.contains(document.activeElement);
    select.selectedIndex = chosen;
    panel.replaceChildren();
    add(panel, "h3", { textContent: node.title });
    for (const [heading, content] of node.facts) {
      add(panel, "h4", { textContent: heading });
      add(panel, "div", { textContent: content });
    }
    for (const heading of NEAR) {
      if (!node[heading].length) continue;
      add(panel, "h4", { textContent: heading });
      for (const [k, name] of node[heading]) {
        const there = add(panel, k === null ? "div" : "button", { textContent: name });
        if (k === null) continue;
        there.type = "button";
        keepKeys(there);
        there.addEventListener("click", () => choose(k));
      }
    }
    if (hadFocus) (panel.querySelector("button") ?? select).focus(); // the button that was pressed is gone
    const near = NEAR.map((heading) => [heading, node[heading].map(([, name]) => name).join(", ")]);
    said.textContent = [node.title, ...[...node.facts, ...near].filter(([, content]) => content)
      .map(([heading, content]) => `${heading}: ${content}`)].join(". ");
    mark(node);
  }

  function mark(node) {
    const [inputs, users] = NEAR.map((heading) => node[heading].map(([k]) => nodes[k]?.number));
    for (const { group, edge, number } of groups) {
      group.classList.toggle("marked", edge && number === node.number);
      group.classList.toggle("chosen", !edge && number === node.number);
      group.classList.toggle("input", !edge && inputs.includes(number));
      group.classList.toggle("user", !edge && users.includes(number));
    }
    bringIntoView(picture.querySelector(".node.chosen"));
  }

  // Scrolls the picture in its own box, never the page.
  function bringIntoView(part) {
    if (!part) return;
    const box = picture.getBoundingClientRect(), at = part.getBoundingClientRect();
    if (at.top < box.top || at.bottom > box.bottom) picture.scrollTop += (at.top + at.bottom - box.top - box.bottom) / 2;
    if (at.left < box.left || at.right > box.right) picture.scrollLeft += (at.left + at.right - box.left - box.right) / 2;
  }

  select.addEventListener("change", () => choose(select.selectedIndex));
  picture.addEventListener("click", (event) => {
    const group = event.target.closest("g.node"), found = groups.find((part) => part.group === group);
    if (found) choose(group.classList.contains("result") ? 0 : place.get(found.number));
  });
  const followed = [["change:hidden", layers], ["change:chosen", look]];
  followed.forEach(([event, answer]) => (model.on(event, answer), answer()));
  return () => followed.forEach(([event, answer]) => model.off(event, answer));
}

export default { render };

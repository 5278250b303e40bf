// The front end of BroadcastingExplorer: a field for each shape, a slider over the result's elements, the picture that
// Python draws, whose boxes can be clicked, and its words.

const PAGE = `
<style>
  .undertorch-broadcasting { font-family: var(--jp-ui-font-family, sans-serif); color: var(--jp-ui-font-color1, inherit); }
  .undertorch-broadcasting .fields { display: flex; flex-wrap: wrap; gap: 6px 18px; align-items: center; margin: 4px 0 8px; }
  .undertorch-broadcasting label { display: flex; gap: 8px; align-items: center; }
  .undertorch-broadcasting input[type=text] { width: 8em; font-family: monospace; font-size: inherit; padding: 3px 6px;
    color: var(--jp-ui-font-color1, #222); background: var(--jp-layout-color1, #fff); border: 1px solid #777; border-radius: 3px; }
  .undertorch-broadcasting input[aria-invalid=true] { border: 2px dashed #cc3311; }
  .undertorch-broadcasting input[type=range] { accent-color: #e8590c; flex: 0 1 200px; min-width: 0; }
  .undertorch-broadcasting :focus-visible { outline: 2px solid #e8590c; outline-offset: 2px; }
  .undertorch-broadcasting svg { display: block; max-width: 100%; height: auto; }
  .undertorch-broadcasting .index { white-space: nowrap; }
  .undertorch-broadcasting [data-number] { cursor: pointer; }
  .undertorch-broadcasting .words { margin: 6px 0; max-width: 740px; }
</style>
<div class="fields">
  <label>shape of a <input type="text" name="a" spellcheck="false" autocomplete="off"></label>
  <label>shape of b <input type="text" name="b" spellcheck="false" autocomplete="off"></label>
  <label>element <input type="range" min="0" step="1"><span class="index"></span></label>
</div>
<div class="picture" aria-hidden="true"></div>
<div class="words" role="status" aria-live="polite"></div>`; // the words stand under the picture: read once is enough

function render({ model, el }) {
  el.classList.add("undertorch-broadcasting");
  el.innerHTML = PAGE;
  const [picture, words, slider, index] = [".picture", ".words", "[type=range]", ".index"].map((s) => el.querySelector(s));
  const fields = [...el.querySelectorAll("[type=text]")];
  [...fields, slider].forEach((input) => (input.dataset.lmSuppressShortcuts = "")); // JupyterLab leaves the keys to them

  function set(name, value) {
    model.set(name, value);
    model.save_changes();
  }
  fields.forEach((field) => field.addEventListener("input", () => set(field.name, field.value)));
  slider.addEventListener("input", () => set("element", parseInt(slider.value)));
  picture.addEventListener("click", ({ target }) => {
    if (target.dataset.number) set("element", parseInt(target.dataset.number));
  });

  function write() {
    for (const field of fields) if (field.value !== model.get(field.name)) field.value = model.get(field.name);
  }

  function choose() {
    const indices = model.get("indices");
    slider.max = Math.max(indices.length - 1, 0);
    slider.disabled = indices.length < 2;
    slider.value = model.get("element");
    slider.ariaValueText = index.textContent = indices.length ? `result${indices[slider.value] ?? ""}` : "none";
  }

  function draw() {
    picture.innerHTML = model.get("picture");
  }

  function tell() {
    words.textContent = model.get("words");
    fields.forEach((field) => field.setAttribute("aria-invalid", model.get("wrong")));
  }

  const followed = [
    ["change:a change:b", write],
    ["change:element change:indices", choose],
    ["change:picture", draw],
    ["change:words change:wrong", tell],
  ];
  followed.forEach(([event, answer]) => (model.on(event, answer), answer()));
  const measured = new ResizeObserver(() => {
    const room = Math.min(Math.floor(picture.clientWidth / 20) * 20, 740);
    if (room && room !== model.get("room")) set("room", room);
  });
  measured.observe(picture);
  return () => {
    measured.disconnect();
    followed.forEach(([event, answer]) => model.off(event, answer));
  };
}

export default { render };

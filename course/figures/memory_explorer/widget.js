// The front end of MemoryExplorer: buttons and a field for the steps, a slider and the mouse for the box, a button that
// reads aloud, a field for a number to write; the picture that Python draws, and its words.

const PAUSE = 700; // milliseconds from box to box
const PAGE = `
<style>
  .undertorch-memory { font-family: var(--jp-ui-font-family, sans-serif); color: var(--jp-ui-font-color1, inherit); }
  .undertorch-memory fieldset { display: flex; flex-wrap: wrap; gap: 6px 8px; align-items: center; margin: 4px 0 8px; padding: 4px 10px 8px;
    max-width: 740px; min-width: 0; box-sizing: border-box; border: 1px solid var(--jp-border-color1, #bdbdbd); border-radius: 4px; }
  .undertorch-memory legend { padding: 0 4px; }
  .undertorch-memory label { display: flex; gap: 8px; align-items: center; min-width: 0; }
  .undertorch-memory label.box { flex: 1 1 200px; }
  .undertorch-memory button { font: inherit; padding: 3px 9px; border-radius: 3px; cursor: pointer; color: inherit;
    border: 1px solid var(--jp-border-color1, #757575); background: var(--jp-layout-color2, transparent); }
  .undertorch-memory .offers button, .undertorch-memory input[type=text] { font-family: var(--jp-code-font-family, monospace); }
  .undertorch-memory button[aria-disabled=true] { opacity: 0.5; cursor: default; }
  .undertorch-memory input[type=text] { font-size: inherit; padding: 3px 6px; color: var(--jp-ui-font-color1, #222);
    background: var(--jp-layout-color1, #fff);
    border: 1px solid #777; border-radius: 3px; min-width: 0; }
  .undertorch-memory input[name=step] { width: 17em; }
  .undertorch-memory input[name=number] { width: 4em; }
  .undertorch-memory input[aria-invalid=true] { border: 2px dashed #cc3311; }
  .undertorch-memory input[type=range] { accent-color: #e8590c; flex: 1 1 120px; min-width: 0; max-width: 260px; }
  .undertorch-memory :focus-visible { outline: 2px solid #e8590c; outline-offset: 2px; }
  .undertorch-memory svg { display: block; max-width: 100%; height: auto; }
  .undertorch-memory [data-number] { cursor: pointer; }
  .undertorch-memory .words { margin: 6px 0; max-width: 740px; min-height: 3lh; } /* what comes below stays where it is */
</style>
<fieldset><legend>What comes after the name</legend>
  <span class="offers" style="display: contents"></span>
  <label>your own <input type="text" name="step" spellcheck="false" autocomplete="off" value=".as_strided((3, 4), (1, 1))"></label>
  <button type="button" class="take">do it</button>
  <button type="button" class="undo">undo</button>
  <button type="button" class="again">begin again</button>
</fieldset>
<fieldset><legend>One box</legend>
  <label class="box">box <input type="range" min="0" step="1"><span class="index"></span></label>
  <button type="button" class="read">read aloud</button>
  <label>write <input type="text" name="number" inputmode="decimal" autocomplete="off" value="99"></label>
  <button type="button" class="write">into the box</button>
</fieldset>
<div class="picture" aria-hidden="true"></div>
<div class="words" role="status" aria-live="polite"></div>`; // the words stand under the picture: read once is enough

function render({ model, el }) {
  el.classList.add("undertorch-memory");
  el.innerHTML = PAGE;
  const find = (selector) => el.querySelector(selector);
  const [picture, words, slider, index, read, step, number] = [
    ".picture", ".words", "[type=range]", ".index", ".read", "[name=step]", "[name=number]",
  ].map(find);
  const begin = model.get("steps");
  const offers = model.get("offers").map((_, place) => {
    const button = find(".offers").appendChild(Object.assign(document.createElement("button"), { type: "button" }));
    button.addEventListener("click", () => model.get("offers")[place] && take(model.get("offers")[place]));
    return button;
  });
  el.querySelectorAll("input, button").forEach((input) => (input.dataset.lmSuppressShortcuts = "")); // JupyterLab leaves the keys to them

  function set(values) {
    Object.entries(values).forEach(([name, value]) => model.set(name, value));
    model.save_changes();
  }

  let timer;
  function stop() {
    clearInterval(timer);
    timer = undefined;
    read.textContent = "read aloud";
  }
  function play() {
    stop();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return set({ path: true, pick: model.get("last") });
    set({ path: true, pick: 0 });
    read.textContent = "stop reading";
    timer = setInterval(() => {
      if (model.get("pick") >= model.get("last")) return stop();
      set({ pick: model.get("pick") + 1 });
    }, PAUSE);
  }
  function steps(those) {
    stop();
    set({ steps: those });
  }
  const take = (what) => steps([...model.get("steps"), what]);
  const own = () => step.value.trim() && take(step.value.trim());
  const write = () => number.value.trim() && take(`${index.textContent || "[...]"} = ${number.value.trim()}`);

  find(".take").addEventListener("click", own);
  find(".undo").addEventListener("click", () => model.get("steps").length && steps(model.get("steps").slice(0, -1)));
  find(".again").addEventListener("click", () => steps(begin));
  find(".write").addEventListener("click", write);
  step.addEventListener("keydown", ({ key }) => key === "Enter" && own());
  number.addEventListener("keydown", ({ key }) => key === "Enter" && write());
  read.addEventListener("click", () => (timer ? stop() : play()));
  slider.addEventListener("input", () => {
    stop();
    set({ pick: parseInt(slider.value) });
  });
  picture.addEventListener("click", ({ target }) => {
    if (!target.dataset.number) return;
    stop();
    set({ path: false, pick: parseInt(target.dataset.number) });
  });

  function choose() {
    const boxes = model.get("boxes");
    slider.max = model.get("path") ? model.get("last") : boxes.length - 1;
    slider.value = model.get("pick");
    slider.ariaValueText = index.textContent = boxes[slider.value];
  }

  function offer() {
    model.get("offers").forEach((text, place) => {
      if (text) offers[place].textContent = text; // one that makes no sense now keeps its name, and its place
      offers[place].hidden = !offers[place].textContent;
      offers[place].setAttribute("aria-disabled", !text); // not disabled: that would take the keyboard's focus away
    });
    find(".undo").setAttribute("aria-disabled", !model.get("steps").length);
  }

  function draw() {
    picture.innerHTML = model.get("picture");
  }

  function tell() {
    words.textContent = model.get("words");
    step.setAttribute("aria-invalid", model.get("wrong") && model.get("steps").at(-1) === step.value.trim());
  }

  const followed = [
    ["change:pick change:boxes change:last change:path", choose],
    ["change:offers change:steps", offer],
    ["change:picture", draw],
    ["change:words change:wrong", tell],
  ];
  followed.forEach(([event, answer]) => (model.on(event, answer), answer()));
  model.on("change:plays", play);
  const width = new ResizeObserver(([{ contentRect }]) => {
    const room = Math.round(contentRect.width / 20) * 20; // not at every pixel of a window that is drawn larger
    if (room && room !== model.get("room")) set({ room });
  });
  width.observe(el);
  return () => {
    stop();
    width.disconnect();
    followed.forEach(([event, answer]) => model.off(event, answer));
    model.off("change:plays", play);
  };
}

export default { render };

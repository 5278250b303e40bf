// The front end of FloatExplorer: a field for the number, the four types, a button for each bit, the picture that Python
// draws, and its words.

const FIELDS = ["sign", "exponent", "fraction"];
const KINDS = ["float16", "bfloat16", "float32", "float64"];
const PAGE = `
<style>
  .undertorch-floats { font-family: var(--jp-ui-font-family, sans-serif); color: var(--jp-ui-font-color1, inherit);
    font-size: 13px; max-width: 760px; --sign: #cc3311; --exponent: #228833; --fraction: #4477aa; }
  .undertorch-floats .asked { display: flex; flex-wrap: wrap; gap: 6px 18px; align-items: center; margin: 4px 0 8px; }
  .undertorch-floats label { display: flex; gap: 6px; align-items: center; max-width: 100%; }
  .undertorch-floats .asked input[type=text] { width: 24ch; min-width: 0; flex: 0 1 auto; font: 14px monospace; padding: 3px 6px; color: var(--jp-ui-font-color1, #222);
    background: var(--jp-layout-color1, #fff); border: 1px solid #777; border-radius: 3px; }
  .undertorch-floats input[aria-invalid=true] { border: 2px dashed #cc3311; }
  .undertorch-floats input[type=radio] { accent-color: #e8590c; margin: 0; }
  .undertorch-floats [role=radiogroup] { display: flex; flex-wrap: wrap; gap: 4px 12px; }
  .undertorch-floats :focus-visible { outline: 2px solid #e8590c; outline-offset: 2px; }
  .undertorch-floats button { font: inherit; color: inherit; cursor: pointer; }
  .undertorch-floats .step { padding: 3px 10px; background: var(--jp-layout-color1, #fff); border-radius: 3px;
    border: 1px solid var(--jp-border-color1, #757575); }
  .undertorch-floats .fields { display: flex; flex-wrap: wrap; gap: 8px 20px; margin: 6px 0; }
  .undertorch-floats .field { min-width: 0; max-width: 100%; }
  .undertorch-floats .name { font-weight: 600; border-bottom: 3px solid; }
  .undertorch-floats .bits { display: flex; flex-wrap: wrap; gap: 4px 2px; }
  .undertorch-floats .bit { background: none; border: 0; padding: 2px 0; width: 34px; display: flex; flex-direction: column;
    align-items: center; }
  .undertorch-floats .worth { font-size: 12px; height: 34px; display: flex; flex-direction: column; justify-content: end;
    text-align: center; line-height: 16px; }
  .undertorch-floats .over { border-bottom: 1px solid; }
  .undertorch-floats .box { width: 28px; height: 26px; line-height: 24px; box-sizing: border-box; font-family: monospace;
    font-size: 15px; border: 1.5px solid; border-radius: 3px; color: var(--jp-ui-font-color1, #222); background: var(--jp-layout-color1, #fff); }
  .undertorch-floats .told { margin: 2px 0; max-width: 60ch; min-height: 1lh; }
  .undertorch-floats .picture svg { display: block; max-width: 100%; height: auto; }
  .undertorch-floats .words { margin: 6px 0; min-height: 3lh; max-width: 740px; overflow-wrap: anywhere; }
</style>
<div class="asked">
  <label>number <input type="text" name="written" spellcheck="false" autocomplete="off"></label>
  <div role="radiogroup" aria-label="type"></div>
  <span><button type="button" class="step" data-by="-1">number before</button>
  <button type="button" class="step" data-by="1">number after</button></span>
</div>
<div class="fields"></div>
<div class="words" role="status" aria-live="polite"></div>
<div class="picture" aria-hidden="true"></div>`; // the words say what the picture shows

let groups = 0;

function render({ model, el }) {
  el.classList.add("undertorch-floats");
  el.innerHTML = PAGE;
  const find = (selector) => el.querySelector(selector);
  const [field, group, fields, words, picture] = ["[name=written]", "[role=radiogroup]", ".fields", ".words", ".picture"].map(find);
  const name = `undertorch-floats-${groups++}`;
  const quiet = (element) => (element.dataset.lmSuppressShortcuts = ""); // JupyterLab leaves the keys to it
  const make = (tag, what, into) => into.appendChild(Object.assign(document.createElement(tag), what));

  function set(trait, value) {
    model.set(trait, value);
    model.save_changes();
  }
  quiet(field);
  field.addEventListener("input", () => set("written", field.value));
  const radios = KINDS.map((kind) => {
    const label = make("label", {}, group);
    const radio = make("input", { type: "radio", name, value: kind }, label);
    label.append(kind);
    quiet(radio);
    radio.addEventListener("change", () => set("kind", kind));
    return radio;
  });
  el.querySelectorAll(".step").forEach((button) => {
    quiet(button);
    button.addEventListener("click", () => model.send({ by: parseInt(button.dataset.by) }));
  });

  let buttons = [];
  let lines = [];
  // The bits are one stop for the Tab key; the arrow keys go from bit to bit.
  function go(to) {
    buttons.forEach((button, place) => (button.tabIndex = place === to ? 0 : -1));
  }
  fields.addEventListener("keydown", (event) => {
    const here = buttons.indexOf(event.target);
    const to = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (here < 0 || to === undefined) return;
    event.preventDefault();
    const there = Math.min(Math.max(to, 0), buttons.length - 1);
    go(there);
    buttons[there].focus();
  });

  function build() {
    fields.replaceChildren();
    buttons = [];
    lines = model.get("worth").map((values, number) => {
      const box = make("div", { className: "field" }, fields);
      const heading = make("div", { className: "name", textContent: FIELDS[number] }, box);
      heading.style.borderColor = `var(--${FIELDS[number]})`;
      const bits = make("div", { className: "bits", role: "group", ariaLabel: FIELDS[number] }, box);
      for (const value of values) {
        const place = buttons.length;
        const button = make("button", { type: "button", className: "bit" }, bits);
        const worth = make("span", { className: "worth" }, button);
        const [over, under] = value.split("/");
        make("span", { textContent: over, className: under ? "over" : "" }, worth);
        if (under) make("span", { textContent: under }, worth);
        make("span", { className: "box" }, button);
        button.ariaLabel = number ? `${FIELDS[number]}, worth ${value}` : "sign, minus";
        button.dataset.field = FIELDS[number];
        quiet(button);
        button.addEventListener("click", () => (go(place), model.send({ flip: place })));
        buttons.push(button);
      }
      return make("div", { className: "told" }, box);
    });
    go(0);
    show();
  }

  function show() {
    [...model.get("bits")].forEach((bit, place) => {
      const button = buttons[place];
      if (!button) return;
      const box = button.lastChild;
      const color = `var(--${button.dataset.field})`;
      box.textContent = bit;
      button.ariaPressed = bit === "1";
      box.style.borderColor = color;
      box.style.background = bit === "1" ? color : "";
      box.style.color = bit === "1" ? "#fff" : "";
    });
    model.get("told").forEach((said, number) => (lines[number].textContent = said));
  }

  function write() {
    if (field.value !== model.get("written")) field.value = model.get("written");
    radios.forEach((radio) => (radio.checked = radio.value === model.get("kind")));
  }

  function draw() {
    picture.innerHTML = model.get("picture");
  }

  function tell() {
    words.textContent = model.get("words");
    field.setAttribute("aria-invalid", model.get("wrong"));
  }

  const followed = [
    ["change:written change:kind", write],
    ["change:worth", build],
    ["change:bits change:told", show],
    ["change:picture", draw],
    ["change:words change:wrong", tell],
  ];
  followed.forEach(([event, answer]) => (model.on(event, answer), answer()));
  return () => followed.forEach(([event, answer]) => model.off(event, answer));
}

export default { render };

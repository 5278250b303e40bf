// The front end of Chooser: fields to type into, choices, sliders; the pictures that Python draws, whose boxes can be
// clicked, and their words.

const PAGE = `
<style>
  .undertorch-chooser { font-family: var(--jp-ui-font-family, sans-serif); color: var(--jp-ui-font-color1, inherit); }
  .undertorch-chooser .controls { display: flex; flex-wrap: wrap; gap: 8px 20px; align-items: center; margin: 4px 0 8px; max-width: 900px; }
  .undertorch-chooser .control { display: flex; flex-wrap: wrap; gap: 4px 10px; align-items: center; min-width: 0; max-width: 100%; margin: 0;
    padding: 0; border: 0; }
  .undertorch-chooser .range { flex-wrap: nowrap; }
  .undertorch-chooser .range span { white-space: nowrap; }
  .undertorch-chooser legend { float: left; padding: 0; margin-right: 2px; }
  .undertorch-chooser label { display: flex; gap: 6px; align-items: center; min-width: 0; max-width: 100%; }
  .undertorch-chooser input[type=text] { flex: 0 1 15em; width: 15em; min-width: 0; box-sizing: border-box; font-family: monospace; font-size: inherit;
    padding: 3px 6px; color: var(--jp-ui-font-color1, #222); background: var(--jp-layout-color1, #fff); border: 1px solid #777; border-radius: 3px; }
  .undertorch-chooser input[aria-invalid=true] { border: 2px dashed #cc3311; }
  .undertorch-chooser input[type=range] { flex: 0 1 150px; min-width: 50px; }
  .undertorch-chooser input[type=range], .undertorch-chooser input[type=radio] { accent-color: #e8590c; margin: 2px 0; }
  .undertorch-chooser button { font: inherit; font-family: monospace; padding: 2px 8px; border-radius: 3px; cursor: pointer; color: inherit;
    background: var(--jp-layout-color1, #fff); border: 1px solid var(--jp-border-color1, #757575); }
  .undertorch-chooser :focus-visible { outline: 2px solid #e8590c; outline-offset: 2px; }
  .undertorch-chooser .pictures { display: flex; flex-wrap: wrap; gap: 6px; align-items: flex-start; align-content: flex-start; }
  .undertorch-chooser svg { display: block; max-width: 100%; height: auto; }
  .undertorch-chooser [data-number] { cursor: pointer; }
  .undertorch-chooser .words { margin: 6px 0; max-width: 740px; min-height: 3lh; } /* what comes below stays where it is */
</style>
<div class="controls"></div>
<div class="pictures" aria-hidden="true"></div>
<div class="words" role="status" aria-live="polite"></div>`; // the words stand under the picture: read once is enough

let figures = 0;

function render({ model, el }) {
  el.classList.add("undertorch-chooser");
  el.innerHTML = PAGE;
  const [panel, pictures, words] = [".controls", ".pictures", ".words"].map((selector) => el.querySelector(selector));
  const group = `undertorch-chooser-${figures++}`;
  const make = (tag, what, parent) => parent.appendChild(Object.assign(document.createElement(tag), what));

  function set(name, value) {
    model.set("values", { ...model.get("values"), [name]: value });
    model.save_changes();
  }

  const input = (what, parent) => {
    const made = make("input", { autocomplete: "off", spellcheck: false, ...what }, parent);
    made.dataset.lmSuppressShortcuts = ""; // JupyterLab leaves the keys to it
    return made;
  };

  // Each kind of control: what it is made of, and how it shows a value.
  const kinds = {
    text({ name, label, texts }) {
      const box = make("div", { className: "control" }, panel);
      const field = input({ type: "text", name }, make("label", { textContent: label }, box));
      field.addEventListener("input", () => set(name, field.value));
      for (const text of texts) {
        const button = make("button", { type: "button", textContent: text }, box);
        button.addEventListener("click", () => set(name, text));
      }
      return (value) => {
        if (field.value !== value) field.value = value;
        field.setAttribute("aria-invalid", model.get("wrong"));
      };
    },
    choice({ name, label, texts }) {
      const box = make("fieldset", { className: "control" }, panel);
      make("legend", { textContent: label }, box);
      const radios = texts.map((text, place) => {
        const line = make("label", {}, box);
        const radio = input({ type: "radio", name: `${group}-${name}` }, line);
        line.append(text);
        radio.addEventListener("change", () => set(name, place));
        return radio;
      });
      return (value) => (radios[value].checked = true);
    },
    range({ name, label }) {
      const line = make("label", { className: "control range", textContent: label }, panel);
      const slider = input({ type: "range", min: 0, step: 1, ariaLabel: label }, line);
      const shown = make("span", {}, line);
      slider.addEventListener("input", () => set(name, parseInt(slider.value)));
      return (value) => {
        const texts = model.get("places")[name];
        slider.max = Math.max(texts.length - 1, 0);
        slider.disabled = texts.length < 2;
        slider.value = value;
        slider.ariaValueText = shown.textContent = texts[value] ?? "";
      };
    },
  };
  const shows = model.get("controls").map((control) => [control.name, kinds[control.kind](control)]);
  pictures.addEventListener("click", ({ target }) => {
    const place = target.dataset.number;
    if (place === undefined) return;
    const chosen = model.get("clicks")[parseInt(place)];
    model.set("values", { ...model.get("values"), ...chosen });
    model.save_changes();
  });

  function move() {
    shows.forEach(([name, show]) => show(model.get("values")[name]));
  }

  function draw() {
    pictures.innerHTML = model.get("pictures").join("");
    const height = pictures.offsetHeight; // it grows, and does not shrink: what comes below stays where it is
    if (height > (parseFloat(pictures.style.minHeight) || 0)) pictures.style.minHeight = `${height}px`;
  }

  function tell() {
    words.textContent = model.get("words");
  }

  const followed = [
    ["change:values change:places change:wrong", move],
    ["change:pictures", draw],
    ["change:words", tell],
  ];
  followed.forEach(([event, answer]) => (model.on(event, answer), answer()));
  let width;
  const resized = new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width !== width) pictures.style.minHeight = "";
    width = contentRect.width;
  });
  resized.observe(el);
  return () => {
    resized.disconnect();
    followed.forEach(([event, answer]) => model.off(event, answer));
  };
}

export default { render };

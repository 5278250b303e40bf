// The front end of Explorer: a slider for each setting, the picture that Python draws, and its words.

const PAGE = `
<style>
  .undertorch-explorer { font-family: var(--jp-ui-font-family, sans-serif); color: var(--jp-ui-font-color1, inherit); }
  .undertorch-explorer .sliders { display: grid; gap: 4px 12px; align-items: center; margin: 4px 0 8px; }
  .undertorch-explorer input { accent-color: #e8590c; margin: 2px 0; min-width: 0; }
  .undertorch-explorer :focus-visible { outline: 2px solid #e8590c; outline-offset: 2px; }
  .undertorch-explorer img { display: block; max-width: 100%; }
  .undertorch-explorer .words { margin: 6px 0; min-height: 2lh; } /* what comes below stays where it is */
</style>
<div class="sliders"></div>
<img alt="">
<div class="words" role="status" aria-live="polite"></div>`; // the words stand under the picture: read once is enough

function render({ model, el }) {
  el.classList.add("undertorch-explorer");
  el.innerHTML = PAGE;
  const [panel, image, words] = [".sliders", "img", ".words"].map((selector) => el.querySelector(selector));
  image.width = model.get("width");
  image.style.minWidth = `${0.92 * image.width}px`; // as in course/pictures.py
  panel.style.maxWidth = `${image.width}px`;
  const longest = Math.max(...model.get("sliders").flatMap(({ texts }) => texts.map((text) => text.length)));
  const fitting = (most) => `minmax(min-content, ${most})`; // one line each, where there is room
  panel.style.gridTemplateColumns = `${fitting("max-content")} minmax(50px, 1fr) ${fitting(`${Math.max(6, longest)}ch`)}`;
  const add = (tag, what) => panel.appendChild(Object.assign(document.createElement(tag), what));
  const sliders = model.get("sliders").map(({ label, texts }, place) => {
    add("span", { textContent: label });
    const slider = add("input", { type: "range", min: 0, max: texts.length - 1, step: 1, ariaLabel: label });
    const value = add("span", {});
    slider.dataset.lmSuppressShortcuts = ""; // JupyterLab leaves the keys to it
    slider.addEventListener("input", () => {
      model.set("at", model.get("at").map((old, i) => (i === place ? parseInt(slider.value) : old)));
      model.save_changes();
    });
    return { slider, value, texts };
  });

  function move() {
    model.get("at").forEach((position, i) => {
      const { slider, value, texts } = sliders[i];
      slider.value = position;
      slider.ariaValueText = value.textContent = texts[position];
    });
  }

  let address;
  function draw() {
    URL.revokeObjectURL(address);
    const bytes = model.get("image");
    const type = bytes.getUint8(0) === 0x89 ? "image/png" : "image/svg+xml"; // 0x89 begins every PNG
    image.src = address = URL.createObjectURL(new Blob([bytes], { type }));
  }

  function tell() {
    words.textContent = model.get("words");
  }

  const followed = [["change:at", move], ["change:image", draw], ["change:words", tell]];
  followed.forEach(([event, answer]) => (model.on(event, answer), answer()));
  return () => {
    followed.forEach(([event, answer]) => model.off(event, answer));
    URL.revokeObjectURL(address);
  };
}

export default { render };

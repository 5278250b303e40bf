// The front end of BackwardStepper: a picture drawn once, whose parts change their class as the slider moves.

const HEIGHT = 640; // of the picture, in pixels
const PAGE = `
<style>
  .undertorch-steps { position: relative; container-type: inline-size; font-family: var(--jp-ui-font-family, sans-serif);
    color: var(--jp-ui-font-color1, inherit); }
  .undertorch-steps .controls { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin: 4px 0 8px; }
  .undertorch-steps input { flex: 1 1 200px; min-width: 0; max-width: 460px; accent-color: #e8590c; }
  .undertorch-steps button { font: inherit; padding: 3px 12px; border-radius: 3px; cursor: pointer; color: inherit;
    border: 1px solid var(--jp-border-color1, #888); background: var(--jp-layout-color2, transparent); }
  .undertorch-steps button[aria-disabled=true] { opacity: 0.45; cursor: default; }
  .undertorch-steps :focus-visible { outline: 2px solid #e8590c; outline-offset: 2px; }
  .undertorch-steps .views { display: flex; flex-wrap: wrap; gap: 16px; align-items: flex-start; }
  .undertorch-steps .picture { flex: 2 1 300px; min-width: 0; max-height: ${HEIGHT}px; overflow: auto; position: relative; }
  .undertorch-steps .picture svg { display: block; height: auto; }
  .undertorch-steps .picture .node[data-turn] { cursor: pointer; }
  .undertorch-steps .panel { flex: 1 1 220px; min-width: 0; min-height: 320px; }
  @container (max-width: 535px) { /* the panel is below the picture: both are to be seen */
    .undertorch-steps .picture { max-height: 45vh; }
  }
  .undertorch-steps h4 { margin: 0 0 8px; font-size: 1.1em; font-weight: bold; }
  .undertorch-steps h5 { margin: 8px 0 2px; font-size: 1em; font-weight: bold; }
  .undertorch-steps .numbers { font-family: var(--jp-code-font-family, monospace); font-size: 0.92em; }
  .undertorch-steps .numbers > div { white-space: pre-wrap; overflow-wrap: anywhere; margin-bottom: 2px; }
  .undertorch-steps .said { position: absolute; top: 0; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
</style>
<div class="controls" role="group" aria-label="Steps of the backward pass">
  <button type="button" class="back">Back</button>
  <input type="range" min="0" step="1" aria-label="Step of the backward pass">
  <button type="button" class="forward">Forward</button>
  <span class="count"></span>
</div>
<div class="views"><div class="picture"></div><div class="panel"></div></div>
<div class="said" role="status" aria-live="polite"></div>`;

function textAt(texts, step) {
  return texts.split("\n").map((line) => [parseInt(line), line.slice(line.indexOf(" ") + 1)])
    .filter(([from]) => from <= step).at(-1)[1];
}

function render({ model, el }) {
  const last = model.get("panels").length - 1;
  el.classList.add("undertorch-steps");
  el.innerHTML = PAGE;
  const find = (selector) => el.querySelector(selector);
  const [slider, back, forward, picture] = ["input", ".back", ".forward", ".picture"].map(find);
  picture.innerHTML = model.get("svg");
  const drawn = picture.querySelector("svg");
  if (drawn) {
    const [width, height] = [drawn.width, drawn.height].map((length) => length.baseVal.value);
    // As large as fits the box, but with text that stays legible: the box scrolls.
    drawn.style.width = `max(${0.7 * width}px, min(${Math.min(1, HEIGHT / height) * width}px, 100%))`;
  }
  slider.max = last;
  for (const control of [slider, back, forward]) control.dataset.lmSuppressShortcuts = ""; // JupyterLab leaves the keys to them
  const timed = [...picture.querySelectorAll("[data-turn]")];
  const changing = [...picture.querySelectorAll("[data-texts]")];
  const unseen = picture.querySelector(".node.more");

  function show() {
    const step = model.get("step");
    for (const part of timed) {
      const turn = parseInt(part.dataset.turn);
      part.classList.toggle("done", turn < step);
      part.classList.toggle("now", turn === step);
      part.classList.toggle("ahead", turn > step);
    }
    for (const text of changing) text.textContent = textAt(text.dataset.texts, step);
    const now = timed.find((part) => part.matches(".node.now"));
    unseen?.classList.toggle("now", step > 0 && !now);
    find(".panel").innerHTML = model.get("panels")[step];
    find(".said").textContent = model.get("said")[step];
    find(".count").textContent = `${step} / ${last}`;
    slider.value = step;
    slider.setAttribute("aria-valuetext", `step ${step} of ${last}`);
    back.setAttribute("aria-disabled", step === 0); // not disabled: that would take the keyboard's focus away
    forward.setAttribute("aria-disabled", step === last);
    bringIntoView(now ?? (step > 0 && unseen));
  }

  // Scrolls the picture in its own box, never the page.
  function bringIntoView(part) {
    if (!part) return;
    const box = picture.getBoundingClientRect(), at = part.getBoundingClientRect();
    if (at.top < box.top || at.bottom > box.bottom) picture.scrollTop += (at.top + at.bottom - box.top - box.bottom) / 2;
    if (at.left < box.left || at.right > box.right) picture.scrollLeft += (at.left + at.right - box.left - box.right) / 2;
  }

  function go(step) {
    model.set("step", Math.max(0, Math.min(last, step)));
    model.save_changes();
  }

  picture.addEventListener("click", (event) => {
    const node = event.target.closest(".node[data-turn]");
    if (node) go(parseInt(node.dataset.turn));
  });
  slider.addEventListener("input", () => go(parseInt(slider.value)));
  back.addEventListener("click", () => go(model.get("step") - 1));
  forward.addEventListener("click", () => go(model.get("step") + 1));
  model.on("change:step", show);
  show();
  return () => model.off("change:step", show);
}

export default { render };

// The front end of BackwardStepper: a picture drawn once, whose parts change their class as the slider moves.

const HEIGHT = 640; // of the picture, in pixels, where it fits
const LEGIBLE = 0.9; // of the picture's own size: its smallest text then has 12 pixels
const LARGEST = 1.3;
const PANEL = 280; // the least width of the words beside the picture
const PAGE = `
<style>
  .undertorch-steps { position: relative; container-type: inline-size; font-family: var(--jp-ui-font-family, sans-serif);
    font-size: max(13px, var(--jp-ui-font-size1, 13px)); color: var(--jp-ui-font-color1, inherit); }
  .undertorch-steps .controls { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin: 4px 0 8px; }
  .undertorch-steps input[type=range] { flex: 1 1 200px; min-width: 0; max-width: 460px; accent-color: #e8590c; }
  .undertorch-steps input[type=checkbox] { accent-color: #e8590c; }
  .undertorch-steps button, .undertorch-steps .ask input { font: inherit; padding: 3px 12px; border-radius: 3px; color: inherit;
    border: 1px solid var(--jp-border-color1, #888); background: var(--jp-layout-color2, transparent); }
  .undertorch-steps button { cursor: pointer; }
  .undertorch-steps button[aria-disabled=true] { opacity: 0.45; cursor: default; }
  .undertorch-steps :focus-visible { outline: 2px solid #e8590c; outline-offset: 2px; }
  .undertorch-steps .views { display: flex; flex-wrap: wrap; gap: 16px; align-items: flex-start; }
  .undertorch-steps .picture { flex: none; max-width: 100%; max-height: ${HEIGHT + 120}px; overflow: auto; position: relative; }
  .undertorch-steps .picture svg { display: block; height: auto; }
  .undertorch-steps .picture .node[data-turn] { cursor: pointer; }
  .undertorch-steps .panel { flex: 1 1 220px; min-width: 0; max-width: 640px; min-height: 320px; }
  @container (max-width: 575px) { /* the panel is below the picture: both are to be seen */
    .undertorch-steps .picture { max-height: 45vh; }
    .undertorch-steps .panel { flex-basis: 100%; }
  }
  .undertorch-steps h3 { margin: 0 0 8px; font-size: 1.1em; font-weight: bold; }
  .undertorch-steps h4 { margin: 8px 0 2px; font-size: 1em; font-weight: bold; }
  .undertorch-steps .numbers, .undertorch-steps .code { font-family: var(--jp-code-font-family, monospace); }
  .undertorch-steps .numbers > div { white-space: pre-wrap; overflow-wrap: anywhere; margin-bottom: 2px; }
  .undertorch-steps .code { margin: 0 0 10px; padding: 0; list-style: none; }
  .undertorch-steps .code > li { white-space: pre-wrap; overflow-wrap: anywhere; padding: 1px 8px; border-left: 4px solid transparent; }
  .undertorch-steps .code > li[aria-current=true] { border-color: #e8590c; background: #e8590c2b; font-weight: bold; }
  .undertorch-steps .ask { border: 2px solid #e8590c; border-radius: 4px; padding: 8px 12px; margin: 0 0 10px; display: flex;
    flex-wrap: wrap; gap: 8px; align-items: center; }
  .undertorch-steps .ask[hidden] { display: none; }
  .undertorch-steps .ask label { font-weight: bold; flex-basis: 100%; }
  .undertorch-steps .ask input { width: 7em; background: var(--jp-layout-color0, transparent); }
  .undertorch-steps .verdict { flex-basis: 100%; margin: 0; min-height: 1lh; }
  .undertorch-steps .said { position: absolute; top: 0; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
</style>
<div class="controls" role="group" aria-label="Steps of the backward pass">
  <button type="button" class="back">Back</button>
  <input type="range" min="0" step="1" aria-label="Step of the backward pass">
  <button type="button" class="forward">Forward</button>
  <span class="count"></span>
  <label class="switch"><input type="checkbox"> Predict</label>
</div>
<div class="views">
  <div class="picture" tabindex="0" role="group" aria-label="The graph"></div>
  <div>
    <ol class="code" aria-label="The code"></ol>
    <div class="ask" role="group" aria-label="Predict" hidden>
      <label></label><input type="text" inputmode="decimal" autocomplete="off">
      <button type="button" class="answer">Answer</button><button type="button" class="tell">Tell me</button>
      <p class="verdict" role="status" aria-live="polite"></p>
    </div>
    <div class="words-of-step"></div>
  </div>
</div>
<div class="said" role="status" aria-live="polite"></div>`;

function textAt(texts, step) {
  return texts.split("\n").map((line) => [parseInt(line), line.slice(line.indexOf(" ") + 1)])
    .filter(([from]) => from <= step).at(-1)[1];
}

function near(one, other) {
  return Math.abs(one - other) <= 0.005 + 0.005 * Math.abs(other);
}

function render({ model, el }) {
  const last = model.get("panels").length - 1, begin = model.get("begin"), questions = model.get("questions");
  el.classList.add("undertorch-steps");
  el.innerHTML = PAGE;
  const find = (selector) => el.querySelector(selector);
  const [slider, back, forward, picture] = ["input[type=range]", ".back", ".forward", ".picture"].map(find);
  const [ask, box, verdict, tick] = [".ask", ".ask input", ".verdict", ".switch input"].map(find);
  const views = find(".views"), panel = picture.nextElementSibling;
  panel.className = "panel";
  picture.innerHTML = model.get("svg");
  const drawn = picture.querySelector("svg");
  const [width, height] = drawn ? [drawn.width, drawn.height].map((length) => length.baseVal.value) : [0, 0];
  slider.max = last;
  for (const control of el.querySelectorAll("input, button")) control.dataset.lmSuppressShortcuts = ""; // JupyterLab leaves the keys to them
  const timed = [...picture.querySelectorAll("[data-turn], [data-made]")];
  const changing = [...picture.querySelectorAll("[data-texts]")];
  const unseen = picture.querySelector(".node.more");
  const lines = model.get("lines").map((line) => find(".code").appendChild(Object.assign(document.createElement("li"), { textContent: line })));
  let answered = 0; // how many of the questions are
  find(".code").hidden = !lines.length;
  find(".switch").hidden = !questions.length;

  // As large as fits beside the words, but with text that stays legible: where it does not fit the box scrolls.
  function fit() {
    if (!drawn) return;
    const room = views.clientWidth;
    const beside = room - PANEL - 16, free = beside >= Math.min(LEGIBLE * width, 280) ? beside : room;
    const wanted = Math.min(LARGEST, Math.max(LEGIBLE, HEIGHT / height)) * width;
    const wide = Math.max(LEGIBLE * width, Math.min(wanted, free));
    drawn.style.width = `${wide}px`;
    picture.style.width = `${Math.min(wide, free)}px`;
  }

  function show() {
    const step = model.get("step");
    for (const part of timed) {
      const turn = parseInt(part.dataset.turn ?? "-1"), made = parseInt(part.dataset.made ?? "-1");
      part.classList.toggle("unmade", step < made);
      part.classList.toggle("new", step === made);
      if (turn < 0) continue;
      part.classList.toggle("done", turn < step);
      part.classList.toggle("now", turn === step);
      part.classList.toggle("ahead", turn > step);
    }
    for (const text of changing) text.textContent = textAt(text.dataset.texts, step);
    const now = timed.find((part) => part.matches(".node.now, .node.operation.new"));
    unseen?.classList.toggle("now", step > 0 && !now);
    const lit = model.get("lit")[step];
    lines.forEach((line, place) => (line.ariaCurrent = place + 1 === lit));
    find(".words-of-step").innerHTML = model.get("panels")[step];
    find(".said").textContent = model.get("said")[step];
    find(".count").textContent = `${step} / ${last}`;
    slider.value = step;
    slider.setAttribute("aria-valuetext", `step ${step} of ${last}`);
    back.setAttribute("aria-disabled", step === 0); // not disabled: that would take the keyboard's focus away
    forward.setAttribute("aria-disabled", step === last || (asking() && step === begin));
    bringIntoView(now ?? (step > 0 && unseen));
    offer();
  }

  function asking() {
    return model.get("predicting") && answered < questions.length;
  }

  // The question is there as soon as the pass begins; what was said to the last answer stays until the next step.
  function offer() {
    const here = asking() && model.get("step") === begin;
    tick.checked = model.get("predicting");
    ask.hidden = !here && !(verdict.dataset.at === String(model.get("step")));
    for (const control of [box, ...ask.querySelectorAll("button")]) control.hidden = !here;
    if (here) box.ariaLabel = find(".ask label").textContent = questions[answered].ask;
    else find(".ask label").textContent = "";
  }

  function judge(told) {
    const question = questions[answered];
    const number = Number(box.value.trim().replace(",", ".").replace("−", "-"));
    if (!told && (!box.value.trim() || Number.isNaN(number))) {
      verdict.textContent = "A number is asked for, such as 2 or -0.5.";
      return box.focus();
    }
    const [, right, words] = told ? [0, true, question.told] : question.answers.find(([value]) => near(number, value)) ?? [0, false, question.otherwise];
    verdict.innerHTML = `<strong>${told ? "So it is:" : right ? "Right." : "Not yet."}</strong> `;
    verdict.append(right ? `${question.ask.replace("What arrives at ", "").replace("?", "")}: ${words}` : words);
    if (right) {
      answered += 1;
      box.value = "";
      verdict.dataset.at = String(begin);
    }
    show();
    if (asking()) box.focus();
    else if (right) forward.focus();
  }

  // Scrolls the picture in its own box, never the page.
  function bringIntoView(part) {
    if (!part) return;
    const box = picture.getBoundingClientRect(), at = part.getBoundingClientRect();
    if (at.top < box.top || at.bottom > box.bottom) picture.scrollTop += (at.top + at.bottom - box.top - box.bottom) / 2;
    if (at.left < box.left || at.right > box.right) picture.scrollLeft += (at.left + at.right - box.left - box.right) / 2;
  }

  function go(step) {
    const held = asking() && step > begin;
    const there = Math.max(0, Math.min(last, held ? begin : step)), here = model.get("step");
    model.set("step", there);
    model.save_changes();
    slider.value = there;
    if (!held) return;
    if (here === begin) verdict.textContent = "First your answer, or press Tell me.";
    box.focus();
  }

  picture.addEventListener("click", (event) => {
    const node = event.target.closest(".node[data-turn]");
    if (!node) return;
    const made = parseInt(node.dataset.made ?? "-1");
    go(made > 0 && model.get("step") < begin ? made : parseInt(node.dataset.turn));
  });
  slider.addEventListener("input", () => go(parseInt(slider.value)));
  back.addEventListener("click", () => go(model.get("step") - 1));
  forward.addEventListener("click", () => go(model.get("step") + 1));
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation(); // JupyterLab would begin to edit the cell
    judge(false);
  });
  find(".answer").addEventListener("click", () => judge(false));
  find(".tell").addEventListener("click", () => judge(true));
  tick.addEventListener("change", () => {
    model.set("predicting", tick.checked);
    model.save_changes();
  });
  const followed = [["change:step", show], ["change:predicting", show]];
  followed.forEach(([event, answer]) => model.on(event, answer));
  const resized = new ResizeObserver(fit);
  resized.observe(views);
  fit();
  show();
  return () => {
    followed.forEach(([event, answer]) => model.off(event, answer));
    resized.disconnect();
  };
}

export default { render };

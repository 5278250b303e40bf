// The front end of LeafBoard: a program whose lines are gone through, and the board that Python has made after each.

const PAGE = `
<style>
  .undertorch-leaves { container-type: inline-size; font-family: var(--jp-ui-font-family, sans-serif);
    font-size: max(13px, var(--jp-ui-font-size1, 13px)); color: var(--jp-ui-font-color1, inherit); }
  .undertorch-leaves .controls { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin: 4px 0 8px; }
  .undertorch-leaves input { flex: 1 1 160px; min-width: 0; max-width: 400px; accent-color: #e8590c; }
  .undertorch-leaves button { font: inherit; color: inherit; cursor: pointer; }
  .undertorch-leaves .controls button { padding: 3px 12px; border-radius: 3px; border: 1px solid var(--jp-border-color1, #888);
    background: var(--jp-layout-color2, transparent); }
  .undertorch-leaves .controls button[aria-disabled=true] { opacity: 0.45; cursor: default; }
  .undertorch-leaves :focus-visible { outline: 2px solid #e8590c; outline-offset: 2px; }
  .undertorch-leaves .views { display: flex; gap: 20px; align-items: flex-start; }
  .undertorch-leaves .left { flex: 0 1 380px; min-width: 0; }
  .undertorch-leaves ol { margin: 0; padding: 0 0 0 2.2em; }
  .undertorch-leaves li { padding: 1px 0; }
  .undertorch-leaves li button { display: block; width: 100%; text-align: left; overflow-wrap: anywhere; padding: 3px 8px; border: 0;
    border-left: 4px solid transparent; background: none; white-space: pre-wrap; font-family: var(--jp-code-font-family, monospace); }
  .undertorch-leaves li.ahead button { color: var(--jp-ui-font-color2, #666); }
  .undertorch-leaves li.now button { border-left-color: #e8590c; background: var(--jp-layout-color2, #eee); font-weight: bold; }
  .undertorch-leaves .board { flex: 1 1 0; min-width: 0; padding: 3px; }
  .undertorch-leaves .cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(190px, 1fr)); gap: 10px; }
  .undertorch-leaves .card { padding: 6px 8px; border: 1px solid var(--jp-border-color1, #888); border-left-width: 6px;
    border-radius: 4px; background: var(--jp-layout-color1, transparent); }
  .undertorch-leaves .knob { border-left-color: #2f8a53; }
  .undertorch-leaves .result { border-left-color: #4477aa; border-left-style: double; }
  .undertorch-leaves .data { border-left-color: #888; border-left-style: dotted; }
  .undertorch-leaves .changed { outline: 2px solid #e8590c; outline-offset: 1px; }
  .undertorch-leaves .name { display: flex; flex-wrap: wrap; gap: 4px; align-items: baseline; font-weight: bold; overflow-wrap: anywhere; }
  .undertorch-leaves .mark { margin-left: auto; font-weight: normal; font-style: italic; }
  .undertorch-leaves dl { display: grid; grid-template-columns: max-content 1fr; gap: 1px 8px; margin: 4px 0 0; }
  .undertorch-leaves dt, .undertorch-leaves dd { margin: 0; padding: 0; width: auto; float: none; font-weight: normal; }
  .undertorch-leaves dd { min-width: 0; overflow-wrap: anywhere; font-size: 12px; align-self: center; }
  .undertorch-leaves dd, .undertorch-leaves code { font-family: var(--jp-code-font-family, monospace); }
  .undertorch-leaves table { border-collapse: collapse; margin: 16px 0 0; font-size: inherit; }
  .undertorch-leaves th, .undertorch-leaves thead td, .undertorch-leaves td { border: 1px solid var(--jp-border-color1, #888);
    padding: 5px 8px; text-align: left; font-weight: normal; background: none; }
  .undertorch-leaves thead td { border: 0; }
  .undertorch-leaves th, .undertorch-leaves td { overflow-wrap: anywhere; }
  .undertorch-leaves .said { margin: 12px 0 0; min-height: 4lh; }
  @container (max-width: 620px) {
    .undertorch-leaves .views { flex-direction: column; }
    .undertorch-leaves .left { flex-basis: auto; width: 100%; }
    .undertorch-leaves .board { width: 100%; box-sizing: border-box; }
    .undertorch-leaves .cards { grid-template-columns: repeat(auto-fill, minmax(165px, 1fr)); }
  }
  @container (max-width: 240px) {
    .undertorch-leaves th, .undertorch-leaves thead td, .undertorch-leaves td { padding: 4px 3px; font-size: 12px; }
  }
</style>
<div class="controls" role="group" aria-label="Lines of the program">
  <button type="button" class="back">Back</button>
  <input type="range" min="0" step="1" aria-label="Lines that have run">
  <button type="button" class="forward">Forward</button>
  <span class="count"></span>
</div>
<div class="views">
  <div class="left"><ol></ol><div class="said" role="status" aria-live="polite"></div><div class="boxes"></div></div>
  <div class="board"></div>
</div>`;

function render({ model, el }) {
  const lines = model.get("lines"), last = lines.length;
  el.classList.add("undertorch-leaves");
  el.innerHTML = PAGE;
  const [slider, back, forward, program, board] = ["input", ".back", ".forward", "ol", ".board"].map((s) => el.querySelector(s));
  slider.max = last;
  const items = lines.map((line, i) => {
    const item = program.appendChild(document.createElement("li"));
    const button = item.appendChild(Object.assign(document.createElement("button"), { type: "button", textContent: line }));
    button.addEventListener("click", () => go(i + 1));
    return item;
  });
  el.querySelectorAll("input, button").forEach((control) => (control.dataset.lmSuppressShortcuts = "")); // JupyterLab leaves the keys to them

  function show() {
    const step = model.get("step");
    items.forEach((item, i) => {
      item.classList.toggle("now", i + 1 === step);
      item.classList.toggle("ahead", i + 1 > step);
      if (i + 1 === step) item.firstChild.setAttribute("aria-current", "step");
      else item.firstChild.removeAttribute("aria-current");
    });
    board.innerHTML = model.get("boards")[step];
    el.querySelector(".boxes").innerHTML = model.get("boxes")[step];
    el.querySelector(".said").textContent = model.get("said")[step];
    el.querySelector(".count").textContent = `${step} of ${last} lines`;
    slider.value = step;
    slider.setAttribute("aria-valuetext", `${step} of ${last} lines have run`);
    back.setAttribute("aria-disabled", step === 0); // not disabled: that would take the keyboard's focus away
    forward.setAttribute("aria-disabled", step === last);
  }

  function go(step) {
    model.set("step", Math.max(0, Math.min(last, step)));
    model.save_changes();
  }

  slider.addEventListener("input", () => go(parseInt(slider.value)));
  back.addEventListener("click", () => go(model.get("step") - 1));
  forward.addEventListener("click", () => go(model.get("step") + 1));
  model.on("change:step", show);
  show();
  return () => model.off("change:step", show);
}

export default { render };

// The front end of Predict: a button for each option; a click commits, and the answer comes when the cell below has run.

const PAGE = `
<style>
  .undertorch-predict { font-family: var(--jp-ui-font-family, sans-serif); color: var(--jp-ui-font-color1, inherit); }
  .undertorch-predict fieldset { border: 1px solid var(--jp-border-color1, #bdbdbd); border-radius: 4px; margin: 4px 0; min-width: 0;
    padding: 6px 12px 10px; max-width: 640px; }
  .undertorch-predict legend { padding: 0 4px; font-weight: 600; }
  .undertorch-predict button { display: block; width: 100%; margin: 6px 0; padding: 6px 10px; text-align: left; font: inherit;
    color: inherit; background: var(--jp-layout-color1, #fff); border: 1px solid var(--jp-border-color1, #757575);
    border-radius: 4px; cursor: pointer; }
  .undertorch-predict button:disabled { cursor: default; }
  .undertorch-predict button[aria-pressed="true"] { border: 2px solid #e8590c; font-weight: 600; }
  .undertorch-predict :focus-visible { outline: 2px solid #e8590c; outline-offset: 2px; }
  .undertorch-predict .said { margin: 6px 0 0; min-height: 1lh; }
</style>
<fieldset><legend></legend></fieldset>
<div class="said" role="status" aria-live="polite"></div>`;

function render({ model, el }) {
  el.classList.add("undertorch-predict");
  el.innerHTML = PAGE;
  const [box, legend, said] = ["fieldset", "legend", ".said"].map((selector) => el.querySelector(selector));
  legend.innerHTML = model.get("question");
  const buttons = model.get("options").map((option, place) => {
    const button = box.appendChild(Object.assign(document.createElement("button"), { type: "button", innerHTML: option }));
    button.addEventListener("click", () => {
      model.set("chosen", place);
      model.save_changes();
    });
    return button;
  });
  box.append(said);

  // What the lesson says of the answer stands folded below the cell that was run (course/base/folds.py).
  function unfold() {
    let cell = el.closest(".jp-Cell");
    while ((cell = cell?.nextElementSibling) && !cell.matches(".jp-MarkdownCell"));
    const fold = cell?.querySelector("details");
    if (fold?.firstElementChild?.textContent === model.get("folded")) fold.open = true;
  }

  function show() {
    const chosen = model.get("chosen");
    buttons.forEach((button, place) => {
      button.disabled = chosen >= 0;
      button.ariaPressed = place === chosen;
    });
    if (model.get("said")) {
      const verdict = model.get("right") ? "Right." : "Not quite.";
      said.innerHTML = `<strong>${verdict}</strong> ${model.get("said")}`;
      unfold();
    } else {
      said.textContent = chosen >= 0 ? "Noted. Now run the cell below." : "";
    }
  }

  const followed = ["change:chosen", "change:said", "change:right"];
  followed.forEach((event) => model.on(event, show));
  show();
  return () => followed.forEach((event) => model.off(event, show));
}

export default { render };

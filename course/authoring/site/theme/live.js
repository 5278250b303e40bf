// Figures that answer on a page, without Python: each by its own front end, whose model looks up what Python showed.
// What it needs stands in files beside the pages, and is fetched when somebody wants to move the figure.

(() => {
  const scripts = {}, figures = {}, kinds = {};

  // A script, once: pages opened from a folder (file:) may fetch nothing else.
  const load = (address) => (scripts[address] ??= new Promise((done, failed) => {
    const script = Object.assign(document.createElement("script"), { src: address, onload: done, onerror: failed });
    document.head.append(script);
  }));

  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  const sorted = (value) => Array.isArray(value) ? value.map(sorted)
    : value && typeof value === "object" ? Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name])]))
    : value;
  const written = (value) => JSON.stringify(sorted(value)).replace(/\s/g, "");

  // What a front end asks of its model (anywidget.dev), of a table: {begin, shown, table, inputs, history, rooms, pieces}.
  class Model {
    constructor(data, unknown) {
      Object.assign(this, data, { unknown, values: {}, answers: [] });
      for (const [name, value] of Object.entries({ ...data.begin, ...data.shown[0] })) this.values[name] = this.whole(value);
      this.saved = { ...this.values };
    }

    // Long texts are lists of pieces, pictures of dots are bytes.
    whole(value) {
      if (value?.pieces) return value.pieces.map((place) => this.pieces[place]).join("");
      if (value?.bytes) return new DataView(Uint8Array.from(atob(value.bytes), (letter) => letter.charCodeAt(0)).buffer);
      return Array.isArray(value) && value.some((each) => each?.pieces) ? value.map((each) => this.whole(each)) : value;
    }

    get(name) {
      return this.values[name];
    }

    set(name, value) {
      if (written(this.values[name] ?? null) === written(value) && !(value instanceof DataView)) return;
      this.values[name] = value;
      for (const [names, answer] of this.answers.slice()) if (names.includes(`change:${name}`)) answer();
    }

    on(names, answer) {
      this.answers.push([names.split(" "), answer]);
    }

    off(names, answer) {
      this.answers = this.answers.filter((each) => each[0].join(" ") !== names || each[1] !== answer);
    }

    key() {
      const asked = this.inputs.map((name) => name === this.rooms.name
        ? Math.max(this.rooms.known[0], ...this.rooms.known.filter((room) => room <= this.values[name])) : this.values[name]);
      const [before, now] = [this.saved[this.history], this.values[this.history]];
      return written([...asked, this.history && written(before) !== written(now) ? before : null]);
    }

    save_changes() {
      if (!this.inputs.length) return;
      const place = this.table[this.key()];
      this.unknown(place === undefined);
      if (place !== undefined) {
        for (const [name, value] of Object.entries(this.shown[place])) {
          if (name !== this.rooms.name) this.set(name, this.whole(value)); // the page's width is what it is
        }
        this.saved = { ...this.values };
      }
    }
  }

  async function wake(place, still) {
    const { figure } = place.dataset, folder = figure.slice(0, figure.lastIndexOf("/") + 1);
    await load(figure);
    const [kind, packed] = figures[figure.slice(folder.length)];
    await load(`${folder}${kind}.js`);
    const data = await unpacked(packed);
    const box = document.createElement("div"), notice = document.createElement("p");
    notice.setAttribute("role", "status");
    place.append(box, notice);
    const model = new Model(data, (so) => {
      notice.textContent = so ? `This page knows ${data.known}. In JupyterLab the figure takes all.` : "";
    });
    kinds[kind].render({ model, el: box });
    still.remove();
    (box.querySelector("input:not([disabled]), button, select") ?? box).focus({ preventScroll: true });
  }

  window.undertorch = {
    figure: (name, kind, packed) => (figures[name] = [kind, packed]),
    kind: (name, made) => (kinds[name] = made),
  };
  document.addEventListener("DOMContentLoaded", () => {
    for (const place of document.querySelectorAll("[data-figure]")) {
      const still = place.firstElementChild, told = still.querySelector(".asleep");
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Move this figure" });
      told.replaceChildren(button);
      button.addEventListener("click", () => {
        button.disabled = true;
        wake(place, still).catch(() => told.replaceChildren("This browser does not show it; in JupyterLab it moves."));
      });
    }
  });
})();

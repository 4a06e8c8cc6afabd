// The tier switch: every group of tier buttons on the page, the gallery and the maps follow.
"use strict";
(() => {
  const groups = [...document.querySelectorAll(".tiers.switch")];
  const kinds = document.querySelector(".kinds.switch");
  const gallery = document.querySelector(".gallery");
  const state = { tier: "all", kind: kinds?.querySelector("[aria-pressed=true]")?.dataset.kind };

  const apply = () => {
    for (const button of document.querySelectorAll(".switch button")) {
      const mine = button.dataset.tier ? state.tier === button.dataset.tier : state.kind === button.dataset.kind;
      button.setAttribute("aria-pressed", String(mine));
    }
    let shown = 0;
    for (const block of gallery?.querySelectorAll(".asked") || []) {
      const fits = (state.tier === "all" || block.dataset.tier === state.tier) && block.dataset.kind === state.kind;
      block.hidden = !fits;
      shown += fits;
    }
    if (gallery) gallery.querySelector(".nothing").hidden = shown > 0;
    document.dispatchEvent(new CustomEvent("tier", { detail: state.tier }));
  };
  groups.forEach((group) => group.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) { state.tier = button.dataset.tier; apply(); }
  }));
  kinds?.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) { state.kind = button.dataset.kind; apply(); }
  });
  apply();
})();

// The second tab: what the database holds, where it is dense, and what a cell looks like.

import { byId, mark, node, picture, plural } from "./dom.js";
import { CellMap } from "./map.js";
import { MEANING } from "./cells.js";
import { ask, askPhoto } from "./service.js";

const PAGE = 30, SHOTS = 24;

export class Browse {
  constructor(about, cells, onPhoto) {
    this.about = about;
    this.onPhoto = onPhoto;
    this.map = new CellMap(byId("atlas"), cells, { ...about, label: "Map of the database; places are in the list below too" });
    this.map.onCell((row) => this.open(cells.places[row]));
    this.tiles();
    for (const radio of document.getElementsByName("colour")) radio.onchange = () => this.colour(radio.value);
    byId("order").onchange = byId("tier").onchange = () => this.list(0);
    byId("more-places").onclick = () => this.list(byId("list").children.length);
    byId("more-shots").onclick = () => this.try(() => this.shots(byId("shots").children.length));
    this.colour("tier");
    this.list(0);
  }

  tiles() {
    const { photos, places, imbalance, gini, outside } = this.about;
    const tile = (value, label, small) => node("div", { class: "tile" }, node("b", {}, value), node("span", {}, label), node("small", {}, small));
    byId("tiles").replaceChildren(
      tile(photos.toLocaleString("en"), "photos", outside ? `${outside.toLocaleString("en")} in no place` : "all in a place"),
      tile(places.toLocaleString("en"), "places", "cells with a photo"),
      tile(`${imbalance.toLocaleString("en")} : 1`, "imbalance", "busiest to quietest"),
      tile(gini.toFixed(2), "Gini", "0 even, 1 all in one place"),
    );
  }

  colour(by) {
    this.map.change({ by });
    const { tiers } = this.about, most = this.map.cells.most;
    byId("atlas-legend").replaceChildren(...(by === "tier"
      ? ["head", "middle", "tail"].map((tier) => node("span", {}, mark(tier), `${MEANING[tier]}: ${plural(tiers[tier], "cell")}`))
      : [node("span", {}, "1 photo"), node("span", { class: "ramp", "aria-hidden": "true" }), node("span", {}, plural(most, "photo"))]));
  }

  // A question of this tab that fails is said where its answer would have been.
  async try(asking) {
    try {
      await asking();
    } catch (refusal) {
      byId("cell-title").textContent = "That did not work";
      byId("cell-caption").textContent = `${refusal.message}; ${refusal.remedy || "try again"}.`;
    }
  }

  list(offset) {
    return this.try(() => this.listFrom(offset));
  }

  async listFrom(offset) {
    const tier = byId("tier").value, order = byId("order").value;
    const found = await ask(`/places?order=${order}&limit=${PAGE}&offset=${offset}${tier ? `&tier=${tier}` : ""}`);
    const rows = found.places.map((place) => node("li", {}, node("button", { type: "button", "data-place": place.place, onclick: () => this.open(place.place) },
      node("span", {}, mark(place.tier), `place ${place.place}`), node("span", { class: "soft" }, plural(place.photos, "photo")))));
    if (offset) byId("list").append(...rows);
    else byId("list").replaceChildren(...rows);
    byId("more-places").hidden = byId("list").children.length >= found.total;
  }

  async open(place) {
    this.place = place;
    this.map.choose(place);
    for (const button of byId("list").querySelectorAll("button")) button.toggleAttribute("aria-current", Number(button.dataset.place) === place);
    byId("shots").replaceChildren();
    await this.try(() => this.shots(0));
    if (matchMedia("(max-width: 860px)").matches) byId("cell").scrollIntoView({ behavior: "smooth" }); // it is far below
  }

  async shots(offset) {
    const found = await ask(`/places/${this.place}?limit=${SHOTS}&offset=${offset}`);
    if (found.place !== this.place) return; // another cell was chosen meanwhile
    byId("cell-title").replaceChildren(mark(found.tier), `Place ${found.place}`);
    byId("cell-caption").textContent = `${found.tier}, ${plural(found.photos, "photo")} on ${Math.round(found.area).toLocaleString("en")} m². Choose a photo to ask with it.`;
    byId("shots").append(...found.pictures.map((shot, number) => this.shot(shot, offset + number)));
    byId("more-shots").hidden = byId("shots").children.length >= found.photos;
  }

  shot(shot, number) {
    const facts = [shot.heading === null ? null : `looking ${compass(shot.heading)}`, shot.time && shot.time.slice(0, 10)].filter(Boolean);
    const askWith = () => this.try(async () => this.onPhoto(await askPhoto(shot.photo)));
    return node("li", {}, node("button", { type: "button", "aria-label": `ask with photo ${number + 1}`, onclick: askWith },
      picture(`/photos/${shot.photo}?side=240`, `photo ${number + 1}`), node("span", { class: "soft" }, facts.join(", "))));
  }
}

const compass = (heading) => ["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"][Math.round(heading / 45) % 8];

// The page: tabs, and a photo's way from the hand to the map.

import { lightHit, mood, showBusy, showHits, showPlaces, showProblem, showTimes, showVerdict } from "./answer.js";
import { listen } from "./ask.js";
import { Browse } from "./browse.js";
import { MEANING, readCells } from "./cells.js";
import { byId, mark, node, plural } from "./dom.js";
import { Many } from "./many.js";
import { CellMap } from "./map.js";
import { hideMatches, showMatches } from "./matches.js";
import { ask, locate } from "./service.js";

const page = { map: null, browse: null, many: null, cells: null, about: null, query: "", asked: 0 };

function tabs() {
  const all = [...document.querySelectorAll("[role=tab]")];
  const open = (tab, focus) => {
    for (const one of all) {
      const on = one === tab;
      one.setAttribute("aria-selected", String(on));
      one.tabIndex = on ? 0 : -1;
      byId(one.getAttribute("aria-controls")).hidden = !on;
    }
    if (focus) tab.focus();
    if (tab.id === "tab-browse" && !page.browse && page.cells) page.browse = new Browse(page.about, page.cells, askWith);
    if (tab.id === "tab-many" && !page.many && page.cells) page.many = new Many(page.about, page.cells);
    history.replaceState(null, "", { "tab-browse": "#browse", "tab-many": "#many" }[tab.id] || "#");
  };
  all.forEach((tab, number) => {
    tab.onclick = () => open(tab);
    tab.onkeydown = (event) => {
      const to = { ArrowRight: number + 1, ArrowLeft: number - 1, Home: 0, End: all.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      open(all[(to + all.length) % all.length], true);
    };
  });
  page.openTab = (id) => open(byId(id));
}

function light(number, on, scroll) {
  lightHit(number, on, scroll);
  page.map.light(number, on);
}

async function askWith(photo) {
  // What had the focus may vanish with its tab; the keys then go on from the tab that is shown.
  const lost = byId("browse").contains(document.activeElement);
  page.openTab("tab-find");
  if (lost) byId("tab-find").focus();
  const turn = ++page.asked;
  if (page.query) URL.revokeObjectURL(page.query);
  page.query = URL.createObjectURL(photo);
  byId("query").src = page.query;
  byId("query").hidden = false;
  byId("drop").classList.add("filled");
  for (const id of ["seen", "likely", "spent"]) byId(id).hidden = true;
  hideMatches();
  page.map.clear();
  showBusy();
  const began = performance.now();
  try {
    const answer = await locate(photo);
    if (turn === page.asked) show(answer, performance.now() - began);
  } catch (refusal) {
    if (turn !== page.asked) return;
    showProblem(refusal);
    page.map.fitAll();
  }
}

// Several photos, or a folder, or whatever is dropped while that tab is open; else one photo.
function askMany(transfer) {
  const items = [...transfer.items].filter((item) => item.kind === "file");
  const folder = items.some((item) => item.webkitGetAsEntry && (item.webkitGetAsEntry() || {}).isDirectory);
  if (!folder && items.length < 2 && byId("many").hidden) return false;
  page.openTab("tab-many");
  page.many.drop(transfer);
  return true;
}

// The drawing stands above the photos that are chosen: on a phone, out of sight.
function compare(answer, number) {
  showMatches(answer, page.query, number);
  byId("why").scrollIntoView({ block: "nearest", behavior: "smooth" });
}

function show(answer, elapsed) {
  showVerdict(answer);
  showHits(answer, page.query, light, (number) => compare(answer, number));
  showMatches(answer, page.query);
  showPlaces(answer, (place) => page.map.choose(place));
  showTimes(answer, elapsed);
  page.map.change({ chosen: -1 });
  page.map.show(answer, mood(answer), light);
}

async function start() {
  tabs();
  byId("query").onerror = () => { byId("query").hidden = true; byId("drop").classList.remove("filled"); };
  page.about = await ask("/about");
  page.cells = readCells(await ask("/map"));
  const { photos, places, tiers } = page.about;
  const local = ["127.0.0.1", "localhost", "[::1]"].includes(location.hostname);
  if (page.about.tiles_from) byId("origins").textContent = `The map's tiles come from ${page.about.tiles_from}, nothing else from another machine.`;
  byId("by-whom").textContent = local ? "on this machine" : `by ${location.hostname}`;
  byId("lead").textContent = `${plural(photos, "photo")} of ${plural(places, "place")}`;
  byId("legend").replaceChildren(...Object.keys(tiers).map((tier) => node("span", {}, mark(tier), MEANING[tier])));
  page.map = new CellMap(byId("map"), page.cells, { ...page.about, faint: true, label: "Map of the answer; its photos are in the list below too" });
  listen(askWith, showProblem, askMany);
  const tab = { "#browse": "tab-browse", "#many": "tab-many" }[location.hash];
  if (tab) page.openTab(tab);
  document.body.dataset.ready = "yes";
}

addEventListener("DOMContentLoaded", () => start().catch(showProblem));

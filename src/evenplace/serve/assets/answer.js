// An answer as a person reads it: how sure, where, like what, and how long it took.

import { apart, byId, far, mark, node, picture, plural } from "./dom.js";

// An uncalibrated confidence may be minus a distance, or a count: that fills no gauge.
const isShare = (answer) => answer.confidence >= 0 && answer.confidence <= 1;
export const confidence = (answer) => `${isShare(answer) ? "confidence" : "score"} ${answer.confidence.toFixed(2)}`;
export const mood = (answer) =>
  answer.abstains ? "none" : answer.calibrated && answer.confidence >= 0.9 ? "sure" : isShare(answer) && answer.confidence >= 0.5 ? "likely" : "guess";
const HEADLINES = { none: "No answer", sure: "Here", likely: "Probably here", guess: "Only a guess" };
const STAGES = {
  wait: "waiting for a batch", decode: "reading the photo", describe: "describing it", classify: "choosing places",
  gather: "collecting photos", rank: "comparing", verify: "looking twice", send: "sending",
};

export function showVerdict(answer) {
  const kind = mood(answer);
  const parts = [node("h2", {}, HEADLINES[kind])];
  if (answer.abstains) parts.push(...abstention(answer));
  else parts.push(...position(answer.position));
  parts.push(meter(answer, kind));
  if (kind === "likely" || kind === "guess") parts.push(alternatives(answer));
  fill(parts, kind);
}

export function showProblem(refusal) {
  fill([
    node("h2", {}, "That did not work"),
    node("p", {}, sentence(refusal.message.replace(/^photo 1 /, "this file "))),
    node("p", { class: "help" }, node("b", {}, "What to do: "), sentence(refusal.remedy || "try another photo")),
  ], "failed");
}

export function showBusy() {
  fill([node("h2", {}, "Looking…"), node("div", { class: "busy", role: "progressbar", "aria-label": "looking" }, node("i"))], "wait");
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

// What is shown is also said, by a status line that screen readers have known from the start.
function fill(parts, kind) {
  const holder = byId("verdict");
  holder.className = `verdict ${kind}`;
  holder.replaceChildren(...parts);
  holder.hidden = false;
  byId("said").textContent = parts.map((part) => part.innerText.replace(/\s*Copy\s*$/, "")).filter(Boolean).join(" ");
}

function abstention(answer) {
  return [
    node("p", {}, sentence(answer.reason)),
    node("p", { class: "help" }, node("b", {}, "What would help: "), sentence(answer.remedy)),
  ];
}

function position(spot) {
  const text = spot.latitude === null
    ? `east ${spot.east.toFixed(0)} m, north ${spot.north.toFixed(0)} m`
    : `${spot.latitude.toFixed(5)}, ${spot.longitude.toFixed(5)}`;
  const { major, minor } = spot.ellipse;
  const copy = node("button", { type: "button", class: "copy", onclick: () => {
    navigator.clipboard.writeText(text).then(() => { copy.textContent = "Copied"; });
  } }, "Copy");
  return [
    node("p", { class: "where" }, node("b", {}, text), " ", copy),
    node("p", { class: "soft" }, `Give or take ${major.toFixed(0)} × ${minor.toFixed(0)} m, if the street is right.`),
  ];
}

function meter(answer, kind) {
  const percent = Math.round(100 * answer.confidence);
  const told = answer.calibrated ? answer.meaning : `${confidence(answer)}, ${answer.meaning}`;
  const words = sentence(told).replace("times in 100", "times in\u00a0100");
  return node("div", { class: "confidence" },
    !isShare(answer) ? null : node("div", { class: `gauge ${kind}`, role: "meter", "aria-label": "confidence", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": percent },
      node("i", { "width%": percent })),
    answer.abstains ? null : node("p", { class: "soft" }, words)); // its reason has said that
}

function alternatives(answer) {
  const first = answer.hits.length ? answer.hits[0].place : -1;
  const others = answer.places.filter((guess) => guess.place !== first).slice(0, 2);
  const names = others.map((guess) => `place ${guess.place} (${plural(guess.photos, "photo")})`).join(" or ");
  return node("p", { class: "help" }, node("b", {}, "It might also be "), `${names || "somewhere else"}. Compare the photos below before you trust it.`);
}

export function showHits(answer, query, onHit, onCompare) {
  byId("matching").hidden = !answer.looked;
  const own = node("li", { class: "own" }, figure(query, "your photo", [node("b", {}, "Your photo")]));
  const hits = answer.hits.map((hit, number) => {
    const away = answer.position ? apart(hit, answer.position) : null;
    const facts = [
      node("span", { class: "line" }, node("b", {}, `${number + 1}`), mark(hit.tier), hit.place < 0 ? "no place" : `place ${hit.place}`),
      node("span", { class: "line" }, `similarity ${hit.similarity.toFixed(2)}`),
      hit.inliers === null ? null : node("span", { class: "line" }, `${plural(hit.inliers, "point")} match${hit.inliers === 1 ? "es" : ""}`),
      node("span", { class: "line soft" }, [hit.tier, away === null || answer.abstains ? "" : `${far(away)} away`].filter((word) => word && word !== "none").join(", ")),
      hit.credit ? node("span", { class: "line soft" }, hit.credit) : null,
    ];
    const item = node("li", {}, node("button", {
      type: "button", "aria-label": `photo ${number + 1}: ${hit.tier}, place ${hit.place}, similarity ${hit.similarity.toFixed(2)}; show it on the map`,
      onmouseenter: () => onHit(number, true), onmouseleave: () => onHit(number, false),
      onfocus: () => onHit(number, true), onblur: () => onHit(number, false), onclick: () => { onHit(number, true); onCompare(number); },
    }, figure(`/photos/${hit.photo}?side=320`, `database photo ${number + 1}`, facts)));
    return item;
  });
  byId("hits").replaceChildren(own, ...hits);
  byId("seen").hidden = false;
}

export function lightHit(number, on, scroll) {
  const item = byId("hits").children[number + 1];
  if (!item) return;
  item.classList.toggle("lit", on);
  if (on && scroll) item.scrollIntoView({ block: "nearest", behavior: "smooth" });
}

const figure = (source, alt, facts) => node("figure", {}, picture(source, alt), node("figcaption", {}, ...facts.filter(Boolean)));

export function showPlaces(answer, onPlace) {
  const rows = answer.places.slice(0, 8).map((guess) => node("li", {}, node("button", { type: "button", onclick: () => onPlace(guess.place) },
    node("span", { class: "name" }, mark(guess.tier), `place ${guess.place}`),
    node("span", { class: "bar" }, node("i", { class: guess.tier, "width%": 100 * guess.posterior })),
    node("span", { class: "number" }, percent(guess.posterior)),
    node("span", { class: "soft" }, plural(guess.photos, "photo")))));
  byId("places").replaceChildren(node("ol", { class: "posteriors" }, ...rows));
  byId("likely").hidden = !rows.length;
}

const percent = (share) => (share >= 0.0995 ? `${Math.round(100 * share)} %` : `${(100 * share).toFixed(1)} %`);

export function showTimes(answer, total) {
  const stages = Object.entries(answer.elapsed_ms), inside = stages.reduce((sum, [, ms]) => sum + ms, 0);
  stages.push(["send", Math.max(0, total - inside)]);
  const whole = Math.max(total, inside);
  byId("total").textContent = `${Math.round(total)} ms from asking to reading.`;
  byId("times").replaceChildren(node("ol", { class: "times" }, ...stages.map(([stage, ms]) => node("li", {},
    node("span", { class: "name" }, STAGES[stage] || stage),
    node("span", { class: "bar" }, node("i", { "width%": (100 * ms) / whole })),
    node("span", { class: "number" }, `${ms.toFixed(ms < 10 ? 1 : 0)} ms`)))));
  byId("spent").hidden = false;
}

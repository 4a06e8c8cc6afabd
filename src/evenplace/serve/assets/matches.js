// Why we believe it: the points that a photo and a hit share, as lines between the two.

import { byId, node, plural } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const SAME = 30, CHANCE = 12; // inliers: of photos with so many 95 in 100 show one building; of so few 1 in 5
const MOST = 80, SIDE = 1000, GAP = 16; // lines drawn; units of the drawing
const narrow = matchMedia("(max-width: 600px)");
let shown = null; // what to draw again when the page turns narrow

export function showMatches(answer, query, number = 0) {
  const hit = answer.hits[number], holder = byId("why");
  shown = null;
  holder.hidden = !hit || !answer.looked;
  if (holder.hidden) return;
  byId("why-words").textContent = words(hit, number, answer.looked);
  const drawing = [query, `/photos/${hit.photo}?side=512`, hit.pairs || [], number];
  shown = drawing;
  draw(drawing);
}

export function hideMatches() {
  shown = null;
  byId("why").hidden = true;
}

narrow.addEventListener("change", () => shown && draw(shown));

function words(hit, number, looked) {
  const name = number === 0 ? "the best photo" : `photo ${number + 1}`, other = "Choose another photo below to compare it.";
  if (!hit.pairs) return `Nobody can look at ${name} a second time. ${other}`;
  const found = hit.inliers === null ? "Nobody looked at this photo a second time, only now"
    : `${plural(looked, "candidate")} ${looked === 1 ? "was" : "were"} looked at a second time`;
  const many = hit.pairs.length;
  const proof = many >= SAME ? `${plural(many, "point")} of your photo lie in ${name} where one view of one facade puts them: they show the same thing.`
    : many > CHANCE ? `${plural(many, "point")} of your photo agree with ${name}; facades that look alike can reach that too.`
    : many ? `Only ${plural(many, "point")} agree between your photo and ${name}, as many as chance gives: that proves nothing.`
      : `No view explains the points of your photo and ${name}: they may show different things.`;
  return `${proof} ${found}. ${other}`;
}

async function draw(drawing) {
  const [query, other, pairs, number] = drawing;
  const pictures = await Promise.all([load(query), load(other)]);
  if (drawing !== shown) return;
  if (pictures.some((one) => !one)) return byId("why-drawing").replaceChildren(node("p", { class: "soft" }, "The file of this photo is not where it was."));
  const label = `${plural(pairs.length, "matching point")} between your photo and database photo ${number + 1}`;
  byId("why-drawing").replaceChildren(lines(pictures, pairs, narrow.matches, label));
}

function load(source) {
  return new Promise((done) => {
    const image = new Image();
    image.onload = () => done(image);
    image.onerror = () => done(null);
    image.src = source;
  });
}

// Side by side and equally high; wide ones on a narrow page one above the other, equally wide.
function lines(pictures, pairs, slim, label) {
  const ratios = pictures.map((one) => one.naturalWidth / one.naturalHeight), stacked = slim && Math.max(...ratios) > 1;
  const sizes = ratios.map((ratio) => (stacked ? [SIDE, SIDE / ratio] : [SIDE * ratio, SIDE]));
  const at = stacked ? [[0, 0], [0, sizes[0][1] + GAP]] : [[0, 0], [sizes[0][0] + GAP, 0]];
  const width = at[1][0] + sizes[1][0], height = at[1][1] + sizes[1][1];
  const drawing = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: stacked ? "stacked" : "beside" });
  pictures.forEach((one, which) => drawing.append(shape("image", { href: one.src, x: at[which][0], y: at[which][1], width: sizes[which][0], height: sizes[which][1] })));
  const step = Math.max(1, pairs.length / MOST);
  for (let nth = 0; nth < pairs.length; nth += step) {
    const [x1, y1, x2, y2] = pairs[Math.floor(nth)];
    const ends = [[x1, y1], [x2, y2]].map(([x, y], which) => [at[which][0] + x * sizes[which][0], at[which][1] + y * sizes[which][1]]);
    drawing.append(shape("line", { x1: ends[0][0], y1: ends[0][1], x2: ends[1][0], y2: ends[1][1] }));
    for (const [cx, cy] of ends) drawing.append(shape("circle", { cx, cy, r: 9 }));
  }
  return drawing;
}

function shape(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

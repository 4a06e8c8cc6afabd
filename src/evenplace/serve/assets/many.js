// Many photos: a folder in, dots on the map as they are found, a table out.  Nothing is kept.

import { confidence, mood } from "./answer.js";
import { filesOf, prepare } from "./ask.js";
import { byId, node, picture, plural } from "./dom.js";
import { CellMap } from "./map.js";
import { locateAll } from "./service.js";

const AT_ONCE = 8, SHOWN = 60; // photos of a request; pictures in the list
const PICTURE = /\.(jpe?g|png|webp)$/i;
const WORDS = { sure: "sure", likely: "likely", guess: "a guess", none: "no answer", failed: "unreadable" };

export class Many {
  constructor(about, cells) {
    this.map = new CellMap(byId("many-map"), cells, { ...about, faint: true, label: "Map of the answers; they are in the list below too" });
    this.map.change({ by: "density" }); // the colours of tiers are those of the dots
    this.most = about.request_bytes * 0.9;
    this.lines = [];
    this.turn = 0;
    byId("choose-many").onclick = () => byId("files").click();
    byId("choose-folder").onclick = () => byId("folder").click();
    for (const id of ["files", "folder"])
      byId(id).onchange = (event) => { this.start([...event.target.files]); event.target.value = ""; };
    byId("many-stop").onclick = () => { this.turn++; this.tell("Stopped. "); };
    byId("save-csv").onclick = () => save("answers.csv", "text/csv", csv(this.lines));
    byId("save-geojson").onclick = () => save("answers.geojson", "application/geo+json", geojson(this.lines));
  }

  async drop(transfer) {
    this.start(await filesOf(transfer));
  }

  async start(files) {
    const turn = ++this.turn;
    const photos = files.filter((file) => PICTURE.test(file.name) || file.type.startsWith("image/"))
      .sort((a, b) => name(a).localeCompare(name(b), "en", { numeric: true }));
    for (const line of this.lines) if (line.url) URL.revokeObjectURL(line.url);
    this.lines = [];
    this.passed = files.length - photos.length;
    this.total = photos.length;
    this.map.clear();
    this.map.fitAll();
    byId("many-list").replaceChildren();
    byId("many-results").hidden = !photos.length;
    byId("many-stop").hidden = !photos.length;
    this.tell(photos.length ? "" : "There is no photo among them. ");
    try {
      for (let from = 0; from < photos.length && turn === this.turn; )
        from += await this.ask(photos.slice(from, from + AT_ONCE), turn);
    } catch (refusal) {
      if (turn === this.turn) this.tell(`It stopped: ${refusal.message}; ${refusal.remedy || "try again"}. `);
    }
    if (turn === this.turn) byId("many-stop").hidden = true;
  }

  // Asks about the first few that fit into a request, and says how many these were.
  async ask(files, turn) {
    const ready = [];
    let bytes = 0;
    for (const file of files) {
      const photo = await prepare(file);
      if (ready.length && bytes + photo.size > this.most) break;
      bytes += photo.size;
      ready.push(photo);
    }
    let answers;
    try {
      answers = await locateAll(ready);
    } catch (refusal) {
      if (ready.length > 1 || ![413, 415, 422].includes(refusal.status)) throw refusal;
      answers = [{ kind: "refused", problem: { detail: refusal.message } }]; // a photo alone is refused as a whole
    }
    if (turn !== this.turn) return files.length;
    answers.forEach((answer, number) => this.add(files[number], answer));
    this.tell("");
    return ready.length;
  }

  add(file, answer) {
    const failed = answer.kind === "refused", number = this.lines.length;
    const line = { name: name(file), answer, kind: failed ? "failed" : mood(answer), url: "" };
    if (number < SHOWN && !failed) line.url = URL.createObjectURL(file);
    this.lines.push(line);
    if (!failed && !answer.abstains && answer.position)
      this.map.dot(answer.position, line.kind, `${line.name}: ${WORDS[line.kind]}`, () => this.show(number));
    if (number < SHOWN) byId("many-list").append(this.item(line, number));
  }

  item(line, number) {
    const { answer } = line, best = answer.hits && answer.hits[0];
    const where = line.kind === "failed" ? answer.problem.detail.replace(/^photo \d+ /, "this file ") : answer.abstains ? answer.reason : text(answer.position);
    const sure = line.kind === "failed" ? "" : `${WORDS[line.kind]}, ${confidence(answer)}`;
    return node("li", { id: `line-${number}`, class: line.kind }, node("button", { type: "button", onclick: () => this.show(number) },
      node("span", { class: "two" }, line.kind === "failed" ? null : picture(line.url, line.name), best ? picture(`/photos/${best.photo}?side=160`, "what it looks like") : null),
      node("b", {}, line.name), node("span", { class: "soft" }, sure), node("span", { class: "soft" }, where),
      best && best.credit ? node("span", { class: "soft" }, best.credit) : null));
  }

  // A dot and its line in the list point at each other.
  show(number) {
    const { answer } = this.lines[number], item = byId(`line-${number}`);
    for (const other of byId("many-list").children) other.classList.toggle("lit", other === item);
    if (item) item.scrollIntoView({ block: "nearest", behavior: "smooth" });
    if (answer.position && !answer.abstains) this.map.look(answer.position);
  }

  tell(before) {
    const done = this.lines.length, given = this.lines.filter((line) => !["none", "failed"].includes(line.kind)).length;
    const passed = this.passed ? ` ${plural(this.passed, "file")} passed over: no pictures.` : "";
    const more = done > SHOWN ? ` The list shows the first ${SHOWN}; the table has all.` : "";
    byId("many-bar").max = this.total || 1;
    byId("many-bar").value = done;
    byId("many-said").textContent = `${before}${done.toLocaleString("en")} of ${plural(this.total || 0, "photo")} looked at, ${given.toLocaleString("en")} answered.${passed}${more}`;
  }
}

const name = (file) => file.webkitRelativePath || file.path || file.name;
const text = (spot) => spot.latitude === null ? `east ${spot.east.toFixed(0)} m, north ${spot.north.toFixed(0)} m` : `${spot.latitude.toFixed(6)}, ${spot.longitude.toFixed(6)}`;
const given = (line) => (["none", "failed"].includes(line.kind) ? null : line.answer.position);

function fields({ name: photo, answer, kind }) {
  const spot = given({ answer, kind }) || {};
  return {
    photo, status: { none: "no answer", failed: "unreadable" }[kind] || "answered",
    latitude: spot.latitude ?? "", longitude: spot.longitude ?? "", uncertainty_m: spot.ellipse ? spot.ellipse.major : "",
    confidence: kind === "failed" ? "" : answer.confidence, calibrated: kind === "failed" ? "" : answer.calibrated,
    reason: kind === "failed" ? answer.problem.detail : answer.reason, east: spot.east ?? "", north: spot.north ?? "", zone: spot.zone ?? "",
  };
}

// A text that a spreadsheet would take for a formula is kept one by a quote.
function csv(lines) {
  const cell = (value) => {
    const plain = typeof value === "string" && /^[=+@\t-]/.test(value) ? `'${value}` : String(value);
    return /[",\n\r]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  };
  const rows = lines.map(fields);
  return [Object.keys(rows[0] || { photo: "" }), ...rows.map(Object.values)].map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

function geojson(lines) {
  const features = lines.map((line) => {
    const spot = given(line);
    return { type: "Feature", properties: fields(line), geometry: spot && spot.latitude !== null ? { type: "Point", coordinates: [spot.longitude, spot.latitude] } : null };
  });
  return JSON.stringify({ type: "FeatureCollection", features });
}

function save(file, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  node("a", { href: url, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

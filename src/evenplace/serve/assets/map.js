// A map of cells, and of an answer on it.  Metres; degrees with tiles, and where there are several zones.

import { cellAt, paintLayer, projectCells } from "./cells.js";
import { apart, node } from "./dom.js";

const METRES = 111320; // of one degree of latitude
const ROOM = 30; // pixels a pin needs
const SEEN = 4; // pixels below which a chosen cell is drawn nearer
const NEAR = 100; // metres from a sure answer that its map shows at first

export class CellMap {
  constructor(element, cells, { tiles = "", tiles_credit = "", zones = [], faint = false, label }) {
    this.cells = cells;
    this.globe = Boolean(tiles) || (zones.length > 1 && cells.degrees.length > 0);
    const crs = this.globe ? L.CRS.EPSG3857 : L.CRS.Simple;
    this.map = L.map(element, {
      crs, minZoom: this.globe ? 0 : -10, maxZoom: this.globe ? 20 : 5, zoomSnap: 0.25, wheelPxPerZoomLevel: 90,
      scrollWheelZoom: false, attributionControl: false,
    });
    element.setAttribute("aria-label", label);
    this.map.on("focus click", () => this.map.scrollWheelZoom.enable()); // until then a wheel scrolls the page
    this.map.on("blur", () => this.map.scrollWheelZoom.disable());
    if (tiles) L.tileLayer(tiles, { maxZoom: 20 }).addTo(this.map);
    if (tiles_credit) this.credit(tiles_credit);
    this.shape = projectCells(cells, crs, this.globe);
    this.options = { by: "tier", faint, chosen: -1 };
    this.paint = paintLayer(cells, this.shape, this.options);
    this.fitAll();
    this.paint.addTo(this.map);
    L.control.scale({ imperial: false }).addTo(this.map);
    this.over = L.layerGroup().addTo(this.map);
    this.pins = [];
    this.map.on("zoomend", () => this.spread());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint.redraw());
    new ResizeObserver(() => this.map.invalidateSize()).observe(element);
  }

  // Whose tiles these are, as text: what was configured is never HTML.
  credit(text) {
    const control = L.control({ position: "bottomright" });
    control.onAdd = () => node("div", { class: "credit" }, text);
    control.addTo(this.map);
  }

  change(options) {
    Object.assign(this.options, options);
    this.paint.redraw();
  }

  // At once: while a zoom is animated Leaflet drops whatever else the map is asked to show.
  fitAll() {
    const { box, count } = this.shape, crs = this.map.options.crs;
    if (!count) return this.map.setView([0, 0], 0);
    const edge = (side, pick) => {
      let found = box[side];
      for (let i = 1; i < count; i++) found = pick(found, box[4 * i + side]);
      return found;
    };
    const corner = (x, y) => crs.pointToLatLng(L.point(x, y), 0);
    this.map.invalidateSize({ pan: false });
    this.map.fitBounds([corner(edge(0, Math.min), edge(1, Math.min)), corner(edge(2, Math.max), edge(3, Math.max))], { padding: [10, 10], animate: false });
  }

  at(spot) {
    if (this.globe) return L.latLng(spot.latitude, spot.longitude);
    return L.latLng(spot.north - this.cells.origin[1], spot.east - this.cells.origin[0]);
  }

  shifted(spot, east, north) {
    const at = this.at(spot);
    if (!this.globe) return L.latLng(at.lat + north, at.lng + east);
    return L.latLng(at.lat + north / METRES, at.lng + east / (METRES * Math.cos((at.lat * Math.PI) / 180)));
  }

  onCell(tell) {
    this.map.on("click", (event) => {
      const row = cellAt(this.cells, this.shape, this.map.options.crs.latLngToPoint(event.latlng, 0));
      if (row >= 0) tell(row);
    });
  }

  choose(place) {
    const row = this.cells.places.indexOf(place), { box } = this.shape;
    this.change({ chosen: row });
    if (row < 0) return;
    const middle = L.point((box[4 * row] + box[4 * row + 2]) / 2, (box[4 * row + 1] + box[4 * row + 3]) / 2);
    const at = this.map.options.crs.pointToLatLng(middle, 0);
    const wide = (box[4 * row + 2] - box[4 * row]) * 2 ** this.map.getZoom();
    if (wide < SEEN) this.map.setView(at, this.map.getZoom() + Math.log2((4 * SEEN) / wide), { animate: false });
    else if (!this.map.getBounds().pad(-0.05).contains(at)) this.map.panTo(at);
  }

  // Show where the answer is: position and ellipse if there is one, and a number for each hit.
  show(answer, mood, onHit) {
    this.clear();
    const around = [];
    if (!answer.abstains && answer.position) {
      const outline = this.ellipse(answer.position);
      around.push(...outline);
      L.polygon(outline, { className: `ellipse ${mood}`, interactive: false, smoothFactor: 0 }).addTo(this.over);
      L.marker(this.at(answer.position), { icon: dot(`here ${mood}`, ""), keyboard: false, interactive: false, zIndexOffset: 500 }).addTo(this.over);
    }
    this.pins = answer.hits.map((hit, number) => {
      const pin = L.marker(this.at(hit), {
        icon: dot(`pin ${hit.tier}`, number + 1), title: `photo ${number + 1}, place ${hit.place}, ${hit.tier}`,
        alt: `photo ${number + 1} on the map`, riseOnHover: true, zIndexOffset: -number,
      }).addTo(this.over);
      pin.on("mouseover", () => onHit(number, true)).on("mouseout", () => onHit(number, false)).on("click", () => onHit(number, true, true));
      pin.spot = this.at(hit);
      pin.lead = L.polyline([pin.spot, pin.spot], { className: "lead-line", interactive: false }).addTo(this.over);
      pin.getElement().addEventListener("focus", () => onHit(number, true));
      pin.getElement().addEventListener("blur", () => onHit(number, false));
      const away = answer.position ? apart(hit, answer.position) : 0;
      if (mood !== "sure" || away < NEAR) around.push(pin.spot);
      return pin;
    });
    // A sure answer is shown close by; an unsure one with everything else it might be.
    if (around.length) this.map.fitBounds(L.latLngBounds(around), { padding: [40, 40], maxZoom: this.globe ? 18 : 1, animate: false });
    this.centre = !answer.abstains && answer.position ? this.at(answer.position) : null;
    this.spread();
  }

  // Pins that would hide one another, or the answer, step aside on a line to where they belong.
  spread() {
    const taken = this.centre ? [this.map.latLngToLayerPoint(this.centre)] : [];
    for (const pin of this.pins) {
      const from = this.map.latLngToLayerPoint(pin.spot);
      let to = from;
      for (let step = 0; step < 40 && taken.some((other) => other.distanceTo(to) < ROOM); step++) {
        const angle = -Math.PI / 2 + (step % 8) * (Math.PI / 4), reach = 42 + 30 * Math.floor(step / 8);
        to = from.add(L.point(reach * Math.cos(angle), reach * Math.sin(angle)));
      }
      taken.push(to);
      const moved = this.map.layerPointToLatLng(to);
      pin.setLatLng(moved);
      pin.lead.setLatLngs([pin.spot, moved]);
    }
  }

  // One of many answers.
  dot(spot, kind, label, onDot) {
    const made = L.marker(this.at(spot), { icon: dot(`spot ${kind}`, ""), title: label, alt: label }).addTo(this.over);
    made.on("click", onDot);
    made.getElement().addEventListener("keydown", (event) => { if (event.key === "Enter") onDot(); });
  }

  look(spot) {
    const at = this.at(spot);
    if (!this.map.getBounds().pad(-0.1).contains(at)) this.map.panTo(at);
  }

  light(number, on) {
    const pin = this.pins[number];
    if (!pin) return;
    pin.getElement().classList.toggle("lit", on);
    pin.setZIndexOffset(on ? 1000 : -number);
    if (on && !this.map.getBounds().contains(pin.getLatLng())) this.map.panTo(pin.getLatLng());
  }

  clear() {
    this.over.clearLayers();
    this.pins = [];
    this.centre = null;
  }

  ellipse(position) {
    const { major, minor, bearing } = position.ellipse, turn = (bearing * Math.PI) / 180;
    return Array.from({ length: 72 }, (_, step) => {
      const angle = (2 * Math.PI * step) / 72, along = major * Math.cos(angle), across = minor * Math.sin(angle);
      return this.shifted(position, along * Math.sin(turn) + across * Math.cos(turn), along * Math.cos(turn) - across * Math.sin(turn));
    });
  }
}

const dot = (kind, text) => L.divIcon({ className: kind, html: node("b", {}, String(text)), iconSize: null });

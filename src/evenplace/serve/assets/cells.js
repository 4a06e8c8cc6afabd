// The cells of the map: flat arrays, painted onto canvas tiles so that a city stays smooth.

const decode = (text, Type) => new Type(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const TIERS = ["head", "middle", "tail"];
export const MEANING = { head: "head, photographed most", middle: "middle", tail: "tail, photographed least" };

export function readCells(data) {
  const photos = decode(data.photos, Uint32Array);
  return {
    index: data.index,
    origin: data.origin,
    sides: data.sides,
    places: decode(data.places, Uint32Array),
    corners: decode(data.corners, Float32Array),
    degrees: decode(data.degrees, Float64Array),
    tiers: decode(data.tiers, Uint8Array),
    photos,
    most: photos.reduce((most, n) => Math.max(most, n), 1),
  };
}

// Corners as pixels of zoom 0, where every zoom is a power of two away, and each cell's box.
export function projectCells(cells, crs, globe) {
  const count = cells.places.length, points = new Float64Array(cells.corners.length), box = new Float64Array(4 * count);
  for (let i = 0; i < points.length; i += 2) {
    const at = globe ? L.latLng(cells.degrees[i], cells.degrees[i + 1]) : L.latLng(cells.corners[i + 1], cells.corners[i]);
    const point = crs.latLngToPoint(at, 0);
    points[i] = point.x;
    points[i + 1] = point.y;
  }
  for (let i = 0; i < count; i++) {
    let [l, t, r, b] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let v = 0; v < cells.sides; v++) {
      const x = points[2 * (i * cells.sides + v)], y = points[2 * (i * cells.sides + v) + 1];
      l = Math.min(l, x); r = Math.max(r, x); t = Math.min(t, y); b = Math.max(b, y);
    }
    box.set([l, t, r, b], 4 * i);
  }
  return { points, box, count };
}

// options: by ("tier" or "density"), faint (under an answer), chosen (row of a cell)
export function paintLayer(cells, shape, options) {
  return new (L.GridLayer.extend({
    createTile(at) {
      const tile = document.createElement("canvas"), size = this.getTileSize().x;
      const ratio = Math.min(window.devicePixelRatio || 1, 2), scale = 2 ** at.z;
      tile.width = tile.height = size * ratio;
      const pen = tile.getContext("2d");
      pen.scale(ratio, ratio);
      const inks = TIERS.map((tier) => colour(`--${tier}`)), rim = colour("--card"), ink = colour("--ink");
      const ramp = [mixable(colour("--low")), mixable(colour("--high"))];
      for (let i = 0; i < shape.count; i++) {
        const [l, t, r, b] = [0, 1, 2, 3].map((s) => shape.box[4 * i + s] * scale - (s % 2 ? at.y : at.x) * size);
        if (r < -2 || l > size + 2 || b < -2 || t > size + 2) continue;
        const dense = Math.log(cells.photos[i] + 1) / Math.log(cells.most + 1);
        pen.fillStyle = options.by === "density" ? mix(ramp, dense) : inks[cells.tiers[i]];
        pen.globalAlpha = options.faint ? 0.42 : 0.85;
        if (r - l < 4) { pen.fillRect(l, t, Math.max(r - l, 2.5), Math.max(b - t, 2.5)); continue; }
        trace(pen, cells, shape, i, scale, at, size);
        pen.fill();
        pen.globalAlpha = 1;
        pen.strokeStyle = options.chosen === i ? ink : rim;
        pen.lineWidth = options.chosen === i ? 3 : Math.min(1.2, (r - l) / 12);
        pen.stroke();
      }
      return tile;
    },
  }))({ minZoom: -10, maxZoom: 22, keepBuffer: 3 });
}

function trace(pen, cells, shape, i, scale, at, size) {
  pen.beginPath();
  for (let v = 0; v < cells.sides; v++) {
    const p = 2 * (i * cells.sides + v);
    pen.lineTo(shape.points[p] * scale - at.x * size, shape.points[p + 1] * scale - at.y * size);
  }
  pen.closePath();
}

export function cellAt(cells, shape, point) {
  for (let i = 0; i < shape.count; i++) {
    let odd = false;
    for (let v = 0, u = cells.sides - 1; v < cells.sides; u = v++) {
      const a = 2 * (i * cells.sides + v), b = 2 * (i * cells.sides + u), c = shape.points;
      if (c[a + 1] > point.y !== c[b + 1] > point.y &&
          point.x < ((c[b] - c[a]) * (point.y - c[a + 1])) / (c[b + 1] - c[a + 1]) + c[a]) odd = !odd;
    }
    if (odd) return i;
  }
  return -1;
}

const mixable = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const mix = ([low, high], share) => `rgb(${low.map((part, i) => Math.round(part + share * (high[i] - part))).join()})`;

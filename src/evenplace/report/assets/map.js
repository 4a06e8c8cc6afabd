// Maps of cells in metres, offline.  One canvas tile draws every cell that touches it.
"use strict";
(() => {
  const decode = (text, Type) =>
    new Type(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const escape = (text) =>
    String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const linked = {};

  const readCells = (data) => {
    const corners = decode(data.corners, Float32Array), sides = data.sides;
    const count = sides ? corners.length / (2 * sides) : 0;
    const box = new Float32Array(4 * count);
    for (let i = 0; i < count; i++) {
      let [w, s, e, n] = [Infinity, Infinity, -Infinity, -Infinity];
      for (let v = 0; v < sides; v++) {
        const x = corners[2 * (i * sides + v)], y = corners[2 * (i * sides + v) + 1];
        w = Math.min(w, x); e = Math.max(e, x); s = Math.min(s, y); n = Math.max(n, y);
      }
      box.set([w, s, e, n], 4 * i);
    }
    return { corners, sides, count, box, kinds: decode(data.kinds, Uint8Array) };
  };

  // Metres to pixels at a zoom: linear in both systems of coordinates, plain and under base tiles.
  const frame = (crs, zoom) => {
    const origin = crs.latLngToPoint(L.latLng(0, 0), zoom);
    const step = (north, east) => crs.latLngToPoint(L.latLng(north, east), zoom).subtract(origin).divideBy(1000);
    const e = step(0, 1000), n = step(1000, 0);
    return {
      scale: Math.hypot(e.x, e.y),
      x: (east, north) => origin.x + e.x * east + n.x * north,
      y: (east, north) => origin.y + e.y * east + n.y * north,
    };
  };

  // The web's Mercator under coordinates that stay metres: `affine` takes these to Mercator's.
  const mercator = ([x0, xe, xn, y0, ye, yn]) => {
    const area = xe * yn - xn * ye;
    return L.extend({}, L.CRS.EPSG3857, {
      projection: {
        project: ({ lat: n, lng: e }) => L.point(x0 + xe * e + xn * n, y0 + ye * e + yn * n),
        unproject: ({ x, y }) => L.latLng((xe * (y - y0) - ye * (x - x0)) / area, (yn * (x - x0) - xn * (y - y0)) / area),
        bounds: L.Projection.SphericalMercator.bounds,
      },
      wrapLng: null, wrapLat: null,
      distance: (a, b) => Math.hypot(a.lng - b.lng, a.lat - b.lat),
    });
  };

  const tilesOf = (cells, dots, data, hidden, crs) => L.GridLayer.extend({
    createTile(at) {
      const tile = document.createElement("canvas"), size = this.getTileSize().x;
      const ratio = Math.min(window.devicePixelRatio || 1, 2);
      tile.width = tile.height = size * ratio;
      const pen = tile.getContext("2d"), pixels = frame(crs, at.z), scale = pixels.scale;
      pen.scale(ratio, ratio);
      const px = (x, y) => pixels.x(x, y) - at.x * size, py = (x, y) => pixels.y(x, y) - at.y * size;
      const inks = data.keys.map((key) => colour(key[1])), rim = colour("--card");
      for (let i = 0; i < cells.count; i++) {
        const kind = cells.kinds[i];
        if (hidden.has(kind)) continue;
        const [w, s, e, n] = cells.box.subarray(4 * i, 4 * i + 4);
        const l = px(w, s), r = px(e, n), t = py(e, n), b = py(w, s);
        if (r < -2 || l > size + 2 || b < -2 || t > size + 2) continue;
        pen.fillStyle = inks[kind];
        pen.globalAlpha = 0.82;
        if (r - l < 4) { pen.fillRect(l, t, Math.max(r - l, 2.5), Math.max(b - t, 2.5)); continue; }
        pen.beginPath();
        for (let v = 0; v < cells.sides; v++) {
          const at = 2 * (i * cells.sides + v);
          const x = cells.corners[at], y = cells.corners[at + 1];
          pen.lineTo(px(x, y), py(x, y));
        }
        pen.closePath(); pen.fill();
        pen.globalAlpha = 1; pen.strokeStyle = rim; pen.lineWidth = Math.min(1.2, (r - l) / 12); pen.stroke();
      }
      if (dots && data.points.clusters) drawClusters(pen, clustersOf(dots, crs, at.z), data, at, size);
      else drawDots(pen, dots, data, hidden, px, py, size, scale);
      return tile;
    },
  });

  // Dots of one square of pixels are one cluster: where its dots are, how many, and one of them.
  const SQUARE = 44;
  const clustersOf = (dots, crs, zoom) => {
    const known = (dots.clusters = dots.clusters || new Map());
    if (known.has(zoom)) return known.get(zoom);
    const pixels = frame(crs, zoom), found = new Map();
    for (let i = 0; i < dots.at.length / 2; i++) {
      const x = pixels.x(dots.at[2 * i], dots.at[2 * i + 1]), y = pixels.y(dots.at[2 * i], dots.at[2 * i + 1]);
      const key = `${Math.floor(x / SQUARE)} ${Math.floor(y / SQUARE)}`;
      if (!found.has(key)) found.set(key, { x: 0, y: 0, dots: [], kinds: [] });
      const one = found.get(key), n = one.dots.push(i);
      one.x += (x - one.x) / n; one.y += (y - one.y) / n;
      one.kinds[dots.kinds[i]] = (one.kinds[dots.kinds[i]] || 0) + 1;
    }
    known.set(zoom, [...found.values()]);
    return known.get(zoom);
  };

  const sizeOf = (cluster, radius) => cluster.dots.length === 1 ? radius : Math.min(21, 9 + 3 * Math.log2(cluster.dots.length));
  const drawClusters = (pen, clusters, data, at, size) => {
    const inks = data.points.keys.map((key) => colour(key[1])), rim = colour("--card");
    for (const one of clusters) {
      const x = one.x - at.x * size, y = one.y - at.y * size, radius = sizeOf(one, data.points.radius);
      if (x < -radius || y < -radius || x > size + radius || y > size + radius) continue;
      let turn = -Math.PI / 2;
      inks.forEach((ink, kind) => {  // a pie of how sure its answers are
        const end = turn + (2 * Math.PI * (one.kinds[kind] || 0)) / one.dots.length;
        if (end === turn) return;
        pen.beginPath(); pen.moveTo(x, y); pen.arc(x, y, radius, turn, end); pen.closePath();
        pen.fillStyle = ink; pen.fill();
        turn = end;
      });
      pen.beginPath(); pen.arc(x, y, radius, 0, 7); pen.strokeStyle = rim; pen.lineWidth = 2; pen.stroke();
      if (one.dots.length === 1) continue;
      pen.beginPath(); pen.arc(x, y, radius * 0.68, 0, 7); pen.fillStyle = rim; pen.fill();
      pen.fillStyle = colour("--ink"); pen.font = "600 11px system-ui, sans-serif";
      pen.textAlign = "center"; pen.textBaseline = "middle"; pen.fillText(one.dots.length, x, y);
    }
  };

  // A cluster opens: nearer, until its dots part; those of one spot are listed one after another.
  const clickedCluster = (data, dots, map, event, show) => {
    const zoom = map.getZoom(), spot = map.options.crs.latLngToPoint(event.latlng, zoom);
    const one = clustersOf(dots, map.options.crs, zoom).find((cluster) =>
      Math.hypot(cluster.x - spot.x, cluster.y - spot.y) <= Math.max(12, sizeOf(cluster, data.points.radius)));
    if (!one) return false;
    const corners = one.dots.map((i) => [dots.at[2 * i + 1], dots.at[2 * i]]), box = L.latLngBounds(corners);
    if (one.dots.length > 1 && zoom < map.getMaxZoom() && !box.getNorthEast().equals(box.getSouthWest()))
      map.fitBounds(box, { padding: [60, 60], maxZoom: Math.min(map.getMaxZoom(), zoom + 3) });
    else show(one.dots.slice(0, 20).map((i) => data.points.texts[i]));
    return true;
  };

  const drawDots = (pen, dots, data, hidden, px, py, size, scale) => {
    if (!dots || (!dots.kinds && scale < 0.35)) return;
    const inks = dots.kinds ? data.points.keys.map((key) => colour(key[1])) : [colour("--ink")];
    const radius = data.points.radius * (dots.kinds ? 1 : Math.min(1.6, 0.5 + scale / 2)), rim = colour("--card");
    pen.globalAlpha = dots.kinds ? 1 : 0.4;
    for (let i = 0; i < dots.at.length / 2; i++) {
      if (data.points.groups && hidden.has(data.points.groups[i])) continue;
      const east = dots.at[2 * i], north = dots.at[2 * i + 1], x = px(east, north), y = py(east, north);
      if (x < -9 || y < -9 || x > size + 9 || y > size + 9) continue;
      pen.beginPath(); pen.arc(x, y, radius, 0, 7);
      pen.fillStyle = inks[dots.kinds ? dots.kinds[i] : 0]; pen.fill();
      if (dots.kinds) { pen.strokeStyle = rim; pen.lineWidth = 1; pen.stroke(); }
    }
  };

  const inside = (cells, i, x, y) => {
    let odd = false;
    for (let v = 0, u = cells.sides - 1; v < cells.sides; u = v++) {
      const a = 2 * (i * cells.sides + v), b = 2 * (i * cells.sides + u), c = cells.corners;
      if (c[a + 1] > y !== c[b + 1] > y &&
          x < ((c[b] - c[a]) * (y - c[a + 1])) / (c[b + 1] - c[a + 1]) + c[a]) odd = !odd;
    }
    return odd;
  };

  const tell = (data, cells, i) => {
    const facts = Object.entries(data.facts).map(([name, values]) =>
      `${escape(name)} <b>${escape(values[i])}</b>`).join("<br>");
    const images = (data.pictures[i] || []).map((source) =>
      `<img loading="lazy" alt="" src="${escape(source)}" onerror="this.remove()">`).join("");
    const key = data.keys[cells.kinds[i]];
    return `<p><span class="mark" style="background:var(${key[1]})"></span><b>${escape(key[0])}</b></p>` +
      `<p>${facts}</p><div class="strip">${images}</div>`;
  };

  // Parts of the page itself, shown again.
  const blocksOf = (ids) => {
    const all = document.createElement("div");
    ids.forEach((id) => {
      const copy = document.createElement("div");
      copy.className = "told";
      copy.innerHTML = document.querySelector(id).innerHTML;
      all.append(copy);
    });
    return all;
  };

  const clicked = (data, cells, dots, hidden, map, event) => {
    const { lng: x, lat: y } = event.latlng, near = 8 / frame(map.options.crs, map.getZoom()).scale;
    const show = (text) => L.popup({ maxWidth: 300, minWidth: 200, maxHeight: 320 }).setLatLng(event.latlng).setContent(text).openOn(map);
    if (dots && data.points.clusters && clickedCluster(data, dots, map, event, (texts) => show(blocksOf(texts)))) return;
    if (dots && dots.kinds && data.points.texts.length) {
      for (let i = 0; i < dots.at.length / 2; i++)
        if (!(data.points.groups && hidden.has(data.points.groups[i])) && Math.hypot(dots.at[2 * i] - x, dots.at[2 * i + 1] - y) < near) return show(data.points.texts[i]);
    }
    for (let i = cells.count - 1; i >= 0; i--)
      if (!hidden.has(cells.kinds[i]) && inside(cells, i, x, y)) return show(tell(data, cells, i));
  };

  const addKeys = (holder, data, cells, hidden, layer) => {
    const counts = new Array(data.keys.length).fill(0);
    cells.kinds.forEach((kind) => counts[kind]++);
    data.keys.forEach(([name, variable], kind) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.innerHTML = `<span class="mark" style="background:var(${variable})"></span>${escape(name)} ${counts[kind].toLocaleString("en")}`;
      button.onclick = () => {
        hidden.has(kind) ? hidden.delete(kind) : hidden.add(kind);
        button.setAttribute("aria-pressed", String(!hidden.has(kind)));
        layer.redraw();
      };
      holder.append(button);
    });
  };

  // Where nearly all cells are: a few far ones should not make the rest too small to see.
  const extent = (cells) => {
    if (!cells.count) return [[0, 0], [1, 1]];
    const side = (at) => Float32Array.from({ length: cells.count }, (_, i) => cells.box[4 * i + at]).sort();
    const [w, s, e, n] = [0, 1, 2, 3].map(side), last = cells.count - 1, few = Math.floor(cells.count * 0.02);
    const most = (e[last - few] - w[few]) * (n[last - few] - s[few]), all = (e[last] - w[0]) * (n[last] - s[0]);
    return all < 2 * most ? [[s[0], w[0]], [n[last], e[last]]] : [[s[few], w[few]], [n[last - few], e[last - few]]];
  };

  const follow = (name, map) => {
    const others = (linked[name] = linked[name] || []);
    if (others.length) map.setView(others[0].getCenter(), others[0].getZoom(), { animate: false });
    others.push(map);
    map.on("move", () => {
      if (map.led) return;
      others.filter((other) => other !== map).forEach((other) => {
        other.led = true;
        other.setView(map.getCenter(), map.getZoom(), { animate: false });
        other.led = false;
      });
    });
  };

  const start = (element) => {
    const data = JSON.parse(element.querySelector("script").textContent);
    const cells = readCells(data), hidden = new Set();
    const dots = data.points && {
      at: decode(data.points.at, Float32Array),
      kinds: data.points.kinds && decode(data.points.kinds, Uint8Array),
    };
    const crs = data.tiles ? mercator(data.tiles.affine) : L.CRS.Simple;
    const zooms = data.tiles ? { minZoom: 3, maxZoom: 22 } : { minZoom: -10, maxZoom: 6 };
    const map = L.map(element.querySelector(".view"), {
      crs, ...zooms, zoomSnap: 0.25, zoomDelta: 1, wheelPxPerZoomLevel: 90,
      scrollWheelZoom: false, dragging: !L.Browser.mobile, attributionControl: Boolean(data.tiles),
    });
    map.on("focus click", () => map.scrollWheelZoom.enable());  // until then a wheel scrolls the page
    map.on("blur", () => map.scrollWheelZoom.disable());
    if (data.tiles) L.tileLayer(data.tiles.url, { ...zooms, maxNativeZoom: 19, attribution: escape(new URL(data.tiles.url).host) }).addTo(map);
    const layer = new (tilesOf(cells, dots, data, hidden, crs))({ ...zooms, keepBuffer: 3 });
    map.fitBounds(extent(cells), { padding: [12, 12] });
    layer.addTo(map);
    L.control.scale({ imperial: false }).addTo(map);
    map.on("click", (event) => clicked(data, cells, dots, hidden, map, event));
    addKeys(element.querySelector(".keys"), data, cells, hidden, layer);
    document.addEventListener("tier", ({ detail }) => {
      data.keys.forEach(([name], kind) => detail === "all" || detail === name ? hidden.delete(kind) : hidden.add(kind));
      [...element.querySelectorAll(".keys button")].forEach((button, kind) =>
        button.setAttribute("aria-pressed", String(!hidden.has(kind))));
      layer.redraw();
    });
    if (data.link) follow(data.link, map);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => layer.redraw());
    element.map = map;
  };
  document.querySelectorAll(".ep-map").forEach(start);
})();

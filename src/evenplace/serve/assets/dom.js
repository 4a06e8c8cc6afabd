// Elements without strings of HTML: what a file or a service says is always text.

export function node(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "width%") made.style.width = `${value}%`;
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// A picture, or a word about it where its file has gone.
export function picture(source, alt) {
  const image = node("img", { src: source, alt, loading: "lazy", onerror: () => image.replaceWith(node("span", { class: "gone" }, "The file of this photo is not where it was.")) });
  return image;
}

export const byId = (id) => document.getElementById(id);
export const mark = (tier) => node("span", { class: `mark ${tier}`, "aria-hidden": "true" });
export const plural = (count, one) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;

// Metres between two spots: over the globe, since metres of two zones do not compare.
export function apart(one, other) {
  if (one.latitude === null || other.latitude === null) return Math.hypot(one.east - other.east, one.north - other.north);
  return L.latLng(one.latitude, one.longitude).distanceTo([other.latitude, other.longitude]);
}

export const far = (metres) => (metres < 1e4 ? `${metres.toFixed(0)} m` : `${Math.round(metres / 1000).toLocaleString("en")} km`);

// Ways to bring a photo: drop it, paste it, choose it, take it.

import { byId } from "./dom.js";

const PLAIN = ["image/jpeg", "image/png", "image/webp"];
const LARGE = 4 << 20, SIDE = 2048;

export function listen(onPhoto, onProblem, onMany) {
  const take = (file) => prepare(file).then(onPhoto, onProblem);
  const first = (files) => [...(files || [])].find((file) => file.type.startsWith("image/") || !file.type) || (files || [])[0];
  dropping((transfer) => {
    const files = [...transfer.files];
    if (files.length && !onMany(transfer)) take(first(files));
  });
  document.addEventListener("paste", (event) => {
    const file = first(event.clipboardData && event.clipboardData.files);
    if (file) take(file);
  });
  byId("choose").onclick = () => byId("file").click();
  for (const id of ["file", "shot"])
    byId(id).onchange = (event) => { if (event.target.files.length) take(event.target.files[0]); event.target.value = ""; };
  byId("camera").onclick = () => shoot(take);
}

function dropping(onFiles) {
  let depth = 0;
  const over = (on) => ["drop", "drop-many"].forEach((id) => byId(id).classList.toggle("over", on));
  const carries = (event) => [...event.dataTransfer.types].includes("Files");
  addEventListener("dragenter", (event) => { if (carries(event)) { depth++; over(true); } });
  addEventListener("dragleave", (event) => { if (carries(event) && --depth <= 0) { depth = 0; over(false); } });
  addEventListener("dragover", (event) => { if (carries(event)) event.preventDefault(); });
  addEventListener("drop", (event) => {
    if (!carries(event)) return;
    event.preventDefault();
    depth = 0;
    over(false);
    onFiles(event.dataTransfer);
  });
}

// The files of what was dropped, folders opened to their depths; each knows its path.
export async function filesOf(transfer) {
  const found = [], plain = [...transfer.files];
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry && item.webkitGetAsEntry()).filter(Boolean);
  const walk = async (entry) => {
    if (entry.isFile) {
      const file = await new Promise((done, failed) => entry.file(done, failed));
      found.push(Object.assign(file, { path: entry.fullPath.replace(/^\//, "") }));
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((done, failed) => reader.readEntries(done, failed));
      if (!some.length) return;
      for (const one of some) if (!one.name.startsWith(".")) await walk(one);
    }
  };
  for (const entry of entries) await walk(entry);
  return entries.length ? found : plain;
}

// A photo the service takes as it is stays as it is; others are redrawn, if the browser can.
export async function prepare(file) {
  if (PLAIN.includes(file.type) && file.size <= LARGE) return file;
  let picture;
  try {
    picture = await createImageBitmap(file, { imageOrientation: "from-image" });
  } catch {
    return file; // the service will say what is wrong with it
  }
  const shrink = Math.min(1, SIDE / Math.max(picture.width, picture.height));
  return drawn(picture, picture.width * shrink, picture.height * shrink);
}

function drawn(source, width, height) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(width));
  canvas.height = Math.max(1, Math.round(height));
  canvas.getContext("2d").drawImage(source, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.92));
}

// A live picture where the browser gives one, else the phone's own camera.
async function shoot(take) {
  const live = navigator.mediaDevices && !matchMedia("(pointer: coarse)").matches;
  let stream = null;
  try {
    stream = live && (await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment", width: 1280 } }));
  } catch { /* no camera, or not allowed: the file chooser will do */ }
  if (!stream) return byId("shot").click();
  const dialog = byId("viewfinder"), video = byId("video");
  video.srcObject = stream;
  const close = () => dialog.close();
  dialog.onclose = () => stream.getTracks().forEach((track) => track.stop());
  byId("cancel").onclick = close;
  byId("take").onclick = async () => { const shot = await drawn(video, video.videoWidth, video.videoHeight); close(); take(shot); };
  dialog.showModal();
}

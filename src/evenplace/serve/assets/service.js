// What the service says, and how it is asked.  A refusal carries its reason and its remedy.

export class Refused extends Error {
  constructor(status, detail, remedy, seconds = 1) {
    super(detail);
    Object.assign(this, { status, remedy, seconds });
  }
}

export async function ask(path, options = {}) {
  const response = await askFor(path, options);
  return response.json();
}

// A database photo as a file to ask with.
export async function askPhoto(id) {
  const response = await askFor(`/photos/${id}?side=1024`);
  return response.blob();
}

async function askFor(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Refused(0, "the service does not answer", "check that it is still running, then try again");
  }
  if (response.status === 401) {
    await signIn();
    return askFor(path, options);
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new Refused(response.status, problem.detail || `the service said ${response.status}`, problem.remedy || "try again", Number(response.headers.get("retry-after")) || 1);
}

export const locate = async (photo, k = 5) => (await locateAll([photo], k, k))[0];

// matches: of how many hits the points that match are told.
export async function locateAll(photos, k = 5, matches = 0) {
  const form = new FormData();
  for (const photo of photos) form.append("photo", photo, "photo");
  for (let tries = 0; ; tries++) {
    try {
      return (await ask(`/locate?k=${k}&matches=${matches}`, { method: "POST", body: form })).answers;
    } catch (refusal) {
      if (refusal.status !== 503 || tries === 2) throw refusal;
      await new Promise((wake) => setTimeout(wake, 1000 * Math.min(refusal.seconds, 10)));
    }
  }
}

let signing = null;

function signIn() {
  signing = signing || new Promise((done) => {
    const dialog = document.getElementById("signin"), form = document.getElementById("signin-form");
    form.onsubmit = async (event) => {
      event.preventDefault();
      const token = document.getElementById("token").value;
      const response = await fetch("/session", {
        method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ token }),
      });
      if (!response.ok) {
        document.getElementById("signin-error").textContent = "That is not the token.";
        return;
      }
      dialog.close();
      signing = null;
      done();
    };
    dialog.oncancel = (event) => event.preventDefault();
    dialog.showModal();
  });
  return signing;
}

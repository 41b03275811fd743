// The token of a run. An address admits one window, once; the token stays in the window (sessionStorage) and is sent in a header.
// There is no cookie, because a browser sends cookies of 127.0.0.1 to every port.

const KEPT = "llvs-token";
/** Milliseconds that other windows have to answer. */
const PATIENCE = 500;
const PAUSE = 3000;
const windows = new BroadcastChannel(KEPT);
let token = sessionStorage.getItem(KEPT);

function keep(found) {
  token = found;
  if (found) sessionStorage.setItem(KEPT, found);
  else sessionStorage.removeItem(KEPT);
}

// Windows of one origin, that is of this port, share the token, so that links can be opened in another tab.
windows.addEventListener("message", ({ data }) => {
  if (data?.wanted && token) windows.postMessage({ token });
  // A window that has just entered sends its token. Windows whose token is of an earlier run use it.
  else if (data?.token && !token) keep(data.token);
});

function ask() {
  return new Promise((done) => {
    const timer = setTimeout(() => end(null), PATIENCE);
    const hear = ({ data }) => { if (data?.token) end(data.token); };
    const end = (found) => {
      clearTimeout(timer);
      windows.removeEventListener("message", hear);
      done(found);
    };
    windows.addEventListener("message", hear);
    windows.postMessage({ wanted: true });
  });
}

/** Enters with the key in the address, and removes it from there. Without a key, uses the token of this window or of another one. */
export async function enter() {
  const key = /^#key=([\w-]+)$/.exec(location.hash)?.[1];
  if (key) {
    history.replaceState(null, "", location.pathname);
    const answer = await fetch("/enter", { method: "POST", headers: { "x-llvs-key": key } });
    const text = await answer.text();
    if (answer.ok) {
      keep(text);
      windows.postMessage({ token });
    }
    else if (!token) throw new Error(text);
  }
  if (!token) keep(await ask());
}

/** `fetch` with the token. If the server refuses the token, because it is of an earlier run, the window forgets it. */
export async function fetchWithToken(address, given = {}) {
  const answer = await fetch(address, { ...given, headers: { ...given.headers, ...(token ? { "x-llvs-token": token } : {}) } });
  if (answer.status === 401) keep(null);
  return answer;
}

/** Calls `heard` with the data of each event of a stream, and `lost` whenever the stream ends; then requests it again.

lost(isOtherRun): whether the program was restarted. Then another window has to enter first, and this one uses its token. */
export async function hear(address, heard, lost) {
  for (;;) {
    const answer = await fetchWithToken(address).catch(() => null);
    if (answer?.ok) await read(answer.body, heard).catch(() => null);
    const isOtherRun = answer?.status === 401;
    lost(isOtherRun);
    do {
      await new Promise((done) => { setTimeout(done, PAUSE); });
      if (!token) keep(await ask());
    } while (isOtherRun && !token);
  }
}

async function read(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (text + value).split("\n\n");
    text = events.pop();
    for (const event of events) {
      const data = /^data: (.*)$/m.exec(event)?.[1];
      if (data !== undefined) heard(JSON.parse(data));
    }
  }
}

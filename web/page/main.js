// The page: what octweb says, and what is asked of it. Keys are octview's (its table of actions);
// what they show is this browser's own, what they ask of octd goes to octweb.
import {Calipers} from "./measure.js";
import {COLOUR, Contrast, PALETTES, Panel, parse} from "./picture.js";

const $ = (id) => document.getElementById(id);
const contrast = new Contrast();
const panels = ["bscan", "enface", "second", "slice"].map((id) => new Panel($(id), contrast));
const [bscan] = panels;
const calipers = new Calipers(bscan, (text) => { $("lengths").textContent = text; });
let socket = null, state = null, hello = null, frozen = false, arrangement = 1, heard = 0;
// The last pictures that were drawn: their number, and when (ms since 1970).
export const drawn = [];
window.octweb = {drawn, panels, calipers, contrast, get state() { return state; }};

const send = (message) => {
  if (socket?.readyState === WebSocket.OPEN)
    socket.send(JSON.stringify(message));
};
const isOperator = () => hello?.role === "operate";

// ---- pictures: the newest of each kind is drawn with the next frame of the screen ----

const waiting = new Map();
let frameAsked = false, tinted = false;

async function onPicture(buffer) {
  let picture;
  try {
    picture = parse(buffer);
  } catch {
    send({seen: new DataView(buffer).getUint32(8, true)});
  }
  if (!picture)
    return;
  const panel = panels[picture.kind];
  try {
    await panel.take(picture);
  } catch {
    send({seen: picture.serial});
    return;
  }
  const before = waiting.get(picture.kind);
  if (before) {
    before.bitmap.close();
    send({seen: before.serial});
  }
  waiting.set(picture.kind, picture);
  if (!frameAsked)
    requestAnimationFrame(draw);
  frameAsked = true;
}

function draw() {
  frameAsked = false;
  for (const [kind, picture] of waiting) {
    const panel = panels[kind];
    if (kind === 0 && frozen && !picture.isPng) {
      picture.bitmap.close(); // on its way when the picture was frozen
    } else {
      if (kind === 0 && picture.isPng && tinted)
        picture.more = "colours of the flow are off: these are the values";
      if (!picture.isPng && kind === 0)
        tinted = picture.form === COLOUR;
      panel.show(picture);
      if (kind === 0) {
        if (contrast.mode === "auto")
          adapt(0.2);
        drawn.push([picture.frame, Date.now()]);
        drawn.splice(0, drawn.length - 600);
        readOut();
        if (state?.playback && !state.playback.plays && !picture.isPng)
          setTimeout(() => panel.picture === picture && send({whole: true}), 300);
      }
    }
    send({seen: picture.serial});
  }
  waiting.clear();
}

// ---- contrast ----

// Percentiles of the picture, as octview's; all of the way, or a part of it.
function adapt(pace) {
  const p = bscan.picture;
  if (!p)
    return;
  const {data} = bscan.raw.getContext("2d", {willReadFrequently: true})
    .getImageData(0, 0, p.width, p.height);
  const counts = new Uint32Array(256);
  let n = 0;
  for (let i = 0; i < data.length; i += 4 * 7, n++)
    counts[data[i]]++;
  const share = (wanted) => {
    let sum = 0;
    for (let level = 0; level < 256; level++)
      if ((sum += counts[level]) >= wanted * n)
        return p.lo + level / 255 * (p.hi - p.lo);
    return p.hi;
  };
  const lo = share(0.20), hi = Math.max(share(0.998), lo + (p.hi - p.lo) / 50);
  contrast.lo += pace * (lo - contrast.lo);
  contrast.hi += pace * (hi - contrast.hi);
}

function byHand() {
  if (contrast.mode === "published" && bscan.picture)
    [contrast.lo, contrast.hi] = contrast.limits(bscan.picture);
  contrast.mode = "manual";
}

function recolour() {
  panels.forEach((panel) => panel.recolour());
  showOwn();
  const p = bscan.picture;
  if (!p)
    return;
  const [lo, hi] = p.grey ?? [p.lo, p.hi], [black, white] = contrast.limits(p);
  $("black").value = 1000 * (black - lo) / (hi - lo);
  $("white").value = 1000 * (white - lo) / (hi - lo);
  $("gamma").value = 100 * Math.log(contrast.gamma) / Math.log(4);
}

const step = () => {
  const p = bscan.picture, [lo, hi] = p?.grey ?? [p?.lo, p?.hi];
  return state?.log ? 1 : (hi - lo) / 40;
};

function shift(level, width) {
  byHand();
  const middle = (contrast.lo + contrast.hi) / 2 + level;
  const half = Math.max((contrast.hi - contrast.lo) / 2 + width / 2, step() / 2);
  [contrast.lo, contrast.hi] = [middle - half, middle + half];
  recolour();
}

function setAuto(on) {
  contrast.mode = on ? "auto" : "manual";
  if (on && bscan.picture) {
    [contrast.lo, contrast.hi] = bscan.picture.grey ?? [bscan.picture.lo, bscan.picture.hi];
    adapt(1);
  }
  recolour();
}

// ---- what the browser does by itself, by octview's keys ----

function freeze(on) {
  frozen = on;
  send({freeze: on});
  showState();
}

function save() {
  bscan.canvas.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `octweb-${new Date().toISOString().replace(/[:.]/g, "-")}.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}

const next = (at, n) => (at + 1) % n;

function arrow(lines, depths, level, width) {
  if (calipers.on)
    calipers.step(lines, depths);
  else
    shift(level * step(), width * step());
}

const own = {
  "Space": () => freeze(!frozen),
  "A": () => setAuto(contrast.mode !== "auto"),
  "P": () => { contrast.mode = "published"; contrast.gamma = 1; recolour(); },
  "Left": () => arrow(-1, 0, -1, 0), "Right": () => arrow(1, 0, 1, 0),
  "Up": () => arrow(0, -1, 0, 1), "Down": () => arrow(0, 1, 0, -1),
  "G": () => { contrast.gamma = Math.max(contrast.gamma / 1.1, 0.25); recolour(); },
  "Shift+G": () => { contrast.gamma = Math.min(contrast.gamma * 1.1, 4); recolour(); },
  "Shift+C": () => { contrast.palette = next(contrast.palette, PALETTES.length); recolour(); },
  "M": () => { calipers.on = !calipers.on; showOwn(); },
  "Delete": () => calipers.remove(), "X": () => calipers.clear(),
  "=": () => bscan.zoom(1.25), "+": () => bscan.zoom(1.25), "-": () => bscan.zoom(0.8),
  "0": () => { bscan.lens = {zoom: 1, x: 0.5, y: 0.5}; bscan.paint(); },
  "Ctrl+Left": () => bscan.pan(-0.1 / bscan.lens.zoom, 0),
  "Ctrl+Right": () => bscan.pan(0.1 / bscan.lens.zoom, 0),
  "Ctrl+Up": () => bscan.pan(0, -0.1 / bscan.lens.zoom),
  "Ctrl+Down": () => bscan.pan(0, 0.1 / bscan.lens.zoom),
  "W": () => { bscan.fits = !bscan.fits; bscan.paint(); },
  "L": () => { arrangement = 1 - arrangement; showState(); },
  "V": () => state?.playback ? send({live: true}) : listRecordings(),
  "Shift+S": save,
  "F": () => document.fullscreenElement ? document.exitFullscreen()
                                        : document.documentElement.requestFullscreen(),
  "T": () => $("pseudonym").focus(), "F2": () => { $("more").open = !$("more").open; },
  "F1": () => toggleHelp(), "H": () => toggleHelp(),
};

function press(key) {
  if (state?.playback && key === "Space")
    send({key});
  else if (own[key])
    own[key]();
  else
    send({key});
}

const NAMES = {" ": "Space", "ArrowLeft": "Left", "ArrowRight": "Right", "ArrowUp": "Up",
               "ArrowDown": "Down", "Enter": "Return"};
addEventListener("keydown", (event) => {
  const {target} = event;
  if (event.altKey || event.metaKey || target.closest("input, dialog, summary") ||
      (target.closest("button") && (event.key === "Enter" || event.key === " ")) ||
      ["Shift", "Control", "Tab"].includes(event.key))
    return;
  const name = NAMES[event.key] ?? (event.key.length === 1 ? event.key.toUpperCase() : event.key);
  const letter = /^[A-Z]$/.test(name) || event.key.length > 1;
  press(`${event.ctrlKey ? "Ctrl+" : ""}${event.shiftKey && letter ? "Shift+" : ""}${name}`);
  event.preventDefault();
});

// ---- pointers ----

const fingers = new Map();
let drag = null, pointer = null;
const figure = $("bscan");

figure.addEventListener("contextmenu", (event) => event.preventDefault());
figure.addEventListener("pointerdown", (event) => {
  figure.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, event);
  pointer = event;
  if (fingers.size > 1) { // two fingers zoom and move; what the first began is taken back
    if (drag === "measure")
      calipers.remove();
    drag = fingers.size === 2 ? "pinch" : null;
    return;
  }
  const pans = event.button === 2 || (event.pointerType === "touch" && bscan.lens.zoom > 1);
  drag = calipers.on && event.button === 0 ? "measure" : pans ? "pan" : "contrast";
  if (drag === "measure")
    calipers.begin(bscan.at(event));
});

// The two keep the places of the picture that they are at.
function pinch(event, before) {
  const other = [...fingers.values()].find((f) => f.pointerId !== event.pointerId);
  const apart = (p) => Math.max(Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY), 1);
  const middle = (p) => ({clientX: (p.clientX + other.clientX) / 2,
                          clientY: (p.clientY + other.clientY) / 2});
  const was = bscan.at(middle(before));
  bscan.zoom(apart(event) / apart(before), was.u, was.v);
  const is = bscan.at(middle(event));
  bscan.pan(was.u - is.u, was.v - is.v);
}

figure.addEventListener("pointermove", (event) => {
  const before = fingers.get(event.pointerId), box = figure.getBoundingClientRect();
  pointer = event;
  readOut();
  if (!before)
    return;
  const dx = (event.clientX - before.clientX) / box.width;
  const dy = (event.clientY - before.clientY) / box.height;
  if (drag === "pinch") {
    pinch(event, before);
  } else if (drag === "measure") {
    calipers.move(bscan.at(event));
  } else if (drag === "pan") {
    bscan.pan(-dx / bscan.lens.zoom, -dy / bscan.lens.zoom);
  } else if (drag === "contrast" && bscan.picture) {
    const [lo, hi] = bscan.picture.grey ?? [bscan.picture.lo, bscan.picture.hi];
    shift(dx * (hi - lo), dy * (hi - lo));
  }
  fingers.set(event.pointerId, event);
});
for (const over of ["pointerup", "pointercancel"])
  figure.addEventListener(over, (event) => {
    fingers.delete(event.pointerId);
    drag = null; // the finger that is left does nothing
  });
figure.addEventListener("pointerleave", () => { pointer = null; readOut(); });
figure.addEventListener("wheel", (event) => {
  const {u, v} = bscan.at(event);
  bscan.zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, u, v);
  event.preventDefault();
}, {passive: false});

function readOut() {
  const at = pointer && bscan.at(pointer), found = at && bscan.value(at.u, at.v);
  const um = bscan.picture?.um ?? [];
  $("readout").textContent = !found ? ""
    : `${found.exact ? "" : "about "}${Number.isNaN(found.value) ? "nothing"
       : `${found.value.toFixed(1)} ${bscan.picture.unit}`}  A-line ${found.line}, depth ${found.depth}` +
      (um[1] > 0 ? ` (${(found.depth * um[1]).toFixed(0)} \u00b5m)` : "");
}

// ---- words ----

function phrase(tag, {text, tone}) {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = `tone${tone}`;
  return made;
}

// Replaces what stands there only where it changed, so that screen readers say it once.
function fill(element, key, children) {
  if (element.dataset.key === key)
    return;
  element.dataset.key = key;
  element.replaceChildren(...children());
}

function button(label, key, look, isOff) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = label;
  made.title = key;
  made.dataset.key = key;
  made.className = ["", "on", "record", "", ""][look];
  made.disabled = isOff;
  if (look <= 1)
    made.ariaPressed = look === 1;
  return made;
}
document.addEventListener("click", ({target}) => {
  if (target.tagName === "BUTTON" && target.dataset.key)
    press(target.dataset.key);
});

function showOwn() {
  const items = [
    [state?.playback ? null : frozen ? "Go on" : "Freeze", "Space", frozen],
    ["Auto", "A", contrast.mode === "auto"], ["As published", "P", contrast.mode === "published"],
    [PALETTES[contrast.palette], "Shift+C", false], ["Measure", "M", calipers.on],
    ["Clear", "X", false], ["Zoom +", "=", false], ["Zoom \u2212", "-", false],
    ["Layout", "L", false], [bscan.fits ? "\u00b5m" : "Fill", "W", false],
    ["Save PNG", "Shift+S", false], [state?.playback ? "Live" : "Recordings", "V", false],
    ["Help", "H", false]];
  fill($("own"), JSON.stringify(items), () => items.filter(([label]) => label)
    .map(([label, key, on]) => button(label, key, on ? 1 : 0, false)));
}

function showButtons() {
  const of = (isPatient) => (state.buttons ?? [])
    .filter((b) => (b.row === 1) === isPatient && b.key !== "T" && !own[b.key] ||
                   (!isPatient && state.playback && b.key === "Space"));
  for (const [id, isPatient] of [["octds", false], ["eyes", true]]) {
    const list = of(isPatient);
    fill($(id), JSON.stringify([list, hello?.role]), () => list.map((b) =>
      button(b.label, b.key, b.look, b.look === 3 || (!b.all && !isOperator()))));
  }
  const field = $("pseudonym");
  field.disabled = !isOperator();
  if (document.activeElement !== field)
    field.value = state.pseudonym;
}

function showAlarms() {
  const lost = !socket || performance.now() - heard > 3000;
  const alarms = lost ? [[{text: refusal || "NO CONNECTION to octweb: the picture is old", tone: 4},
                          {text: refusal ? "" : "trying again", tone: 0}]] : state?.alarms ?? [];
  const words = alarms.length ? alarms : state?.quality?.text ? [[state.quality]] : [];
  $("alarms").className = alarms.length ? `tone${alarms[0][0].tone}` : "";
  fill($("alarms"), JSON.stringify(words), () => words.flatMap(([what, remedy]) => {
    const made = [phrase("p", what)];
    if (remedy?.text)
      made.push(Object.assign(phrase("p", remedy), {className: "remedy"}));
    return made;
  }));
  return lost;
}

function showVeil(lost) {
  const veil = figure.querySelector(".veil");
  const own = frozen && !state?.playback;
  const v = lost ? {words: "NO CONNECTION", more: "", tone: 4, covers: true}
    : own ? {words: "FROZEN", more: "", tone: 3, covers: false} : state?.veil;
  veil.hidden = !v || !bscan.picture;
  if (v) {
    veil.className = `veil tone${v.tone}${v.covers ? " covers" : ""}`;
    veil.children[0].textContent = v.words;
    veil.children[1].textContent = v.more;
  }
}

function showPlayback() {
  const p = state.playback;
  $("playback").hidden = !p;
  if (!p)
    return;
  $("playback-words").textContent = p.text;
  $("playback-name").textContent = `${p.name}  ${p.volume}`;
  $("slider").max = p.n - 1;
  if (document.activeElement !== $("slider") || p.plays)
    $("slider").value = p.at;
}

function showState() {
  const lost = showAlarms();
  showVeil(lost);
  if (!state)
    return;
  const recording = lost ? {text: "not known whether octd records", tone: 3} : state.recording;
  $("top").className = state.records && !lost ? "on" : "";
  const words = $("recording-words");
  if (words.textContent !== recording.text)
    words.textContent = recording.text;
  words.parentElement.className = `tone${recording.tone}`;
  fill($("notice"), JSON.stringify(state.notice), () => state.notice.map((l) => phrase("p", l)));
  const fields = frozen && !state.playback ? [{text: "FROZEN", tone: 3}, ...state.fields.slice(1)]
    : state.fields;
  for (const [id, list] of [["fields", fields], ["details", state.details]])
    fill($(id), JSON.stringify(list), () => list.map((f) => phrase("span", f)));
  let many = 0;
  state.has.forEach((has, kind) => {
    if (kind > 0) {
      $(panels[kind].figure.id).hidden = !has || !arrangement;
      many += has && arrangement;
    }
    if (!has && panels[kind].picture)
      panels[kind].forget();
  });
  $("panels").className = `many${many}`;
  bscan.canvas.ariaLabel = `B-scan: ${fields[0]?.text ?? ""}`;
  showPlayback();
  showButtons();
  showOwn();
}

// ---- dialogs ----

for (const dialog of document.querySelectorAll("dialog"))
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());

function toggleHelp() {
  const help = $("help");
  if (help.open)
    return help.close();
  const rows = (hello?.help ?? [])
    .filter(([keys, , isHere]) => isHere || keys.split(" ").some((key) => own[key]));
  help.querySelector("dl").replaceChildren(...rows.flatMap(([keys, meaning]) => {
    const dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = keys;
    dd.textContent = meaning;
    return [dt, dd];
  }));
  help.showModal();
}

function listRecordings() {
  $("search").value = "";
  send({list: true});
}

function onRecordings({recordings, of, all}) {
  const dialog = $("recordings");
  if (dialog.open && of !== $("search").value)
    return; // a newer one comes
  dialog.querySelector("ul").replaceChildren(...recordings.map((r) => {
    const item = document.createElement("li"), made = document.createElement("button");
    made.type = "button";
    made.textContent = `${r.name}  ${new Date(1000 * r.time_s).toLocaleString()}  ` +
                       `${(r.bytes / 1e6).toFixed(1)} MB`;
    made.addEventListener("click", () => {
      dialog.close();
      frozen = false;
      send({open: r.name});
    });
    item.append(made);
    return item;
  }));
  $("found").textContent = !all ? `there are none${of ? " of this name" : ""} in octd's folder`
    : all > recordings.length ? `the newest ${recordings.length} of ${all}`
    : `${all} recording${all === 1 ? "" : "s"}`;
  if (!dialog.open)
    dialog.showModal();
}
$("search").addEventListener("input", ({target}) => send({list: true, of: target.value}));

// ---- fields ----

$("patient").addEventListener("submit", (event) => {
  event.preventDefault();
  $("pseudonym").blur();
});
// For whom it is typed: meanwhile another recording or another patient may come.
let typedFor = {of: "", was: ""};
$("pseudonym").addEventListener("focus", () => {
  typedFor = {of: state?.playback?.name ?? "", was: state?.pseudonym ?? ""};
});
$("pseudonym").addEventListener("change",
                                ({target}) => send({pseudonym: target.value, ...typedFor}));
$("slider").addEventListener("input", ({target}) => send({go: Number(target.value)}));
for (const id of ["black", "white", "gamma"])
  $(id).addEventListener("input", () => {
    const p = bscan.picture;
    if (!p)
      return;
    const [lo, hi] = p.grey ?? [p.lo, p.hi], at = (name) => lo + $(name).value / 1000 * (hi - lo);
    byHand();
    contrast.lo = at("black");
    contrast.hi = Math.max(at("white"), contrast.lo + (hi - lo) / 200);
    contrast.gamma = 4 ** ($("gamma").value / 100);
    recolour();
  });

// ---- the connection ----

let refusal = "", tries = 0;

function onText(message) {
  if (message.hello) {
    hello = message.hello;
    document.title = `octweb: ${hello.name}`;
    tries = 0;
    refusal = "";
  } else if (message.recordings) {
    onRecordings(message);
  } else if (message.refused) {
    $("lengths").textContent = message.refused;
  } else {
    state = message;
    send({heard: state.n});
    showState();
  }
}

// A server that answers, but opens no WebSocket, does not know this browser.
async function ask() {
  try {
    await fetch("/icon.svg", {cache: "no-store"});
    if (tries > 1)
      refusal = "this browser is not let in (any more): ask for a link (octctl allow --web)";
  } catch {
    refusal = "";
  }
}

function connect() {
  const made = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/`,
                             "octweb");
  made.binaryType = "arraybuffer";
  made.onopen = () => {
    socket = made;
    heard = performance.now();
    if (frozen)
      send({freeze: true, whole: false}); // the picture stays
  };
  made.onmessage = ({data}) => {
    heard = performance.now();
    if (typeof data === "string")
      onText(JSON.parse(data));
    else
      onPicture(data);
  };
  made.onclose = async ({reason}) => {
    socket = null;
    tries++;
    await ask();
    if (reason)
      refusal = reason;
    showState();
    setTimeout(connect, Math.min(500 * tries, 5000));
  };
}

// A link has its token behind the '#', which no server and no log sees.
async function enter() {
  const token = location.hash.slice(1);
  if (!/^[0-9a-f]{64}$/.test(token))
    return;
  history.replaceState(null, "", "/");
  const answer = await fetch("/enter", {method: "POST", body: token});
  if (!answer.ok)
    refusal = await answer.text();
}

addEventListener("hashchange", () => location.reload());
setInterval(showState, 1000);
showOwn();
enter().finally(connect);

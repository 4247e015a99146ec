// What pages can do beyond links and forms: stay up to date, and be used by keyboard. Everything works without it, too.
"use strict";

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

/* Live: the parts of this page that have changed are read again and put in their place. */
let heard = Date.now(), refreshed = 0, waiting = null, reading = false;

async function refresh() {
  if (reading || document.hidden) return;
  reading = true;
  refreshed = Date.now();
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    // Whoever is logged out is led to where they can log in.
    if (answer.redirected && new URL(answer.url).pathname === "/login") return location.reload();
    if (answer.redirected || !answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const parts = $$("[data-part]");
    if ($$("[data-part]", fresh).length !== parts.length && !document.activeElement.matches("input, select, textarea")) {
      // Something has come or gone: parts are told by their places, which are others now.
      $("main").replaceChildren(...$("main", fresh).childNodes);
      return;
    }
    for (const part of parts) {
      const other = fresh.getElementById(part.id);
      const isBusy = part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea") || isSelected(part);
      if (!other || isBusy || other.innerHTML === part.dataset.seen) continue;
      const focused = $$("a, button, summary", part).indexOf(document.activeElement);
      const open = $$("details", part).map((details) => details.open);
      const chosen = rows().indexOf($("[data-row].is-chosen"));
      part.dataset.seen = other.innerHTML;
      part.replaceChildren(...other.childNodes);
      $$("details", part).forEach((details, index) => { details.open = open[index] ?? details.open; });
      if (focused >= 0) $$("a, button, summary", part)[focused]?.focus();
      if (chosen >= 0) rows()[chosen]?.classList.add("is-chosen");
    }
  } catch { /* The note about the connection says it. */ } finally { reading = false; }
}

/* Whether somebody has marked text in it, perhaps to copy it. */
function isSelected(part) {
  const selection = getSelection();
  return !selection.isCollapsed && selection.getRangeAt(0).intersectsNode(part);
}

function soon() {
  clearTimeout(waiting);
  waiting = setTimeout(refresh, 400);
}

const bars = (job) => $$("progress[data-progress]").filter((bar) => bar.dataset.progress.split(" ").includes(job));

/* A bar that only runs have goes with the run; that of a page of work stays and says how it ended. */
function hideProgress({ job, last_outcome: outcome }) {
  if (outcome) for (const bar of bars(job).filter((bar) => !bar.closest(".work"))) bar.hidden = true;
}

function showProgress({ job, done, total, now }) {
  for (const bar of bars(job)) {
    bar.hidden = false;
    if (total > 0) { bar.max = total; bar.value = done; } else bar.removeAttribute("value");
    bar.title = now ? `${done}/${total || "?"} ${now}` : `${done}/${total || "?"}`;
    // How far each part is stands in the page: it is read again, but not with every step.
    if ("parts" in bar.dataset && Date.now() - refreshed > 2000) soon();
  }
}

let live = null;

function listen() {
  live?.close();
  live = new EventSource("/live");
  const hear = (act) => (message) => { heard = Date.now(); act(message); };
  for (const name of ["event", "job", "outbox", "reset"]) live.addEventListener(name, hear(soon));
  live.addEventListener("job", ({ data }) => hideProgress(JSON.parse(data)));
  live.addEventListener("progress", hear((message) => showProgress(JSON.parse(message.data))));
  live.addEventListener("open", hear(() => {}));
  live.addEventListener("beat", hear(() => {}));
  // A browser does not come back by itself after an answer that is no stream: a proxy's while we restart, or a refusal.
  live.addEventListener("error", ({ target }) => {
    if (target.readyState === EventSource.CLOSED) setTimeout(() => { listen(); soon(); }, 5000);
  });
}

if ($("[data-part]")) {
  listen();
  setInterval(() => { $("#offline").hidden = Date.now() - heard < 10000; }, 1000);
  setInterval(refresh, 60000);
  document.addEventListener("visibilitychange", soon);
  addEventListener("pagehide", () => live.close());
  // The way back leads to the page as it was left, and not to a new one.
  addEventListener("pageshow", ({ persisted }) => { if (persisted) { heard = Date.now(); listen(); soon(); } });
}

/* Keyboard: one letter does what a click does. */
const rows = () => $$("[data-row]").filter((row) => row.offsetParent);

function move(by) {
  const all = rows(), at = all.findIndex((row) => row.classList.contains("is-chosen"));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, at + by))];
  all[at]?.classList.remove("is-chosen");
  if (!next) return;
  next.classList.add("is-chosen");
  next.scrollIntoView({ block: "nearest" });
  ($("a", next) ?? next).focus({ preventScroll: true });
}

const act = (verb) => $(`button[data-verb="${verb}"]`, $("[data-row].is-chosen") ?? $("article") ?? document.createElement("i"))?.click();
const help = $("#keys"), off = $("#keys-off");
let going = false;

/* Letters that are dictated, or hit by a tremor, must not run a job: whoever needs that switches them off in this browser. */
try {
  off.checked = localStorage.getItem("keys") === "off";
  off.addEventListener("change", () => localStorage.setItem("keys", off.checked ? "off" : "on"));
} catch { /* A browser that keeps nothing does not keep this, either. */ }

document.addEventListener("keydown", (press) => {
  if (off.checked || press.ctrlKey || press.metaKey || press.altKey || press.target.matches("input, select, textarea, dialog *")) return;
  const key = press.key;
  if (going) {
    going = false;
    const link = $$("header nav a").find((link) => link.dataset.key === key);
    if (link) { press.preventDefault(); link.click(); }
    return;
  }
  const does = {
    "/": () => $("input[type=search]")?.focus(),
    j: () => move(1), k: () => move(-1),
    r: () => act("run"), p: () => act("pause") ?? act("resume"),
    g: () => { going = true; setTimeout(() => { going = false; }, 1500); },
    "?": () => help?.showModal(),
    Enter: press.target === document.body ? () => $("[data-row].is-chosen a")?.click() : null,
  }[key];
  if (does) { press.preventDefault(); does(); }
});
$("#keys-button")?.addEventListener("click", () => help?.showModal());
if ($("#keys-button")) $("#keys-button").hidden = false;
/* On a phone the navigation is wider than the page. `scrollIntoView` would make the next Tab begin there, behind the way to the content. */
const current = $("header [aria-current]"), links = current?.closest("ul");
if (links) links.scrollLeft = current.offsetLeft - links.offsetLeft - (links.clientWidth - current.offsetWidth) / 2;

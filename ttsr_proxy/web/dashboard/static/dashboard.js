"use strict";

// Times are served in UTC; people want their own.
function localise(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (!Number.isNaN(moment.getTime())) {
      time.title = time.textContent;
      time.textContent = moment.toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" });
    }
  }
}

// In a long text the match may be below what its box shows.
function showMarks(root) {
  for (const mark of root.querySelectorAll("pre mark")) {
    const box = mark.closest("pre");
    const below = mark.getBoundingClientRect().bottom - box.getBoundingClientRect().bottom;
    if (below > 0) box.scrollTop += below + box.clientHeight / 2;
  }
}

// The server renders everything. A live page asks for itself again and takes over the parts that change.
const REFRESH_MS = 400;
const PENDING_MS = 3000;

let refreshing = false;
let again = false;

async function refresh() {
  if (refreshing) {
    again = true;
    return;
  }
  refreshing = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (answer.ok) takeOver(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch {
    // The proxy is away; the feed comes back by itself and asks again.
  }
  refreshing = false;
  if (again) {
    again = false;
    setTimeout(refresh, REFRESH_MS);
  }
}

function takeOver(fresh) {
  localise(fresh);
  for (const part of document.querySelectorAll("[data-live-part]")) {
    const name = CSS.escape(part.dataset.livePart);
    const next = fresh.querySelector(`[data-live-part="${name}"]`);
    if (!next || next.innerHTML === part.innerHTML) continue;
    const known = new Set([...part.querySelectorAll("[data-record]")].map((row) => row.dataset.record));
    for (const row of next.querySelectorAll("[data-record]")) {
      row.classList.toggle("new", !known.has(row.dataset.record));
    }
    const open = [...part.querySelectorAll("details")].map((details) => details.open);
    next.querySelectorAll("details").forEach((details, index) => (details.open = Boolean(open[index])));
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const href = focused && focused.getAttribute("href");
    part.replaceWith(document.adoptNode(next));
    showMarks(next);
    if (href) next.querySelector(`[href="${CSS.escape(href)}"]`)?.focus({ preventScroll: true });
  }
}

function follow(box) {
  const status = box.querySelector("[data-live-status]");
  const toggle = box.querySelector("[data-live-toggle]");
  let feed = null;
  let arrived = 0;
  let paused = false;
  let timer = null;

  function connect() {
    if (feed || paused || document.hidden) return;
    feed = new EventSource(box.dataset.feed);
    feed.addEventListener("open", () => say("Live"));
    feed.addEventListener("error", () => say("Not connected; trying again"));
    feed.addEventListener("interrupt", () => {
      arrived += 1;
      clearTimeout(timer);
      timer = setTimeout(() => {
        say(`Live, ${arrived} new since you opened this page`);
        refresh();
      }, REFRESH_MS);
    });
  }

  function disconnect() {
    feed?.close();
    feed = null;
  }

  function say(text) {
    status.textContent = text;
    box.classList.toggle("on", text.startsWith("Live"));
  }

  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    paused = !paused;
    toggle.textContent = paused ? "Resume" : "Pause";
    if (paused) {
      disconnect();
      say("Paused");
    } else {
      connect();
      refresh();
    }
  });
  // Browsers allow a host few connections: pages that nobody sees give theirs back.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) disconnect();
    else if (!paused) {
      connect();
      refresh();
    }
  });
  window.addEventListener("pagehide", disconnect);
  say("Connecting");
  connect();
  return () => paused;
}

localise(document);
showMarks(document);
const box = document.querySelector("[data-feed]");
const isPaused = box ? follow(box) : () => false;
// The feed tells of new records only: what becomes of a pending one has to be asked for.
setInterval(() => {
  if (!document.hidden && !isPaused() && document.querySelector("[data-pending]")) refresh();
}, PENDING_MS);

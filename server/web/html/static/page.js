// What a screen does by itself: it is brought up to date in place, says whether there is a connection, shows times as
// they are here, opens acts in a dialog, and listens to keys. Without it every screen and every act is a plain page.
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const insecure = $("#insecure");
  if (insecure && !window.isSecureContext) insecure.hidden = false;
  document.documentElement.classList.add("scripted");

  // --- times: the server writes UTC, and what is shown is local unless somebody wants UTC ---------------------------

  let utc = localStorage.getItem("penstock-utc") === "1";
  const two = (value) => String(value).padStart(2, "0");
  const clockOf = (t) => utc ? [t.getUTCHours(), t.getUTCMinutes(), t.getUTCSeconds()] : [t.getHours(), t.getMinutes(), t.getSeconds()];
  const dayOf = (t) => utc ? [t.getUTCFullYear(), t.getUTCMonth() + 1, t.getUTCDate()] : [t.getFullYear(), t.getMonth() + 1, t.getDate()];
  const written = (t) => {
    const clock = clockOf(t).map(two).join(":"), day = dayOf(t), today = dayOf(new Date());
    return String(day) === String(today) ? clock : `${day[0]}-${two(day[1])}-${two(day[2])} ${clock}`;
  };
  const showTimes = (root) => $$("time[datetime]", root).forEach((each) => {
    const t = new Date(each.getAttribute("datetime"));
    if (!isNaN(t)) each.textContent = written(t);
  });
  const showZone = () => {
    const zone = $("#zone"), off = -new Date().getTimezoneOffset(), sign = off < 0 ? "-" : "+";
    if (zone) zone.textContent = utc ? "Times are in UTC" : `Times are local, UTC${sign}${two(Math.abs(off) / 60 | 0)}:${two(Math.abs(off) % 60)}`;
  };
  const turnTimes = () => {
    utc = !utc;
    localStorage.setItem("penstock-utc", utc ? "1" : "0");
    showTimes(document);
    showTyped();
    showZone();
  };
  const turnTheme = (button) => {
    localStorage.setItem("penstock-theme", button.value);
    document.documentElement.dataset.theme = button.value;
    showTheme();
  };
  const showTheme = () => $$("[data-does=theme]").forEach((each) => each.setAttribute("aria-pressed", String(each.value === (document.documentElement.dataset.theme || ""))));

  // Fields for a time take it as times are shown. What is sent is UTC, and says so.
  const TIME = /^(?:(\d{4})-(\d\d)-(\d\d)(?:[ T]|$))?(?:(\d\d):(\d\d)(?::(\d\d))?)?$/;
  const sent = (text) => {
    const found = text.trim() ? text.trim().match(TIME) : null;
    if (!found) return text;
    const day = found[1] ? found.slice(1, 4) : dayOf(new Date());
    const parts = [day[0], day[1] - 1, day[2], ...found.slice(4).map((each) => each || 0)].map(Number);
    const t = utc ? new Date(Date.UTC(...parts)) : new Date(...parts);
    return isNaN(t) ? text : `${t.toISOString().slice(0, 19)}Z`;
  };
  document.addEventListener("formdata", (event) => {
    for (const each of $$("[data-time]", event.target)) event.formData.set(each.name, sent(each.value));
  });
  const showTyped = () => $$("[data-time]").forEach((each) => {
    const t = new Date(each.defaultValue);
    if (each.defaultValue.endsWith("Z") && !isNaN(t)) each.value = written(t);
  });

  // --- putting in what is new: elements stay, their text and attributes change --------------------------------------

  // Not `node.id`: of a form that is its field of that name.
  const keyOf = (node) => node.nodeType === 1 ? node.dataset.key || node.getAttribute("id") || "" : "";
  const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
  const OWN = new Set(["open", "hidden", "aria-selected", "data-here", "data-at"]);

  const patch = (old, fresh) => {
    if (old.nodeType !== 1) {
      if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
      return;
    }
    if (old.matches("input, textarea, select, [data-live]")) return;
    for (const { name, value } of fresh.attributes) {
      if (!OWN.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    for (const { name } of [...old.attributes]) {
      if (!OWN.has(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
    }
    if (old.matches("time[datetime]")) showTimes(old.parentNode);
    else patchChildren(old, fresh);
  };

  let heldSince = 0;
  const isHeld = (body) => body.matches(":hover") || body.contains(document.activeElement) || $(".pick:checked", body) ||
    performance.now() - heldSince < 10000;

  const patchChildren = (old, fresh) => {
    if (old.nodeName === "TBODY" && $(":scope > [data-key]", old)) return patchRows(old, fresh);
    const wanted = [...fresh.childNodes];
    let at = old.firstChild;
    for (const each of wanted) {
      let same = at;
      if (each.nodeType === 1) while (same && !alike(same, each)) same = same.nextSibling;
      else if (same && !alike(same, each)) same = null;
      if (same) {
        while (at !== same) { const gone = at; at = at.nextSibling; gone.remove(); }
        at = at.nextSibling;
        patch(same, each);
      } else {
        const node = document.importNode(each, true);
        old.insertBefore(node, at);
        if (node.nodeType === 1) showTimes(node.parentNode);
      }
    }
    while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
  };

  // Rows keep their place while somebody is at them, and for ten seconds after they were last put in order.
  const patchRows = (old, fresh) => {
    const now = new Map($$(":scope > *", old).map((row) => [keyOf(row), row]));
    const rows = $$(":scope > *", fresh), order = rows.map(keyOf);
    const moved = String([...now.keys()]) !== String(order);
    const tail = old.id === "entries", held = moved && (tail ? old.matches(":hover") || old.contains(document.activeElement) : isHeld(old));
    if (tail) $("#waiting").textContent = held ? `${order.filter((key) => !now.has(key)).length} new ones wait` : "";
    for (const row of rows) {
      const same = now.get(keyOf(row));
      if (same) patch(same, row);
    }
    if (!moved || held) return;
    heldSince = performance.now();
    const focused = document.activeElement;
    old.replaceChildren(...rows.map((row) => now.get(keyOf(row)) || document.importNode(row, true)));
    showTimes(old);
    if (old.contains(focused)) focused.focus({ preventScroll: true });
  };

  const parse = (text) => new DOMParser().parseFromString(text, "text/html");
  const ask = (address, options = {}) => fetch(address, { ...options, headers: { ...options.headers, "X-Part": "1" } });
  const leave = (response) => {
    const login = response.headers.get("X-Login");
    if (login) location.assign(login);
    return Boolean(login);
  };

  let paused = false, asking = false;
  const refresh = async () => {
    const main = $("#main");
    if (paused || asking || document.hidden || $("#progress, #act", main)) return;
    asking = true;
    try {
      const response = await ask(location.href);
      if (leave(response)) return;
      const page = parse(await response.text());
      if (paused || lost || response.status === 503 || !$("#main", page)) return;
      // Only a new state is told aloud, never a number.
      const state = (root) => $$("h1, .head .state", root).map((each) => each.textContent.trim()).join(", ");
      const before = state(main);
      patchChildren(main, $("#main", page));
      if ($(".top nav")) patchChildren($(".top nav"), $(".top nav", page));
      const icon = $("link[rel=icon]"), wanted = `/static/icon${$("#main", page).dataset.troubled ? "-trouble" : ""}.svg`;
      if (icon && icon.getAttribute("href") !== wanted) icon.setAttribute("href", wanted);
      title = page.title;
      document.title = title;
      for (const each of $$(".chart[data-at]")) if (each.dataset.at) point(each, Number(each.dataset.at));
      if (state(main) !== before && $("#link-says")) $("#link-says").title = state(main);
    } catch { /* The connection says so itself. */ } finally { asking = false; }
  };

  // --- whether there is a connection -------------------------------------------------------------------------------

  const link = $("#link"), says = $("#link-says"), dot = $("#link .dot"), clock = $("#clock"), pause = $("#pause");
  let title = document.title, last = 0, wait = 1, source = null, lost = false, silence = 0;

  const tell = (text) => { if (says.textContent !== text) { says.replaceChildren(Object.assign(document.createElement("b"), { textContent: text })); } };
  const live = () => {
    last = Date.now();
    wait = 1;
    if (lost) {
      lost = false;
      $("#main").classList.remove("stale");
      $$("[data-was-off]").forEach((each) => { each.removeAttribute("aria-disabled"); each.removeAttribute("data-was-off"); });
      document.title = title;
      refresh();
    }
    dot.className = "dot beat";
    tell(paused ? "Paused" : "Live");
    clock.textContent = written(new Date());
  };
  const dead = () => {
    if (!lost) {
      lost = true;
      $("#main").classList.add("stale");
      $$("#main form[method=post] button:not([aria-disabled])").forEach((each) => { each.setAttribute("aria-disabled", "true"); each.dataset.wasOff = "1"; });
      document.title = "No connection · Penstock";
      tell(`No connection since ${written(new Date(last || Date.now()))}`);
      clock.textContent = "";
    }
    dot.className = "dot off";
  };
  const listen = () => {
    source = new EventSource(document.body.dataset.events);
    const heard = (event) => {
      clearTimeout(silence);
      silence = setTimeout(again, 3000);
      live();
      if (event.type === "sample") refresh();
    };
    const again = () => {
      clearTimeout(silence);
      source.close();
      dead();
      setTimeout(listen, wait * 1000);
      wait = Math.min(8, wait * 2);
    };
    for (const name of ["open", "beat", "sample"]) source.addEventListener(name, heard);
    source.onerror = again;
    silence = setTimeout(again, 3000);
  };
  const turnPause = () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    if (!lost) live();
    if (!paused) refresh();
  };
  if (link && document.body.dataset.events) {
    last = Date.now();
    pause.hidden = false;
    pause.addEventListener("click", turnPause);
    listen();
  }

  // --- acts: in a dialog --------------------------------------------------------------------------------------------

  const sheet = $("#sheet");
  // Before the answer to an act on thousands come lines that tell how far it is.
  const answered = async (response, form) => {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader(), bar = $("progress", form);
    for (let text = ""; ;) {
      const { value, done } = await reader.read();
      if (done) return parse(text);
      text += value;
      for (let line; (line = text.match(/^(\d+)\/(\d+)\n/)); text = text.slice(line[0].length)) {
        bar.value = line[1] / line[2];
        $("progress + [role=status]", form).textContent = `${Number(line[1]).toLocaleString("en")} of ${Number(line[2]).toLocaleString("en")}`;
      }
    }
  };
  const showSheet = async (response, form) => {
    if (leave(response)) return;
    const page = await answered(response, form);
    const act = $("#act", page);
    const parts = act ? [act] : [...$("#main", page).children];
    sheet.replaceChildren(...parts.map((each) => document.importNode(each, true)));
    if (!sheet.open) sheet.showModal();
    $("input:not([type=hidden]), textarea, .primary", sheet)?.focus();
    if (act?.dataset.step === "done") refresh();
  };
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.getAttribute("action") !== "/act" || !sheet) return;
    event.preventDefault();
    if (lost) return;
    const data = new URLSearchParams(new FormData(form, event.submitter));
    $$("progress", form).forEach((each) => { each.hidden = false; });
    $$("button", form).forEach((each) => { each.disabled = form.closest("dialog") !== null; });
    try {
      await showSheet(await ask("/act", { method: "POST", body: data }), form);
    } catch {
      $$("button", form).forEach((each) => { each.disabled = false; });
      dead();
    }
  });

  // --- charts: the value under the pointer, or where the arrow keys have moved --------------------------------------

  const pointsOf = (chart) => (chart.dataset.points || "").split(";").filter(Boolean).map((each) => {
    const [x, t, ...text] = each.split(",");
    return { x: Number(x), t: new Date(Number(t)), text: text.join(",") };
  });
  const point = (chart, at) => {
    const found = pointsOf(chart)[at], svg = $("svg", chart);
    $(".cursor", svg)?.remove();
    chart.dataset.at = found ? at : "";
    if (!found) return $(".at", chart).replaceChildren();
    const line = $(".grid", svg).cloneNode();
    line.setAttribute("class", "cursor");
    for (const [name, value] of [["x1", found.x], ["x2", found.x], ["y1", 0], ["y2", 40]]) line.setAttribute(name, value);
    svg.append(line);
    $(".at", chart).replaceChildren(Object.assign(document.createElement("b"), { textContent: found.text }), ` at ${written(found.t)}`);
  };
  document.addEventListener("pointermove", (event) => {
    const chart = event.target.closest?.(".chart[data-points]");
    for (const each of $$(".chart[data-points]")) if (each !== chart && each.dataset.at && each !== document.activeElement) point(each, -1);
    if (!chart) return;
    const box = $("svg", chart).getBoundingClientRect(), x = (event.clientX - box.left) / box.width * 120;
    const all = pointsOf(chart);
    point(chart, all.reduce((best, each, at) => Math.abs(each.x - x) < Math.abs(all[best].x - x) ? at : best, 0));
  });
  document.addEventListener("keydown", (event) => {
    const chart = event.target.closest?.(".chart[data-points]"), step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!chart || !step) return;
    event.preventDefault();
    const last = pointsOf(chart).length - 1, at = chart.dataset.at ? Number(chart.dataset.at) : last + 1;
    point(chart, Math.max(0, Math.min(last, at + step)));
  });
  document.addEventListener("focusout", (event) => { if (event.target.matches?.(".chart")) point(event.target, -1); });

  // --- search: goes on by itself, step by step ----------------------------------------------------------------------

  const searchOn = async () => {
    const bar = $("#progress[data-next]"), stop = $("#stop");
    if (!bar || !stop) return;
    let stopped = false, found = Number($("#hits").dataset.count);
    stop.hidden = false;
    $("#go-on").hidden = true;
    stop.addEventListener("click", () => { stopped = true; stop.hidden = true; $("#go-on").hidden = false; });
    while (!stopped && bar.dataset.next && found < 500) {
      const response = await ask(bar.dataset.next);
      if (leave(response) || !response.ok) break;
      const page = parse(await response.text()), fresh = $("#progress", page), rows = $("#entries", page);
      if (!fresh) break;
      if (rows && $("#entries")) $("#entries").append(...rows.children);
      else if (rows) $("#none")?.replaceWith(document.importNode(rows.closest("table"), true));
      found += Number($("#hits", page).dataset.count);
      $("progress", bar).value = $("progress", fresh).value;
      const status = $("[role=status]", bar);
      status.replaceChildren(...$("[role=status]", fresh).childNodes);
      $("b", status).textContent = `${found} found`;
      if (fresh.dataset.next) { bar.dataset.next = fresh.dataset.next; $("#go-on").href = fresh.dataset.next; }
      else { bar.removeAttribute("data-next"); $("#go-on").remove(); stop.hidden = true; }
      showTimes(document);
    }
    stop.hidden = true;
    if ($("#go-on")) $("#go-on").hidden = false;
  };

  // --- clicks and keys ----------------------------------------------------------------------------------------------

  const choose = (pick) => { if (pick) { pick.checked = !pick.checked; } };
  const DOES = {
    times: turnTimes,
    theme: turnTheme,
    keys: () => $("#keys").showModal(),
    pause: turnPause,
    all: (button) => $$(".pick", button.closest("table")).forEach((each) => { each.checked = button.checked; }),
    close: (button, event) => { if (sheet?.open && sheet.contains(button)) { event.preventDefault(); sheet.close(); } },
  };
  const copied = (button, text) => navigator.clipboard?.writeText(text).then(() => button.classList.add("good"));
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-does], [data-copy], [data-copy-from], [role=tab], [aria-disabled=true]");
    if (!button) return;
    if (button.getAttribute("aria-disabled") === "true") return event.preventDefault();
    if (button.dataset.does) DOES[button.dataset.does](button, event);
    if (button.dataset.copy) copied(button, button.dataset.copy);
    if (button.dataset.copyFrom) copied(button, document.getElementById(button.dataset.copyFrom).textContent);
    if (button.role === "tab" || button.getAttribute("role") === "tab") {
      for (const tab of $$("[role=tab]", button.parentNode)) {
        tab.setAttribute("aria-selected", String(tab === button));
        document.getElementById(tab.getAttribute("aria-controls")).hidden = tab !== button;
      }
    }
  });
  $$("form[data-live]").forEach((form) => {
    let soon = 0;
    form.addEventListener("input", (event) => {
      clearTimeout(soon);
      if (!event.target.matches("[data-time]")) soon = setTimeout(() => form.requestSubmit(), event.target.matches("select") ? 0 : 600);
    });
  });

  let row = null, led = false;
  const go = (step) => {
    const rows = $$("main .row").filter((each) => each.offsetParent);
    if (!rows.length) return;
    const at = rows.indexOf(row);
    row?.removeAttribute("data-here");
    row = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
    row.setAttribute("data-here", "");
    ($("a", row) || row).focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  };
  const KEYS = {
    "/": () => $(".jump input")?.focus(),
    "?": () => $("#keys")?.showModal(),
    j: () => go(1), ArrowDown: () => go(1), k: () => go(-1), ArrowUp: () => go(-1),
    x: () => choose(row && $(".pick", row)),
    p: () => pause && turnPause(),
    t: turnTimes,
    g: () => { led = true; },
    Escape: () => $$(".pick:checked").forEach((each) => { each.checked = false; }),
  };
  const PLACES = { o: "/", d: "/letters", s: "/server" };
  document.addEventListener("keydown", (event) => {
    // A dialog that was closed keeps the focus until the next frame is drawn.
    const closed = event.target.closest("dialog:not([open])");
    const typing = !closed && event.target.closest("input:not([type=checkbox]), textarea, select, dialog");
    if (event.ctrlKey || event.metaKey || event.altKey || typing) return;
    const leads = led && PLACES[event.key];
    led = false;
    if (leads) return location.assign(leads);
    if (KEYS[event.key]) { event.preventDefault(); KEYS[event.key](); }
  });

  showTimes(document);
  showTyped();
  showTheme();
  if (link) showZone();
  searchOn();
})();

// Follows a run on its page. What it is sent is text, and is only ever shown as text.
"use strict";
(() => {
  const now = document.getElementById("now");
  if (!now) return;
  const field = (name) => now.querySelector(`[data-field="${name}"]`);
  const put = (name, text) => {
    const place = field(name);
    if (place && place.textContent !== text) place.textContent = text;
  };
  const clock = (seconds) => {
    const whole = Math.max(0, Math.floor(seconds));
    const two = (n) => String(n).padStart(2, "0");
    const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
  };
  let seconds = Number(now.dataset.seconds), at = Date.now(), live = Boolean(now.dataset.live);

  const show = (data) => {
    for (const name of ["status", "phase", "doing", "progress", "best", "left"]) put(name, data[name]);
    for (const name of ["queue", "floors", "budgets", "asked"]) {
      const list = now.querySelector(`[data-list="${name}"]`);
      if (!list) continue;
      list.replaceChildren(...data[name].map((line) => {
        const item = document.createElement("li");
        item.textContent = line;
        return item;
      }));
    }
    const bar = field("bar");
    if (bar) {
      bar.max = data.of || 1;
      bar.value = Math.min(data.done, data.of);
    }
    seconds = data.seconds;
    at = Date.now();
    live = data.live;
    now.dataset.live = live ? "yes" : "";
    put("clock", clock(seconds));
    for (const button of now.querySelectorAll("button")) button.disabled = !live;
  };

  // The report below: asked for again, and put in place with what was unfolded still unfolded; of a run that is
  // over what stands above it, too.
  const refresh = async (isOver = false) => {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = document.querySelector("main"), other = fresh.querySelector("main");
    if (!main || !other) return;
    const open = new Set([...main.querySelectorAll("details[open] > .inside")].map((one) => one.id));
    for (const one of other.querySelectorAll("details > .inside")) {
      if (open.has(one.id)) one.parentElement.open = true;
    }
    const below = [...other.children].filter((one) => one.id !== "now");
    for (const one of [...main.children]) if (one !== now) one.remove();
    main.append(...below);
    const last = other.querySelector("#now");
    if (isOver && last) now.replaceChildren(...last.childNodes);
  };

  setInterval(() => {
    if (live) put("clock", clock(seconds + (Date.now() - at) / 1000));
  }, 1000);

  const source = new EventSource(now.dataset.events);
  source.addEventListener("standing", (event) => show(JSON.parse(event.data)));
  source.addEventListener("report", () => refresh());
  source.addEventListener("ended", (event) => {
    show(JSON.parse(event.data));
    source.close();
    refresh(true);
  });
  source.addEventListener("error", () => {
    if (live) put("status", "the server does not answer");
  });

  for (const form of now.querySelectorAll("form")) {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const body = new URLSearchParams(new FormData(form, event.submitter));
      const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "text/plain" } });
      put("said", await answer.text());
    });
  }
})();

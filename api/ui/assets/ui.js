"use strict";
// What the pages do not need, but people like: a page that loads itself again, a box that
// selects all, buttons that copy.
(() => {
  const all = document.querySelector("[data-all]");
  if (all) {
    all.hidden = false;
    const boxes = [...all.closest("form").querySelectorAll("input[type=checkbox][name]")];
    const sync = () => {
      const on = boxes.filter((b) => b.checked).length;
      all.checked = on === boxes.length;
      all.indeterminate = on > 0 && on < boxes.length;
    };
    all.addEventListener("change", () => boxes.forEach((b) => { b.checked = all.checked; }));
    boxes.forEach((b) => b.addEventListener("change", sync));
    sync();
  }

  for (const button of document.querySelectorAll("[data-copy]")) {
    if (!navigator.clipboard) continue; // not over plain HTTP, except on localhost
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = button.dataset.copy || button.parentElement.querySelector("code").textContent;
      const name = button.textContent;
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = name; }, 1500);
    });
  }

  const seconds = Number(document.body.dataset.live);
  const place = document.getElementById("refresh");
  if (!seconds || !place) return;
  const key = "tarry-refresh";
  const label = document.createElement("label");
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = localStorage.getItem(key) !== "off";
  box.addEventListener("change", () => localStorage.setItem(key, box.checked ? "on" : "off"));
  label.append(box, ` Refresh every ${seconds} s`);
  place.append(label);
  // Nobody's work is interrupted: not while something is selected, typed or focused.
  const busy = () => {
    const at = document.activeElement;
    return at && at !== document.body && at !== box && at.id !== "main"
      || document.querySelector("input[name]:checked")
      || String(getSelection()) !== "";
  };
  // A picture shows whether the node answers: its page would be gone if it did not. The
  // Content-Security-Policy allows no other request.
  const picture = document.querySelector(".brand img").src;
  const away = document.createElement("span");
  away.setAttribute("role", "status");
  place.prepend(away);
  setInterval(() => {
    if (!box.checked || document.hidden || busy()) return;
    const probe = new Image();
    probe.onload = () => { if (box.checked && !busy()) location.reload(); };
    probe.onerror = () => { away.textContent = "This node does not answer. "; };
    probe.src = `${picture}?${Date.now()}`;
  }, seconds * 1000);
})();

"use strict";

/** The value of a data element: base64 of gzip of JSON. */
async function unpacked(id) {
  if (typeof DecompressionStream === "undefined")
    throw new Error("this browser cannot unpack the data of the page; use a version from 2023 or later");
  const text = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/* The whole state of a page is in its address: #q=…&backend=…&turn=…; an anchor of a section leaves it as it was. */
let lastState = "";

function state() {
  const hash = location.hash.slice(1);
  if (!hash || hash.includes("=")) lastState = hash;
  return new URLSearchParams(lastState);
}

/** The address of the present state with these changes; null and "" take a parameter out. */
function linkTo(changes) {
  const parameters = state();
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") parameters.delete(key);
    else parameters.set(key, value);
  }
  return "#" + parameters.toString();
}

/** A link that changes these parameters of the state, whatever the others are when it is followed. */
function stateLink(changes, options = {}, ...children) {
  const link = element("a", { href: linkTo(changes), ...options }, ...children);
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    location.hash = linkTo(changes);
  });
  return link;
}

/** Runs a part of the page; when all have started, the page says that it is ready. */
let partsToStart = 0;

function starting(part) {
  partsToStart += 1;
  setTimeout(async () => {
    await part();
    partsToStart -= 1;
    if (!partsToStart) document.documentElement.dataset.ready = "true";
  });
}

/** An element with text and children. Texts become text nodes, never markup. */
function element(name, options = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "class") made.className = value;
    else if (key === "text") made.textContent = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

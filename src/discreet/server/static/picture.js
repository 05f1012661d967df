// Pictures are drawn by the server, as wide as there is room and for the reader's paper.

import { blob } from "./api.js";
import { h } from "./dom.js";

const NARROWEST = 240, WIDEST = 1300, ENOUGH = 40;
const dark = window.matchMedia("(prefers-color-scheme: dark)");

/**
 * A picture of what a path holds; given a body, of what is answered to it.
 * It is drawn anew when its room or the paper changes; what it says is its alternative text.
 * @param {string} path
 * @param {{ body?: object, alt?: string }} options
 * @returns {HTMLElement}
 */
export function picture(path, { body, alt = "" }) {
  const image = /** @type {HTMLImageElement} */ (h("img", { class: "picture", alt, hidden: true }));
  const place = h("figure", { class: "drawn", "aria-busy": "true" }, image);
  let drawn = 0, wanted = 0, url = "";

  async function draw() {
    const width = Math.round(Math.min(WIDEST, Math.max(NARROWEST, place.clientWidth)));
    const mine = ++wanted;
    drawn = width;
    place.setAttribute("aria-busy", "true");
    const query = `width=${width}&paper=${dark.matches ? "dark" : "light"}`;
    try {
      const found = await blob(`${path}${path.includes("?") ? "&" : "?"}${query}`, "image/svg+xml", body);
      if (mine !== wanted) return; // a newer one is under way
      image.onload = () => place.setAttribute("aria-busy", "false");
      if (url) URL.revokeObjectURL(url);
      url = URL.createObjectURL(found.data);
      image.alt = decodeURIComponent(found.headers.get("Discreet-Description") ?? "") || alt;
      image.src = url;
      image.hidden = false;
    } catch (error) {
      if (mine !== wanted) return;
      place.setAttribute("aria-busy", "false");
      image.hidden = true;
      place.append(h("figcaption", { class: "quiet" }, "No picture: see the table."));
    }
  }

  const observer = new ResizeObserver(() => {
    if (!place.isConnected) { // the view is gone
      observer.disconnect();
      dark.removeEventListener("change", draw);
      if (url) URL.revokeObjectURL(url);
    } else if (place.clientWidth && Math.abs(place.clientWidth - drawn) > ENOUGH) draw();
  });
  observer.observe(place);
  dark.addEventListener("change", draw);
  return place;
}

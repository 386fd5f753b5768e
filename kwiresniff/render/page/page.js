// Tables that are sorted and searched, and one time in all plots under the pointer. The page can be read without it.
"use strict";
for (const table of document.querySelectorAll("table")) {
  const bodies = [...table.tBodies];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => {
    head.tabIndex = 0;
    const value = (body) => {
      const cell = body.rows[0].cells[at];
      const number = Number(cell.dataset.v ?? cell.textContent.replaceAll(",", ""));
      return cell.textContent.trim() === "" ? null : Number.isNaN(number) ? cell.textContent : number;
    };
    const sort = () => {
      const up = head.ariaSort === "descending" || (head.ariaSort === null && !head.classList.contains("n"));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const compare = (a, b) =>
        typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
      bodies
        .map((body) => [value(body), body])
        .sort(([a], [b]) => (a === null) - (b === null) || (up ? compare(a, b) : compare(b, a)))
        .forEach(([, body]) => table.append(body));
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => event.key === "Enter" && sort());
  });
  if (bodies.length > 5) {
    const input = document.createElement("input");
    input.type = "search";
    input.placeholder = `search ${bodies.length} rows`;
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      bodies.forEach((body) => (body.hidden = !body.textContent.toLowerCase().includes(wanted)));
    });
    table.parentElement.before(input);
  }
}
const plots = [...document.querySelectorAll(".plot")];
for (const plot of plots) {
  const drawn = plot.querySelector(".drawn");
  drawn.addEventListener("pointermove", (event) => {
    const box = drawn.getBoundingClientRect();
    const place = (event.clientX - box.left) / box.width;
    for (const one of plots) {
      const slices = one.querySelectorAll(".slice");
      const at = [...slices].findLastIndex((slice) => slice.x.baseVal.value <= place * 1000);
      slices.forEach((slice, index) => slice.classList.toggle("here", index === at));
      one.previousElementSibling.querySelector("output").textContent = slices[Math.max(at, 0)].textContent;
    }
  });
}

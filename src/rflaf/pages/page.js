"use strict";
(() => {
  // Sorting: numbers by data-value, whatever else by its text; what is empty comes last.
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent;
    return text === "" ? null : cell.dataset.value === undefined ? text : Number(text);
  };
  const compare = (a, b) =>
    typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((each) => each.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [valueOf(row, column), row]);
        rows.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null);
          return down ? compare(b, a) : compare(a, b);
        });
        body.append(...rows.map(([, row]) => row));
      });
    });
  }

  // Light or dark: as the system has it until somebody chooses.
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const remembered = (choice) => {
    try {
      if (choice) localStorage.setItem("theme", choice);
      return localStorage.getItem("theme");
    } catch {
      return null; // a page from a file may have no storage
    }
  };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => (button.textContent = isDark() ? "Light" : "Dark");
  const before = remembered();
  if (before === "dark" || before === "light") root.dataset.theme = before;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remembered(root.dataset.theme);
    label();
  });
  system.addEventListener("change", label);
  button.hidden = false;
  label();
})();

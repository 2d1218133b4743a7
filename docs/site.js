// A browser reads no search index from disk, so there the search box would find nothing.
if (location.protocol === "file:") document.documentElement.classList.add("from-disk");

// The theme adds bars of buttons to code: each has a name, and what scrolls can be reached by the keyboard.
addEventListener("load", () => {
  const name = () => {
    document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
    for (const [index, bar] of document.querySelectorAll(".md-code__nav").entries()) bar.setAttribute("aria-label", `Code ${index + 1}`);
    for (const box of document.querySelectorAll("pre > code, .md-typeset__scrollwrap")) box.tabIndex = 0;
    for (const box of document.querySelectorAll("p:has(> img)")) if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  };
  name();
  new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
});

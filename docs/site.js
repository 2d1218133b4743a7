// A browser reads no search index from disk, so there the search box would find nothing.
if (location.protocol === "file:") document.documentElement.classList.add("from-disk");

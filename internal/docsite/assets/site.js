// The search of the documents. The index is a script, loaded at the first use, because a page
// that is opened from a directory may not fetch. On a small screen the list of pages is closed,
// and the keyboard reaches what is wider than its place, to move it.
(() => {
  for (const e of document.querySelectorAll("main pre, main table")) if (e.scrollWidth > e.clientWidth) e.tabIndex = 0
  if (matchMedia("(max-width: 820px)").matches) document.querySelector(".pages").open = false

  const root = document.currentScript.dataset.root
  const input = document.querySelector(".search input")
  const list = document.getElementById("found")
  const most = 12
  let sections

  globalThis.codeqIndex = (all) => {
    sections = all.map((s) => ({ ...s, title: s.t.toLowerCase(), heading: s.h.toLowerCase(), text: s.x.toLowerCase() }))
    show()
  }

  function load() {
    if (document.getElementById("index")) return
    const script = Object.assign(document.createElement("script"), { id: "index", src: root + "assets/index.js" })
    document.head.append(script)
  }

  // score is how well a section has every word: 0 if one is missing. A word that begins another
  // counts more than one within it, and one of the same stem counts less.
  function score(s, words) {
    let sum = 0
    for (const word of words) {
      const begins = new RegExp("(^|[^\\p{L}\\p{N}])" + word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "u")
      const stem = word.replace(/(ations?|at(e|ing)|ing|ions?|e[sd]?|ies|s|y)$/, "") // migration, migrate, migrating
      const like = (text) => stem.length > 3 && text.includes(stem)
      const weigh = (text, weight) => (begins.test(text) ? 2 : text.includes(word) ? 1 : like(text) ? 0.5 : 0) * weight
      const found = weigh(s.heading, 12) + weigh(s.title, 5) + weigh(s.text, 1)
      if (found === 0) return 0
      sum += found
    }
    return sum
  }

  function item(s, words) {
    const link = Object.assign(document.createElement("a"), { href: root + s.p })
    link.append(s.h === s.t ? s.t : s.t + " › " + s.h)
    const at = Math.max(0, s.text.indexOf(words[0]) - 30)
    link.append(Object.assign(document.createElement("small"), { textContent: (at > 0 ? "… " : "") + s.x.slice(at, at + 140) }))
    const li = document.createElement("li")
    li.append(link)
    return li
  }

  function show() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean)
    list.hidden = words.length === 0 || !sections
    if (list.hidden) return
    const found = sections.map((s) => ({ s, score: score(s, words) })).filter((f) => f.score > 0)
    found.sort((a, b) => b.score - a.score)
    list.replaceChildren(...found.slice(0, most).map((f) => item(f.s, words)))
    if (found.length === 0) list.append(Object.assign(document.createElement("p"), { textContent: "No page has all of these words." }))
  }

  function move(by) {
    const links = [...list.querySelectorAll("a")]
    const next = links.indexOf(document.activeElement) + by
    ;(links[next] ?? input).focus()
  }

  input.addEventListener("focus", load)
  input.addEventListener("input", show)
  addEventListener("keydown", (e) => {
    const inside = e.target === input || list.contains(e.target)
    if (e.key === "/" && !inside) input.focus()
    else if (!inside) return
    else if (e.key === "Escape") { list.hidden = true; input.blur() }
    else if (e.key === "ArrowDown") move(1)
    else if (e.key === "ArrowUp") move(-1)
    else if (e.key === "Enter" && e.target === input) list.querySelector("a")?.click()
    else return
    e.preventDefault()
  })
  addEventListener("click", (e) => { if (!e.target.closest(".search")) list.hidden = true })
})()

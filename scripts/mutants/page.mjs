// Renders the report as HTML: each file with its mutants, survivors first.
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

const score = (killed, count) => count === 0 ? "-" : `${(100 * killed / count).toFixed(1)}%`

const fileTable = (file, mutants) => {
  const of = (mutant) => mutant.killed?.[0]
  const rows = [...mutants].sort((a, b) => Number(of(a) !== undefined) - Number(of(b) !== undefined) || a.line - b.line)
  const killed = mutants.filter(of).length
  const lines = rows.map((mutant) => {
    const test = of(mutant)
    const state = test === undefined ? mutant.covering === 0 ? "no test runs it" : "<b>survives</b>" : escaped(test)
    return `<tr><td>${mutant.line}<td><code>${escaped(mutant.what)}</code><td>${state}`
  })
  const open = killed < mutants.length ? " open" : ""
  return `<details${open}><summary>${file}: ${killed} of ${mutants.length}, ${score(killed, mutants.length)}</summary>
<table><tr><th>line<th>mutant<th>killed by
${lines.join("\n")}</table></details>`
}

export const page = (reports) =>
  `<!doctype html><meta charset="utf-8"><title>Mutants</title>
<style>body{font:15px/1.4 system-ui;margin:2em}td,th{text-align:left;vertical-align:top;padding:2px 8px}</style>
${
    reports.map(({ all, area, equivalent, killed, mutants }) =>
      `<h2>${area}: ${killed} of ${mutants} killed and ${equivalent} equivalent, together ${
        score(killed + equivalent, mutants)
      }</h2>
${[...Map.groupBy(all, ({ file }) => file)].map(([file, of]) => fileTable(file, of)).join("\n")}`
    ).join("\n")
  }
`

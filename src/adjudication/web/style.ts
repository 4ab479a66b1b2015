/** The one style sheet of the page: no external loads, readable at 375 px, in light and in dark. */
export const STYLE = `
:root { color-scheme: light dark; --fg: #1c2024; --bg: #fbfbf9; --soft: #5a6169; --line: #d5d8dc; --panel: #fff; --mark: #ffe58a; --main: #1a5fb4; --bad: #a51d2d; }
@media (prefers-color-scheme: dark) { :root { --fg: #e6e6e3; --bg: #17191b; --soft: #a3a9b0; --line: #3a3f44; --panel: #1f2225; --mark: #6b5900; --main: #8ab4f8; --bad: #ff8f8f; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1rem; background: var(--bg); color: var(--fg); font: 16px/1.5 system-ui, sans-serif; }
header, main { max-width: 80rem; margin: 0 auto; }
h1 { font-size: 1.15rem; margin: 0; }
h2 { font-size: 1rem; margin: 0 0 .5rem; }
.soft { color: var(--soft); }
.bad { color: var(--bad); font-weight: 600; }
code, pre, textarea { font-family: ui-monospace, monospace; font-size: .875rem; }
code { overflow-wrap: anywhere; }
pre { margin: 0; padding: .6rem; white-space: pre-wrap; overflow-wrap: anywhere; max-height: 70vh; overflow-y: auto; background: var(--bg); border: 1px solid var(--line); border-radius: .4rem; }
mark { background: var(--mark); color: inherit; }
section, form.panel, nav { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; padding: .9rem; margin: 1rem 0; }
details { margin: .6rem 0; } summary { cursor: pointer; font-weight: 600; margin-bottom: .3rem; overflow-wrap: anywhere; }
label { display: block; font-weight: 600; margin-bottom: .25rem; }
input[type=search], textarea { width: 100%; padding: .5rem; color: inherit; background: var(--bg); border: 1px solid var(--soft); border-radius: .4rem; font-size: 1rem; }
textarea { min-height: 7rem; resize: vertical; }
.row { display: flex; gap: .5rem; flex-wrap: wrap; align-items: center; } .row input { flex: 1 1 10rem; }
button, .button { display: inline-block; min-height: 2.75rem; padding: .5rem .9rem; font: inherit; color: var(--main); background: var(--panel); border: 1px solid var(--main); border-radius: .4rem; cursor: pointer; text-decoration: none; }
.verdicts { display: grid; gap: .5rem; margin-top: .75rem; }
a { color: var(--main); } :focus-visible { outline: 3px solid var(--main); outline-offset: 2px; }
ul.hits, ol.questions { padding-left: 1.2rem; margin: .5rem 0; max-height: 16rem; overflow-y: auto; } li { overflow-wrap: anywhere; }
@media (min-width: 60rem) { .columns { display: grid; grid-template-columns: minmax(0, 1fr) 22rem; gap: 1rem; align-items: start; } .side { position: sticky; top: 1rem; } }
`;

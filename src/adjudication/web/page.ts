import type { Closing } from '../closing.js';
import { type EvidencePiece, type Hit, searchEvidence } from '../evidence.js';
import type { RoundProgress } from '../round.js';
import { VERDICT_WORDS } from '../words.js';
import { Html, html } from './html.js';
import { STYLE } from './style.js';

/** Characters of a piece that stand in the page; the whole has a page of its own. */
const MAX_SHOWN = 200_000;

export interface ItemView {
  /** The path that holds the token; ends without a slash. */
  readonly base: string;
  readonly progress: RoundProgress;
  readonly alias: string;
  readonly judged: boolean;
  readonly evidence: readonly EvidencePiece[];
  readonly questions: readonly { readonly alias: string; readonly judged: boolean }[];
  readonly search: string;
  /** What was wrong with the verdict that was just sent, and its reason. */
  readonly fault: string | null;
  readonly reason: string;
}

const LABELS: Readonly<Record<string, string>> = {
  infrastructure: 'Infrastructure',
  model: 'Model',
  'cannot-tell': 'Cannot tell',
};

export function itemPage(view: ItemView): Html {
  const { base, alias, evidence, search, progress } = view;
  const hits = search === '' ? [] : searchEvidence(evidence, search);
  return layout(
    `item ${alias}`,
    progress,
    html`<div class="columns">
<div>
<form class="panel" method="get" action="${base}/item/${alias}" role="search">
<label for="q">Search the evidence</label>
<div class="row"><input id="q" type="search" name="q" value="${search}" autocomplete="off"><button>Search</button></div>
${search === '' ? html`` : hitList(evidence, hits)}
</form>
<section aria-label="Evidence"><h2>Evidence of item <code>${alias}</code></h2>
${evidence.map((piece, i) => pieceOf(base, alias, piece, i, search))}
</section>
</div>
<div class="side">${verdictForm(view)}${questionList(view)}</div>
</div>`,
  );
}

function hitList(evidence: readonly EvidencePiece[], hits: readonly Hit[]): Html {
  if (hits.length === 0) return html`<p role="status">Nothing in the evidence holds it.</p>`;
  const items = hits.map(({ piece, line, text }) => {
    const at = evidence.findIndex(({ name }) => name === piece);
    return html`<li><a href="#piece-${at}">${piece}, line ${line}</a> <code>${text.slice(0, 200)}</code></li>`;
  });
  return html`<p role="status">${hits.length} lines</p><ul class="hits">${items}</ul>`;
}

function pieceOf(
  base: string,
  alias: string,
  { name, text }: EvidencePiece,
  i: number,
  search: string,
): Html {
  const cut =
    text.length > MAX_SHOWN
      ? html`<p><a href="${base}/item/${alias}/piece/${i}">The whole of it</a>: it is cut here.</p>`
      : html``;
  return html`<details open id="piece-${i}"><summary>${name}</summary><pre tabindex="0">${marked(text.slice(0, MAX_SHOWN), search)}</pre>${cut}</details>`;
}

function marked(text: string, search: string): Html {
  const [low, wanted] = [text.toLowerCase(), search.toLowerCase()];
  // Where small letters have another length, places would not agree.
  if (wanted === '' || low.length !== text.length) return html`${text}`;
  const parts: Html[] = [];
  let from = 0;
  for (let at = low.indexOf(wanted); at !== -1 && parts.length < 2000; at = low.indexOf(wanted, from)) {
    parts.push(html`${text.slice(from, at)}<mark>${text.slice(at, at + wanted.length)}</mark>`);
    from = at + wanted.length;
  }
  return html`${parts}${text.slice(from)}`;
}

function verdictForm({ base, alias, judged, fault, reason, search }: ItemView): Html {
  if (judged)
    return html`<section><h2>Verdict</h2><p>It is committed, and stays as it is in this round.</p></section>`;
  const buttons = Object.keys(VERDICT_WORDS).map(
    (word) => html`<button name="verdict" value="${word}">${LABELS[word] ?? word}</button>`,
  );
  return html`<form class="panel" method="post" action="${base}/verdict" id="verdict">
<h2>Who was at fault?</h2>
${fault === null ? html`` : html`<p class="bad" role="alert">${fault}</p>`}
<input type="hidden" name="alias" value="${alias}"><input type="hidden" name="q" value="${search}">
<label for="reason">Reason, in three words or more</label>
<textarea id="reason" name="reason" required maxlength="4000" placeholder="What in the evidence decides">${reason}</textarea>
<div class="verdicts">${buttons}</div>
</form>`;
}

function questionList({ base, questions, alias }: ItemView): Html {
  const items = questions.map((one) => {
    const name = one.alias === alias ? html`<strong>${one.alias}</strong>` : html`${one.alias}`;
    return html`<li><a href="${base}/item/${one.alias}"><code>${name}</code></a>${one.judged ? ' ✓ judged' : ''}</li>`;
  });
  return html`<nav aria-label="Items"><h2>Items</h2><ol class="questions">${items}</ol><a class="button" href="${base}/close">End the round …</a></nav>`;
}

export function closePage(base: string, progress: RoundProgress): Html {
  const { questions, judged } = progress;
  const open = questions - judged;
  return layout(
    'end the round',
    progress,
    html`<section><h2>End the round</h2>
<p>All ${judged} verdicts are opened and applied, and it becomes known whose they are. No verdict can be added to this round afterwards.</p>
${open === 0 ? html`` : html`<p class="bad">${open} questions have no verdict yet.</p>`}
<div class="row"><form method="post" action="${base}/close"><button>Open and apply all verdicts</button></form>
<a class="button" href="${base}/">Back</a></div></section>`,
  );
}

export function closedPage(
  progress: RoundProgress,
  { verdicts, applied, pairs, agreeing, late }: Closing,
): Html {
  const figure =
    pairs === 0 ? 'no item was judged twice' : `${agreeing} of ${pairs} items judged twice agree`;
  return layout(
    'round ended',
    progress,
    html`<section><h2>The round has ended</h2><p>${verdicts} verdicts were opened, ${applied} applied; ${figure}.</p>
${late ? html`<p>Outcomes were unblinded before: the verdicts are late and change nothing.</p>` : html``}
<p>This page can be closed.</p></section>`,
  );
}

export function messagePage(title: string, text: string, base: string | null): Html {
  const back = base === null ? html`` : html`<p><a class="button" href="${base}/">Back</a></p>`;
  return layout(title, null, html`<section><h2>${title}</h2><p>${text}</p>${back}</section>`);
}

function layout(title: string, progress: RoundProgress | null, body: Html): Html {
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} – Boundbook adjudication</title><style>${new Html(STYLE)}</style></head>
<body><header><h1>Adjudication, blind</h1>${progress === null ? html`` : state(progress)}</header><main>${body}</main></body></html>`;
}

function state({ questions, judged, late, blinded }: RoundProgress): Html {
  return html`<p class="soft">${judged} of ${questions} questions have a verdict. What would tell an arm or an outcome is masked.${
    late ? ' Outcomes are unblinded: verdicts are late and change nothing.' : ''
  }${blinded || late ? '' : ' The protocol does not blind outcomes.'}</p>`;
}

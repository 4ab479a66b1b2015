const LABEL = 12;
const WIDTH = 80;

/**
 * Lines of a label and a value, broken between words so that they fit a terminal of 80 columns; a longer word, such as a
 * digest, is left whole. An empty label continues the row before.
 */
export function labelled(rows: readonly (readonly [label: string, value: string])[]): string {
  return rows.flatMap(([label, value]) => lines(label, value)).join('\n');
}

function lines(label: string, value: string): string[] {
  const broken: string[] = [];
  let line = '';
  for (const word of value.split(' ')) {
    if (line !== '' && LABEL + line.length + 1 + word.length > WIDTH) {
      broken.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...broken, line].map((part, i) => `${(i === 0 ? label : '').padEnd(LABEL)}${part}`);
}

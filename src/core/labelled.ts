const LABEL = 12;
const WIDTH = 80;

/**
 * Lines of a label and a value, broken between words so that they fit a terminal of 80 columns; a longer word, such as a
 * digest, is left whole. An empty label continues the row before; a label that fills its column is still set off.
 */
export function labelled(rows: readonly (readonly [label: string, value: string])[]): string {
  return rows.flatMap(([label, value]) => lines(label, value)).join('\n');
}

function lines(label: string, value: string): string[] {
  const head = label.length < LABEL ? label.padEnd(LABEL) : `${label} `;
  const broken: string[] = [];
  let line = '';
  for (const word of value.split(' ')) {
    const indent = broken.length === 0 ? head.length : LABEL;
    if (line !== '' && indent + line.length + 1 + word.length > WIDTH) {
      broken.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...broken, line].map((part, i) => `${i === 0 ? head : ' '.repeat(LABEL)}${part}`);
}

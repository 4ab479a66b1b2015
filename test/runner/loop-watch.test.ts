import { describe, expect, test } from 'vitest';
import type { LoopStop } from '../../src/protocol/schema/conditions.js';
import { LoopWatch } from '../../src/runner/adapters/loop-watch.js';
import { randomNumbers } from '../support/random-numbers.js';

/** The complete units of a text. */
function unitsOf(text: string, unit: LoopStop['unit']): readonly string[] {
  if (unit === 'words')
    return text
      .split(/[\t\n\v\f\r ]+/)
      .slice(0, -1)
      .filter((word) => word !== '');
  const characters = [...text];
  return /^[\ud800-\udbff]$/.test(characters.at(-1) ?? '') ? characters.slice(0, -1) : characters;
}

/** The rule as it is written down, by looking at the whole window after each unit. */
function fires(text: string, { unit, length, repeats, window }: LoopStop): boolean {
  const units = unitsOf(text, unit);
  return units.some((_, last) => {
    const seen = units.slice(Math.max(0, last + 1 - window), last + 1);
    const counts = new Map<string, number>();
    for (let i = 0; i + length <= seen.length; i++) {
      const gram = JSON.stringify(seen.slice(i, i + length));
      counts.set(gram, (counts.get(gram) ?? 0) + 1);
    }
    return [...counts.values()].some((count) => count >= repeats);
  });
}

describe('the stop rule', () => {
  test.each([
    ['words', 2, 3, 10, 'a b a b a b ', true],
    // The last word has no end yet
    ['words', 2, 3, 10, 'a b a b a b', false],
    // White space is white space
    ['words', 2, 3, 10, 'a\nb a\tb  a \r b\n', true],
    // Once too seldom, and once too far apart
    ['words', 2, 3, 10, 'a b a b x x ', false],
    ['words', 2, 2, 4, 'a b x y z u a b ', false],
    // Overlaps count
    ['characters', 2, 3, 4, 'aaaa', true],
    ['characters', 2, 3, 4, 'aaab', false],
    // Code points, not their halves
    ['characters', 1, 3, 3, '😀😀😀', true],
    ['characters', 1, 3, 3, '😀😀\ud83d', false],
    ['characters', 3, 2, 4, '', false],
  ] as const)('%s: %i, %i times in %i: %j', (unit, length, repeats, window, text, fired) => {
    const rule = { unit, length, repeats, window };
    expect(fires(text, rule)).toBe(fired);
    expect(new LoopWatch(rule).feed(text)).toBe(fired);
  });

  test('says the same as its definition, at the same place, in whatever pieces the text comes', () => {
    const { below, pick } = randomNumbers(7);
    let fired = 0;
    for (let round = 0; round < 1500; round++) {
      const length = 1 + below(3);
      const repeats = 2 + below(3);
      const rule = {
        unit: pick(['words', 'characters'] as const),
        length,
        repeats,
        window: length + repeats - 1 + below(12),
      };
      const watch = new LoopWatch(rule);
      let text = '';
      for (let piece = 0; piece < 12; piece++) {
        let added = '';
        for (let i = below(6); i > 0; i--)
          added += pick(['a', 'b', 'ab', ' ', '\n', '😀', '\ud83d', '\ude00']);
        text += added;
        expect(watch.feed(added), JSON.stringify([rule, text])).toBe(fires(text, rule));
      }
      if (fires(text, rule)) fired++;
    }
    // Both happened often
    expect(fired).toBeGreaterThan(300);
    expect(fired).toBeLessThan(1300);
  });
});

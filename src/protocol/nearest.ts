import { closest, distance } from 'fastest-levenshtein';

/** The known word that a misspelt one most resembles; null when none comes near. */
export function nearest(word: string, known: readonly string[]): string | null {
  if (known.length === 0) return null;
  const best = closest(word, known);
  return distance(word, best) <= Math.max(2, Math.ceil(word.length * 0.6)) ? best : null;
}

/** A hint that names the nearest known word, and all of them when they are few. */
export function spellingHint(word: string, known: readonly string[]): string {
  const best = nearest(word, known);
  const list = known.length > 0 && known.length <= 20 ? `Known here: ${known.join(', ')}.` : '';
  const guess = best === null ? '' : `Did you mean ${JSON.stringify(best)}?`;
  return [guess, list].filter((part) => part !== '').join(' ') || 'Nothing of that kind is declared.';
}

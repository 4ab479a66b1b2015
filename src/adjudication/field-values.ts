import { EXCEPTION, type ValueForm } from './field-names.js';

/** Whether the value of a field that is named like something to mask is one. */

const NUMBER = String.raw`[-+]?\.?[0-9][0-9.eE+/%-]*`;
export const PLAIN_WORD = String.raw`true\b|false\b|null\b|none\b|nan\b|pass(?:ed)?\b|fail(?:ed)?\b`;
export const PLAIN_SOURCE = `${NUMBER}|${PLAIN_WORD}`;
const PLAIN = new RegExp(`^\\s*(?:${PLAIN_SOURCE})\\s*$`, 'i');
const HOST = /^[A-Za-z][\w-]*(?:\.[\w-]+)*(?::\d+)?$/;
const VERSION = /^v?\d+(?:\.\d+)*(?:[-+].*)?$/;
const ACCOUNT = /^[a-z_][a-z0-9_.-]{0,31}\$?$/i;
const SENTENCE = /[A-Za-z]{2,}[^\S\n]+[A-Za-z]{2,}/;

/** The text of a value in quotes. */
export function isTellingText(form: ValueForm, text: string, isAccount: (text: string) => boolean): boolean {
  const isWord = !/\s/.test(text.trim());
  switch (form) {
    case 'any':
    case 'reward':
      return true;
    case 'verdict':
      return isWord || PLAIN.test(text);
    case 'result':
    case 'number':
      return PLAIN.test(text);
    case 'seed':
    case 'name':
    case 'host':
      return isWord;
    case 'address':
      return isAddress(text);
    case 'digits':
      return /^\d+$/.test(text);
    case 'account':
      return ACCOUNT.test(text) && isAccount(text);
    case 'path':
      return /[\\/~]/.test(text);
    case 'time':
      return /\d/.test(text);
    case 'list':
      return false;
  }
}

/** A list or an object, with its brackets. */
export function isTellingList(form: ValueForm, text: string): boolean {
  switch (form) {
    case 'verdict':
      return !SENTENCE.test(text);
    case 'number':
      return !/[A-Za-z_]{2,}/.test(
        text.replace(/\b(?:true|false|null|none|nan|pass|passed|fail|failed)\b/gi, ''),
      );
    case 'address':
    case 'digits':
    case 'account':
    case 'path':
    case 'time':
      return false;
    default:
      return true;
  }
}

/**
 * A word without quotes.
 *
 * @param joint what stands between name and value
 * @param isEnd whether nothing but punctuation follows on the line: in a sentence a word is a word
 */
export function isTellingWord(
  form: ValueForm,
  word: string,
  joint: string,
  isEnd: boolean,
  isAccount: (text: string) => boolean,
): boolean {
  if (EXCEPTION.test(word)) return false;
  const isSaid = isEnd || joint.trim() === '=';
  switch (form) {
    case 'any':
      return true;
    case 'reward':
    case 'verdict':
      return isSaid || PLAIN.test(word);
    case 'seed':
      return isSaid || /\d/.test(word) || PLAIN.test(word);
    case 'name':
      return isSaid || /[\d@_./:-]|[A-Z]/.test(word.replace(/[.:]$/, ''));
    case 'host':
      return isSaid || isAddress(word);
    case 'account':
      return ACCOUNT.test(word) && (joint.trim() === '=' || isAccount(word));
    case 'list':
      return false;
    default:
      return isTellingText(form, word, isAccount);
  }
}

/** Whether a word is the name or address of a host by its looks. */
function isAddress(text: string): boolean {
  if (/^\[?[0-9a-f]*:[0-9a-f:]+\]?$|^(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?$/i.test(text)) return true;
  return HOST.test(text) && /[\d.]/.test(text) && !VERSION.test(text);
}

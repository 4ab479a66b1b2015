/** Prompts of so many tasks, each of one mode of the stub server. */
export const tasks = (count: number, mode = 'right'): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`t${i}`, `${mode} ${i}`]));

/** What stands for something that is masked: one fixed text for each kind, so that no length tells. */
export const PLACEHOLDERS = {
  name: '⟦name⟧',
  seed: '⟦seed⟧',
  path: '⟦path⟧',
  host: '⟦host⟧',
  reward: '⟦reward⟧',
  setting: '⟦setting⟧',
  prompt: '⟦prompt⟧',
  digest: '⟦digest⟧',
  time: '⟦time⟧',
  base64: '⟦base64⟧',
  hex: '⟦hex⟧',
} as const;

export type MaskKind = keyof typeof PLACEHOLDERS;

import { Progress } from './progress.js';

export interface AnnouncerSetting {
  readonly terminal: boolean;
  readonly line: (line: string) => void;
}

/** What a session says while it works: lines, warnings that are said once more at its end, and how far it has come. */
export class Announcer {
  readonly #setting: AnnouncerSetting;
  readonly #warnings: string[] = [];
  #progress: Progress | null = null;

  constructor(setting: AnnouncerSetting) {
    this.#setting = setting;
  }

  get warnings(): readonly string[] {
    return this.#warnings;
  }

  say(line: string): void {
    if (this.#progress === null) this.#setting.line(line);
    else this.#progress.line(line);
  }

  /** Said now, and once more at the end. */
  warn(line: string): void {
    this.#warnings.push(line);
    this.say(`warning: ${line}`);
  }

  /** Shows from now on how much is done. */
  async showProgress(done: () => number, total: number): Promise<void> {
    this.#progress = new Progress({ ...this.#setting, done, total });
    await this.#progress.start();
  }

  hideProgress(): void {
    this.#progress?.stop();
  }
}

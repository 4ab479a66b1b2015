import type { MultiBar, Presets, SingleBar } from 'cli-progress';

export interface ProgressSetting {
  readonly terminal: boolean;
  /** A line for people. */
  readonly line: (text: string) => void;
  /** Slots that are closed now. No outcome is shown (law 8). */
  readonly done: () => number;
  readonly total: number;
}

const BAR_MS = 200;
const LINE_MS = 5000;

/** Shows how far a session is: a bar on a terminal, a line every few seconds elsewhere. */
export class Progress {
  readonly #setting: ProgressSetting;
  readonly #began = performance.now();
  readonly #doneBefore: number;
  #timer: NodeJS.Timeout | null = null;
  #bars: MultiBar | null = null;
  #bar: SingleBar | null = null;

  constructor(setting: ProgressSetting) {
    this.#setting = setting;
    this.#doneBefore = setting.done();
  }

  async start(): Promise<void> {
    const { terminal, total } = this.#setting;
    if (terminal) {
      const cliProgress = await import('cli-progress');
      this.#bars = new cliProgress.default.MultiBar(
        {
          format: ' {bar} {value} of {total} slots, {pace}',
          barsize: 24,
          stream: process.stderr,
          clearOnComplete: false,
          hideCursor: true,
          noTTYOutput: false,
        },
        barPreset(cliProgress.default.Presets),
      );
      this.#bar = this.#bars.create(total, this.#doneBefore, { pace: this.#pace() });
    }
    this.#timer = setInterval(() => this.#show(), terminal ? BAR_MS : LINE_MS);
    this.#timer.unref();
  }

  /** A remark, above the bar when there is one. */
  readonly line = (text: string): void => {
    if (this.#bars === null) this.#setting.line(text);
    else this.#bars.log(`${text}\n`);
  };

  /** Nothing is shown any more but remarks. Safe to call again. */
  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#bar?.update(this.#setting.done(), { pace: this.#pace() });
    this.#bar = null;
    this.#bars?.stop();
    this.#bars = null;
  }

  #show(): void {
    const { done, total, line } = this.#setting;
    if (this.#bar !== null) this.#bar.update(done(), { pace: this.#pace() });
    else line(`${done()} of ${total} slots, ${this.#pace()}`);
  }

  #pace(): string {
    const { done, total } = this.#setting;
    const seconds = (performance.now() - this.#began) / 1000;
    const rate = (done() - this.#doneBefore) / Math.max(seconds, 0.001);
    if (rate <= 0) return 'no slot closed yet';
    return `${rate.toPrecision(3)} a second, ${duration((total - done()) / rate)} left`;
  }
}

function barPreset(presets: typeof Presets): (typeof Presets)['shades_classic'] {
  return presets.shades_classic;
}

/** Seconds for people. */
export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  if (seconds < 5400) return `${Math.ceil(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

export interface PoolSetting<Item, Result> {
  readonly items: Iterable<Item>;
  /** How many are under way at once. */
  readonly limit: number;
  /** @returns null when it was cut */
  readonly work: (item: Item, cut: AbortSignal) => Promise<Result | null>;
  /** Starts nothing more; what is under way may end. */
  readonly stop: AbortSignal;
  /** Cuts what is under way. */
  readonly force: AbortSignal;
}

/**
 * Works on items with a bounded number under way, and gives what has ended since it was last asked. Nothing is under way any
 * more when it is done, however it was left; the first fault ends it.
 */
export async function* pooled<Item, Result>(
  setting: PoolSetting<Item, Result>,
): AsyncGenerator<readonly Result[]> {
  const { limit, work, stop, force } = setting;
  const items = setting.items[Symbol.iterator]();
  const cut = new AbortController();
  const onForce = () => cut.abort();
  force.addEventListener('abort', onForce);
  if (force.aborted) onForce();
  const underWay = new Set<Promise<void>>();
  const faults: unknown[] = [];
  let ended: Result[] = [];
  const start = (item: Item): void => {
    const one = work(item, cut.signal)
      .then((result) => {
        if (result !== null) ended.push(result);
      })
      .catch((error: unknown) => {
        faults.push(error);
        cut.abort();
      })
      .finally(() => underWay.delete(one));
    underWay.add(one);
  };
  try {
    for (let done = false; ; ) {
      while (!done && underWay.size < limit && !stop.aborted && !cut.signal.aborted) {
        const next = items.next();
        done = next.done === true;
        if (next.done !== true) start(next.value);
      }
      if (underWay.size > 0) await Promise.race(underWay);
      const batch = ended;
      ended = [];
      if (batch.length > 0) yield batch;
      if (underWay.size === 0 && ended.length === 0 && (done || stop.aborted || cut.signal.aborted)) break;
    }
    if (faults.length > 0) throw faults[0];
  } finally {
    cut.abort();
    await Promise.all(underWay);
    force.removeEventListener('abort', onForce);
  }
}

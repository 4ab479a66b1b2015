import { blockTuples, type SlotBlock, slotOf } from './blocks.js';
import { orderKey, type Slot, type SlotKey, slotId } from './slot.js';

/** A block and the number of its first slot in the expansion of the whole plan. */
export interface NumberedBlock {
  readonly block: SlotBlock;
  readonly first: number;
}

/** Number of slots in a block. */
export function sizeOf(block: SlotBlock): number {
  return block.tasks.length * block.reps;
}

/**
 * The selected slots of some blocks, ascending by order key (P19).
 *
 * While it sorts, a slot is one 64-bit word: the key's leading 32 bits above the slot's ordinal in the expansion.
 * Slots whose leading bits agree are then put right by their whole keys.
 *
 * @param without numbers of slots that are passed over, at the cost of nothing
 */
export function* sortGroup(
  namespace: string,
  numbered: readonly NumberedBlock[],
  isSelected: (slot: Slot) => boolean,
  without: (number: number) => boolean = () => false,
): Generator<Slot> {
  const blocks = numbered.map(({ block }) => block);
  const total = blocks.reduce((sum, block) => sum + sizeOf(block), 0);
  const words = new BigUint64Array(total);
  const halves = new Uint32Array(words.buffer);
  const high = HIGH_HALF;
  let count = 0;
  let before = 0;
  for (const { block, first } of numbered) {
    for (const part of blockTuples(block, (offset) => without(first + offset))) {
      const slot = slotOf(block, part);
      if (!isSelected(slot)) continue;
      halves[2 * count + high] = Number.parseInt(orderKey(namespace, slot.id).slice(0, 8), 16);
      halves[2 * count + 1 - high] = before + part.offset;
      count++;
    }
    before += sizeOf(block);
  }
  words.subarray(0, count).sort();
  for (let i = 0; i < count; ) {
    let end = i + 1;
    while (end < count && halves[2 * end + high] === halves[2 * i + high]) end++;
    const run: Slot[] = [];
    for (let j = i; j < end; j++) run.push(slotAt(blocks, halves[2 * j + 1 - high] ?? 0));
    yield* run.length === 1 ? run : byWholeKey(namespace, run);
    i = end;
  }
}

/** Which 32-bit half of a 64-bit word is the more significant one on this machine. */
const HIGH_HALF = new Uint32Array(new BigUint64Array([1n]).buffer)[0] === 1 ? 1 : 0;

function byWholeKey(namespace: string, slots: readonly Slot[]): readonly Slot[] {
  return slots
    .map((slot) => ({ key: orderKey(namespace, slot.id), slot }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ slot }) => slot);
}

/** The slot with this ordinal in the expansion of the blocks. */
function slotAt(blocks: readonly SlotBlock[], ordinal: number): Slot {
  let rest = ordinal;
  for (const block of blocks) {
    const size = sizeOf(block);
    if (rest < size) {
      const { queue, arm, trainingSeed, evaluationSeed } = block;
      const task = block.tasks[Math.floor(rest / block.reps)] ?? '';
      const key: SlotKey = { queue, arm, trainingSeed, evaluationSeed, task, rep: rest % block.reps };
      return { ...key, id: slotId(key) };
    }
    rest -= size;
  }
  throw new RangeError(`no slot has the ordinal ${ordinal}`);
}

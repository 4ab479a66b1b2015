/** The default of a switch that handles every case: the compiler sees to it that no value comes here. */
export function unreachable(value: never): never {
  throw new Error(`unhandled case ${JSON.stringify(value)}`);
}

/** Numbers of things in sentences. */

/** @returns "1 turn", "2 turns", "0 searches" @param many if it is not `one` with an s */
export const quantity = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`;

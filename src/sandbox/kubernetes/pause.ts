/** A pause between two looks at the cluster. */

/** @param ms how long. It ends early with the signal. */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const over = AbortSignal.timeout(ms);
  const first = signal === undefined ? over : AbortSignal.any([signal, over]);
  first.addEventListener("abort", () => resolve());
  return promise;
};

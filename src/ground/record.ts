/** Whether a value of unknown origin is an object with named fields, as JSON has them: no list, and no instant (TOML). */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
